"""Having the disk keep what was written: each file by itself, or for many the whole file system at once.

A trip to the disk costs the same for one small file as for fifty; in a burst it would cost more than everything else.
"""

import ctypes
import os
from collections.abc import Sequence

MANY = 8
"""From so many on the whole is cheaper, also where somebody else has written much that goes with it."""

_libc = ctypes.CDLL(None, use_errno=True)


def keep(descriptors: Sequence[int]) -> None:
    """Return when these files and folders, all on one file system, are on disk."""
    if len(descriptors) < MANY:
        for descriptor in descriptors:
            os.fsync(descriptor)
    elif _libc.syncfs(descriptors[0]):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
