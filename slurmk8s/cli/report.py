"""`slurmk8s report`: GPU-hours, waste, failures by cause and queue times."""

import csv
import io
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING

import click

from slurmk8s.cli import dates
from slurmk8s.cli.results import echo_json, owner, results_root, uid_of
from slurmk8s.cli.results_list import complete_index
from slurmk8s.cli.table import Cell, Column, Row, table, terminal_width
from slurmk8s.errors import PersonFault
from slurmk8s.results import history
from slurmk8s.results.history import HIDDEN, Known, Span
from slurmk8s.results.summary_text import duration, printable, when

if TYPE_CHECKING:
    from slurmk8s.ops.report import Line, Report

_MONTH = 30 * 86400
_CAUSES_SHOWN = 12
_GROUPS = ("user", "account", "partition", "node", "image", "name", "state", "day", "month")


@click.command()
@click.option("--all", "everyone", is_flag=True, help="Of everybody whose index you may read.")
@click.option("--user", "person", help="Of another person, if you may read their index.")
@dates.option("--since", "From: 2026-11-01, 2026-11, today, 7d. Default: 30 days ago.")
@dates.option("--until", "To, without it. Default: now.")
@click.option("--by", type=click.Choice(_GROUPS), help="A line for each. Default: partition; with --all: user.")
@click.option("--csv", "form", flag_value="csv", help="The lines as CSV, for a spreadsheet.")
@click.option("--json", "form", flag_value="json", help="For programs.")
def report(
    *, everyone: bool, person: str | None, since: float | None, until: float | None, by: str | None, form: str | None
) -> None:
    """Add up what jobs took and what came of it: GPU-hours, waste, failures by cause, time in the queue.

    Attempts that ended in that time are counted. People's figures come from files of their own, so they are for
    planning, not for bills.
    """
    from slurmk8s.ops import report as figures

    root = results_root()
    uid = None if everyone else uid_of(person)
    span = Span(time.time() - _MONTH if since is None else since, until, running=False)
    if uid == os.getuid():
        complete_index(root)
    chosen = by or ("user" if uid is None else "partition")
    hidden: list[Known] = []
    found = figures.make(((known.entry, known.uid) for known in _attempts(root, uid, span, hidden)), chosen)
    if form == "json":
        scope = {"since": span.since, "until": span.until, "uid": uid, "hidden": len(hidden)}
        echo_json({**scope, **found.to_json()})
    elif form == "csv":
        click.echo(_csv(found), nl=False)
    else:
        for line in _screen(found, span, uid):
            click.echo(line)
    if hidden and form != "json":
        more = f"Not counted: {len(hidden):,} of other people's results, which only their owners may read."
        click.secho(more, dim=True, err=form == "csv")


def _attempts(root: Path, uid: int | None, span: Span, hidden: list[Known]) -> Iterator[Known]:
    """What may be read, and aside what may not; if nothing at all may be, why."""
    told = False
    attempts = history.of_everyone(root, span) if uid is None else history.of(root, uid, span)
    for known in attempts:
        if known.entry.state == HIDDEN:
            hidden.append(known)
            continue
        told = True
        yield known
    if hidden and not told:
        raise PersonFault(
            f"You may read none of these results in {root}: they are their owners' alone.",
            "Members of the group of its folder .index may, if the site has set one: see docs/results.md.",
        )


def _csv(found: "Report") -> str:
    from slurmk8s.ops.report import Line

    text = io.StringIO()
    writer = csv.writer(text)
    names = [field.name for field in fields(Line)]
    writer.writerow([found.by, *names[1:]])
    for line in found.lines:
        # A spreadsheet would take a name that begins with these signs for a formula.
        group = f"'{line.group}" if line.group.startswith(("=", "+", "-", "@", "\t")) else line.group
        writer.writerow([printable(group), *(asdict(line)[name] for name in names[1:])])
    return text.getvalue()


