"""`slurmk8s results`, `logs` and `verify`: what jobs left on the NAS."""

import contextlib
import itertools
import json
import os
import pwd
import shlex
import sys
import time
from collections.abc import Generator
from pathlib import Path

import click

from slurmk8s.cli import dates
from slurmk8s.errors import PersonFault
from slurmk8s.results import archived, files, find, paths, progress, summary_text
from slurmk8s.results.find import Found
from slurmk8s.results.follow import Sink, Stream, follow, show
from slurmk8s.results.history import Span
from slurmk8s.results.paths import Bundle
from slurmk8s.results.status import status
from slurmk8s.results.summary_text import printable, shown_name, size
from slurmk8s.results.verify import Verdict
from slurmk8s.results.verify import verify as verify_bundle
from slurmk8s.results.walk import walk

_TREE_LINES = 40
_NAMES_SHOWN = 20


def results_root() -> Path:
    """Where bundles are: SLURMK8S_RESULTS_ROOT, else as configured.

    On a local one-machine cluster people are outside its mount namespace, and the NAS has another path there.
    """
    named = os.environ.get("SLURMK8S_RESULTS_ROOT")
    if named:
        return Path(named)
    from slurmk8s.config import load

    return load().nas.results_folder


@click.command()
@click.argument("job", required=False)
@click.option("--all", "everyone", is_flag=True, help="Everybody's, not only yours.")
@click.option("--user", "person", help="Another person's, as far as you may read them.")
@click.option("--name", default="", help="Only jobs of this name: part of it, or a pattern such as 'train*'.")
@dates.option("--since", "Only jobs that ended since: 2026-11-01, today, 7d, 12h.")
@dates.option("--until", "Only jobs that ended before.")
@click.option("--state", default="", help="Only jobs in this state, or in several: failed,timeout; bad: all of those.")
@click.option("-n", "--number", default=50, show_default=True, type=click.IntRange(1), help="How many, newest first.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@click.option("--reindex", is_flag=True, help="Complete the index of your results from the folders themselves.")
def results(
    job: str | None,
    *,
    everyone: bool,
    person: str | None,
    name: str,
    since: float | None,
    until: float | None,
    state: str,
    number: int,
    as_json: bool,
    reindex: bool,
) -> None:
    """List your results, or show those of one JOB (123, or 123_4 for a task of an array)."""
    root = results_root()
    if job is not None:
        _one(_existing(root, job))
        return
    from slurmk8s.cli import results_list

    if reindex:
        added = results_list.reindex(root)
        click.echo(f"{added:,} {'entry' if added == 1 else 'entries'} added to the index of your results.")
        return
    whose = None if everyone else uid_of(person)
    wanted = results_list.Search(whose, Span(since, until), name, results_list.states(state))
    if whose == os.getuid():
        results_list.complete_index(root)
    results_list.show(root, wanted, number, as_json=as_json)


def uid_of(person: str | None) -> int:
    """Who is meant by --user; the caller if nobody is."""
    if person is None:
        return os.getuid()
    from slurmk8s.ops.whom import account

    return account(person).pw_uid


@click.command()
@click.argument("job")
@click.option("-f", "--follow", "following", is_flag=True, help="Wait for the job, and show its output until it ends.")
@click.option("--stderr", "only_stderr", is_flag=True, help="Only standard error, on standard output.")
def logs(job: str, *, following: bool, only_stderr: bool) -> None:
    """Show what JOB printed: its stdout on stdout, its stderr on stderr, byte for byte."""
    root = results_root()
    out, err = _sink(1), _sink(2)
    streams = [Stream(paths.STDERR, out)] if only_stderr else [Stream(paths.STDOUT, out), Stream(paths.STDERR, err)]

    def bundle() -> Bundle | None:
        found = find.find(root, job)
        return None if found is None else found.bundle

    def waiting() -> None:
        click.echo(f"slurmk8s: job {job} has not started yet; waiting for it (Ctrl-C to stop)", err=True)

    try:
        if following:
            if (begun := bundle()) is not None:
                _refuse_archived(job, begun)
            follow(bundle, streams, waiting)
        elif not show((ended := _existing(root, job).bundle), streams):
            _refuse_archived(job, ended)
            raise PersonFault(f"Job {job} has no logs yet.", f"Wait for it with `slurmk8s logs -f {job}`.")
    except PermissionError:
        raise PersonFault(f"You may not read the logs of job {job}: they belong to somebody else.") from None


def _refuse_archived(job: str, bundle: Bundle) -> None:
    """Logs that were moved into the archive neither are still to come nor were never written."""
    with files.folder(str(bundle.folder)) as folder:
        said = archived.noted(folder)
    if said is not None:
        archive = printable(said)
        raise PersonFault(
            f"The logs of job {job} were moved into its archive {archive}.",
            f"Show them with `tar --zstd -xOf {shlex.quote(archive)} {bundle.folder.name}/{paths.STDOUT}`.",
        )


@click.command()
@click.argument("job")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@click.option("-j", "--processes", default=2, show_default=True, type=click.IntRange(1, 64), help="Files at a time.")
def verify(job: str, *, as_json: bool, processes: int) -> int:
    """Check the results of JOB, or of a bundle's folder, against its checksums. Exit status 0 if all is well."""
    is_folder = "/" in job or (not job[:1].isdigit() and Path(job).is_dir())
    folder = Path(job) if is_folder else _existing(results_root(), job).bundle.folder
    shown = _Line() if sys.stderr.isatty() else None
    try:
        verdict = verify_bundle(folder, processes, shown.tick if shown else lambda _files, _bytes: None)
    finally:
        if shown:
            shown.clear()
    if as_json:
        click.echo(json.dumps({"folder": str(folder), **verdict.to_json()}))
    else:
        _show_verdict(folder, verdict)
        if verdict.state == "pending" and (hashing := status(Bundle(folder)).hashing):
            click.echo(f"hashed so far: {progress.text(hashing)}")
    return 0 if verdict.ok else 1


class _Line:
    """One line on the terminal that is written over and over while a long check runs."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def tick(self, files: int, read: int) -> None:
        speed = read / max(0.001, time.monotonic() - self._began)
        click.echo(f"\r\x1b[Kchecking: {files:,} files, {size(read)}, {size(speed)}/s", nl=False, err=True)

    def clear(self) -> None:
        click.echo("\r\x1b[K", nl=False, err=True)


def _existing(root: Path, job: str) -> Found:
    found = find.find(root, job)
    if found is None:
        raise PersonFault(
            f"There are no results of job {job} in {root}.",
            f"They are there when it starts; see `squeue -j {job}`, or wait with `slurmk8s logs -f {job}`.",
        )
    uid = found.bundle.folder.stat().st_uid
    if os.getuid() not in (0, uid):  # anybody can make a folder with a job's number
        click.echo(f"slurmk8s: {found.bundle.folder} belongs to {owner(uid)}, not to you", err=True)
    return found


def owner(uid: int) -> str:
    """The account's name, or its number. Not site.pwd_name: its imports take longer than the whole table."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def echo_json(value: object) -> None:
    """For programs. A name that is no UTF-8 stays an escape, as it stands in the index."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2).encode("utf-8", "backslashreplace"))


def _one(found: Found) -> None:
    current = status(found.bundle)
    if not current.readable:
        raise PersonFault(f"The results of job {found.job_id} belong to {owner(found.uid)}, who alone may read them.")
    click.echo(printable(str(found.bundle.folder)))
    with contextlib.closing(_tree(found.bundle)) as lines:
        for line in itertools.islice(lines, _TREE_LINES):
            click.echo(f"  {line}")
        if next(lines, None) is not None:
            click.echo(f"  {'':>10}  …")
    click.echo()
    if current.summary is None:
        click.echo(f"The job is running; follow it with `slurmk8s logs -f {found.job_id}`.")
    else:
        click.echo(summary_text.text(current.summary), nl=False)
    if current.hashing:
        click.echo(f"Hashed      {progress.text(current.hashing)}")


def _tree(bundle: Bundle) -> Generator[str]:
    """The bundle's folders and files with their sizes."""
    descriptor = os.open(bundle.folder.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for folder in walk(descriptor, os.fsencode(bundle.folder.name)):
            # The bundle's own name is printed above; b"7/outputs/a" is shown as outputs/a.
            shown = b"/".join(folder.path.split(b"/")[1:])
            prefix = shown + b"/" if shown else b""
            if shown:
                yield f"{'':>10}  {printable(shown_name(prefix))}{' (not readable)' if folder.error else ''}"
            for name in folder.names:
                if not prefix and name.startswith(b"."):
                    continue  # our own bookkeeping
                found = os.stat(name, dir_fd=folder.descriptor, follow_symlinks=False)
                yield f"{size(found.st_size):>10}  {printable(shown_name(prefix + name))}"
    finally:
        os.close(descriptor)


def _show_verdict(folder: Path, verdict: Verdict) -> None:
    meanings = {
        "changed": "changed since the job ended",
        "missing": "no longer there",
        "extra": "added since the job ended",
        "unreadable": printable(verdict.reason) if verdict.archive and verdict.reason else "not readable for you",
        "malformed": "not understood",
    }
    for kind, names in verdict.problems.items():
        for name in names[:_NAMES_SHOWN]:
            click.echo(f"{click.style(f'{kind:<10}', fg='red')}  {printable(name)}: {meanings[kind]}")
        if len(names) > _NAMES_SHOWN:
            click.echo(f"{kind:<10}  … and {len(names) - _NAMES_SHOWN} more")
    where = printable(str(folder))
    if verdict.state == "pending":
        click.echo(f"{where}: the checksums are not there yet; the job runs or its files are still being hashed.")
    elif verdict.state == "failed":
        click.echo(f"{where}: not all files could be hashed: {printable(verdict.reason)}.")
    elif verdict.ok:
        files = "file is" if verdict.matched == 1 else "files are"
        inside = f" in the archive {printable(verdict.archive)}" if verdict.archive else ""
        click.echo(
            f"{where}: {click.style('ok', fg='green')}, {verdict.matched:,} {files} as the job left them{inside}."
        )
    else:
        count = sum(len(names) for names in verdict.problems.values())
        click.echo(
            f"{where}: {click.style('not ok', fg='red')}, {count:,} differ, {verdict.matched:,} are as they were."
        )


def _sink(descriptor: int) -> Sink:
    """Straight to the descriptor: logs are bytes, and nothing may stay in a buffer when the reader has gone."""

    def write(data: bytes) -> None:
        while data:
            data = data[os.write(descriptor, data) :]

    (sys.stdout if descriptor == 1 else sys.stderr).flush()
    return write
