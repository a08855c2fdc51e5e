"""Needs nothing. Text in columns, Korean too, and tables at any width."""

import click
import pytest

from slurmk8s.cli.table import Cell, Column, bar, table
from slurmk8s.results.columns import clipped, padded, width, wrapped


@pytest.mark.parametrize(("text", "columns"), [("abc", 3), ("학습", 4), ("e\u0301", 1), ("ＡＢ", 4), ("…", 1), ("", 0)])
def test_width_is_what_a_terminal_shows(text: str, columns: int) -> None:
    assert width(text) == columns


@pytest.mark.parametrize("text", ["학습-bert-대형", "train", "가나다라마바사", ""])
@pytest.mark.parametrize("columns", range(1, 15))
def test_clipped_text_fits_and_padded_text_fills(text: str, columns: int) -> None:
    short = clipped(text, columns)
    assert width(short) <= columns
    assert short == text or short.endswith("…")
    assert width(padded(short, columns)) == columns


@pytest.mark.parametrize("columns", [4, 10, 28, 200])
@pytest.mark.parametrize("most", [1, 2, 5])
def test_wrapped_text_fits_and_loses_nothing_while_there_is_room(columns: int, most: int) -> None:
    text = "메모리 부족: it was killed at its limit of 65536 MiB; aVeryLongWordWithoutAnySpaceInIt"
    lines = wrapped(text, columns, most)
    assert len(lines) <= most
    assert all(width(line) <= columns for line in lines)
    if not lines[-1].endswith("…"):
        assert "".join(lines).replace(" ", "") == text.replace(" ", "")


COLUMNS = [Column("JOB"), Column("NAME", most=12), Column("SIZE", right=True), Column("CAUSE")]
ROWS = [
    ["7", "학습-아주-긴-이름-모델", "12.0 KiB", Cell("Out of memory: it was killed at its limit of 100 MiB.", "red")],
    [Cell("1234567", bold=True), "x", "1 byte", ""],
]


@pytest.mark.parametrize("wide", [40, 60, 80, 120, 200])
def test_a_table_fits_its_terminal(wide: int) -> None:
    lines = [click.unstyle(line) for line in table(COLUMNS, ROWS, wide)]
    assert all(width(line) <= wide for line in lines)
    assert all(line == line.rstrip() for line in lines)
    sizes = [line for line in lines if "KiB" in line or "byte" in line]
    ends = {width(line[: line.index(unit) + len(unit)]) for line in sizes for unit in ("KiB", "byte") if unit in line}
    assert len(ends) == 1


def test_into_a_pipe_each_row_is_one_line_and_whole() -> None:
    lines = [click.unstyle(line) for line in table(COLUMNS, ROWS, None)]
    assert len(lines) == 3
    assert "학습-아주-긴-이름-모델" in lines[1]
    assert lines[1].endswith("at its limit of 100 MiB.")


@pytest.mark.parametrize(("part", "full"), [(0, 0), (0.5, 5), (1, 10), (7, 10), (-1, 0)])
def test_a_bar_is_never_longer_than_it_is(part: float, full: int) -> None:
    assert bar(part, 10) == "█" * full + "░" * (10 - full)
