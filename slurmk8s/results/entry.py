"""One line of the index: an attempt of a job, in what people search for and reports add up. Pure.

The line is made from the summary and is never believed over it; what is malformed in a line makes it no line.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from slurmk8s.results.summary import STATES

RUNNING = "running"
"""State of an attempt that has begun. All others are the summary's."""

# A line stays well below what one write(2) of any NAS client sends as a whole.
_LONGEST = {"name": 200, "cause": 600, "image": 300}


class Entry(NamedTuple):
    """An attempt. A tuple: a hundred thousand of them are read at a time."""

    # The order is that of the line. New fields go to the end: a line may be older, or newer, than its reader.
    at: float
    """When it ended; when it began, while it runs."""
    job_id: int
    attempt: int
    state: str
    array: str = ""
    """`7_3` for a task of an array."""
    name: str = ""
    user: str = ""
    account: str = ""
    partition: str = ""
    node: str = ""
    image: str = ""
    cause: str = ""
    fault: str = "none"
    exit_code: int | None = None
    cpus: int = 0
    memory_mb: int = 0
    gpus: int = 0
    files: int | None = None
    bytes: int | None = None
    submitted: float | None = None
    started: float | None = None
    body_started: float | None = None
    ended: float | None = None
    cpu_seconds: float | None = None
    """Used, where it was measured."""
    memory_peak: float | None = None
    """In bytes, where it was measured."""
    gpu_use: float | None = None
    """Mean of its GPUs while it ran, 0 to 1, where it was measured."""

    @property
    def runs(self) -> bool:
        """Whether it had not ended when this was written."""
        return self.state == RUNNING

    @property
    def key(self) -> tuple[int, int, int]:
        """What tells attempts apart, also where Slurm's job ids have started again."""
        return self.job_id, self.attempt, int(self.submitted or 0)

    @property
    def shown_id(self) -> str:
        """As people and Slurm name it."""
        return self.array or str(self.job_id)

    @property
    def queued(self) -> float | None:
        """Seconds in the queue."""
        return _between(self.submitted, self.started)

    @property
    def held(self) -> float:
        """Seconds for which it had its node, CPUs and GPUs."""
        return _between(self.started, self.ended) or 0.0

    @property
    def gpu_hours(self) -> float:
        """Of the GPUs it had, used or not."""
        return self.gpus * self.held / 3600

    @property
    def cpu_hours(self) -> float:
        """Of the CPUs it had, used or not."""
        return self.cpus * self.held / 3600


def _between(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else max(0.0, end - start)


def of_summary(document: Mapping[str, Any], now: float) -> Entry:
    """The entry of an attempt that has ended, from what summary.json says."""
    times = document["times"]
    array, outputs = document["array"], document["outputs"]
    usage = document.get("usage") or {}
    ended = times["ended"]
    return Entry(
        at=ended if ended is not None and 0 <= ended < _LATEST else now,
        job_id=document["job_id"],
        attempt=document["attempt"],
        state=document["state"],
        array=f"{array['job_id']}_{array['task_id']}" if array else "",
        name=document["name"],
        user=document["user"],
        account=document["account"],
        partition=document["partition"],
        node=document["node"],
        image=document["image"],
        exit_code=document["exit_code"],
        cause=document["cause"],
        fault=document["fault"],
        submitted=times["submitted"],
        started=times["started"],
        body_started=times["body_started"],
        ended=ended,
        cpus=document["cpus"],
        memory_mb=document["memory_mb"],
        gpus=len(document["gpus"]),
        files=outputs["files"] if outputs else None,
        bytes=outputs["bytes"] if outputs else None,
        cpu_seconds=usage.get("cpu_seconds"),
        memory_peak=usage.get("memory_peak_bytes"),
        gpu_use=_mean([card["utilisation"] for card in usage.get("gpus", ())]),
    )


def _mean(percents: Sequence[float | None]) -> float | None:
    known = [percent for percent in percents if percent is not None]
    return round(sum(known) / len(known) / 100, 4) if known else None


def encode(entry: Entry) -> bytes:
    """The line: the fields in order. Its time comes first, so lines sorted as bytes are sorted by time."""
    for key, longest in _LONGEST.items():
        text = getattr(entry, key)
        if len(text) > longest:
            entry = entry._replace(**{key: text[:longest] + "…"})
    return json.dumps(entry, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


def decode(line: bytes) -> Entry | None:
    """The entry, or None if the line is none: cut short by a crash, or edited."""
    try:
        values = json.loads(line.decode())
        entry = Entry(*values[:_COUNT])
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    kinds = tuple(map(type, entry))
    if kinds not in _sound_kinds:
        if not _is_sound(kinds):
            return None
        _sound_kinds.add(kinds)
    value: Any
    for value in entry[_NUMBERS:]:
        if value is not None and not 0 <= value < _LARGEST:  # nor is NaN
            return None
    # An admin's terminal shows these two as they are.
    if entry.state not in _STATES or (entry.array and not _TASK.fullmatch(entry.array)):
        return None
    is_sound = 0 <= entry.at < _LATEST and 0 < entry.job_id < _FIRST_NO_ID and 0 <= entry.attempt < _LARGEST
    return entry if is_sound else None


_COUNT = len(Entry._fields)
_NUMBERS = Entry._fields.index("exit_code")
_LARGEST = 2.0**62
# The year 9999: past it there is no date, and within it a time zone may lead past it.
_LATEST = 253370764800.0
# Names of bundles have at most 18 digits.
_FIRST_NO_ID = 10**18
_STATES = frozenset((*STATES, RUNNING))
_TASK = re.compile(r"[0-9]{1,19}_[0-9]{1,19}", re.ASCII)
# There are few combinations of types in sound lines, and looking one up is quicker than checking each value.
_sound_kinds: set[tuple[type, ...]] = set()
_KINDS: dict[object, tuple[type, ...]] = {
    float: (float, int),
    int: (int,),
    str: (str,),
    int | None: (int, type(None)),
    float | None: (float, int, type(None)),
}
_FIELD_KINDS = tuple(_KINDS[kind] for kind in Entry.__annotations__.values())


def _is_sound(kinds: tuple[type, ...]) -> bool:
    return all(kind in wanted for kind, wanted in zip(kinds, _FIELD_KINDS, strict=True))
