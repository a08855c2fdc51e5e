"""`slurmk8s status`: what waits, what runs, what has ended, on one screen."""

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from slurmk8s.cli import dates
from slurmk8s.cli.results import echo_json, results_root, uid_of
from slurmk8s.cli.table import Cell, Column, Row, bar, state_cell, table, terminal_width
from slurmk8s.results.columns import clipped
from slurmk8s.results.summary_text import duration, printable, when

if TYPE_CHECKING:
    from slurmk8s.ops.overview import Ended, InQueue, Overview, Question, Running

_DAY = 86400
_BAR = 10
_SECONDS_BETWEEN_LOOKS = 3.0


@click.command()
@click.option("--all", "everyone", is_flag=True, help="Everybody's jobs, not only yours.")
@click.option("--user", "person", help="Another person's jobs.")
@dates.option("--since", "Show jobs that ended since: 2026-11-01, today, 7d. Default: 24 hours.")
@click.option("-n", "--number", default=10, show_default=True, type=click.IntRange(0), help="Ended jobs at most.")
@click.option("--watch", "watching", is_flag=True, help="Look again every few seconds, until Ctrl-C.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def status(
    *, everyone: bool, person: str | None, since: float | None, number: int, watching: bool, as_json: bool
) -> int:
    """Show jobs on one screen: running with their progress, waiting with their place and why, ended with their cause.

    Needs no Kubernetes credential. If Slurm does not answer, that is said, and what the results tell is shown; the exit
    status is then 1.
    """
    uid = None if everyone else uid_of(person)
    if as_json:
        found = _look(uid, since, number)
        echo_json(found.to_json())
        return 1 if found.slurm_fault else 0
    while True:
        found = _look(uid, since, number)
        wide = terminal_width()
        lines = list(_screen(found, uid, wide))
        repeat = watching and sys.stdout.isatty()
        # Home, each line cleared behind its end, then all below: no flicker, as a cleared screen would have.
        text = "\033[H" + "\033[K\n".join(lines) + "\033[K\n\033[J" if repeat else "\n".join(lines)
        click.echo(text, nl=not repeat)
        if not repeat:
            return 1 if found.slurm_fault else 0
        time.sleep(_SECONDS_BETWEEN_LOOKS)


def _look(uid: int | None, since: float | None, number: int) -> "Overview":
    from slurmk8s.config import load
    from slurmk8s.ops import overview
    from slurmk8s.slurm.commands import SlurmCommands

    config = load()
    now = time.time()
    asked: Question = overview.Question(uid, now - _DAY if since is None else since, now, number)
    return overview.gather(asked, config, SlurmCommands(config.slurm), results_root())


def _screen(found: "Overview", uid: int | None, wide: int | None) -> Iterator[str]:
    yield _headline(found)
    if found.slurm_fault:
        fault = f"Slurm does not answer: {printable(found.slurm_fault)}"
        yield click.style(clipped(fault, wide) if wide else fault, fg="red")
        yield "What waits is not known; what had started and what has ended is shown from the results."
    named = uid is None
    if found.running:
        yield from _section("Running", _running_table(found, wide, named=named))
    if found.waiting:
        yield from _section("Waiting", _waiting_table(found, wide, named=named))
    if found.ended:
        yield from _section("Ended", _ended_table(found, wide, named=named))
    more = []
    if found.more_ended:
        have = "has" if found.more_ended == 1 else "have"
        more.append(f"{found.more_ended:,} more {have} ended: see `slurmk8s results`")
    if found.hidden:
        more.append(f"how {found.hidden:,} of other people's jobs ended is for their owners to see")
    if more:
        yield ""
        yield click.style(_capital("; ".join(more)) + ".", dim=True)


def _section(title: str, lines: Iterator[str]) -> Iterator[str]:
    yield ""
    yield click.style(title, bold=True)
    yield from lines


def _headline(found: "Overview") -> str:
    ended = len(found.ended) + found.more_ended
    parts = [f"{len(found.running):,} running", f"{len(found.waiting):,} waiting", f"{ended:,} ended"]
    if found.slurm_fault:
        parts[1] = "waiting: not known"
    return " · ".join([*parts, when(found.now)[:16]])


def _first_cells(one: "Running | InQueue | Ended", *, named: bool) -> list[Cell | str]:
    user = [printable(one.user)] if named else []
    return [Cell(one.job, bold=True), *user, printable(one.name)]


def _owner_column(*, named: bool) -> list[Column]:
    return [Column("USER", most=12)] if named else []


def _running_table(found: "Overview", wide: int | None, *, named: bool) -> Iterator[str]:
    columns = [Column("JOB", most=14), *_owner_column(named=named), Column("NAME", most=20), Column("NODE", most=14)]
    columns += [Column("PROGRESS"), Column("STAGE")]
    rows: list[Row] = []
    for one in found.running:
        where = ",".join(one.nodes)
        colour = "red" if one.trouble else None
        rows.append(
            [
                *_first_cells(one, named=named),
                printable(where),
                Cell(_progress(one), "cyan"),
                Cell(printable(one.stage), colour),
            ]
        )
    return table(columns, rows, wide, indent=2)


def _progress(one: "Running") -> str:
    if one.elapsed is None:
        return ""
    if one.limit is None or one.limit <= 0:
        return duration(one.elapsed)
    return f"{bar(one.elapsed / one.limit, _BAR)} {duration(one.elapsed)} of {duration(one.limit).removesuffix(' 0 s')}"


def _waiting_table(found: "Overview", wide: int | None, *, named: bool) -> Iterator[str]:
    columns = [Column("JOB", most=14), *_owner_column(named=named), Column("NAME", most=20)]
    columns += [Column("PARTITION", most=12), Column("PLACE", right=True), Column("SINCE", right=True), Column("WHY")]
    rows: list[Row] = []
    for one in found.waiting:
        place = "" if one.position is None else f"{one.position} of {one.of}"
        since = "" if one.since is None else duration(max(0.0, found.now - one.since))
        why = one.because + (f". {one.step}" if one.step else "")
        cells = [*_first_cells(one, named=named), printable(one.partition)]
        rows.append([*cells, place, since, Cell(_capital(why), "yellow" if one.step else None)])
    return table(columns, rows, wide, indent=2, lines=3)


def _ended_table(found: "Overview", wide: int | None, *, named: bool) -> Iterator[str]:
    columns = [Column("JOB", most=14), *_owner_column(named=named), Column("NAME", most=20)]
    columns += [Column("STATE"), Column("ENDED"), Column("TOOK", right=True), Column("CAUSE")]
    rows: list[Row] = []
    for one in found.ended:
        took = "" if one.took is None else duration(one.took)
        cells = [*_first_cells(one, named=named), state_cell(one.state)]
        cause = Cell(_capital(printable(one.cause).removeprefix("Completed: ")), dim=one.state == "completed")
        rows.append([*cells, _at(one.at, found.now), took, cause])
    return table(columns, rows, wide, indent=2)


def _at(time_: float, now: float) -> str:
    """The time alone for the last day, else the day and the time."""
    shown = when(time_)[:16]
    return shown[11:] if now - time_ < _DAY else shown[5:]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
