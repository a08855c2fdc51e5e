"""Check a bundle against its checksums.txt: what changed, what is missing, what was added since."""

import errno
import functools
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from slurmk8s.errors import PersonFault
from slurmk8s.results import files, marker, paths, sums
from slurmk8s.results.hashing import Hashed, hash_file, in_order
from slurmk8s.results.summary import FAILED
from slurmk8s.results.summary_file import read_summary
from slurmk8s.results.summary_text import shown_name
from slurmk8s.results.walk import open_below, walk

_LOGS = (os.fsencode(paths.STDOUT), os.fsencode(paths.STDERR))
_OUTPUTS = os.fsencode(paths.OUTPUTS) + b"/"


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


def verify(folder: Path, threads: int = 2) -> Verdict:
    """Check the bundle in this folder, and the logs of its earlier attempts."""
    try:
        with files.folder(str(folder)) as bundle:
            verdict = Verdict(*_state(bundle))
            if verdict.state == "pending":
                return verdict
            listed = _check(bundle, b"", verdict, threads)
            _find_extra(bundle, listed, verdict)
            for name in sorted(name for name in os.listdir(bundle) if paths.ATTEMPT_NAME.fullmatch(name)):
                with files.folder(name, bundle) as attempt:
                    _check(attempt, os.fsencode(name) + b"/", verdict, threads)
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


def _check(folder: int, prefix: bytes, verdict: Verdict, threads: int) -> set[bytes]:
    """Hash what checksums.txt in this folder lists; the names it lists."""
    listed: set[bytes] = set()
    expected: dict[bytes, str] = {}  # only of what is being hashed at the moment

    def tasks() -> Iterator[functools.partial[Hashed]]:
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
            yield functools.partial(_hash, folder, path)

    for hashed in in_order(tasks(), threads):
        name = shown_name(prefix + hashed.path)
        digest = expected.pop(hashed.path, "")
        if hashed.state == "unreadable":
            verdict.unreadable.append(name)
        elif hashed.state == "changing" and _is_missing(folder, hashed.path):
            verdict.missing.append(name)
        elif hashed.digest != digest:
            verdict.changed.append(name)
        else:
            verdict.matched += 1
    return listed


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


def _hash(folder: int, path: bytes) -> Hashed:
    above, _, name = path.rpartition(b"/")
    try:
        inner = open_below(folder, above) if above else os.dup(folder)
    except PermissionError:
        return Hashed(path, "unreadable")
    except (FileNotFoundError, NotADirectoryError):
        return Hashed(path, "changing")
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        return Hashed(path, "changing")
    try:
        return hash_file(inner, name, path, tries=1)
    finally:
        os.close(inner)


def _is_missing(folder: int, path: bytes) -> bool:
    """Nothing is there, as against something else (a link, a pipe, or a file that keeps changing)."""
    above, _, name = path.rpartition(b"/")
    try:
        inner = open_below(folder, above) if above else os.dup(folder)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    try:
        return files.lstat(inner, os.fsdecode(name)) is None
    finally:
        os.close(inner)


def _find_extra(bundle: int, listed: set[bytes], verdict: Verdict) -> None:
    for folder in walk(bundle, os.fsencode(paths.OUTPUTS)):
        if isinstance(folder.error, FileNotFoundError):
            continue  # its files are already told as missing
        if folder.error is not None:
            verdict.unreadable.append(shown_name(folder.path) + "/")
        for name in folder.names:
            path = folder.path + b"/" + name
            if path not in listed:
                verdict.extra.append(shown_name(path))