def _screen(found: "Report", span: Span, uid: int | None) -> Iterator[str]:
    whose = "everybody" if uid is None else owner(uid)
    period = f"{when(span.since)[:16]} to {when(span.until or time.time())[:16]}"
    yield f"{click.style(printable(whose), bold=True)} · {period}"
    if not found.lines:
        yield "No job ended in that time."
        return
    wide = terminal_width()
    yield ""
    yield from table(*_lines_table(found), wide)
    if found.causes:
        yield ""
        yield click.style("What went wrong", bold=True)
        yield from table(*_causes_table(found), wide, indent=2)
        if len(found.causes) > _CAUSES_SHOWN:
            yield click.style(f"  … and {len(found.causes) - _CAUSES_SHOWN} other causes; --json has all", dim=True)
    if found.total.gpu_hours and found.total.gpu_use is None:
        yield ""
        yield click.style("How much of their GPUs the jobs used was not measured.", dim=True)


def _lines_table(found: "Report") -> tuple[list[Column], list[Row]]:
    total = found.total
    columns = [Column(found.by.upper(), most=24), Column("JOBS", right=True), Column("FAILED", right=True)]
    if total.gpu_hours:
        columns += [Column("GPU-H", right=True), Column("LOST", right=True)]
    if total.gpu_use is not None:
        columns += [Column("IDLE", right=True), Column("GPU", right=True)]
    columns += [Column("CPU-H", right=True)]
    if total.cpu_use is not None:
        columns += [Column("CPU", right=True)]
    if total.memory_use is not None:
        columns += [Column("MEM", right=True)]
    columns += [Column("QUEUED", right=True), Column("P90", right=True)]
    rows: list[Row] = [_row(line, total, bold=False) for line in found.lines]
    if len(found.lines) > 1:
        rows.append(_row(total, total, bold=True))
    return columns, rows


def _row(line: "Line", total: "Line", *, bold: bool) -> list[Cell | str]:
    bad = f"{line.failed:,} ({100 * line.failed / line.jobs:.0f}%)" if line.failed else ""
    cells = [Cell(printable(line.group), bold=bold), Cell(f"{line.jobs:,}", bold=bold)]
    cells.append(Cell(bad, "red" if line.failed * 4 > line.jobs else None, bold=bold))
    if total.gpu_hours:
        cells += [Cell(_hours(line.gpu_hours), bold=bold), Cell(_hours(line.lost_gpu_hours), _alarm(line), bold=bold)]
    if total.gpu_use is not None:
        idle = "" if line.idle_gpu_hours is None else _hours(line.idle_gpu_hours)
        cells += [Cell(idle, bold=bold), Cell(_percent(line.gpu_use), _grade(line.gpu_use), bold=bold)]
    cells.append(Cell(_hours(line.cpu_hours), bold=bold))
    if total.cpu_use is not None:
        cells.append(Cell(_percent(line.cpu_use), _grade(line.cpu_use), bold=bold))
    if total.memory_use is not None:
        cells.append(Cell(_percent(line.memory_use), _grade(line.memory_use), bold=bold))
    return [*cells, Cell(_waited(line.queued_median), bold=bold), Cell(_waited(line.queued_p90), bold=bold)]


def _alarm(line: "Line") -> str | None:
    return "red" if line.lost_gpu_hours * 4 > line.gpu_hours > 0 else None


def _grade(used: float | None) -> str | None:
    """Well used, so-so, wasted."""
    return None if used is None else "green" if used >= 0.6 else "yellow" if used >= 0.25 else "red"


def _hours(hours: float) -> str:
    if not hours:
        return ""
    return f"{hours:,.0f}" if hours >= 100 else f"{hours:.1f}" if hours >= 0.05 else "<0.1"


def _percent(part: float | None) -> str:
    return "" if part is None else f"{100 * part:.0f}%"


def _waited(seconds: float | None) -> str:
    return "" if seconds is None else duration(seconds)


def _causes_table(found: "Report") -> tuple[list[Column], list[Row]]:
    columns = [Column("CAUSE", most=28), Column("TIMES", right=True)]
    with_gpus = any(cause.gpu_hours for cause in found.causes)
    columns += [Column("GPU-H", right=True)] if with_gpus else []
    columns += [Column("LAST", most=14), Column("WHICH SAID")]
    rows: list[Row] = []
    for cause in found.causes[:_CAUSES_SHOWN]:
        hours = [_hours(cause.gpu_hours)] if with_gpus else []
        sentence = Cell(printable(cause.sentence), dim=True)
        rows.append([Cell(cause.cause, "red"), f"{cause.attempts:,}", *hours, cause.example, sentence])
    return columns, rows
