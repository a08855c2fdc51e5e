"""What goes wrong, where, how and for how long. The answer to one question: what befalls this operation now?"""

import fnmatch
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """One kind of trouble."""

    operation: str
    """A shell pattern of operations as in protocol.py: `rename`, `*`. `rename` also means renameat2's."""
    path: str = "*"
    """A shell pattern of paths below the mount, `slurm-jobs/submit/*`; `*` also matches slashes."""
    error: int | None = None
    """What is answered; None for trouble that is only slow."""
    done: bool = False
    """Whether the operation is done all the same: the reply was lost, and the repeated request gets this answer."""
    delay: float = 0
    """Seconds before anything else."""
    count: int | None = None
    """How often; None: for ever."""
    seconds: float | None = None
    """How long; None: until it is cleared."""

    def concerns(self, operation: str, paths: Sequence[str]) -> bool:
        """Whether the pattern fits."""
        plain = operation.removesuffix("2")
        return fnmatch.fnmatchcase(plain, self.operation) and any(
            fnmatch.fnmatchcase(path, self.path) for path in paths
        )


@dataclass
class _Planned:
    fault: Fault
    until: float | None
    met: int = 0
    cleared: bool = False

    def is_over(self) -> bool:
        return (
            self.cleared
            or (self.fault.count is not None and self.met >= self.fault.count)
            or (self.until is not None and time.monotonic() > self.until)
        )


class Faults:
    """What is planned now; any thread asks, one changes it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._planned: list[_Planned] = []
        self._active: list[_Planned] = []
        self._waiting: set[int] = set()
        self._interrupted: set[int] = set()

    @property
    def any(self) -> bool:
        """Whether there is anything to ask for."""
        return bool(self._active)

    def add(self, fault: Fault) -> int:
        """Plan it; its number."""
        planned = _Planned(fault, None if fault.seconds is None else time.monotonic() + fault.seconds)
        with self._changed:
            self._planned.append(planned)
            self._active.append(planned)
            return len(self._planned) - 1

    def clear(self, number: int | None = None) -> None:
        """No more of it, or of anything; what waits goes on."""
        with self._changed:
            for planned in self._planned if number is None else [self._planned[number]]:
                planned.cleared = True
            self._active = [planned for planned in self._active if not planned.cleared]
            self._changed.notify_all()

    def met(self, number: int) -> int:
        """How many operations it has befallen."""
        return self._planned[number].met

    def befalls(self, operation: str, paths: Sequence[str], unique: int) -> Fault | None:
        """The trouble of this operation, after its delay."""
        with self._changed:
            self._active = [planned for planned in self._active if not planned.is_over()]
            for planned in self._active:
                if planned.fault.concerns(operation, paths):
                    planned.met += 1
                    self._wait(planned, unique)
                    return planned.fault
            return None

    def interrupt(self, unique: int) -> None:
        """Whoever asked does not want to wait any longer: a real network file system's client can be killed too."""
        with self._changed:
            if unique in self._waiting:
                self._interrupted.add(unique)
                self._changed.notify_all()

    def _wait(self, planned: _Planned, unique: int) -> None:
        """Wait until the time is over, the fault is cleared, or the caller is to die."""
        deadline = time.monotonic() + planned.fault.delay
        self._waiting.add(unique)
        try:
            while (left := deadline - time.monotonic()) > 0 and not planned.cleared:
                if unique in self._interrupted:
                    raise InterruptedError
                self._changed.wait(left)
        finally:
            self._waiting.discard(unique)
            self._interrupted.discard(unique)
