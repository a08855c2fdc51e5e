"""Whether the NAS had room for what a job wrote: if not, its summary says so."""

import errno
import os

from slurmk8s.results import files, paths

FULL = "The NAS was full: what the job wrote last may be missing from its results."
QUOTA = "The quota on the NAS was used up: what the job wrote last may be missing from its results."

# What programs print, at the very end, when a write fails (strerror, in the C locale that containers have).
_WORDS = {b"No space left on device": FULL, b"Disk quota exceeded": QUOTA}
_TAIL = 8192
# A file system that has less is full for every purpose; most keep such a rest for themselves.
_PROBE_BYTES = 1 << 20
_ERRORS = {errno.ENOSPC: FULL, errno.EDQUOT: QUOTA}
_PROBE = ".room.0000000000000000.tmp"  # swept like any temporary file, should we die here


def shortage(folder: int, *, failed: bool) -> str | None:
    """The sentence for the summary. A job that failed is looked at more closely: a quota shows only in a write."""
    try:
        share = os.fstatvfs(folder)
        if share.f_blocks and share.f_bavail * share.f_frsize < _PROBE_BYTES:
            return FULL
        if not failed:
            return None
        return _told(folder) or _probed(folder)
    except OSError as error:
        return _ERRORS.get(error.errno or 0)


def _told(folder: int) -> str | None:
    """By the last words of the job's own log."""
    try:
        descriptor = os.open(paths.STDERR, os.O_RDONLY | files.FILE_FLAGS, dir_fd=folder)
    except OSError:
        return None
    try:
        tail = os.pread(descriptor, _TAIL, max(0, os.fstat(descriptor).st_size - _TAIL))
    finally:
        os.close(descriptor)
    return next((sentence for words, sentence in _WORDS.items() if words in tail), None)


def _probed(folder: int) -> str | None:
    """By writing a little, durably: a NAS may take the bytes and complain later."""
    try:
        files.write(folder, _PROBE, [bytes(_PROBE_BYTES)], 0o600)
    except OSError as error:
        return _ERRORS.get(error.errno or 0)
    files.remove(folder, _PROBE)
    return None
