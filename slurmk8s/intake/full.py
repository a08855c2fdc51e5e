"""People of whom Slurm takes no more jobs now: their later drops wait behind the first, and nobody else's do."""

import time
from dataclasses import dataclass, field
from typing import TypeGuard

from slurmk8s.errors import ClusterFault, SlurmFull

SECONDS = 30.0
"""Between two tries; then the person's drops go in the order they came, as far as they get."""


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

    def now(self) -> dict[str, ClusterFault]:
        """Who waits for what at this moment."""
        self._waits = {user: known for user, known in self._waits.items() if time.monotonic() < known[1]}
        return {user: fault for user, (fault, _) in self._waits.items()}

    def until(self, fault: Personal) -> float:
        """When to try again: the same moment for all drops of the person, so that they keep their order."""
        return self._waits.setdefault(fault.user, (fault, time.monotonic() + SECONDS))[1]
