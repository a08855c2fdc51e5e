"""usage.svg: what the job used over time, for a browser and for a file manager's preview.

Lines on a white sheet of its own, so that a dark viewer shows it as well; no script, no font from elsewhere, nothing
that a viewer might refuse. One panel per resource, each from nothing up to what the job had.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from slurmk8s.results.summary import Summary
from slurmk8s.results.summary_text import duration, printable, size
from slurmk8s.results.usage import Course

WIDTH = 720
LEFT, RIGHT, TOP, BOTTOM = 20, 20, 84, 34
PANEL, GAP = 96, 36
INK, FAINT, GRID, SHEET = "#1f2933", "#616e7c", "#d9dee4", "#ffffff"
CPU, MEMORY, GPU, GPU_MEMORY, LIMIT = "#0b6bcb", "#8a3ffc", "#1a7f37", "#b35900", "#c62828"
FONTS = "DejaVu Sans, Noto Sans, Arial, sans-serif"
# Words over a line stay readable.
HALO = 'font-size="11" stroke="#ffffff" stroke-width="3" paint-order="stroke"'
_ROOM = WIDTH - LEFT - RIGHT


@dataclass(frozen=True)
class Line:
    """One resource over time."""

    values: Sequence[float | None]
    ceiling: float
    colour: str
    filled: bool = True


@dataclass(frozen=True)
class Panel:
    """One picture of the page."""

    title: str
    figures: str
    lines: tuple[Line, ...]
    limit: str = ""
    """What the red line at the top stands for."""


def svg(summary: Summary, course: Course) -> bytes:
    """The file."""
    panels = list(_panels(summary, course))
    height = TOP + len(panels) * (PANEL + GAP) - GAP + BOTTOM
    name = printable(f"Job {summary.job_id} {summary.name}")
    head = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {head} font-family="{FONTS}" font-size="13">',
        f"<title>{escape(name)}: what it used over time</title>",
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="{SHEET}" stroke="{GRID}"/>',
        _text(LEFT, 28, _cut(name, 60), INK, 'font-size="17" font-weight="bold"'),
        _text(LEFT, 47, _cut(_subtitle(summary), 95), FAINT),
    ]
    for place, panel in enumerate(panels):
        parts += _drawn(panel, course.seconds, TOP + place * (PANEL + GAP))
    parts += _clock(course.seconds[-1], height - 12)
    return ("\n".join([*parts, "</svg>"]) + "\n").encode("utf-8", "backslashreplace")


def _subtitle(summary: Summary) -> str:
    running = summary.durations.running
    words = [summary.user, summary.node, summary.state.replace("_", " ")]
    return printable(" · ".join([*words, *([f"ran for {duration(running)}"] if running is not None else [])]))


def _panels(summary: Summary, course: Course) -> Iterator[Panel]:
    usage = summary.usage
    cores = max(summary.cpus, 1)
    mean = f"{usage.cpu_cores:.1f} of {summary.cpus} on average" if usage else ""
    most = max([cores, *(value for value in course.cpu_cores if value is not None)])
    yield Panel(
        "CPUs", mean, (Line(course.cpu_cores, most, CPU),), f"{summary.cpus} asked for" if most == cores else ""
    )
    limit = summary.memory_mb << 20
    peak = usage.memory_peak_bytes if usage else 0
    told = f"peak {size(peak)}" + (f" of {size(limit)}" if limit else "")
    ceiling = float(max(limit, peak, 1))
    yield Panel(
        "Memory", told, (Line(course.memory_bytes, ceiling, MEMORY),), f"limit {size(limit)}" if limit >= peak else ""
    )
    figures = {card.name: card for card in usage.gpus} if usage else {}
    for card in course.gpus:
        known = figures.get(card.name)
        words = []
        if known and known.utilisation is not None:
            words.append(f"{known.utilisation:.0f} % busy on average")
        if known:
            words.append(f"memory (orange) peak {size(known.memory_peak_bytes)} of {size(known.memory_bytes)}")
        lines = (
            Line(card.utilisation, 100.0, GPU),
            Line(card.memory_bytes, float(max(card.memory_total, 1)), GPU_MEMORY, filled=False),
        )
        yield Panel(f"GPU {printable(card.name)}", ", ".join(words), lines)


def _drawn(panel: Panel, seconds: Sequence[float], top: int) -> Iterator[str]:
    bottom = top + PANEL
    yield _text(LEFT, top - 6, panel.title, INK, 'font-weight="bold"')
    yield _text(WIDTH - RIGHT, top - 6, panel.figures, FAINT, 'text-anchor="end"')
    yield f'<rect x="{LEFT}" y="{top}" width="{_ROOM}" height="{PANEL}" fill="#f7f9fb" stroke="{GRID}"/>'
    yield f'<path d="M{LEFT} {top + PANEL / 2:g}H{WIDTH - RIGHT}" stroke="{GRID}" stroke-dasharray="2 4"/>'
    for line in panel.lines:
        for points in _runs(line, seconds, top):
            if line.filled:
                area = f"{points[0][0]:.1f},{bottom} {_joined(points)} {points[-1][0]:.1f},{bottom}"
                yield f'<polygon points="{area}" fill="{line.colour}" fill-opacity="0.18"/>'
            yield (
                f'<polyline points="{_joined(points)}" fill="none" stroke="{line.colour}" stroke-width="2" '
                'stroke-linejoin="round" stroke-linecap="round"/>'
            )
    if panel.limit:
        yield f'<path d="M{LEFT} {top}H{WIDTH - RIGHT}" stroke="{LIMIT}" stroke-width="1.5" stroke-dasharray="6 4"/>'
        yield _text(LEFT + 5, top + 14, panel.limit, LIMIT, HALO)


def _runs(line: Line, seconds: Sequence[float], top: int) -> Iterator[list[tuple[float, float]]]:
    """Pieces of the line between what is not known."""
    whole = seconds[-1] or 1.0
    run: list[tuple[float, float]] = []
    for second, value in zip(seconds, line.values, strict=True):
        if value is None:
            if run:
                yield run
            run = []
            continue
        part = min(1.0, max(0.0, value / line.ceiling))
        run.append((LEFT + _ROOM * min(1.0, max(0.0, second / whole)), top + PANEL * (1 - part)))
    if run:
        yield run


def _joined(points: Sequence[tuple[float, float]]) -> str:
    # A single point would be no line at all: it gets a short one.
    drawn = points if len(points) > 1 else [points[0], (points[0][0] + 1, points[0][1])]
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in drawn)


def _clock(whole: float, baseline: int) -> Iterator[str]:
    for part, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        words = "0" if part == 0 else duration(whole * part)
        yield _text(round(LEFT + _ROOM * part), baseline, words, FAINT, f'text-anchor="{anchor}"')


def _text(x: int, y: int, words: str, colour: str, more: str = "") -> str:
    return f'<text x="{x}" y="{y}" fill="{colour}"{" " + more if more else ""}>{escape(words)}</text>' if words else ""


def _cut(words: str, most: int) -> str:
    return words if len(words) <= most else words[: most - 1] + "…"
