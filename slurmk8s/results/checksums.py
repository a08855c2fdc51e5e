"""Hash a bundle, write checksums.txt, and say in the summaries that it is complete.

Runs after the node is free for other jobs. May be killed at any point and asked again: the same bundle results.
"""

import ctypes
import errno
import functools
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from slurmk8s.errors import PersonFault
from slurmk8s.results import files, paths
from slurmk8s.results.files import At, nothing
from slurmk8s.results.finish import NAMES_SHOWN
from slurmk8s.results.hashing import Hashed, Identity, hash_file, in_order
from slurmk8s.results.partial import Partial, partial
from slurmk8s.results.prepare import Place, exists, follow_rotation, place, refuse_if_started_again
from slurmk8s.results.request import Checksums
from slurmk8s.results.summary import COMPLETE, FAILED, Outputs, Summary
from slurmk8s.results.summary_file import read_summary, write_summary
from slurmk8s.results.summary_text import shown_name
from slurmk8s.results.walk import Folder, walk

# Small files go to a thread many at a time; a large one goes alone.
_BATCH_FILES = 64
_BATCH_BYTES = 4 << 20
_PROBLEMS = {"changing": "still changing", "unreadable": "not readable", "missing": "gone"}
_LOGS = (os.fsencode(paths.STDOUT), os.fsencode(paths.STDERR))


@dataclass
class Tally:
    """What was found on the way. Names are kept up to a bound, the rest only counted: memory stays flat."""

    files: int = 0
    size: int = 0
    skipped: int = 0
    skipped_names: list[str] = field(default_factory=list)
    problems: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_PROBLEMS, 0))
    problem_names: dict[str, list[str]] = field(default_factory=lambda: {kind: [] for kind in _PROBLEMS})

    def good(self, path: bytes, size: int) -> None:
        """A file with a digest."""
        if path not in _LOGS:
            self.files += 1
            self.size += size

    def skip(self, folder: Folder) -> None:
        """What is no regular file."""
        self.skipped += len(folder.skipped)
        room = NAMES_SHOWN - len(self.skipped_names)
        self.skipped_names += [shown_name(folder.path + b"/" + name) for name in folder.skipped[:room]]

    def bad(self, kind: str, path: bytes) -> None:
        """A file without a digest."""
        self.problems[kind] += 1
        if len(self.problem_names[kind]) < NAMES_SHOWN:
            self.problem_names[kind].append(shown_name(path))

    def verdict(self) -> str:
        """What the summary says of the checksums."""
        words = [
            f"{self.problem_names[kind][0]}{_more(count - 1)} {'was' if count == 1 else 'were'} {meaning}"
            for kind, meaning in _PROBLEMS.items()
            if (count := self.problems[kind])
        ]
        return FAILED + "; ".join(words) if words else COMPLETE


def _more(count: int) -> str:
    return f" and {count} more" if count else ""


def checksums(request: Checksums, at: At = nothing) -> dict[str, object]:
    """Do what the request asks; a bundle that is complete already is left alone."""
    modes = request.target.modes
    if not exists(request.target):
        raise _gone(request.target.folder)
    with place(request.target, at) as here:
        summary = _summary(here)
        if summary.complete and files.lstat(here.folder, paths.PARTIAL) is None:
            return _reply(summary, Tally())
        files.sweep(here.folder)
        with partial(here.folder) as so_far:
            # Digests are of what is on the disk: after a power cut a file must not be older than its digest.
            sync_file_system(here.folder)
            at("data durable")
            tally = Tally()
            _hash_all(here, so_far, tally, request.processes, at)
            at("all hashed")
            refuse_if_started_again(here)
            files.write(here.folder, paths.CHECKSUMS, so_far.checksum_lines(), modes.file, at)
            verdict = tally.verdict()
            outputs = Outputs(tally.files, tally.size, tally.skipped, tuple(tally.skipped_names))
            summary = replace(
                summary,
                outputs=outputs if here.is_latest else None,
                checksums=verdict,
                complete=verdict == COMPLETE,
            )
            write_summary(here.folder, summary, here.path, modes.file, at)
            follow_rotation(here, modes)
            files.remove(here.folder, paths.PARTIAL)
            at("partial removed")
    return _reply(summary, tally)


