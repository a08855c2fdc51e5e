"""Tables for terminals, and plain ones for everything else.

On a terminal a table fits its width: the last column is wrapped, or stands below its row where there is no room beside
it. Into a pipe each row is one line, with nothing left out.
"""

import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import click

from slurmk8s.results.columns import clipped, width, wrapped

_GAP = 2
_NARROWEST_TEXT = 28


@dataclass(frozen=True)
class Column:
    """A column by its title."""

    title: str
    right: bool = False
    most: int | None = None
    """Widest on a terminal; None: as wide as its cells. The last column takes what is left."""


@dataclass(frozen=True)
class Cell:
    """A text and how it looks."""

    text: str
    colour: str | None = None
    dim: bool = False
    bold: bool = False


Row = Sequence[Cell | str]


def terminal_width() -> int | None:
    """Columns of the terminal; None if there is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def table(
    columns: Sequence[Column], rows: Sequence[Row], wide: int | None, indent: int = 0, lines: int = 2
) -> Iterator[str]:
    """The lines of a table with its head. `lines`: how many the last column may take."""
    cells = [[_cell(each) for each in row] for row in rows]
    heads = [Cell(column.title, dim=True) for column in columns]
    widths = [
        _fitting(column, [head, *(row[number] for row in cells)], wide)
        for number, (column, head) in enumerate(zip(columns, heads, strict=True))
    ]
    used = indent + sum(widths[:-1]) + _GAP * (len(widths) - 1)
    if wide is None or columns[-1].right:
        for row in [heads, *cells]:
            yield _line(columns, row, widths, indent)
        return
    below = wide - used < _NARROWEST_TEXT
    margin = indent + 4 if below else used
    for row in [heads, *cells]:
        text = wrapped(row[-1].text, max(_NARROWEST_TEXT, wide - margin), lines)
        if below and row is heads:
            text = [""]  # what stands below needs no title
        first = "" if below else text.pop(0)
        yield _line(columns, [*row[:-1], replace(row[-1], text=first)], [*widths[:-1], width(first)], indent)
        yield from (" " * margin + _styled(row[-1], line) for line in text if line)


def _fitting(column: Column, cells: list[Cell], wide: int | None) -> int:
    widest = max(width(cell.text) for cell in cells)
    return widest if wide is None or column.most is None else min(widest, column.most)


def _line(columns: Sequence[Column], row: list[Cell], widths: list[int], indent: int) -> str:
    shown = []
    for column, cell, wide in zip(columns, row, widths, strict=True):
        text = clipped(cell.text, wide)
        space = " " * (wide - width(text))  # outside the colours: nothing is left at the end of a line
        shown.append(space + _styled(cell, text) if column.right else _styled(cell, text) + space)
    return (" " * indent + (" " * _GAP).join(shown)).rstrip()


def _styled(cell: Cell, text: str) -> str:
    if not text.strip() or not (cell.colour or cell.dim or cell.bold):
        return text
    return click.style(text, fg=cell.colour, dim=cell.dim or None, bold=cell.bold or None)


def _cell(value: Cell | str) -> Cell:
    return value if isinstance(value, Cell) else Cell(value)


STATE_COLOURS = {
    "completed": "green",
    "running": "cyan",
    "requeued": "yellow",
    "cancelled": "yellow",
    "preempted": "yellow",
    "removed": None,
    "hidden": None,
    "": None,
}


def state_cell(state: str) -> Cell:
    """A state in its colour: what went wrong is red."""
    return Cell(state.replace("_", " "), STATE_COLOURS.get(state, "red"))


def bar(part: float, columns: int) -> str:
    """How much of something has passed: `█████░░░`."""
    full = min(columns, max(0, round(part * columns)))
    return "█" * full + "░" * (columns - full)
