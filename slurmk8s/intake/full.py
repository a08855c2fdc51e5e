"""People of whom Slurm takes no more jobs now: their later drops wait behind the first, and nobody else's do."""

import time
from dataclasses import dataclass, field
from typing import TypeGuard

from loguru import logger

from slurmk8s.errors import ClusterFault, SlurmFull

SOON, LONG = 1 / 3, 30
"""After a try without an answer, as parts of the usual pause: soon at first, then longer each time, since everybody
waits while one is waited for in vain."""


class Unanswered(ClusterFault):
    """A person's sbatch gave no answer while Slurm answers others: that person may have stopped or killed it."""

    def __init__(self, fault: ClusterFault, user: str) -> None:
        super().__init__(fault.sentence, fault.hint)
        self.user = user


class Personal(ClusterFault):
    """What only one person's drops wait for. Never raised: it says what `is_personal` has found."""

    user: str


def is_personal(fault: ClusterFault) -> TypeGuard[Personal]:
    """Whether only one person's drops wait for it."""
    return isinstance(fault, (SlurmFull, Unanswered)) and fault.user is not None


@dataclass
class Full:
    """By login name: what they wait for, and until when nothing is tried (monotonic)."""

    _waits: dict[str, tuple[ClusterFault, float]] = field(default_factory=dict)
    _unanswered: dict[str, tuple[float, float]] = field(default_factory=dict)
    """The last pause after a try without an answer, and its end."""

    def now(self) -> dict[str, ClusterFault]:
        """Who waits for what at this moment."""
        self._waits = {user: known for user, known in self._waits.items() if time.monotonic() < known[1]}
        return {user: fault for user, (fault, _) in self._waits.items()}

    def until(self, fault: Personal, seconds: float) -> float:
        """When to try again: the same moment for all drops of the person, so that they keep their order."""
        if fault.user not in self._waits:
            logger.warning(f"Drops of {fault.user} wait: {fault}")
            self._waits[fault.user] = (fault, time.monotonic() + self._pause(fault, seconds))
        return self._waits[fault.user][1]

    def _pause(self, fault: Personal, seconds: float) -> float:
        if not isinstance(fault, Unanswered):
            return seconds
        now, longest = time.monotonic(), LONG * seconds
        self._unanswered = {user: known for user, known in self._unanswered.items() if now < known[1] + longest}
        before = self._unanswered.get(fault.user)
        pause = min(longest, 2 * before[0]) if before else SOON * seconds
        self._unanswered[fault.user] = (pause, now + pause)
        return pause
