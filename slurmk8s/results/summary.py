"""The summary of one attempt of a job: what happened, to whom, where, when and why.

`summary.json` is its form for programs (summary.schema.json describes it), `job_summary.txt` the one for people
(summary_text.py). The agent fills in what it knows; the worker adds outputs and checksums.
"""

import json
from dataclasses import asdict, dataclass, replace

from slurmk8s.results.strict import Fields, Malformed, load
from slurmk8s.results.usage import Usage, read_usage

SCHEMA = 1
STATES = (
    "completed",
    "failed",
    "cancelled",
    "timeout",
    "requeued",
    "node_fail",
    "preempted",
    "out_of_memory",
)
FAULTS = ("none", "person", "cluster", "node", "ours")

PENDING = "pending"
COMPLETE = "complete"
FAILED = "failed: "

NODE = "node"
HEAD = "head node"
NODE_AFTER_HEAD = "node after head node"
WRITERS = (NODE, HEAD, NODE_AFTER_HEAD)


@dataclass(frozen=True)
class ArrayTask:
    """Place in a job array: Slurm shows it as `job_id_task_id`."""

    job_id: int
    task_id: int

    def __str__(self) -> str:
        return f"{self.job_id}_{self.task_id}"


@dataclass(frozen=True)
class Times:
    """When things happened, as Unix times; None for what never happened or is not known."""

    submitted: float | None = None
    """When Slurm accepted it; after a requeue, when it went back into the queue."""
    started: float | None = None
    pull_started: float | None = None
    pulled: float | None = None
    body_started: float | None = None
    ended: float | None = None
    dropped: float | None = None
    """When the watcher took the file; None for a job by plain sbatch."""


@dataclass(frozen=True)
class Durations:
    """How long things took, in seconds."""

    accepting: float | None
    queued: float | None
    pulling: float | None
    running: float | None


@dataclass(frozen=True)
class Outputs:
    """What lies under outputs/: regular files and the sum of their sizes."""

    files: int
    bytes: int
    skipped_count: int = 0
    """Symbolic links, pipes, sockets and devices: neither followed nor hashed."""
    skipped: tuple[str, ...] = ()
    """The first of them by name."""


@dataclass(frozen=True)
class Summary:
    """Everything the two summary files say."""

    cluster: str
    job_id: int
    array: ArrayTask | None
    name: str
    user: str
    uid: int
    account: str
    partition: str
    attempt: int
    node: str
    """The job's first."""
    nodes: tuple[str, ...]
    image: str
    image_digest: str | None
    workdir: str
    command: str
    """What ran: "the job file's own body", or the path that #K8S_SCRIPT names."""
    gpus: tuple[str, ...]
    cpus: int
    memory_mb: int
    times: Times
    state: str
    exit_code: int | None
    signal: str | None
    """Name of the signal the body died of, such as SIGKILL."""
    cause: str
    """One sentence: why it ended."""
    fault: str
    script_sha256: str | None = None
    """Of the body that ran; None where it could not be read on the node."""
    usage: Usage | None = None
    """None where nothing was measured."""
    outputs: Outputs | None = None
    """None: not measured (yet), or in use by a later attempt."""
    checksums: str = PENDING
    """`pending`, `complete`, or `failed: ` and why."""
    complete: bool = False
    """Everything in the bundle is there and verifies."""
    written_by: str = NODE
    """The job's node; or the head node, because that node was lost; or the node, once it was back after all."""

    @property
    def durations(self) -> Durations:
        """Time until Slurm had it, in the queue, pulling the image, and running the body."""
        times = self.times
        return Durations(
            accepting=None if self.attempt else _between(times.dropped, times.submitted),
            queued=_between(times.submitted, times.started),
            pulling=_between(times.pull_started, times.pulled),
            running=_between(times.body_started, times.ended),
        )

    @property
    def gpu_hours(self) -> float | None:
        """What the job held of GPUs, from its start in Slurm to its end."""
        held = _between(self.times.started, self.times.ended)
        return None if held is None else round(len(self.gpus) * held / 3600, 4)

    @property
    def starts_again(self) -> bool:
        """Whether Slurm was to start the job again after this attempt."""
        return self.state == "requeued"

    def to_json(self) -> dict[str, object]:
        """As it stands in summary.json."""
        fields = asdict(self)
        document: dict[str, object] = {"schema": SCHEMA}
        for key, value in fields.items():
            document[key] = list(value) if isinstance(value, tuple) else value
            if key == "times":
                document["durations"] = asdict(self.durations)
                document["gpu_hours"] = self.gpu_hours
        if self.usage is not None:
            cards = [asdict(card) for card in self.usage.gpus]
            document["usage"] = {**asdict(self.usage), "gpus": cards, "notes": list(self.usage.notes)}
        if self.outputs is not None:
            document["outputs"] = {**asdict(self.outputs), "skipped": list(self.outputs.skipped)}
        return document

    def encode(self) -> bytes:
        """The bytes of summary.json."""
        return json.dumps(self.to_json(), ensure_ascii=False, indent=2).encode("utf-8", "backslashreplace") + b"\n"


def _between(start: float | None, end: float | None) -> float | None:
    """Clocks of two machines may disagree a little: never a negative duration."""
    return None if start is None or end is None else round(max(0.0, end - start), 3)


