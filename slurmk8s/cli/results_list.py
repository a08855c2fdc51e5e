"""The table of `slurmk8s results`: which jobs, and what of each."""

import fnmatch
import itertools
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from slurmk8s.cli.results import echo_json, owner
from slurmk8s.cli.table import Cell, Column, state_cell, table, terminal_width
from slurmk8s.errors import PersonFault, SlurmK8sError
from slurmk8s.results import history
from slurmk8s.results.entry import RUNNING
from slurmk8s.results.history import GONE, HIDDEN, Known, Span
from slurmk8s.results.index import Index
from slurmk8s.results.summary import STATES
from slurmk8s.results.summary_text import printable, size, when

ALL_STATES = (*STATES, RUNNING)


@dataclass(frozen=True)
class Search:
    """What to look for."""

    uid: int | None
    """None: everybody's."""
    span: Span = history.ALWAYS
    name: str = ""
    states: tuple[str, ...] = ()

    @property
    def everything(self) -> bool:
        """Whether nothing is left out."""
        return not self.name and not self.states and self.span == history.ALWAYS


def states(words: str) -> tuple[str, ...]:
    """`failed,timeout` → both; `bad` means all that went wrong."""
    found: list[str] = []
    for word in filter(None, words.lower().replace("-", "_").split(",")):
        if word == "bad":
            found += [state for state in STATES if state not in ("completed", "requeued", "cancelled")]
        elif word in ALL_STATES:
            found.append(word)
        else:
            raise PersonFault(f"{word!r} is no state.", f"States: {', '.join(ALL_STATES)}; bad: all that went wrong.")
    return tuple(found)


def search(root: Path, wanted: Search) -> Iterator[Known]:
    """The last attempts of those jobs, the latest first, as their bundles tell them now."""
    span = wanted.span
    attempts = history.of_everyone(root, span) if wanted.uid is None else history.of(root, wanted.uid, span)
    fits = name_filter(wanted.name)
    for known in history.latest(attempts):
        if not fits(known.entry.name):
            continue
        current = _refreshed(root, known) if known.entry.runs else known
        if not wanted.states or current.entry.state in wanted.states:
            yield current


def name_filter(pattern: str) -> Callable[[str], bool]:
    """`train*` as a shell would; a word without signs is searched within names. Case does not matter."""
    folded = pattern.casefold()
    if any(sign in folded for sign in "*?["):
        return lambda name: fnmatch.fnmatchcase(name.casefold(), folded)
    return lambda name: folded in name.casefold()


def show(root: Path, wanted: Search, number: int, *, as_json: bool) -> None:
    """Print the newest of them."""
    found = search(root, wanted)
    listed = list(itertools.islice(found, number + 1))  # one more tells whether there are more
    shown = [_looked_at(root, known) for known in listed[:number]]
    if as_json:
        echo_json([_document(root, known) for known in shown])
        return
    if not shown:
        click.echo(_nothing(root, wanted), err=True)
        return
    named = wanted.uid is None
    columns = [Column("JOB"), *([Column("OWNER", most=12)] if named else []), Column("NAME", most=24), Column("STATE")]
    columns += [Column("EXIT"), Column("ENDED"), Column("SIZE", right=True), Column("CAUSE")]
    for line in table(columns, [_row(known, with_owner=named) for known in shown], terminal_width()):
        click.echo(line)
    if len(listed) > number:
        click.echo(f"… and older ones; `-n {10 * number}` shows more, --name, --since and --state fewer", err=True)


def complete_index(root: Path) -> None:
    """Once, where a person's index is new: their bundles of the time before go into it, if that can be."""
    uid = os.getuid()
    index = Index(str(root), uid)
    if uid == 0 or index.is_whole() or not (root / ".index").is_dir():
        return
    try:
        reindex(root)
    except (OSError, SlurmK8sError) as error:
        click.echo(
            f"slurmk8s: no index of your results could be made ({error}); they are searched one by one", err=True
        )


def reindex(root: Path) -> int:
    """Add to one's index what it lacks, with a line of progress on a terminal."""
    from slurmk8s.results import reindex as scan

    if os.getuid() == 0:
        raise PersonFault("An index is made as its owner, and root has no results.", "Call it as an ordinary user.")
    is_terminal = sys.stderr.isatty()

    def progress(done: int, of: int) -> None:
        if is_terminal and of > 1000 and (done % 250 == 0 or done == of):
            click.echo(f"\r\033[2Kreading your results for the index, once: {done:,} of {of:,}", err=True, nl=False)

    try:
        return scan.reindex(root, os.getuid(), progress)
    finally:
        if is_terminal:
            click.echo("\r\033[2K", err=True, nl=False)


def _refreshed(root: Path, known: Known) -> Known:
    try:
        return history.refreshed(root, known)
    except (OSError, SlurmK8sError):
        return known


def _looked_at(root: Path, known: Known) -> Known:
    """Say of a job whose bundle was removed that it was: the index still knows it."""
    if os.path.lexists(root / str(known.entry.job_id)):
        return known
    cause = f"{known.entry.cause} (Its results have been removed.)" if known.entry.cause else "Its results are gone."
    return Known(known.entry._replace(cause=cause.strip(), bytes=None), known.uid)


def _row(known: Known, *, with_owner: bool) -> list[Cell | str]:
    entry = known.entry
    job = f"{entry.job_id} ({entry.array})" if entry.array else str(entry.job_id)
    whose: list[Cell | str] = [owner(known.uid)] if with_owner else []
    if entry.state == HIDDEN:
        return [job, *whose, "", "", "", "", "", Cell("(readable by its owner only)", dim=True)]
    ended = "" if entry.runs or entry.state == GONE else when(entry.at)[:16]
    code = "" if entry.exit_code is None else str(entry.exit_code)
    amount = "" if entry.bytes is None else size(entry.bytes)
    name = printable(entry.name)
    # On a terminal a good end needs no second line to say so.
    good = entry.state == "completed" and sys.stdout.isatty()
    cause = "" if good and entry.cause.startswith("Completed:") else printable(entry.cause)
    return [job, *whose, name, state_cell(entry.state), code, ended, amount, cause]


def _document(root: Path, known: Known) -> dict[str, object]:
    folder = root / str(known.entry.job_id)
    return {**known.entry._asdict(), "uid": known.uid, "folder": str(folder) if os.path.lexists(folder) else None}


def _nothing(root: Path, wanted: Search) -> str:
    whose = "There are no results" if wanted.uid is None else "You have no results"
    if wanted.uid not in (None, os.getuid()):
        whose = f"{owner(wanted.uid or 0)} has no results that you may read"
    return f"{whose} in {root} yet." if wanted.everything else f"{whose} in {root} that fit."
