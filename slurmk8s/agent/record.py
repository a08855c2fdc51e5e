"""What the agent knows of a job, on disk: `jobs/<id>.json` while it lives here, `owed/<id>.<attempt>.json` afterwards.

Written before the pod is made and readable by root alone. The Epilog trusts these files, never the job's comment.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from slurmk8s import durable


@dataclass(frozen=True)
class Record:
    """One attempt of a job on this node."""

    job_id: int
    attempt: int
    name: str
    user: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    account: str
    partition: str
    nodes: tuple[str, ...]
    array: tuple[int, int] | None
    """(array job id, task id)."""
    may_requeue: bool
    time_limit: str
    cpus: int
    memory_mb: int
    gpus: tuple[int, ...]
    submitted: float | None
    started: float | None
    dropped: float | None = None
    """When the watcher took the file; None for a job by plain sbatch."""
    mail_user: str = ""
    mail_types: tuple[str, ...] = ()
    """`--mail-user` and `--mail-type`, as Slurm had them when the job began."""
    image: str = ""
    """Empty until the job's `#K8S_` lines were found right."""
    workdir: str = ""
    script: str | None = None
    priority: str | None = None
    shm_bytes: int | None = None
    mounts: tuple[str, ...] = ()
    digest: str | None = None
    pull_started: float | None = None
    pulled: float | None = None
    ended: float | None = None
    body_started: float | None = None
    made: bool = False
    """Whether the pod was made, so that its absence means it is gone."""
    running: bool = False
    """Whether its container ran, so that only its end is waited for."""
    marks: tuple[str, ...] = ()
    """What the pod's processes are known by on the node, should the pod be gone without them."""
    waits: int = 0
    """How many of the earlier attempts only found the person's quota full."""
    waiting: bool = False
    """Whether this one did."""
    failure: str | None = None
    """Why there was no body, as told to the person; with whose fault it was."""
    fault: str = "none"
    requeueing: bool = False
    exit_code: int | None = None
    """The body's, by the launcher; else the container's own."""
    reported: bool = False
    """Whether the launcher reported it."""
    cut_short: bool = False
    """Whether Slurm ended the job while the body still ran and nobody had told it to end: slurmk8s-run was killed."""
    told_to_end: bool = False
    """Whether slurmk8s-run was told to end the body, as it is by every orderly end."""
    problem: str | None = None
    peak_bytes: int | None = None
    """The most memory that the pod held, where the launcher could read it."""
    cpu_seconds: float | None = None
    """What the pod has computed in all, where the launcher could read it."""
    script_sha256: str | None = None
    """Of the body that ran, by slurmk8s-run."""
    out_of_memory: bool = False
    no_room: str | None = None
    """Said in the summary if the NAS was full, or the quota used up, when it was to be written."""
    state: str | None = None
    """How it ended, where the head node tells it because the node was lost; the sentence is then in `failure`."""
    summarised: bool = False
    """Whether the worker has written the summary, so that only checksums are owed."""

    @property
    def tries(self) -> int:
        """Which attempt this is, counted from 1, without those that only waited."""
        return self.attempt - self.waits + 1

    def rank(self, node: str) -> int:
        """Which of the job's nodes this one is, counted from 0."""
        return self.nodes.index(node) if node in self.nodes else 0


class Store:
    """The agent's records in its state folder. One writer: the agent."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("jobs", "owed", "hints", "usage"):
            (folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
            for left in (folder / name).glob("*.tmp"):
                left.unlink()

    def save(self, record: Record) -> Record:
        """Keep a job's record; returns it."""
        durable.write_json(self._job(record.job_id), asdict(record))
        return record

    def load(self, job_id: int) -> Record | None:
        """The record of a job that lives here."""
        return _read(self._job(job_id))

    def jobs(self) -> list[Record]:
        """All jobs that live here."""
        return [record for path in (self.folder / "jobs").glob("*.json") if (record := _read(path))]

    def hints(self) -> set[int]:
        """Jobs that a Prolog told us of."""
        return {int(path.name) for path in (self.folder / "hints").iterdir() if path.name.isdigit()}

    def owe(self, record: Record) -> None:
        """The pod is gone; what remains is the bundle. First the debt, then the record: a crash between pays twice."""
        durable.write_json(self._owed(record), asdict(record))
        self.forget(record.job_id)

    def owed(self) -> Iterator[Record]:
        """Bundles still to be written, oldest first."""
        for path in sorted((self.folder / "owed").glob("*.json"), key=lambda path: path.stat().st_mtime):
            if record := _read(path):
                yield record

    def is_owed(self, job_id: int, attempt: int) -> bool:
        """Whether anything of this attempt is still to be written."""
        return (self.folder / "owed" / f"{job_id}.{attempt}.json").exists()

    def still_owes(self, job_id: int, attempt: int) -> bool:
        """Whether a summary of an earlier attempt of this job is not written yet."""
        return any(r.job_id == job_id and r.attempt < attempt and not r.summarised for r in self.owed())

    def owes_anything(self, job_id: int, attempt: int) -> bool:
        """Whether anything of an earlier attempt of this job is still to be written."""
        return any(r.job_id == job_id and r.attempt < attempt for r in self.owed())

    def update_owed(self, record: Record) -> Record:
        """A step of the debt is paid."""
        durable.write_json(self._owed(record), asdict(record))
        return record

    def paid(self, record: Record) -> None:
        """The bundle is complete."""
        self.samples(record).unlink(missing_ok=True)
        self._owed(record).unlink(missing_ok=True)

    def forget(self, job_id: int) -> None:
        """Neither record nor hint: the Epilog will exit at once."""
        self._job(job_id).unlink(missing_ok=True)
        (self.folder / "hints" / str(job_id)).unlink(missing_ok=True)

    def samples(self, record: Record) -> Path:
        """Where the meter keeps what an attempt used over time."""
        return self.folder / "usage" / f"{record.job_id}.{record.attempt}"

    def _job(self, job_id: int) -> Path:
        return self.folder / "jobs" / f"{job_id}.json"

    def _owed(self, record: Record) -> Path:
        return self.folder / "owed" / f"{record.job_id}.{record.attempt}.json"


def _read(path: Path) -> Record | None:
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return from_json(data)


def from_json(data: dict[str, Any]) -> Record:
    """Read what `asdict` made of a record and JSON of that; an agent of another version may have known more."""
    data = dict(data)
    for name in ("groups", "nodes", "gpus", "mounts", "array", "marks", "mail_types"):
        if data.get(name) is not None:
            data[name] = tuple(data[name])
    known = {field.name for field in fields(Record)}
    return Record(**{name: value for name, value in data.items() if name in known})