def decode(data: bytes) -> Summary:
    """Read the bytes of summary.json, or raise Malformed."""
    return _read(load(data, "summary"))


def from_json(document: object) -> Summary:
    """Read a parsed summary strictly, or raise Malformed."""
    return _read(Fields(document, "summary"))


def _read(fields: Fields) -> Summary:
    schema = fields.whole("schema")
    if schema != SCHEMA:
        raise Malformed(f"summary has schema {schema}; this slurmk8s reads {SCHEMA}: a newer one wrote it")
    fields.raw("durations")  # always computed from the times
    if fields.has("gpu_hours"):  # this too
        fields.raw("gpu_hours")
    summary = Summary(
        cluster=fields.text("cluster"),
        job_id=fields.whole("job_id", 1),
        array=read_array(fields),
        name=fields.text("name"),
        user=fields.text("user"),
        uid=fields.whole("uid"),
        account=fields.text("account"),
        partition=fields.text("partition"),
        attempt=fields.whole("attempt"),
        node=fields.text("node"),
        nodes=fields.texts("nodes"),
        image=fields.text("image"),
        image_digest=fields.text_or_none("image_digest"),
        workdir=fields.text("workdir"),
        command=fields.text("command"),
        gpus=fields.texts("gpus"),
        cpus=fields.whole("cpus"),
        memory_mb=fields.whole("memory_mb"),
        times=_times(fields.inner("times")),
        state=fields.choice("state", STATES),
        exit_code=fields.whole_or_none("exit_code"),
        signal=fields.text_or_none("signal"),
        cause=fields.text("cause"),
        fault=fields.choice("fault", FAULTS),
        script_sha256=fields.text("script_sha256", 64) if fields.has("script_sha256") else None,
        usage=read_usage(fields.inner("usage")) if fields.has("usage") else None,
        outputs=_outputs(fields.inner("outputs")) if fields.has("outputs") else None,
        checksums=_checksums(fields.text("checksums")),
        complete=fields.flag("complete"),
        written_by=fields.choice("written_by", WRITERS) if fields.has("written_by") else NODE,
    )
    fields.done()
    return summary


def read_array(fields: Fields) -> ArrayTask | None:
    """The field `array`, which may be null or absent."""
    if not fields.has("array"):
        return None
    inner = fields.inner("array")
    task = ArrayTask(job_id=inner.whole("job_id", 1), task_id=inner.whole("task_id"))
    inner.done()
    return task


def _times(fields: Fields) -> Times:
    times = Times(
        submitted=fields.number_or_none("submitted"),
        started=fields.number_or_none("started"),
        pull_started=fields.number_or_none("pull_started"),
        pulled=fields.number_or_none("pulled"),
        body_started=fields.number_or_none("body_started"),
        ended=fields.number_or_none("ended"),
        dropped=fields.number_or_none("dropped") if fields.has("dropped") else None,
    )
    fields.done()
    return times


def _outputs(fields: Fields) -> Outputs:
    outputs = Outputs(
        files=fields.whole("files"),
        bytes=fields.whole("bytes"),
        skipped_count=fields.whole("skipped_count"),
        skipped=fields.texts("skipped"),
    )
    fields.done()
    return outputs


def _checksums(value: str) -> str:
    if value not in (PENDING, COMPLETE) and not value.startswith(FAILED):
        raise Malformed(f"summary: 'checksums' is {value!r}, not pending, complete or failed")
    return value


def keep_first(first: Summary, later: Summary) -> Summary:
    """One summary from two accounts of the same attempt.

    The cause of death is written once: what comes later is duller ("cancelled", since the pod of a job that ran out
    of memory was deleted). Only an account without any cause gives way. What the first did not know is filled in.
    What the head node wrote of a lost node's job gives way to what the node itself knows.
    """
    if later.written_by == HEAD and first.written_by != HEAD:
        return first
    if first.written_by == HEAD and later.written_by != HEAD:
        return _after_head(first, later)
    dying = first if first.cause else later
    times = {key: value if value is not None else getattr(later.times, key) for key, value in vars(first.times).items()}
    return replace(
        later,
        times=Times(**times),
        nodes=first.nodes or later.nodes,
        gpus=first.gpus or later.gpus,
        image_digest=first.image_digest or later.image_digest,
        script_sha256=first.script_sha256 or later.script_sha256,
        usage=first.usage or later.usage,
        state=dying.state,
        exit_code=dying.exit_code,
        signal=dying.signal,
        cause=dying.cause,
        fault=dying.fault,
        outputs=first.outputs if first.complete else later.outputs,
        checksums=first.checksums if first.complete else later.checksums,
        complete=first.complete,
        written_by=first.written_by,
    )


def _after_head(head: Summary, node: Summary) -> Summary:
    """The node's account in place of the head node's. Of a body that died with its node the node itself knows less."""
    told = replace(node, written_by=NODE_AFTER_HEAD)
    if head.state == "node_fail" and node.fault == "node" and node.exit_code is None:
        times = replace(node.times, ended=head.times.ended or node.times.ended)
        return replace(told, state=head.state, cause=head.cause, times=times)
    return told
