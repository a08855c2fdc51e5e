"""Digests so far, on disk: hashing that was cut short goes on where it stopped.

A line is the file's size, mtime and inode, then its line of checksums.txt. Lines are in the order of the walk, so the
file is read in step with the walk and never held in memory; from the first difference on it is cut off.
"""

import contextlib
import errno
import fcntl
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from slurmk8s.errors import ClusterFault
from slurmk8s.results import files, paths, sums
from slurmk8s.results.hashing import Hashed, Identity

_LINE = re.compile(rb"([0-9]+) (-?[0-9]+) ([0-9]+) (.+\n)", re.DOTALL)


@dataclass(frozen=True)
class Entry:
    """One digest."""

    path: bytes
    identity: Identity
    length: int
    """Of its line in bytes."""


class Partial:
    """The open file. Reading goes on from entry to entry while they fit the walk; then it is only written."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        # It shares its position with the descriptor: all reading is done before the first entry is added.
        self._reader = open(os.dup(descriptor), "rb")  # noqa: SIM115 - a descriptor; closed in close()
        self._offset = 0
        self._next = self._read()

    def close(self) -> None:
        """Close it; the lock goes too."""
        self._reader.close()
        os.close(self._descriptor)

    def reuse(self, path: bytes, identity: Identity) -> bool:
        """Whether the next entry is of this very file."""
        entry = self._next
        if entry is None or (entry.path, entry.identity) != (path, identity):
            return False
        self._offset += entry.length
        self._next = self._read()
        return True

    def cut(self) -> None:
        """Forget what has not been reused; from now on entries are added."""
        os.ftruncate(self._descriptor, self._offset)
        self._next = None

    def add(self, batch: Iterable[Hashed]) -> None:
        """Write digests behind the others."""
        data = b"".join(_line(hashed) for hashed in batch)
        while data:
            data = data[os.write(self._descriptor, data) :]

    def checksum_lines(self) -> Iterator[bytes]:
        """The lines of checksums.txt, once all of them are kept: a NAS may tell late that it had no room for one."""
        files.sync(self._descriptor)
        self._reader.close()
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        self._reader = open(os.dup(self._descriptor), "rb")  # noqa: SIM115 - a buffer without old lines
        for line in self._reader:
            yield line.split(b" ", 3)[3]

    def _read(self) -> Entry | None:
        line = self._reader.readline()
        match = _LINE.fullmatch(line)  # the last line of a killed worker may be cut short
        parsed = sums.parse(match[4]) if match else None
        if match is None or parsed is None:
            return None
        return Entry(parsed[1], Identity(int(match[1]), int(match[2]), int(match[3])), len(line))


def _line(hashed: Hashed) -> bytes:
    assert hashed.identity is not None
    identity = hashed.identity
    return b"%d %d %d " % (identity.size, identity.mtime_ns, identity.inode) + sums.line(hashed.digest, hashed.path)


@contextlib.contextmanager
def partial(folder: int) -> Iterator[Partial]:
    """Open the file of this folder for one worker alone."""
    descriptor = _open(folder)
    opened = None
    try:
        _lock(descriptor)
        opened = Partial(descriptor)
        yield opened
    finally:
        if opened is not None:
            opened.close()
        else:
            os.close(descriptor)


def _open(folder: int) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | files.FILE_FLAGS
    if files.is_own_file(folder, paths.PARTIAL) is False:
        files.remove(folder, paths.PARTIAL)
    descriptor = os.open(paths.PARTIAL, flags, 0o600, dir_fd=folder)
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_nlink > 1:
        os.close(descriptor)
        raise files.not_ours(paths.PARTIAL)
    return descriptor


def _lock(descriptor: int) -> None:
    """Two writers would mix their lines: a worker whose agent was killed may still be at it.

    The kernel lets go of the lock when its holder dies, so nothing is left to clean up.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
            return  # a share without locks: then only the agent's own queue keeps workers apart
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise
        raise ClusterFault("Another worker is still hashing this bundle.", "It is tried again.") from None
    if os.fstat(descriptor).st_nlink == 0:  # it finished between our open and our lock
        raise ClusterFault("Another worker has just hashed this bundle.", "It is tried again.")
