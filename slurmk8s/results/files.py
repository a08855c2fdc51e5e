"""Files and folders of a bundle by open folder descriptors, so that no symbolic link is ever followed.

A path is resolved anew at each use and somebody may have swapped a part of it meanwhile; a descriptor stays what it
is. Files are written beside their target, made durable, and renamed: a reader sees all of a file or none of it.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator

from slurmk8s.errors import PersonFault
from slurmk8s.results import paths
from slurmk8s.results.steps import At, nothing

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: opening a named pipe must not wait for a writer. It means nothing for regular files.
FILE_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
# Summaries and markers are smaller than this.
SMALL = 1 << 20


@contextlib.contextmanager
def folder(name: str | bytes, parent: int | None = None) -> Iterator[int]:
    """A real folder, opened; OSError (ELOOP or ENOTDIR) if it is anything else."""
    descriptor = os.open(name, FOLDER_FLAGS, dir_fd=parent)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def is_own_folder(parent: int, name: str) -> bool | None:
    """Whether this is a real folder of this user's; None if there is nothing of that name."""
    found = lstat(parent, name)
    return None if found is None else stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def is_own_file(parent: int, name: str) -> bool | None:
    """Whether this is a regular file of this user's; None if there is nothing of that name."""
    found = lstat(parent, name)
    return None if found is None else stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()


def lstat(parent: int, name: str) -> os.stat_result | None:
    """What stands at this name, not where it leads."""
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None


def read_small(parent: int, name: str, limit: int = SMALL) -> bytes | None:
    """The bytes of a regular file of at most this size; None if there is no such file."""
    try:
        descriptor = os.open(name, os.O_RDONLY | FILE_FLAGS, dir_fd=parent)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENXIO):  # nothing, a link, a socket
            return None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)  # a folder cannot even be wrapped
        return None
    with open(descriptor, "rb") as file:
        data = file.read(limit + 1)
        return data if len(data) <= limit else None


def write(parent: int, name: str, data: Iterable[bytes], mode: int, at: At = nothing) -> None:
    """Put a file in place as a whole. Whatever stood there, also a link, is replaced and not written through."""
    # A name of its own: after a restart two workers may be at the same bundle, and one must not rename the other's.
    temporary = f".{name}.{os.urandom(8).hex()}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | FILE_FLAGS
    descriptor = os.open(temporary, flags, 0o600, dir_fd=parent)
    try:
        with open(descriptor, "wb") as file:
            file.writelines(data)
            file.flush()
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        at(f"{name} written")
        os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=parent)
        raise
    at(f"{name} in place")
    sync(parent)


def create_empty(parent: int, name: str, mode: int) -> None:
    """An empty file; one that is there is kept if it is this user's own and has no second name elsewhere."""
    try:
        descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | FILE_FLAGS, 0o600, dir_fd=parent)
    except FileExistsError:
        found = lstat(parent, name)
        if found is not None and (is_own_file(parent, name) is False or found.st_nlink != 1):
            raise not_ours(name) from None
        return
    try:
        os.fchmod(descriptor, mode)  # the umask has its say in open's mode, not here
    finally:
        os.close(descriptor)


def append(parent: int, name: str, data: bytes, *, durable: bool = True) -> None:
    """Add to a regular file of this user's that has no second name."""
    try:
        descriptor = os.open(name, os.O_WRONLY | os.O_APPEND | FILE_FLAGS, dir_fd=parent)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise not_ours(name) from None
        raise
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_nlink != 1:
            raise not_ours(name)
        while data:
            data = data[os.write(descriptor, data) :]
        if durable:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def not_ours(name: str) -> PersonFault:
    """Something stands where a file of the bundle belongs."""
    return PersonFault(
        f"In the job's results folder, {name} is not a plain file or folder of your own.",
        "Remove what stands there; slurmk8s never writes through links or into what belongs to others.",
    )


def remove(parent: int, name: str) -> None:
    """Remove a file if it is there."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=parent)


def sweep(parent: int) -> None:
    """Remove temporary files that a killed worker left behind."""
    with os.scandir(parent) as entries:
        names = [entry.name for entry in entries if paths.TEMPORARY_NAME.fullmatch(entry.name)]
    for name in names:
        remove(parent, name)


def sync_file(parent: int, name: str) -> None:
    """Make a file's content durable, whoever wrote it: fsync is about the file, not about the descriptor."""
    with contextlib.suppress(FileNotFoundError):
        try:
            descriptor = os.open(name, os.O_RDONLY | FILE_FLAGS, dir_fd=parent)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO, errno.EACCES):
                return  # a link, a socket, or made unreadable by its owner: not what we promise anything about
            raise
        _sync(descriptor)


def sync(descriptor: int) -> None:
    """Make an open file's content durable, or the names in an open folder. Some NAS say only now that they are full."""
    _sync(os.dup(descriptor))


def _sync(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOSYS):  # some FUSE file systems have no fsync for this
            raise
    finally:
        os.close(descriptor)
