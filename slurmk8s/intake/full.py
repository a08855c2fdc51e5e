"""People of whom Slurm takes no more jobs now: their later drops wait behind the first, and nobody else's do."""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from slurmk8s.errors import ClusterFault, SlurmFull

SECONDS = 30.0
"""Between two tries; then the person's drops go in the order they came, as far as they get."""


class Unanswered(ClusterFault):
    """A person's sbatch gave no answer while Slurm answers others: that person may have stopped or killed it."""

    def __init__(self, fault: ClusterFault, user: str) -> None:
        super().__init__(fault.sentence, fault.hint)
        self.user = user


def is_personal(fault: ClusterFault) -> bool:
    """Whether only one person's drops wait for it."""
    return isinstance(fault, (SlurmFull, Unanswered)) and fault.user is not None


@dataclass
class Full:
    """By login name: what they wait for, and until when nothing is tried (monotonic)."""

    _waits: dict[str, tuple[SlurmFull | Unanswered, float]] = field(default_factory=dict)

    @contextlib.contextmanager
    def kept(self, user: str | None) -> Iterator[None]:
        """Do something as that person, unless it would only be refused again."""
        if user is not None and (known := self._waits.get(user)):
            if time.monotonic() < known[1]:
                raise known[0]
            del self._waits[user]
        try:
            yield
        except (SlurmFull, Unanswered) as fault:
            if fault.user is not None:
                self._waits[fault.user] = (fault, time.monotonic() + SECONDS)
            raise

    def until(self, fault: ClusterFault) -> float:
        """When to try again: the same moment for all drops of the person, so that they keep their order."""
        known = self._waits.get(fault.user or "") if isinstance(fault, (SlurmFull, Unanswered)) else None
        return known[1] if known else time.monotonic() + SECONDS
