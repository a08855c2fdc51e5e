"""Remove a tree by open folders: no link is followed, no other file system entered, and no depth is too deep.

A folder inside a folder is first moved up to the top: however deep the tree, each folder is opened once from there.
"""

import errno
import os
import stat

from slurmk8s.results import files
from slurmk8s.results.steps import At, nothing

# So many names of a folder are held at a time.
_AT_ONCE = 4096


def remove_tree(parent: int, name: bytes, at: At = nothing) -> None:
    """The folder `name` and all in it. Asked again after a crash it goes on."""
    top = _open(parent, name)
    try:
        device = os.fstat(top).st_dev
        while True:
            others, folders = _some(top)
            _unlink(top, others)
            for folder in folders:
                _flatten(top, folder, device)
                os.rmdir(folder, dir_fd=top)
                at("folder removed")
            if not others and not folders:
                break
    finally:
        os.close(top)
    os.rmdir(name, dir_fd=parent)


def _flatten(top: int, name: bytes, device: int) -> None:
    """Empty a folder of the top: its files go, its folders move up beside it."""
    descriptor = _open(top, name)
    try:
        if os.fstat(descriptor).st_dev != device:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        while True:
            others, folders = _some(descriptor)
            _unlink(descriptor, others)
            for folder in folders:
                os.close(_open(descriptor, folder))  # one that its owner may not write to cannot be moved
                os.rename(folder, os.urandom(16).hex().encode(), src_dir_fd=descriptor, dst_dir_fd=top)
            if not others and not folders:
                return
    finally:
        os.close(descriptor)


def _unlink(folder: int, names: list[bytes]) -> None:
    for name in names:
        os.unlink(name, dir_fd=folder)


def _some(descriptor: int) -> tuple[list[bytes], list[bytes]]:
    others: list[bytes] = []
    folders: list[bytes] = []
    with os.scandir(descriptor) as entries:
        for entry in entries:
            (folders if entry.is_dir(follow_symlinks=False) else others).append(os.fsencode(entry.name))
            if len(others) + len(folders) >= _AT_ONCE:
                break
    return others, folders


def _open(holder: int, name: bytes) -> int:
    """Open a folder, also one that its owner has closed to himself: its mode is changed by descriptor, not by name."""
    try:
        descriptor = os.open(name, files.FOLDER_FLAGS, dir_fd=holder)
        if stat.S_IMODE(os.fstat(descriptor).st_mode) & 0o300 == 0o300:
            return descriptor
        os.close(descriptor)
    except PermissionError:
        pass
    handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=holder)
    try:
        os.chmod(f"/proc/self/fd/{handle}", 0o700)
        return os.open(".", files.FOLDER_FLAGS, dir_fd=handle)
    finally:
        os.close(handle)