def _summary(here: Place) -> Summary:
    summary = read_summary(here.folder)
    if summary is None or summary.attempt != here.attempt:
        raise _gone(here.path)
    return summary


def _gone(folder: str) -> PersonFault:
    return PersonFault(f"{folder}/{paths.SUMMARY} is gone or no longer a summary, so the bundle cannot be completed.")


def _reply(summary: Summary, tally: Tally) -> dict[str, object]:
    return {
        "ok": True,
        "complete": summary.complete,
        "checksums": summary.checksums,
        "changing": tally.problem_names["changing"],
        "unreadable": tally.problem_names["unreadable"],
        "missing": tally.problem_names["missing"],
        "summary": summary.to_json(),
    }


def _hash_all(here: Place, so_far: Partial, tally: Tally, threads: int, at: At) -> None:
    for batch in in_order(_batches(here, so_far, tally), threads):
        for hashed in batch:
            if hashed.state != "ok":
                tally.bad(hashed.state, hashed.path)
                continue
            assert hashed.identity is not None
            so_far.add(hashed)
            tally.good(hashed.path, hashed.identity.size)
        at("batch hashed")


def _batches(here: Place, so_far: Partial, tally: Tally) -> Iterator[Callable[[], list[Hashed]]]:
    """What is still to be hashed, in the order of the walk. What an earlier try has hashed is taken over here."""
    resuming = True
    for folder in _folders(here):
        if folder.error is not None:
            # As a task like the others: what is told of the bundle then has the order of the walk.
            yield functools.partial(_unlisted, folder.path + b"/", folder.error)
            continue
        tally.skip(folder)
        prefix = folder.path + b"/" if folder.path else b""
        batch: list[bytes] = []
        size = 0
        for name in folder.names:
            identity = _identity(folder.descriptor, name)
            if resuming:
                if identity is not None and so_far.reuse(prefix + name, identity):
                    tally.good(prefix + name, identity.size)
                    continue
                so_far.cut()
                resuming = False
            batch.append(name)
            size += identity.size if identity else 0
            if len(batch) >= _BATCH_FILES or size >= _BATCH_BYTES:
                yield functools.partial(_hash_batch, os.dup(folder.descriptor), prefix, batch)
                batch, size = [], 0
        if batch:
            yield functools.partial(_hash_batch, os.dup(folder.descriptor), prefix, batch)
    if resuming:
        so_far.cut()


def _unlisted(path: bytes, error: OSError) -> list[Hashed]:
    """A folder that could not be listed: closed by its owner, or taken away. The NAS's own errors are raised."""
    if isinstance(error, PermissionError):
        return [Hashed(path, "unreadable")]
    if isinstance(error, FileNotFoundError | NotADirectoryError) or error.errno == errno.ELOOP:
        return [Hashed(path, "missing")]
    raise error


def _folders(here: Place) -> Iterator[Folder]:
    yield Folder(b"", here.folder, _LOGS, ())
    if here.is_latest:
        yield from walk(here.folder, os.fsencode(paths.OUTPUTS))


def _identity(folder: int, name: bytes) -> Identity | None:
    try:
        return Identity.of(os.stat(name, dir_fd=folder, follow_symlinks=False))
    except (FileNotFoundError, PermissionError):
        return None


def _hash_batch(folder: int, prefix: bytes, names: list[bytes]) -> list[Hashed]:
    try:
        return [_hash(folder, name, prefix + name) for name in names]
    finally:
        os.close(folder)


def _hash(folder: int, name: bytes, path: bytes) -> Hashed:
    hashed = hash_file(folder, name, path)
    if hashed.state != "changing":
        return hashed
    found = files.lstat(folder, os.fsdecode(name))
    is_file = found is not None and stat.S_ISREG(found.st_mode)
    return hashed if is_file else Hashed(path, "missing")  # nothing there, or a link in place of a log


def sync_file_system(folder: int) -> None:
    """syncfs(2): one call for all files of the share, where an fsync of each would take minutes."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syncfs(folder) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
