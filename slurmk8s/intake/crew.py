"""Batches of drops, worked on by processes of their own.

A few drops go one after the other, so that jobs get their numbers in the order of arrival. In a burst several sbatch
run at a time, begun in that order, as many as slurmctld keeps up with; two processes take turns, one with its files
and one with its sbatch. Not threads: most of the work is many small steps on files, and threads of Python would wait
for each other at each of them.
"""

import gc
import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING

from loguru import logger

from slurmk8s.errors import ClusterFault, SlurmK8sError
from slurmk8s.intake import folders
from slurmk8s.intake.claim import Claim
from slurmk8s.intake.full import Unanswered, is_personal
from slurmk8s.intake.work import Desk, Fate, Item
from slurmk8s.slurm.clerks import Clerks

if TYPE_CHECKING:
    from multiprocessing.context import ForkProcess

IN_A_ROW = 8
"""So many drops for each further one that is worked on at the same time."""
HANDS = 2
BATCH = 48
"""At most so many go to one process at once: their jobs are released by one program."""
SECONDS_OF_SILENCE = 1.0
"""The longest time without a sign of life to the service manager."""
SECONDS_ON_DUTY = 2.0
"""A process without work lets its clerks go after that long."""

# Forked, so that they cost no start; they use none of the locks that a thread of ours may hold meanwhile.
_processes = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class Batch:
    """An order to a process."""

    items: tuple[Item, ...]
    waiting_for: ClusterFault | None
    full: dict[str, ClusterFault]
    """People of whom Slurm takes no more jobs now, and its words."""
    at_once: int
    """How many sbatch may run at a time."""


@dataclass
class Hand:
    """One process, and its end of the line to it."""

    process: "ForkProcess"
    line: "Connection[Batch, list[Fate]]"
    batch: Batch | None = None


@dataclass
class Crew:
    """The processes, and how many sbatch at a time slurmctld can stand."""

    desk: Desk
    clerks: Clerks
    most: int
    stopping: Callable[[], bool]
    alive: Callable[[], None]
    """Told at least once a second while there is work."""
    fault: ClusterFault | None = None
    """What stopped the last round, if Slurm did."""
    lost: bool = False
    """Whether a process was killed in that round: nobody knows how far its claims are."""
    _limit: int = field(init=False)
    _hands: list[Hand] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._limit = self.most

    def close(self) -> None:
        """The processes end: they read the end of the line."""
        for hand in self._hands:
            hand.line.close()
            hand.process.join()
        self._hands = []

    def use(self, desk: Desk, most: int) -> None:
        """Go on with another configuration, by processes that have it."""
        self.close()
        self.desk, self.most = desk, most
        self._limit = most

    def work(self, todo: deque[Item], waiting_for: ClusterFault | None, full: dict[str, ClusterFault]) -> list[Fate]:
        """Bring everything as far as it gets; whatever could not be begun stays in `todo`.

        With something to wait for, drops are claimed and people told, no more.
        """
        fates: list[Fate] = []
        self.fault, self.lost = None, False
        full, behind = dict(full), False
        while True:
            while todo and not self._halted() and (hand := self._free_hand(len(todo))):
                abreast = min(self._limit, 1 + len(todo) // IN_A_ROW)
                portion = min(BATCH, len(todo)) if abreast > 1 else 1
                items = tuple(todo.popleft() for _ in range(portion))
                self._give(hand, Batch(items, waiting_for, full, abreast))
            busy = {hand.line: hand for hand in self._hands if hand.batch}
            if not busy:
                break
            self.alive()
            for line in wait(list(busy), SECONDS_OF_SILENCE):
                news = self._take(busy[line])  # type: ignore[index]  # wait may also be given sockets
                fates += news
                self._notice(news, waiting_for)
                personal = [fate.fault for fate in news if fate.fault and is_personal(fate.fault)]
                full |= {fault.user: fault for fault in personal}
                behind = behind or any(isinstance(fault, Unanswered) for fault in personal)
        if waiting_for is None:
            self._limit = max(1, self._limit // 2) if self.fault or behind else min(self.most, self._limit * 2)
        return fates

    def _halted(self) -> bool:
        return self.fault is not None or self.stopping()

    def _free_hand(self, left: int) -> Hand | None:
        """One without work. In a burst there are two: one writes files while the other's sbatch run."""
        free = next((hand for hand in self._hands if hand.batch is None), None)
        busy = sum(hand.batch is not None for hand in self._hands)
        if busy >= (HANDS if left > BATCH else 1):
            return None
        return free or self._hire()

    def _hire(self) -> Hand:
        gc.freeze()  # else looking for garbage there would copy every page that is shared with us
        ours, theirs = _processes.Pipe()
        others = [hand.line for hand in self._hands]
        process = _processes.Process(
            target=_hand, args=(theirs, [ours, *others], self.desk, self.clerks), name="intake", daemon=True
        )
        process.start()
        theirs.close()
        self._hands.append(Hand(process, ours))
        return self._hands[-1]

    def _give(self, hand: Hand, batch: Batch) -> None:
        hand.batch = batch
        try:
            hand.line.send(batch)
        except OSError:  # it has just been killed; its end is noticed when it is waited for
            logger.debug("A process of the intake ended before it got its work.")

    def _take(self, hand: Hand) -> list[Fate]:
        batch, hand.batch = hand.batch, None
        assert batch is not None
        try:
            return hand.line.recv()
        except (EOFError, OSError):
            hand.line.close()
            hand.process.join()
            self._hands.remove(hand)
            self.lost = True
            logger.error(f"A process of the intake was killed (status {hand.process.exitcode}); its drops go on.")
            return [Fate("waits", item) for item in batch.items if isinstance(item, Claim)]

    def _notice(self, news: list[Fate], waiting_for: ClusterFault | None) -> None:
        for fate in news:
            if fate.fault is not None and waiting_for is None and not is_personal(fate.fault):
                self.fault = fate.fault


def _hand(line: "Connection[list[Fate], Batch]", others: list[Connection], desk: Desk, clerks: Clerks) -> None:
    """What such a process does until nobody needs it any more."""
    for other in others:  # else nobody's end would be noticed
        other.close()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)  # they are the watcher's, which lets each batch be finished
    signal.set_wakeup_fd(-1)
    while True:
        try:
            with clerks.on_duty():
                while line.poll(SECONDS_ON_DUTY):
                    line.send(_fates(desk, line.recv()))
            line.poll(None)
        except (EOFError, OSError):  # the watcher has gone
            os._exit(0)


def _fates(desk: Desk, batch: Batch) -> list[Fate]:
    """By descriptors of its own: a NAS that was mounted again since is the new one here too."""
    try:
        with folders.of(desk.config) as opened:
            return desk.work(opened, batch.items, batch.waiting_for, batch.full, batch.at_once)
    except (OSError, SlurmK8sError) as error:
        logger.warning(f"{len(batch.items)} drops wait for the NAS: {error}")
        time.sleep(SECONDS_OF_SILENCE)
        return [
            Fate("waits", item) if isinstance(item, Claim) else Fate("unclaimed", drop=item) for item in batch.items
        ]
