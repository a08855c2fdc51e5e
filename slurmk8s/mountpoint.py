"""Whether a folder is a mount point: an unmounted NAS is an empty folder on the system disk, and must not be used."""

import os
from pathlib import Path


def is_mountpoint(path: Path) -> bool:
    """Whether something is mounted on this folder; False where it is not there. Needs no right to enter it."""
    try:
        return _mount_id_of(path) != _mount_id_of(path.parent)
    except OSError:
        return False


def _mount_id_of(path: Path) -> str:
    folder = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return _mount_id(folder)
    finally:
        os.close(folder)


def is_root_of_mount(folder: int) -> bool:
    """Compare mount ids: unlike os.path.ismount this also knows a bind mount within one file system."""
    parent = os.open("..", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        return _mount_id(folder) != _mount_id(parent)
    finally:
        os.close(parent)


def _mount_id(descriptor: int) -> str:
    lines = Path(f"/proc/self/fdinfo/{descriptor}").read_text(encoding="ascii").splitlines()
    return next(line for line in lines if line.startswith("mnt_id:"))
