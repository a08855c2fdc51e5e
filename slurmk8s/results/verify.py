"""Check a bundle against its checksums.txt: what changed, what is missing, what was added since."""

import errno
import itertools
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from slurmk8s.errors import PersonFault
from slurmk8s.results import files, marker, paths, sums
from slurmk8s.results.hashers import BATCH_FILES, Batch, Way, batches, hash_all
from slurmk8s.results.hashing import Hashed
from slurmk8s.results.names import Names
from slurmk8s.results.summary import FAILED
from slurmk8s.results.summary_file import read_summary
from slurmk8s.results.summary_text import shown_name
from slurmk8s.results.walk import open_below, trouble, walk

_LOGS = (os.fsencode(paths.STDOUT), os.fsencode(paths.STDERR))
_OUTPUTS = os.fsencode(paths.OUTPUTS) + b"/"

Tick = Callable[[int, int], None]
"""Told about once a second how many files are checked and how many bytes are read."""


@dataclass
class Verdict:
    """What was found. Lists hold paths relative to the bundle."""

    state: Literal["complete", "pending", "failed"]
    """`pending`: there are no checksums yet; `failed`: the summary says that not all files could be hashed."""
    reason: str = ""
    """Why they failed, in the summary's words."""
    matched: int = 0
    """Files that are as they were."""
    changed: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    malformed: list[str] = field(default_factory=list)
    """Lines of checksums.txt that are none, or name something outside the bundle."""

    @property
    def ok(self) -> bool:
        """Whether everything is as it was when the bundle was completed."""
        return self.state == "complete" and not any(self.problems.values())

    @property
    def problems(self) -> dict[str, list[str]]:
        """The lists by name."""
        return {
            "changed": self.changed,
            "missing": self.missing,
            "extra": self.extra,
            "unreadable": self.unreadable,
            "malformed": self.malformed,
        }

    def to_json(self) -> dict[str, object]:
        """For programs."""
        return {"ok": self.ok, "state": self.state, "reason": self.reason, "matched": self.matched, **self.problems}


def verify(folder: Path, processes: int = 2, tick: Tick = lambda _files, _bytes: None) -> Verdict:
    """Check the bundle in this folder, and the logs of its earlier attempts."""
    try:
        with files.folder(str(folder)) as bundle:
            verdict = Verdict(*_state(bundle))
            if verdict.state == "pending":
                return verdict
            listed = Names()
            _check(bundle, b"", verdict, processes, tick, listed)
            _find_extra(bundle, listed, verdict)
            for name in sorted(name for name in os.listdir(bundle) if paths.ATTEMPT_NAME.fullmatch(name)):
                with files.folder(name, bundle) as attempt:
                    _check(attempt, os.fsencode(name) + b"/", verdict, processes, tick, Names())
            return verdict
    except FileNotFoundError:
        raise PersonFault(f"There is no results folder {folder}.") from None
    except PermissionError:
        raise PersonFault(f"You may not read {folder}.", "Only its owner can verify it.") from None
    except OSError as error:
        if error.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
        raise PersonFault(f"{folder} is not a results folder.") from None


def _state(bundle: int) -> tuple[Literal["complete", "pending", "failed"], str]:
    summary, known = read_summary(bundle), marker.read(bundle)
    if files.lstat(bundle, paths.CHECKSUMS) is None:
        return "pending", ""
    if summary is None:
        return "complete", ""  # an archived bundle may have lost its summary; its checksums still speak
    if known is not None and known.attempt != summary.attempt:
        return "pending", ""
    if summary.checksums.startswith(FAILED):
        return "failed", summary.checksums.removeprefix(FAILED)
    # While a bundle is hashed anew, a checksums.txt from before may be there.
    return ("complete", "") if summary.complete else ("pending", "")


def _check(folder: int, prefix: bytes, verdict: Verdict, processes: int, tick: Tick, listed: Names) -> None:
    """Hash what checksums.txt in this folder lists, and remember the names it lists."""
    expected: dict[bytes, str] = {}  # only of what is being hashed at the moment

    def lines() -> Iterator[tuple[bytes, bytes]]:
        for number, line in enumerate(_lines(folder), 1):
            parsed = sums.parse(line)
            if parsed is None or not _is_inside(parsed[1]):
                verdict.malformed.append(f"{shown_name(prefix)}{paths.CHECKSUMS}: line {number}")
                continue
            digest, path = parsed
            if prefix and path.startswith(_OUTPUTS):
                continue  # outputs were handed on to the next attempt
            listed.add(path)
            expected[path] = digest
            above, _, name = path.rpartition(b"/")
            yield above, name

    way = Way(processes, tries=1, tick=lambda read: tick(verdict.matched, read))
    for batch in hash_all(folder, _work(folder, lines()), way):
        for hashed in batch:
            name = shown_name(prefix + hashed.path)
            digest = expected.pop(hashed.path, "")
            if hashed.state == "unreadable":
                verdict.unreadable.append(name)
            elif hashed.state == "missing":
                verdict.missing.append(name)
            elif hashed.digest != digest:
                verdict.changed.append(name)
            else:
                verdict.matched += 1


def _work(folder: int, lines: Iterable[tuple[bytes, bytes]]) -> Iterator[Batch | list[Hashed]]:
    """What is to be hashed. Files of one folder stand together, as we write them; any other order works too."""
    for above, named in itertools.groupby(lines, key=lambda line: line[0]):
        names = (name for _, name in named)
        while some := tuple(itertools.islice(names, BATCH_FILES)):
            try:
                inner = open_below(folder, above) if above else os.dup(folder)
            except OSError as error:
                state = trouble(error)
                yield [Hashed(above + b"/" + name, state) for name in some]
                continue
            try:
                sized = [(name, _size(inner, name)) for name in some]
            finally:
                os.close(inner)
            yield from batches(above, sized)


def _size(folder: int, name: bytes) -> int:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_size
    except (FileNotFoundError, PermissionError):
        return 0


def _lines(folder: int) -> Iterator[bytes]:
    try:
        descriptor = os.open(paths.CHECKSUMS, os.O_RDONLY | files.FILE_FLAGS, dir_fd=folder)
    except FileNotFoundError:
        return
    with open(descriptor, "rb") as file:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            yield from file


def _is_inside(path: bytes) -> bool:
    """Whether a path is one that we write: a log, or something under outputs/ without ways out of it."""
    if path in _LOGS:
        return True
    return path.startswith(_OUTPUTS) and all(part not in (b"", b".", b"..") for part in path.split(b"/"))


def _find_extra(bundle: int, listed: Names, verdict: Verdict) -> None:
    for folder in walk(bundle, os.fsencode(paths.OUTPUTS)):
        if isinstance(folder.error, FileNotFoundError):
            continue  # its files are already told as missing
        if folder.error is not None:
            verdict.unreadable.append(shown_name(folder.path) + "/")
        for name in folder.names:
            path = folder.path + b"/" + name
            if path not in listed:
                verdict.extra.append(shown_name(path))
