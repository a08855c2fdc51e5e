"""Read the archive of a bundle, `<job id>.tar.zst`: every file's digest, in one pass and without unpacking it.

zstd is the program, not a library: whoever unpacks an archive needs it as well, and every system has it.
"""

import contextlib
import hashlib
import io
import os
import stat
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from slurmk8s.errors import ClusterFault, PersonFault, SetupError
from slurmk8s.results import files, paths

_CHUNK = 1 << 20
_SAYS = "The files of this job are in "
# A path and a few words.
_LONGEST = 8192
# Of one file in the archive: its name, and that of what it links to.
_LONGEST_HEADER = 2 << 20
# The checksums of two million files.
_LARGEST_KEPT = 256 << 20


@dataclass(frozen=True)
class Member:
    """A regular file of the archive."""

    path: bytes
    """Relative to the bundle."""
    digest: str
    content: bytes | None = None
    """Where it was asked for."""


def note(bundle: int, archive: str) -> None:
    """Say in the bundle where its files are; from then on the original may be in pieces."""
    files.write(bundle, paths.ARCHIVED, [f"{_SAYS}{archive}\n".encode("utf-8", "backslashreplace")], 0o600)


def noted(bundle: int) -> str | None:
    """Where the bundle's files are, if they are no longer in it."""
    said = files.read_small(bundle, paths.ARCHIVED, _LONGEST)
    return None if said is None else said.decode("utf-8", "replace").removeprefix(_SAYS).strip()


def find(bundle: int, folder: Path, archive: str) -> Path | None:
    """The archive: where the bundle says, or beside it, if the NAS is mounted elsewhere here. Its owner's alone."""
    owner = os.fstat(bundle).st_uid
    for path in (Path(archive), folder.resolve().parent / Path(archive).name):
        with contextlib.suppress(OSError, ValueError):
            found = path.lstat()
            if stat.S_ISREG(found.st_mode) and found.st_uid == owner:
                return path
    return None


def members(
    archive: IO[bytes],
    zstd: str,
    tick: Callable[[int], None] = lambda _: None,
    keeps: Callable[[bytes], bool] = lambda _: False,
) -> Iterator[Member]:
    """Each regular file; `tick` hears how many bytes were read, `keeps` says of which path the content is wanted.

    ClusterFault where the archive is damaged.
    """
    try:
        with through_zstd([zstd, "-q", "-d", "-c"], archive, subprocess.PIPE) as process:
            assert process.stdout is not None
            stream = _Stream(process.stdout)
            with tarfile.open(fileobj=stream, mode="r:", encoding="utf-8", errors="surrogateescape") as tar:
                while (member := tar.next()) is not None:
                    tar.members.clear()  # type: ignore[attr-defined] # it would keep every one it has seen
                    if member.isreg():
                        yield _read(tar, member, stream, tick, keeps)
                    stream.may_read = _LONGEST_HEADER
    # Whatever else a forged header makes of tarfile: it converts numbers unseen, and calls itself for each header.
    except (tarfile.TarError, ValueError, OverflowError, RecursionError) as error:
        raise ClusterFault(f"The archive cannot be read ({error}).") from None


class _Stream(io.RawIOBase):
    """What comes out of zstd, for tarfile, which takes a whole header into memory, however long it says it is."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._position = 0
        self.may_read = _LONGEST_HEADER

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= self.may_read:
            raise tarfile.ReadError("a header in it is too long")
        data = self._source.read(size)
        self._position += len(data)
        self.may_read -= len(data)
        return data

    def tell(self) -> int:
        return self._position

    def seek(self, position: int, _whence: int = io.SEEK_SET) -> int:
        """Forwards only: a file of less than nothing would lead back to its own header for ever."""
        if position < self._position:
            raise tarfile.ReadError("a file in it has no right size")
        while self._position < position and (data := self._source.read(min(_CHUNK, position - self._position))):
            self._position += len(data)
        return self._position


def _read(
    tar: tarfile.TarFile,
    member: tarfile.TarInfo,
    stream: _Stream,
    tick: Callable[[int], None],
    keeps: Callable[[bytes], bool],
) -> Member:
    if member.issparse():  # a few bytes that say they are any number of zeros
        raise tarfile.ReadError("a file in it is sparse, and slurmk8s writes none")
    path = os.fsencode(member.name).partition(b"/")[2]
    kept = bytearray() if keeps(path) else None
    if kept is not None and member.size > _LARGEST_KEPT:
        raise tarfile.ReadError(f"{os.path.basename(member.name)} is too large")
    content = tar.extractfile(member)
    assert content is not None
    digest = hashlib.sha256()
    stream.may_read = member.size
    while data := content.read(_CHUNK):
        digest.update(data)
        tick(len(data))
        if kept is not None:
            kept += data
    return Member(path, digest.hexdigest(), None if kept is None else bytes(kept))


@contextlib.contextmanager
def through_zstd(command: list[str], stdin: Any, stdout: Any) -> Iterator["subprocess.Popen[bytes]"]:  # noqa: ANN401 - as Popen
    """Run zstd; what it says of a failure becomes a fault."""
    try:
        process = subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE)
    except OSError as error:
        raise SetupError(
            f"{command[0]} cannot be run: {error.strerror}.", "Install zstd, or set after.archive.zstd."
        ) from None
    assert process.stderr is not None
    try:
        with contextlib.suppress(BrokenPipeError):  # it has ended, and says why
            yield process
        _close(process)
        said = process.stderr.read(1000).decode("utf-8", "replace").strip()
        if process.wait() not in (0, -13):  # SIGPIPE: it had more, and we had seen the end
            raise _failed(said)
    finally:
        process.kill()
        process.wait()
        _close(process)
        process.stderr.close()


def _close(process: "subprocess.Popen[bytes]") -> None:
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            if pipe is not None:
                pipe.close()


def _failed(said: str) -> Exception:
    if "No space left" in said:
        return ClusterFault("There is no space for the archive.", "Free some; it is tried again.")
    if "quota" in said:
        return PersonFault("Your quota is used up, so there is no archive.")
    return ClusterFault(f"zstd failed: {said or 'without a word'}.")
