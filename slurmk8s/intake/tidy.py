"""Old receipts, and what lies beside them, go by age: each as its owner, and by the NAS's own clock."""

import contextlib
import os
import re
import stat
import time
from collections.abc import Callable

from loguru import logger

from slurmk8s.intake import accounts
from slurmk8s.intake.folders import Folders
from slurmk8s.intake.receipts import ERROR, RECEIPT
from slurmk8s.intake.rights import acting_as, our_uid

TEXT = re.compile(rf"(.+)(?:{re.escape(RECEIPT)}|{re.escape(ERROR)})", re.DOTALL)
AT_A_TIME = 500
"""Entries between two signs of life."""


def tidy(folders: Folders, days: float, alive: Callable[[], None]) -> int:
    """Remove what is older; how many files went. A text goes last: it is what tells that its neighbour is ours."""
    removed = 0
    for folder in (folders.processed, folders.failed):
        before = now_there(folder) - days * 86400
        for number, name in enumerate(os.listdir(folder)):
            if number % AT_A_TIME == 0:
                alive()
            if found := TEXT.fullmatch(name):
                removed += _tidy_pair(folder, found[1], name, before)
    if removed:
        logger.info(f"Removed {removed} files of receipts older than {days:g} days.")
    return removed


def now_there(folder: int) -> float:
    """The time by the file server's clock, as its folder tells it when it is touched."""
    with contextlib.suppress(OSError):
        os.utime(folder)
        return os.fstat(folder).st_mtime
    return time.time()


def _tidy_pair(folder: int, name: str, text: str, before: float) -> int:
    told = _status(folder, text)
    if told is None or told.st_ctime >= before:
        return 0
    beside = _status(folder, name)
    gone = 0
    # Anybody may have put a text beside somebody else's file. A folder stays for whoever dropped it.
    if beside and beside.st_ctime < before and told.st_uid in (beside.st_uid, our_uid()):
        gone = 0 if stat.S_ISDIR(beside.st_mode) else _remove(folder, name, beside)
        if not gone:
            return 0
    return gone + _remove(folder, text, told)


def _status(folder: int, name: str) -> os.stat_result | None:
    """By ctime one sees when a file came here: a copied file keeps an old time of change."""
    with contextlib.suppress(OSError):
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    return None


def _remove(folder: int, name: str, status: os.stat_result) -> int:
    owner = accounts.with_uid(status.st_uid)
    with contextlib.suppress(OSError), acting_as(owner if os.geteuid() == 0 else None):
        os.unlink(name, dir_fd=folder)
        return 1
    return 0
