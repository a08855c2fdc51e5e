"""Check a bundle against its checksums.txt: what changed, what is missing, what was added since."""

import errno
import io
import itertools
import os
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal

from slurmk8s.errors import ClusterFault, PersonFault
from slurmk8s.results import archived, files, marker, paths, sums
from slurmk8s.results.hashers import BATCH_FILES, Batch, Way, batches, hash_all
from slurmk8s.results.hashing import Hashed
from slurmk8s.results.names import Names
from slurmk8s.results.strict import Malformed
from slurmk8s.results.summary import FAILED, decode
from slurmk8s.results.summary_file import read_summary
from slurmk8s.results.summary_text import shown_name
from slurmk8s.results.walk import open_below, trouble, walk

_LOGS = (os.fsencode(paths.STDOUT), os.fsencode(paths.STDERR))
_OUTPUTS = os.fsencode(paths.OUTPUTS) + b"/"
# What has so many lines that are none is no list of checksums.
_MOST_MALFORMED = 1000
_LONGEST_NAME = 255

Tick = Callable[[int, int], None]
"""Told about once a second how many files are checked and how many bytes are read."""


@dataclass
class Verdict:
    """What was found. Lists hold paths relative to the bundle."""

    state: Literal["complete", "pending", "failed"]
    """`pending`: there are no checksums yet; `failed`: the summary says that not all files could be hashed."""
    reason: str = ""
    """Why they failed, in the summary's words; or why the archive cannot be read."""
    matched: int = 0
    """Files that are as they were."""
    changed: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    archive: str = ""
    """Where the files are, if they are no longer in the bundle: then it is the archive that was read."""
    malformed: list[str] = field(default_factory=list)
    """Lines of checksums.txt that are none, or name something outside the bundle; or it lacks a log, or is no file."""

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
        return {
            "ok": self.ok,
            "state": self.state,
            "reason": self.reason,
            "archive": self.archive,
            "matched": self.matched,
            **self.problems,
        }


def verify(folder: Path, processes: int = 2, tick: Tick = lambda _files, _bytes: None, zstd: str = "zstd") -> Verdict:
    """Check the bundle in this folder, or its archive, and the logs of its earlier attempts."""
    try:
        with files.folder(str(folder)) as bundle:
            if (archive := archived.noted(bundle)) is not None:
                return _of_archive(bundle, folder, archive, tick, zstd)
            verdict = Verdict(*_state(bundle))
            if verdict.state == "pending":
                return verdict
            way = Way(processes, tries=1, tick=lambda read: tick(verdict.matched, read))
            listed = _check(bundle, b"", verdict, way, whole=verdict.state == "complete")
            if listed is None:
                return verdict  # every output would be extra, which tells nothing
            _find_extra(bundle, listed, verdict)
            for name in sorted(name for name in os.listdir(bundle) if paths.ATTEMPT_NAME.fullmatch(name)):
                try:
                    with files.folder(name, bundle) as attempt:
                        summary = read_summary(attempt)
                        whole = summary is not None and summary.complete
                        _check(attempt, os.fsencode(name) + b"/", verdict, way, whole=whole)
                except OSError as error:
                    verdict.problems[trouble(error)].append(name + "/")
            return verdict
    except FileNotFoundError:
        raise PersonFault(f"There is no results folder {folder}.") from None
    except PermissionError:
        raise PersonFault(f"You may not read {folder}.", "Only its owner can verify it.") from None
    except OSError as error:
        if error.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
        raise PersonFault(f"{folder} is not a results folder.") from None


def _of_archive(bundle: int, folder: Path, said: str, tick: Tick, zstd: str) -> Verdict:
    """The files were moved into an archive: read that in their place."""
    path = archived.find(bundle, folder, said)
    if path is None:
        return Verdict("complete", archive=said, missing=[said])
    verdict, read = Verdict("complete", archive=str(path)), 0
    wanted: dict[bytes, str] = {}
    found: dict[bytes, str] = {}
    complete = [b""]  # only such bundles are archived

    def count(more: int) -> None:
        nonlocal read
        read += more
        tick(len(found), read)

    try:
        with open(os.open(path, os.O_RDONLY | files.FILE_FLAGS), "rb") as file:
            for member in archived.members(file, zstd, count, _tells):
                found[member.path] = member.digest
                where = _attempt(member.path, paths.CHECKSUMS)
                if member.content is not None and where is not None:
                    for digest, name in _entries(io.BytesIO(member.content), where, verdict):
                        if wanted.setdefault(where + name, digest) != digest:
                            verdict.changed.append(shown_name(where + name))  # it cannot be both
                elif member.content is not None and _is_complete(member.content):
                    complete.append(member.path.removesuffix(os.fsencode(paths.SUMMARY)))
    except ClusterFault as fault:
        return Verdict("complete", fault.sentence, archive=str(path), unreadable=[str(path)])
    for where in complete:
        if where + os.fsencode(paths.CHECKSUMS) not in found:
            verdict.missing.append(shown_name(where) + paths.CHECKSUMS)
        else:
            _require_logs(where, [log for log in _LOGS if where + log in wanted], verdict)
    for name, digest in wanted.items():
        if name not in found:
            verdict.missing.append(shown_name(name))
        elif found[name] != digest:
            verdict.changed.append(shown_name(name))
        else:
            verdict.matched += 1
    verdict.extra += [shown_name(name) for name in found if name.startswith(_OUTPUTS) and name not in wanted]
    return verdict


