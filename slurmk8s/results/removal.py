"""Remove a tree by open folders: no link is followed, no other file system entered, and no depth is too deep."""

import os
import stat

from slurmk8s.results import files
from slurmk8s.results.steps import At, nothing
from slurmk8s.results.walk import open_below

# So many names of a folder are held at a time.
_AT_ONCE = 4096


def remove_tree(parent: int, name: bytes, at: At = nothing) -> None:
    """The folder `name` and all in it. Asked again after a crash it goes on."""
    device = os.stat(name, dir_fd=parent, follow_symlinks=False).st_dev
    waiting = [name]
    while waiting:
        path = waiting[-1]
        above, _, last = path.rpartition(b"/")
        holder = open_below(parent, above) if above else os.dup(parent)
        try:
            folders = _empty(holder, last, device)
            if folders:
                waiting += [path + b"/" + folder for folder in folders]
                continue
            os.rmdir(last, dir_fd=holder)
            waiting.pop()
            at("folder removed")
        finally:
            os.close(holder)


def _empty(holder: int, name: bytes, device: int) -> list[bytes]:
    """Remove the files of a folder, some thousand at a time; the folders that must go before it can."""
    descriptor = _open(holder, name)
    try:
        if os.fstat(descriptor).st_dev != device:
            raise OSError(18, "another file system is mounted there")  # EXDEV
        while True:
            others, folders = _some(descriptor)
            for other in others:
                os.unlink(other, dir_fd=descriptor)
            if folders or not others:
                return folders
    finally:
        os.close(descriptor)


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
