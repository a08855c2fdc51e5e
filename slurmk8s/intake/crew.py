"""Many claims side by side: threads, since what takes the time is sbatch and the disk.

A few drops go one after the other, so that jobs get their numbers in the order of arrival. A burst goes several
abreast, begun in that order, as many as slurmctld keeps up with.
"""

import contextlib
import queue
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from slurmk8s.errors import ClusterFault
from slurmk8s.intake.case import Case
from slurmk8s.intake.claim import Claim
from slurmk8s.intake.drop import Arrived
from slurmk8s.intake.folders import Folders
from slurmk8s.intake.full import is_personal
from slurmk8s.intake.work import Desk, Fate
from slurmk8s.slurm.clerks import Clerks

MOST_THREADS = 65
IN_A_ROW = 8
"""So many drops for each further one that is worked on at the same time."""
TOGETHER = 32
"""Jobs released by one program."""
SECONDS_TOGETHER = 0.3
"""No job waits longer than that for others to be released with."""
SECONDS_OF_SILENCE = 1.0
"""The longest time without a sign of life to the service manager."""


Item = Claim | Arrived


@dataclass
class Crew:
    """The threads, and how many of them slurmctld can stand."""

    desk: Desk
    clerks: Clerks
    most: int
    stopping: Callable[[], bool]
    alive: Callable[[], None]
    """Told at least once a second while there is work."""
    fault: ClusterFault | None = None
    """What stopped the last round, if Slurm did."""
    _limit: int = field(init=False)
    _pool: ThreadPoolExecutor = field(init=False)

    def __post_init__(self) -> None:
        self._limit = self.most
        # Threads are made as they are needed. Telling needs one more, while all others submit.
        self._pool = ThreadPoolExecutor(MOST_THREADS, thread_name_prefix="intake")

    def close(self) -> None:
        """The threads end."""
        self._pool.shutdown()

    def work(self, folders: Folders, todo: deque[Item], waiting_for: ClusterFault | None = None) -> list[Fate]:
        """Bring everything as far as it gets; whatever could not be begun stays in `todo`.

        With something to wait for, drops are claimed and people told, no more.
        """
        self.desk.keyed.renew()
        shift = _Shift(self, folders, waiting_for)
        with self.clerks.on_duty() if len(todo) > IN_A_ROW else contextlib.nullcontext():
            fates = shift.run(todo)
        self.fault = shift.fault
        if waiting_for is None:
            self._limit = max(1, self._limit // 2) if shift.fault else min(self.most, self._limit * 2)
        return fates

    def width(self, left: int) -> int:
        """How many at a time, with so many left."""
        return min(self._limit, 1 + left // IN_A_ROW)

    def begin(self, done: "queue.SimpleQueue[list[Fate]]", work: Callable[[], list[Fate]]) -> None:
        """Have it done by a thread."""
        self._pool.submit(lambda: done.put(work()))


@dataclass
class _Shift:
    """One round of work."""

    crew: Crew
    folders: Folders
    waiting_for: ClusterFault | None
    fault: ClusterFault | None = None
    """Slurm has stopped answering: nothing new is begun."""
    _done: "queue.SimpleQueue[list[Fate]]" = field(default_factory=queue.SimpleQueue)
    _answering: int = 0
    _telling: int = 0
    _answered: list[Case] = field(default_factory=list)
    _first_answer: float = 0.0

    def run(self, todo: deque[Item]) -> list[Fate]:
        fates: list[Fate] = []
        while True:
            while todo and not self._halted() and self._answering < self.crew.width(len(todo)):
                self._answer(todo.popleft())
            self._tell_if_due(more_to_come=bool(todo) and not self._halted())
            if not (self._answering or self._telling):
                return fates
            self.crew.alive()
            try:
                news = self._done.get(timeout=self._patience())
            except queue.Empty:
                continue
            for fate in news:
                self._note(fate, fates)

    def _halted(self) -> bool:
        return self.fault is not None or self.crew.stopping()

    def _patience(self) -> float:
        if not self._answered:
            return SECONDS_OF_SILENCE
        return max(0.0, self._first_answer + SECONDS_TOGETHER - time.monotonic())

    def _answer(self, item: Item) -> None:
        self._answering += 1
        self.crew.begin(self._done, lambda: [self._one(item)])

    def _one(self, item: Item) -> Fate:
        desk = self.crew.desk
        if isinstance(item, Arrived):
            taken = desk.take(self.folders, item)
            if isinstance(taken, Fate):
                return taken
            item = taken
        return desk.answer(self.folders, item, self.waiting_for)

    def _tell_if_due(self, *, more_to_come: bool) -> None:
        due = not more_to_come and not self._answering
        if self._answered and (due or len(self._answered) >= TOGETHER or self._patience() <= 0):
            cases, self._answered = self._answered, []
            self._telling += len(cases)
            self.crew.begin(self._done, lambda: self.crew.desk.tell(self.folders, cases))

    def _note(self, fate: Fate, fates: list[Fate]) -> None:
        if fate.state == "answered":
            assert fate.case is not None
            self._answering -= 1
            self._first_answer = self._first_answer if self._answered else time.monotonic()
            self._answered.append(fate.case)
            return
        fates.append(fate)
        if fate.told:
            self._telling -= 1
        else:
            self._answering -= 1
        if fate.fault is not None and self.waiting_for is None and not is_personal(fate.fault):
            self.fault = fate.fault
