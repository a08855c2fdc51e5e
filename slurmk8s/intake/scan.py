"""What lies in `submit/` and in people's own folders in it: names and looks, nothing is read.

Files that editors, file managers and copiers leave are passed over by name. What cannot be told from a job file by its
name is not decided here: it is claimed like any other and answered.
"""

import errno
import functools
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from loguru import logger

from slurmk8s.config import Intake
from slurmk8s.intake import identity
from slurmk8s.intake.drop import Drop, Look
from slurmk8s.intake.folders import FOLDER

README = "README.txt"
FOLDER_PATIENCE = 15
"""A dropped folder is copied file by file, with pauses: it waits this many settle times."""
EMPTY_PATIENCE = 5
"""Many programs create a file first and fill it later: an empty one waits this many settle times."""

_PASSED_OVER = re.compile(
    r"""
    \. .*                       # hidden: .DS_Store, ._name of macOS, .~lock of LibreOffice, .nfs of deleted files
    | ~\$ .*                    # Office's owner files
    | .* ~                      # backups of editors
    | .* \.(swp|swx|swo)        # vim
    | .* \.(part|filepart|partial|crdownload|tmp)   # browsers, WinSCP, rsync
    | .* :Zone\.Identifier      # Windows' mark of downloads
    | Thumbs\.db | desktop\.ini
    | README\.txt               # ours
    | .* \.waiting\.txt         # ours
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)


def passed_over(name: str) -> bool:
    """Whether the name says that this is not a drop."""
    return _PASSED_OVER.fullmatch(name) is not None


def looks(submit: int, intake: Intake) -> dict[Drop, Look]:
    """Everything that might be a drop, as it looks now."""
    found: dict[Drop, Look] = {}
    ours = os.fstat(submit)
    for entry in _entries(submit):
        if entry.is_dir(follow_symlinks=False) and identity.is_person(entry.name, intake):
            try:
                _look_into(submit, entry.name, ours, intake, found)
            except OSError as error:  # gone between two looks, or closed to us: the next pass sees
                _warn_once(entry.name, error.strerror)
        elif look := _look(submit, entry.name):
            found[Drop("", entry.name)] = look
    return found


@functools.lru_cache(maxsize=1000)
def _warn_once(name: str, reason: str) -> None:
    logger.warning(f"submit/{name}/ cannot be looked into ({reason}); drops in it wait.")


def look_again(submit: int, drop: Drop) -> Look | None:
    """How one drop looks right now."""
    folder = os.open(drop.folder or ".", FOLDER, dir_fd=submit)
    try:
        return _look(folder, drop.name)
    finally:
        os.close(folder)


def folders_to_watch(submit: int, path: Path, intake: Intake) -> dict[Path, tuple[int, int]]:
    """`submit/` and people's own folders in it, with device and inode."""
    status = os.fstat(submit)
    found = {path: (status.st_dev, status.st_ino)}
    for entry in _entries(submit):
        if entry.is_dir(follow_symlinks=False) and identity.is_person(entry.name, intake):
            found[path / entry.name] = (status.st_dev, entry.inode())
    return found


def _look_into(submit: int, name: str, ours: os.stat_result, intake: Intake, found: dict[Drop, Look]) -> None:
    folder = os.open(name, FOLDER, dir_fd=submit)
    try:
        trusted = identity.trusted_folder(os.fstat(folder), name, ours, intake)
        for entry in _entries(folder):
            if look := _look(folder, entry.name):
                found[Drop(name, entry.name, trusted)] = look
    finally:
        os.close(folder)


def _entries(folder: int) -> Iterator["os.DirEntry[str]"]:
    with os.scandir(folder) as entries:
        yield from (entry for entry in entries if not passed_over(entry.name))


def _look(folder: int, name: str) -> Look | None:
    """How one entry looks; None when it went away or does not answer just now."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISREG(status.st_mode):
            status = _opened_status(folder, name, status)
    except OSError as error:
        # ESTALE, EIO: a network file system's bad moment. Not seen is not gone: the next pass looks again.
        if error.errno in {errno.ENOENT, errno.ESTALE, errno.EIO, errno.ELOOP, errno.ENXIO}:
            return None
        raise
    patience = 1
    if stat.S_ISDIR(status.st_mode):
        patience = FOLDER_PATIENCE
    elif stat.S_ISREG(status.st_mode) and status.st_size == 0:
        patience = EMPTY_PATIENCE
    return Look(status.st_ino, status.st_size, status.st_mtime_ns, patience)


def _opened_status(folder: int, name: str, status: os.stat_result) -> os.stat_result:
    """By open and fstat: an NFS client may answer a plain stat from its cache, but asks the server on open."""
    try:
        # O_NONBLOCK: the regular file may have become a fifo since, and opening that would wait for a writer.
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except PermissionError:  # a private file where root is nobody: the cached look must do
        return status
    try:
        return os.fstat(descriptor)
    finally:
        os.close(descriptor)