def _attempt(path: bytes, name: str) -> bytes | None:
    """Which attempt's file of this name this is: b"", b"attempt-0/"; None if it is one that the job itself wrote."""
    above, slash, last = path.rpartition(b"/")
    if os.fsdecode(last) != name or (slash and not paths.ATTEMPT_NAME.fullmatch(os.fsdecode(above))):
        return None
    return above + slash


def _tells(path: bytes) -> bool:
    """Whether a file of the archive says what should be in it."""
    return _attempt(path, paths.CHECKSUMS) is not None or bool(_attempt(path, paths.SUMMARY))


def _is_complete(summary: bytes) -> bool:
    try:
        return len(summary) <= files.SMALL and decode(summary).complete
    except Malformed:
        return False


def _require_logs(prefix: bytes, listed: Names | list[bytes], verdict: Verdict) -> None:
    """A complete bundle lists both, even empty ones: else an emptied list would have nothing to complain of."""
    for log in _LOGS:
        if log not in listed:
            verdict.malformed.append(f"{shown_name(prefix)}{paths.CHECKSUMS}: {shown_name(log)} is not in it")


def _entries(file: IO[bytes], prefix: bytes, verdict: Verdict) -> Iterator[tuple[str, bytes]]:
    """Digest and path of each line that counts; of an earlier attempt its outputs do not, the next one had them."""
    for number, line in enumerate(sums.lines(file), 1):
        if len(verdict.malformed) >= _MOST_MALFORMED:
            return
        parsed = sums.parse(line)
        if parsed is None or not _is_inside(parsed[1]):
            verdict.malformed.append(f"{shown_name(prefix)}{paths.CHECKSUMS}: line {number}")
        elif not (prefix and parsed[1].startswith(_OUTPUTS)):
            yield parsed


def _state(bundle: int) -> tuple[Literal["complete", "pending", "failed"], str]:
    summary, known = read_summary(bundle), marker.read(bundle)
    # The summary is complete only after the checksums were there: then somebody has removed them.
    if files.lstat(bundle, paths.CHECKSUMS) is None and (summary is None or not summary.complete):
        return "pending", ""
    if summary is None:
        return "complete", ""  # an archived bundle may have lost its summary; its checksums still speak
    if known is not None and known.attempt != summary.attempt:
        return "pending", ""
    if summary.checksums.startswith(FAILED):
        return "failed", summary.checksums.removeprefix(FAILED)
    # While a bundle is hashed anew, a checksums.txt from before may be there.
    return ("complete", "") if summary.complete else ("pending", "")


def _check(folder: int, prefix: bytes, verdict: Verdict, way: Way, *, whole: bool) -> Names | None:
    """Hash what checksums.txt in this folder lists. The names it lists; None if there is no such list.

    `whole`: whether the summary says that there is one of everything.
    """
    found = files.lstat(folder, paths.CHECKSUMS)
    if found is None:
        if whole or not prefix:
            verdict.missing.append(shown_name(prefix) + paths.CHECKSUMS)
        return None
    if not stat.S_ISREG(found.st_mode):
        verdict.malformed.append(f"{shown_name(prefix)}{paths.CHECKSUMS}: not a plain file")
        return None
    listed = Names()
    expected: deque[str] = deque()  # of what is being hashed at the moment; the results come in the same order

    def lines(file: IO[bytes]) -> Iterator[tuple[bytes, bytes]]:
        for digest, path in _entries(file, prefix, verdict):
            listed.add(path)
            expected.append(digest)
            above, _, name = path.rpartition(b"/")
            yield above, name

    with open(os.open(paths.CHECKSUMS, os.O_RDONLY | files.FILE_FLAGS, dir_fd=folder), "rb") as file:
        _compare(hash_all(folder, _work(folder, lines(file)), way), expected, prefix, verdict)
    if whole:
        _require_logs(prefix, listed, verdict)
    return listed


def _compare(hashing: Iterable[list[Hashed]], expected: deque[str], prefix: bytes, verdict: Verdict) -> None:
    for batch in hashing:
        for hashed in batch:
            name = shown_name(prefix + hashed.path)
            digest = expected.popleft()
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


def _is_inside(path: bytes) -> bool:
    """Whether a path is one that we write: a log, or something under outputs/ without ways out of it."""
    if path in _LOGS:
        return True
    parts = path.split(b"/")
    is_possible = b"\0" not in path and all(len(part) <= _LONGEST_NAME for part in parts)
    return is_possible and path.startswith(_OUTPUTS) and not {b"", b".", b".."} & set(parts)


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
