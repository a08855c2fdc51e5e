"""Complete a person's index from their bundles: those of the time before there was one, or of a line that was lost."""

from collections.abc import Callable, Iterator
from pathlib import Path

from slurmk8s.results import find
from slurmk8s.results.entry import Entry, of_summary
from slurmk8s.results.history import of_bundle
from slurmk8s.results.index import Index, add, own_folder, say_whole
from slurmk8s.results.paths import ATTEMPT_NAME, Bundle
from slurmk8s.results.status import status

Progress = Callable[[int, int], None]


def reindex(root: Path, uid: int, progress: Progress = lambda _done, _all: None) -> int:
    """Add what the index of this person, who calls it, lacks; how many lines that were.

    Nothing is taken out: jobs whose bundles are gone still count in reports. May be stopped at any time and called
    again, and does not disturb workers that add lines meanwhile: the same line twice is read once.
    """
    index = Index(str(root), uid)
    with own_folder(str(root)):
        pass  # it is made, or says why not
    known = {entry.key for entry in index.entries() if not entry.runs}
    started = {entry.key for entry in index.entries() if entry.runs}
    new = (
        entry
        for entry in _of_bundles(root, uid, progress)
        if entry.key not in known and not (entry.runs and entry.key in started)
    )
    added = add(str(root), new)
    say_whole(str(root))
    return added


def _of_bundles(root: Path, uid: int, progress: Progress) -> Iterator[Entry]:
    found = find.bundles(root, uid)
    for number, one in enumerate(reversed(found)):
        progress(number, len(found))
        try:
            yield of_bundle(one, status(one.bundle))
            yield from _earlier(one.bundle)
        except OSError:
            continue  # removed meanwhile
    progress(len(found), len(found))


def _earlier(bundle: Bundle) -> Iterator[Entry]:
    """Attempts before the last."""
    for folder in bundle.folder.iterdir():
        if ATTEMPT_NAME.fullmatch(folder.name):
            try:
                summary = status(Bundle(folder)).summary
            except OSError:
                continue
            if summary is not None:
                yield of_summary(summary.to_json(), folder.stat().st_mtime)
