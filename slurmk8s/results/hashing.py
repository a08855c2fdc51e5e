"""Hash files: several at a time, results in order, and a file that changes meanwhile is noticed.

Threads, not processes: hashlib and reads let go of the interpreter's lock, and a killed worker leaves no children.
"""

import errno
import hashlib
import os
import stat
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal, TypeVar

from slurmk8s.results import files

_CHUNK = 1 << 20
_TRIES = 3
_PAUSE_SECONDS = 0.2
_NOT_A_FILE_NOW = (errno.ELOOP, errno.ENXIO, errno.ENODEV, errno.EISDIR)

T = TypeVar("T")


@dataclass(frozen=True)
class Identity:
    """What must be the same for a digest to still be true of a file."""

    size: int
    mtime_ns: int
    inode: int

    @classmethod
    def of(cls, found: os.stat_result) -> "Identity":
        """From a stat."""
        return cls(found.st_size, found.st_mtime_ns, found.st_ino)


@dataclass(frozen=True)
class Hashed:
    """What became of one file."""

    path: bytes
    state: Literal["ok", "changing", "unreadable", "missing"]
    identity: Identity | None = None
    digest: str = ""


def hash_file(folder: int, name: bytes, path: bytes, tries: int = _TRIES) -> Hashed:
    """Hash one file. Errors of the file itself are a result; errors of the NAS are raised, since a retry may help."""
    for attempt in range(tries):
        if attempt:
            time.sleep(_PAUSE_SECONDS)
        try:
            descriptor = os.open(name, os.O_RDONLY | files.FILE_FLAGS, dir_fd=folder)
        except FileNotFoundError:
            continue  # listed a moment ago, so somebody is at work here; a NAS may also find it again
        except PermissionError:
            return Hashed(path, "unreadable")
        except OSError as error:
            if error.errno in _NOT_A_FILE_NOW:
                return Hashed(path, "changing")
            raise
        try:
            hashed = _hash_descriptor(descriptor, path)
        finally:
            os.close(descriptor)
        if hashed is not None:
            return hashed
    return Hashed(path, "changing")


def _hash_descriptor(descriptor: int, path: bytes) -> Hashed | None:
    before = os.fstat(descriptor)
    if not stat.S_ISREG(before.st_mode):
        return Hashed(path, "changing")
    digest = hashlib.sha256()
    count = 0
    size = min(_CHUNK, before.st_size + 1)  # most files are small; one byte more tells a file that grows
    while chunk := os.read(descriptor, size):
        digest.update(chunk)
        count += len(chunk)
    after = os.fstat(descriptor)
    is_still = Identity.of(before) == Identity.of(after) and before.st_ctime_ns == after.st_ctime_ns
    if not is_still or count != after.st_size:
        return None
    return Hashed(path, "ok", Identity.of(after), digest.hexdigest())


def in_order(tasks: Iterable[Callable[[], T]], threads: int) -> Iterator[T]:
    """Run tasks on threads and yield their results in the tasks' order; only a few are ever waiting."""
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[T]] = deque()
        try:
            for task in tasks:
                waiting.append(pool.submit(task))
                if len(waiting) >= 4 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
