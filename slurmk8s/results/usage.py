"""What an attempt used, beside what it had asked for: the figures of the summary, and their course over time."""

from collections.abc import Sequence
from dataclasses import dataclass

from slurmk8s.results.strict import Fields, Malformed

MOST_POINTS = 1000
"""In a course that is drawn."""
MOST_CARDS = 64
_LEVELS = "▁▂▃▄▅▆▇█"
TREND_LENGTH = 40


@dataclass(frozen=True)
class CardUsage:
    """One GPU of the job."""

    name: str
    """Its index on the node."""
    model: str
    utilisation: float | None
    """Mean over the time that was measured, in percent; None where the driver does not tell."""
    memory_peak_bytes: int
    memory_bytes: int
    """What it has."""
    trend: str
    """Its utilisation over time, as a row of block characters."""


@dataclass(frozen=True)
class Usage:
    """The whole attempt, as measured on its node."""

    samples: int
    """How many times it was looked at."""
    cpu_seconds: float
    cpu_cores: float
    """Mean over the body's time."""
    cpu_cores_high: float
    """What was used at most in 95 % of the time."""
    cpu_trend: str
    memory_peak_bytes: int
    """Anonymous and shared memory, /dev/shm included; without the page cache."""
    memory_trend: str
    gpus: tuple[CardUsage, ...] = ()
    notes: tuple[str, ...] = ()
    """What to ask for next time, most useful first."""


@dataclass(frozen=True)
class CardCourse:
    """One GPU over time."""

    name: str
    utilisation: tuple[float | None, ...]
    memory_bytes: tuple[float | None, ...]
    memory_total: int


@dataclass(frozen=True)
class Course:
    """What was used over time, for the picture. All rows are as long as `seconds`."""

    seconds: tuple[float, ...]
    """Since the body's start."""
    cpu_cores: tuple[float | None, ...]
    memory_bytes: tuple[float | None, ...]
    gpus: tuple[CardCourse, ...] = ()


def trend(values: Sequence[float | None], ceiling: float) -> str:
    """A row of block characters between nothing and the ceiling; a space where nothing is known."""
    if not values:
        return ""
    width = min(TREND_LENGTH, len(values))
    shares = [values[len(values) * place // width : len(values) * (place + 1) // width] for place in range(width)]
    return "".join(_level([value for value in share if value is not None], ceiling) for share in shares).rstrip()


def _level(values: Sequence[float], ceiling: float) -> str:
    if not values:
        return " "
    part = sum(values) / len(values) / ceiling if ceiling > 0 else 0.0
    return _LEVELS[min(len(_LEVELS) - 1, max(0, int(part * len(_LEVELS))))]


def read_usage(fields: Fields) -> Usage:
    """The field `usage` of a summary."""
    usage = Usage(
        samples=fields.whole("samples"),
        cpu_seconds=fields.number("cpu_seconds"),
        cpu_cores=fields.number("cpu_cores"),
        cpu_cores_high=fields.number("cpu_cores_high"),
        cpu_trend=fields.text("cpu_trend", 200),
        memory_peak_bytes=fields.whole("memory_peak_bytes"),
        memory_trend=fields.text("memory_trend", 200),
        gpus=tuple(_card_usage(inner) for inner in fields.inners("gpus", MOST_CARDS)),
        notes=fields.texts("notes"),
    )
    fields.done()
    return usage


def _card_usage(fields: Fields) -> CardUsage:
    card = CardUsage(
        name=fields.text("name", 100),
        model=fields.text("model", 200),
        utilisation=fields.number_or_none("utilisation"),
        memory_peak_bytes=fields.whole("memory_peak_bytes"),
        memory_bytes=fields.whole("memory_bytes"),
        trend=fields.text("trend", 200),
    )
    fields.done()
    return card


def read_course(fields: Fields) -> Course:
    """What a request brings to be drawn."""
    seconds = fields.numbers("seconds", MOST_POINTS)
    if None in seconds or not seconds:
        raise Malformed("course: a point has no time")
    course = Course(
        seconds=tuple(float(second or 0) for second in seconds),
        cpu_cores=fields.numbers("cpu_cores", MOST_POINTS),
        memory_bytes=fields.numbers("memory_bytes", MOST_POINTS),
        gpus=tuple(_card_course(inner) for inner in fields.inners("gpus", MOST_CARDS)),
    )
    fields.done()
    rows = [course.cpu_cores, course.memory_bytes]
    rows += [row for card in course.gpus for row in (card.utilisation, card.memory_bytes)]
    if any(len(row) != len(seconds) for row in rows):
        raise Malformed("course: its rows are not equally long")
    return course


def _card_course(fields: Fields) -> CardCourse:
    card = CardCourse(
        name=fields.text("name", 100),
        utilisation=fields.numbers("utilisation", MOST_POINTS),
        memory_bytes=fields.numbers("memory_bytes", MOST_POINTS),
        memory_total=fields.whole("memory_total"),
    )
    fields.done()
    return card
