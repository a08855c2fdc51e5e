"""Work that may take its time: it leaves the node's CPUs, disk and memory to the jobs."""

import contextlib
import ctypes
import os

_NICENESS = 10
# ioprio_set(2): best effort, the lowest of its eight levels. The idle class could wait for ever beside a busy job.
_IOPRIO_SET = {"x86_64": 251, "aarch64": 30}
_WHO_PROCESS = 1
_BEST_EFFORT_LAST = (2 << 13) | 7
# Among the first to go when memory is short: killed, it is asked again and goes on. The agent is among the last, and
# what it starts inherits that.
_OOM_SCORE = b"500"


def step_back() -> None:
    """For this process and those that it starts from now on."""
    with contextlib.suppress(OSError):  # a node may forbid it; the work is done all the same
        os.nice(_NICENESS)
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "wb", buffering=0) as score:
        score.write(_OOM_SCORE)
    number = _IOPRIO_SET.get(os.uname().machine)
    if number is not None:
        ctypes.CDLL(None).syscall(number, _WHO_PROCESS, 0, _BEST_EFFORT_LAST)
