"""What jobs took and what came of it: hours, waste, causes of failure, time in the queue. Pure."""

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime

from slurmk8s.ops import causes
from slurmk8s.results.entry import Entry

By = Callable[[Entry, int], str]


def _local(at: float, shape: str) -> str:
    return datetime.fromtimestamp(at, UTC).astimezone().strftime(shape)


BY: dict[str, By] = {
    "user": lambda entry, uid: entry.user or str(uid),
    "account": lambda entry, _: entry.account or "(none)",
    "partition": lambda entry, _: entry.partition,
    "node": lambda entry, _: entry.node,
    "image": lambda entry, _: entry.image.rpartition("/")[2],
    "name": lambda entry, _: entry.name,
    "state": lambda entry, _: entry.state.replace("_", " "),
    "day": lambda entry, _: _local(entry.at, "%Y-%m-%d"),
    "month": lambda entry, _: _local(entry.at, "%Y-%m"),
}
"""What a line of a report may stand for."""


@dataclass(frozen=True)
class Line:
    """What the attempts of one group add up to. An attempt of a requeued job counts for itself: it had its node too."""

    group: str
    jobs: int
    failed: int
    """Jobs with an attempt that went wrong."""
    gpu_hours: float
    cpu_hours: float
    lost_gpu_hours: float
    """Of attempts that went wrong."""
    idle_gpu_hours: float | None
    """In which the GPUs did nothing; None where it was not measured."""
    gpu_use: float | None
    """0 to 1, over the GPU-hours that were measured."""
    cpu_use: float | None
    memory_use: float | None
    """Median of the peak, as a part of what was asked for."""
    queued_median: float | None
    queued_p90: float | None


@dataclass(frozen=True)
class Cause:
    """Why attempts went wrong."""

    cause: str
    attempts: int
    gpu_hours: float
    example: str
    """The job that last ended so."""
    sentence: str


@dataclass(frozen=True)
class Report:
    """All of it."""

    by: str
    lines: tuple[Line, ...]
    total: Line
    causes: tuple[Cause, ...]

    def to_json(self) -> dict[str, object]:
        """For programs."""
        return asdict(self)


@dataclass
class _Sum:
    """A group while it is added up."""

    jobs: set[int] = field(default_factory=set)
    failed: set[int] = field(default_factory=set)
    gpu_hours: float = 0.0
    cpu_hours: float = 0.0
    lost: float = 0.0
    measured_gpu_hours: float = 0.0
    used_gpu_hours: float = 0.0
    measured_cpu_hours: float = 0.0
    used_cpu_hours: float = 0.0
    memory: list[float] = field(default_factory=list)
    queued: list[float] = field(default_factory=list)

    def add(self, entry: Entry) -> None:
        self.jobs.add(entry.job_id)
        gpu_hours, cpu_hours = entry.gpu_hours, entry.cpu_hours
        self.gpu_hours += gpu_hours
        self.cpu_hours += cpu_hours
        if causes.is_bad(entry):
            self.failed.add(entry.job_id)
            self.lost += gpu_hours
        if entry.gpu_use is not None:
            self.measured_gpu_hours += gpu_hours
            self.used_gpu_hours += gpu_hours * min(1.0, max(0.0, entry.gpu_use))
        if entry.cpu_seconds is not None:
            self.measured_cpu_hours += cpu_hours
            self.used_cpu_hours += entry.cpu_seconds / 3600
        if entry.memory_peak is not None and entry.memory_mb:
            self.memory.append(entry.memory_peak / (entry.memory_mb * 2**20))
        if entry.queued is not None:
            self.queued.append(entry.queued)

    def merge(self, other: "_Sum") -> None:
        for each in fields(self):
            mine, theirs = getattr(self, each.name), getattr(other, each.name)
            setattr(self, each.name, mine | theirs if isinstance(mine, set) else mine + theirs)

    def line(self, group: str) -> Line:
        queued = sorted(self.queued)
        measured = self.measured_gpu_hours
        return Line(
            group=group,
            jobs=len(self.jobs),
            failed=len(self.failed),
            gpu_hours=round(self.gpu_hours, 3),
            cpu_hours=round(self.cpu_hours, 3),
            lost_gpu_hours=round(self.lost, 3),
            idle_gpu_hours=round(measured - self.used_gpu_hours, 3) if measured else None,
            gpu_use=round(self.used_gpu_hours / measured, 4) if measured else None,
            cpu_use=_part(self.used_cpu_hours, self.measured_cpu_hours),
            memory_use=round(statistics.median(self.memory), 4) if self.memory else None,
            queued_median=round(statistics.median(queued), 1) if queued else None,
            queued_p90=round(percentile(queued, 0.9), 1) if queued else None,
        )


def _part(used: float, of: float) -> float | None:
    return round(used / of, 4) if of > 0 else None


def percentile(ordered: Sequence[float], part: float) -> float:
    """The value that this part of them does not exceed: one that occurred, not one between two."""
    return ordered[min(len(ordered) - 1, max(0, -int(-part * len(ordered) // 1) - 1))]


def make(attempts: Iterable[tuple[Entry, int]], by: str) -> Report:
    """Add up attempts that have ended, each with its owner's uid; the newest first."""
    name = BY[by]
    groups: dict[str, _Sum] = defaultdict(_Sum)
    bad: dict[str, Cause] = {}
    for entry, uid in attempts:
        groups[name(entry, uid)].add(entry)
        if causes.is_bad(entry):
            _count(bad, entry)
    total = _Sum()
    for group in groups.values():
        total.merge(group)
    lines = [group.line(key) for key, group in groups.items()]
    in_time = by in ("day", "month")
    lines.sort(key=lambda line: line.group if in_time else (-line.gpu_hours, -line.cpu_hours, line.group))
    ranked = sorted(bad.values(), key=lambda cause: (-cause.attempts, -cause.gpu_hours, cause.cause))
    return Report(by, tuple(lines), total.line("total"), tuple(ranked))


def _count(bad: dict[str, Cause], entry: Entry) -> None:
    key = causes.group(entry)
    before = bad.get(key)
    if before is None:
        bad[key] = Cause(key, 1, round(entry.gpu_hours, 3), entry.shown_id, entry.cause)
    else:
        hours = round(before.gpu_hours + entry.gpu_hours, 3)
        bad[key] = Cause(key, before.attempts + 1, hours, before.example, before.sentence)
