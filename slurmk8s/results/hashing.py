"""Hash one file; one that changes meanwhile is noticed."""

import errno
import hashlib
import os
import stat
import time
from collections.abc import Callable
from typing import Literal, NamedTuple

from slurmk8s.results import files

CHUNK = 1 << 20
_TRIES = 3
_PAUSE_SECONDS = 0.2
_NOT_A_FILE_NOW = (errno.ELOOP, errno.ENXIO, errno.ENODEV, errno.EISDIR)

# Called with the number of bytes just read.
Read = Callable[[int], None]


# Both are tuples: they are made, compared and sent between processes for every file, which shows with small ones.
class Identity(NamedTuple):
    """What must be the same for a digest to still be true of a file."""

    size: int
    mtime_ns: int
    inode: int

    @classmethod
    def of(cls, found: os.stat_result) -> "Identity":
        """From a stat."""
        return cls(found.st_size, found.st_mtime_ns, found.st_ino)


class Hashed(NamedTuple):
    """What became of one file."""

    path: bytes
    state: Literal["ok", "changing", "unreadable", "missing", "other"]
    """`other`: what stands there is no regular file."""
    identity: Identity | None = None
    digest: str = ""


def uncounted(_bytes: int) -> None:
    """For those who do not want to know."""


def hash_file(folder: int, name: bytes, path: bytes, tries: int = _TRIES, read: Read = uncounted) -> Hashed:
    """Hash one file. Errors of the file itself are a result; errors of the NAS are raised, since a retry may help."""
    state: Literal["changing", "missing"] = "changing"
    for attempt in range(tries):
        if attempt:
            time.sleep(_PAUSE_SECONDS)
        try:
            descriptor = os.open(name, os.O_RDONLY | files.FILE_FLAGS, dir_fd=folder)
        except FileNotFoundError:
            state = "missing"
            continue  # listed a moment ago, so somebody is at work here; a NAS may also find it again
        except PermissionError:
            return Hashed(path, "unreadable")
        except OSError as error:
            if error.errno in _NOT_A_FILE_NOW:
                return Hashed(path, "other")
            raise
        try:
            hashed = _hash_descriptor(descriptor, path, read)
        finally:
            os.close(descriptor)
        if hashed is not None:
            return hashed
        state = "changing"
    return Hashed(path, state)


def _hash_descriptor(descriptor: int, path: bytes, read: Read) -> Hashed | None:
    before = os.fstat(descriptor)
    if not stat.S_ISREG(before.st_mode):
        return Hashed(path, "other")
    if before.st_size > CHUNK:
        # The kernel then reads further ahead; sha256sum asks for the same.
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_SEQUENTIAL)
    digest = hashlib.sha256()
    count = 0
    size = min(CHUNK, before.st_size + 1)  # most files are small; one byte more tells a file that grows
    while chunk := os.read(descriptor, size):
        digest.update(chunk)
        count += len(chunk)
        read(len(chunk))
        if count > before.st_size:
            break  # it grows; a log that is written faster than we read would have no end
    after = os.fstat(descriptor)
    is_still = Identity.of(before) == Identity.of(after) and before.st_ctime_ns == after.st_ctime_ns
    if not is_still or count != after.st_size:
        return None
    return Hashed(path, "ok", Identity.of(after), digest.hexdigest())
