"""A person's jobs, the latest first: from the index, or from the bundles themselves where there is none."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from heapq import merge
from pathlib import Path

from slurmk8s.results import find
from slurmk8s.results.entry import RUNNING, Entry, of_summary
from slurmk8s.results.find import Found
from slurmk8s.results.index import Index, everyone
from slurmk8s.results.status import Status, status

HIDDEN = "hidden"
"""State of a bundle that its owner alone may read."""
GONE = "removed"
"""State of a job whose bundle is no longer there."""


@dataclass(frozen=True)
class Known:
    """One attempt, and whose it is."""

    entry: Entry
    uid: int


@dataclass(frozen=True)
class Span:
    """Which attempts: those that ended, or began and still run, from one time to another."""

    since: float | None = None
    until: float | None = None
    running: bool = True
    """Also those of which only the start is known."""

    def holds(self, entry: Entry) -> bool:
        """Whether it is one of them."""
        if entry.runs and not self.running:
            return False
        return (self.since is None or entry.at >= self.since) and (self.until is None or entry.at < self.until)


ALWAYS = Span()
# Without an index, whoever asks for the last day does not want to wait for the bundles of ten years.
_RECENT = 200


def of(root: Path, uid: int, span: Span = ALWAYS) -> Iterator[Known]:
    """All attempts of this person, the latest first.

    One's own index is asked only if it has everything; of others nothing but the index can be read.
    """
    index = Index(str(root), uid)
    sure = index.is_whole() if uid == os.getuid() else index.exists()
    return _indexed(index, span) if sure else _scanned(root, uid, span)


def of_everyone(root: Path, span: Span = ALWAYS) -> Iterator[Known]:
    """Attempts of all whose index we may read, the latest first; of the bundles, where we may read none."""
    readable = _readable(root)
    if not readable:
        return _scanned(root, None, span)
    return merge(*(_indexed(index, span) for index in readable), key=lambda known: -known.entry.at)


def recent(root: Path, uid: int | None, span: Span) -> Iterator[Known]:
    """Attempts of the last days, of a person or of all, the latest first. Quick, also where there is no index yet."""
    readable = _readable(root) if uid is None else [Index(str(root), uid)]
    readable = [index for index in readable if index.exists()]
    if not readable:
        return _scanned(root, uid, span, _RECENT)
    return merge(*(_indexed(index, span) for index in readable), key=lambda known: -known.entry.at)


def _readable(root: Path) -> list[Index]:
    try:
        return [index for index in everyone(str(root)) if index.exists()]
    except OSError:
        return []


def _indexed(index: Index, span: Span) -> Iterator[Known]:
    for entry in index.entries(span.since, span.until, running=span.running):
        yield Known(entry, index.uid)


def _scanned(root: Path, uid: int | None, span: Span, most: int | None = None) -> Iterator[Known]:
    for found in find.bundles(root, uid)[:most]:
        try:
            entry = of_bundle(found, status(found.bundle))
        except OSError:
            continue  # removed meanwhile
        if span.holds(entry):
            yield Known(entry, found.uid)


def latest(attempts: Iterable[Known]) -> Iterator[Known]:
    """Of each job its last attempt only; of attempts that come latest first.

    Back in time a job's attempts count down. Where they do not, Slurm's job ids have started again, and it is another
    job of the same number.
    """
    seen: dict[tuple[int, int], int] = {}
    for known in attempts:
        job = (known.uid, known.entry.job_id)  # anybody's lines may name anybody's job
        before = seen.get(job)
        seen[job] = known.entry.attempt
        if before is None or known.entry.attempt >= before:
            yield known


def refreshed(root: Path, known: Known) -> Known:
    """What its bundle tells now: a job of which the index has the start may have ended, and any may be gone."""
    found = find.find(root, str(known.entry.job_id))
    if found is None or found.uid != known.uid:
        return replace(known, entry=known.entry._replace(state=GONE)) if known.entry.runs else known
    if not known.entry.runs:
        return known
    current = status(found.bundle)
    if current.summary is None or current.summary.attempt != known.entry.attempt:
        return known
    return replace(known, entry=of_summary(current.summary.to_json(), known.entry.at))


def of_bundle(found: Found, current: Status) -> Entry:
    """The entry of a bundle's last attempt."""
    changed = found.bundle.folder.stat().st_mtime
    if not current.readable:
        return Entry(changed, found.job_id, 0, HIDDEN)
    if current.summary is not None:
        return of_summary(current.summary.to_json(), changed)
    marker = current.marker
    if marker is None:
        return Entry(changed, found.job_id, 0, RUNNING)
    array = str(marker.array) if marker.array else ""
    return Entry(changed, found.job_id, marker.attempt, RUNNING, array, marker.name, submitted=marker.submitted)
