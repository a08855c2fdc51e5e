"""What the agent may ask of the worker: one JSON document on stdin, parsed strictly."""

from dataclasses import dataclass

from slurmk8s.results.retention import Rule
from slurmk8s.results.strict import Fields, Malformed, load
from slurmk8s.results.summary import ArrayTask, Summary, from_json, read_array
from slurmk8s.results.usage import Course, read_course


@dataclass(frozen=True)
class Modes:
    """Modes of what the worker makes; as configured by the site."""

    folder: int = 0o711
    file: int = 0o600
    outputs: int = 0o700


@dataclass(frozen=True)
class Target:
    """Which bundle, and which attempt's part of it."""

    root: str
    job_id: int
    attempt: int | None
    """None: whichever attempt the bundle is at."""
    modes: Modes
    submitted: float | None = None
    """When the job was submitted: tells it from an older one that had the same number. None: not known."""

    @property
    def folder(self) -> str:
        """The bundle's folder, for messages and replies; the work is done by descriptor."""
        return f"{self.root.rstrip('/')}/{self.job_id}"


@dataclass(frozen=True)
class Prepare:
    """Make the bundle ready for an attempt."""

    target: Target
    attempt: int
    name: str
    array: ArrayTask | None
    handover: bool = False
    """Whether the job and its pod meet in the bundle."""


@dataclass(frozen=True)
class Note:
    """Add slurmk8s's own words to stderr.log, when no body could say anything."""

    target: Target
    stderr: str


@dataclass(frozen=True)
class Finish:
    """The attempt is over: measure outputs, write the summaries."""

    target: Target
    summary: Summary
    course: Course | None = None
    """What it used over time, to be drawn; None where nothing was measured."""


@dataclass(frozen=True)
class Checksums:
    """Hash everything, write checksums.txt, complete the summaries."""

    target: Target
    processes: int
    """How many files are hashed at the same time."""
    bytes_per_second: int | None = None
    """How fast at most; None: as fast as it goes."""


@dataclass(frozen=True)
class ReadSummary:
    """What summary.json says."""

    target: Target


@dataclass(frozen=True)
class Prune:
    """Remove this user's bundles that have had their time. About no job, so it has a root instead of a target."""

    root: str
    rule: Rule
    dry_run: bool


Request = Prepare | Note | Finish | Checksums | ReadSummary | Prune
OPERATIONS = ("prepare", "note", "finish", "checksums", "read_summary", "prune")


def parse(data: bytes) -> Request:
    """The request, or Malformed."""
    fields = load(data, "request")
    operation = fields.choice("op", OPERATIONS)
    request: Request
    if operation == "prune":
        request = _prune(fields)
        fields.done()
        return request
    target = _target(fields)
    if operation == "prepare":
        if target.attempt is None:
            raise Malformed("request has no field 'attempt'")
        request = Prepare(
            target=target,
            attempt=target.attempt,
            name=fields.text("name") if fields.has("name") else "",
            array=read_array(fields),
            handover=fields.flag("handover") if fields.has("handover") else False,
        )
    elif operation == "note":
        request = Note(target, fields.text("stderr"))
    elif operation == "finish":
        course = read_course(fields.inner("course")) if fields.has("course") else None
        request = Finish(target, from_json(fields.raw("summary")), course)
        if request.summary.job_id != target.job_id or target.attempt not in (None, request.summary.attempt):
            raise Malformed("the summary is of another job or attempt than the request")
    elif operation == "checksums":
        processes = fields.whole("processes", 1, 256) if fields.has("processes") else 2
        rate = fields.whole("bytes_per_second", 1) if fields.has("bytes_per_second") else None
        request = Checksums(target, processes, rate)
    else:
        request = ReadSummary(target)
    fields.done()
    return request


def _prune(fields: Fields) -> Prune:
    rule = Rule(
        days=fields.number_or_none("days"),
        total_bytes=fields.whole_or_none("total_bytes"),
        spare_days=fields.number_or_none("spare_days") or 0.0,
    )
    return Prune(_root(fields), rule, fields.flag("dry_run"))


def _root(fields: Fields) -> str:
    root = fields.text("root", 4096)
    if not root.startswith("/") or "\0" in root:
        raise Malformed("request: 'root' is not an absolute path")
    return root


def _target(fields: Fields) -> Target:
    return Target(
        root=_root(fields),
        job_id=fields.whole("job_id", 1),
        attempt=fields.whole("attempt", 0, 10**8) if fields.has("attempt") else None,
        modes=_modes(fields.inner("modes")) if fields.has("modes") else Modes(),
        submitted=fields.number_or_none("submitted") if fields.has("submitted") else None,
    )


def _modes(fields: Fields) -> Modes:
    modes = Modes(
        folder=fields.whole("folder", 0o700, 0o7777),
        file=fields.whole("file", 0o600, 0o777),
        outputs=fields.whole("outputs", 0o700, 0o7777),
    )
    fields.done()
    return modes
