"""The points between which a watcher can die, in the order they are reached.

Whatever the last one reached, another run ends with one job or one reason. The tests walk this list and stop the
watcher dead after each; a new effect in the intake needs a new name here.
"""

import os
import signal
from collections.abc import Callable

CLAIMING = ("claim folder made", "claimed")
TELLING = ("released", "receipt delivered", "file delivered", "telling recorded", "moved to done", "cleared")
A_JOB = (*CLAIMING, "submission recorded", "submitted", "answer recorded", *TELLING)
A_REFUSAL = (*CLAIMING, "answer recorded", *TELLING)
A_CANCELLATION = (*CLAIMING, "cancelled", "answer recorded", *TELLING)
STEPS = tuple(dict.fromkeys((*A_JOB, *A_REFUSAL, *A_CANCELLATION)))

CRASH_VARIABLE = "SLURMK8S_CRASH_AFTER"

Reached = Callable[[str], None]


def nothing_happens(step: str) -> None:
    """The usual hook."""
    assert step in STEPS


def crash_after(wanted: str) -> Reached:
    """A hook that kills the watcher, and the process of its that works, after one step; for the tests."""
    watcher = os.getpid()
    if wanted not in STEPS:
        raise ValueError(f"{CRASH_VARIABLE} must be one of {', '.join(STEPS)}")

    def reached(step: str) -> None:
        if step == wanted:
            os.kill(watcher, signal.SIGKILL)
            os._exit(1)

    return reached
