"""Work that may take its time: it leaves the node's CPUs and disk to the jobs."""

import contextlib
import ctypes
import os

_NICENESS = 10
# ioprio_set(2): best effort, the lowest of its eight levels. The idle class could wait for ever beside a busy job.
_IOPRIO_SET = {"x86_64": 251, "aarch64": 30}
_WHO_PROCESS = 1
_BEST_EFFORT_LAST = (2 << 13) | 7


def step_back() -> None:
    """For this process and those that it starts from now on."""
    with contextlib.suppress(OSError):  # a node may forbid it; the work is done all the same
        os.nice(_NICENESS)
    number = _IOPRIO_SET.get(os.uname().machine)
    if number is not None:
        ctypes.CDLL(None).syscall(number, _WHO_PROCESS, 0, _BEST_EFFORT_LAST)
