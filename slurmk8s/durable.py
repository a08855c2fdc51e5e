"""Having the disk keep what was written: each file by itself, or for many the whole file system at once.

A trip to the disk costs the same for one small file as for fifty; in a burst it would cost more than everything else.
"""

import ctypes
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

MANY = 8
"""From so many on the whole is cheaper, also where somebody else has written much that goes with it."""

_libc = ctypes.CDLL(None, use_errno=True)


def keep(descriptors: Sequence[int]) -> None:
    """Return when these files and folders, all on one file system, are on disk."""
    if len(descriptors) < MANY:
        for descriptor in descriptors:
            os.fsync(descriptor)
    else:
        keep_file_system(descriptors[0])


def keep_file_system(descriptor: int) -> None:
    """Return when all of the file system on which this file or folder lies is on disk."""
    if _libc.syncfs(descriptor):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def write_json(path: Path, document: Any) -> None:  # noqa: ANN401 - JSON
    """Put a private file in place as a whole: who reads it sees the old one or the new one, after a crash too."""
    temporary = path.with_name(path.name + ".tmp")
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        json.dump(document, file)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
