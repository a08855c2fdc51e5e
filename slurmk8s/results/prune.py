"""Look at a person's bundles and remove those that the site's rule names; as that person, like all work here.

A bundle is first renamed to a name that no job has, then emptied: what is half removed is never met as a bundle, and
the next look goes on with it. Before that it is looked at once more: the job may have started again.
"""

import contextlib
import errno
import os
import stat
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from slurmk8s.errors import SlurmK8sError
from slurmk8s.results import faults, files, paths
from slurmk8s.results.prepare import open_root
from slurmk8s.results.removal import remove_tree
from slurmk8s.results.request import Prune
from slurmk8s.results.retention import KEEP, Candidate, Removal, choose
from slurmk8s.results.status import status_of
from slurmk8s.results.steps import At, nothing

_LOGS = (paths.STDOUT, paths.STDERR)
# So many are told and removed at a time; whoever asked asks again.
MOST = 500


def prune(request: Prune, at: At = nothing) -> dict[str, Any]:
    """Name what the rule lets go; remove it if that is asked."""
    now = time.time()
    with open_root(request.root) as root:
        looked = list(_candidates(root))
        chosen = choose(looked, request.rule, now)
        left = [] if request.dry_run else _sweep(root, at)
        removed: list[Removal] = []
        failed = dict(left)
        for removal in chosen[:MOST]:
            if request.dry_run:
                removed.append(removal)
                continue
            try:
                if _remove(root, removal.candidate, at):
                    removed.append(removal)
            except OSError as error:
                failed[removal.candidate.folder] = faults.explain(error, "remove it").sentence
            except SlurmK8sError as fault:
                failed[removal.candidate.folder] = fault.sentence
    return {
        "ok": True,
        "bundles": len(looked),
        "bytes": sum(one.bytes for one in looked),
        "removed": [{**asdict(one.candidate), "why": one.why} for one in removed],
        "more": max(0, len(chosen) - MOST),
        "held": [[one.folder, one.held] for one in looked if one.held][:MOST],
        "failed": failed,
    }


def _candidates(root: int) -> Iterator[Candidate]:
    """This user's own bundles."""
    with os.scandir(root) as entries:
        names = [entry.name for entry in entries if paths.BUNDLE_NAME.fullmatch(entry.name)]
    for name in names:
        found = files.lstat(root, name)
        if found is None or not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            continue
        try:
            with files.folder(name, root) as folder:
                if os.fstat(folder).st_ino == found.st_ino:
                    yield _candidate(name, folder)
        except OSError:
            continue  # closed by its owner, or swapped at this moment: what cannot be looked at stays


def _candidate(name: str, folder: int) -> Candidate:
    inode = os.fstat(folder).st_ino
    seen = status_of(folder)
    if seen.summary is None:
        return Candidate(name, inode, seen.marker.name if seen.marker else "", None, 0, "its job has not ended")
    summary = seen.summary
    is_archived = files.lstat(folder, paths.ARCHIVED) is not None  # its outputs are elsewhere, and take no room here
    size = summary.outputs.bytes if summary.outputs and not is_archived else 0
    size += sum(found.st_size for log in _LOGS if (found := files.lstat(folder, log)))
    held = ""
    if summary.starts_again:
        held = "its job starts again"
    elif not summary.complete:
        held = "it is not complete"
    elif summary.uid != os.geteuid():
        held = "its summary is of somebody else's job"
    elif files.lstat(folder, KEEP) is not None:
        held = f"it holds {KEEP}"
    return Candidate(name, inode, summary.name, summary.times.ended, size, held)


def _remove(root: int, wanted: Candidate, at: At) -> bool:
    """Whether it was removed; what has changed since it was looked at stays for the next time."""
    with files.folder(wanted.folder, root) as folder:
        if os.fstat(folder).st_uid != os.geteuid() or _candidate(wanted.folder, folder) != wanted:
            return False
        going = paths.going_name(wanted.folder)
        os.rename(wanted.folder, going, src_dir_fd=root, dst_dir_fd=root)
        at("bundle set aside")
        # Somebody may have put another folder there between the look and the rename: that one goes back.
        if os.stat(going, dir_fd=root, follow_symlinks=False).st_ino != os.fstat(folder).st_ino:
            with contextlib.suppress(OSError):
                os.rename(going, wanted.folder, src_dir_fd=root, dst_dir_fd=root)
            return False
    remove_tree(root, os.fsencode(going), at)
    return True


def _sweep(root: int, at: At) -> Iterator[tuple[str, str]]:
    """Go on with what an earlier look had begun to remove."""
    with os.scandir(root) as entries:
        names = [entry.name for entry in entries if paths.GOING_NAME.fullmatch(entry.name)]
    for name in names:
        if files.is_own_folder(root, name):
            try:
                remove_tree(root, os.fsencode(name), at)
            except OSError as error:
                if error.errno != errno.ENOENT:
                    yield name, faults.explain(error, "remove it").sentence
