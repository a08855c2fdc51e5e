"""The watcher: pass after pass over `submit/`, and a sweep now and then for whatever an earlier run left behind."""

import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from loguru import logger

from slurmk8s.config import Config
from slurmk8s.errors import ClusterFault
from slurmk8s.intake import claim as claims
from slurmk8s.intake import folders, receipts, scan, texts
from slurmk8s.intake.claim import Claim
from slurmk8s.intake.drop import Drop, Look
from slurmk8s.intake.folders import Folders
from slurmk8s.intake.notify import notify
from slurmk8s.intake.settle import Settling
from slurmk8s.intake.wake import Wake
from slurmk8s.intake.work import Desk

BATCH = 16
"""Claims worked on together: their release is one program, and a stop waits for no more than these."""
SWEEP_SECONDS = 30.0
RETRY_SECONDS = 30.0
"""After a claim or a drop met trouble of its own (a full quota, a file that cannot be moved)."""
LONGEST_PAUSE = 60.0
"""Between two questions to a Slurm that does not answer."""
LATE_SECONDS = 5.0
"""Between two looks for a late second job; there are few such claims, and a person should not wonder at two jobs."""
DOUBT_SECONDS = 900.0
"""How long a second job is looked for after an attempt without an answer: slurmctld may accept it minutes later."""
KEEP_SECONDS = 3600.0
"""How long an answered claim is remembered, for a watcher that was stopped in mid-work and goes on."""
SHORTEST_GAP = 0.1
"""Between two passes, however many events there are."""


@dataclass
class Watcher:
    """Holds what is in progress; everything that matters is on the NAS and in Slurm."""

    config: Config
    desk: Desk
    wake: Wake
    stopping: Callable[[], bool]
    pending: dict[Claim, float] = field(default_factory=dict)
    """Claims to work on, and not before when (monotonic)."""
    doubtful: dict[Claim, float] = field(default_factory=dict)
    """Answered claims that may get a second job, and since when we know them."""
    _others: dict[Claim, tuple[int, float]] = field(default_factory=dict)
    """Claims of other watchers: the folder's last change, and since when it is so."""
    _settling: Settling = field(init=False)
    _next_sweep: float = 0.0
    _next_late_look: float = 0.0
    _swept_once: bool = False
    _slurm_after: float = 0.0
    _failures: int = 0
    _fault: ClusterFault | None = None
    _nas_trouble: str = ""

    def __post_init__(self) -> None:
        self._settling = Settling(self.config.intake.settle_seconds)

    def run(self) -> bool:
        """Work until told to stop, which is a good end."""
        notify("READY=1")
        logger.info(f"Watching {self.config.nas.jobs_folder / 'submit'}.")
        while not self.stopping():
            started = time.monotonic()
            self.one_pass()
            self.wake.wait(self._pause())
            time.sleep(max(0.0, started + SHORTEST_GAP - time.monotonic()))
        notify("STOPPING=1")
        logger.info("Stopped; what is left will be finished at the next start.")
        return True

    def run_until_idle(self) -> bool:
        """Answer everything that lies there now; False if something waits for Slurm or the NAS."""
        while not self.stopping():
            self.one_pass()
            if self._nas_trouble or self._fault:
                return False
            if not self.pending and self._settling.next_due(time.monotonic()) is None:
                return True
            self.wake.wait(self._pause())
        return False

    def one_pass(self) -> None:
        """Look, claim, work. Trouble with the NAS as a whole ends the pass; the next one tries again."""
        try:
            with folders.opened(self.config.nas, people_add=self.config.intake.identity == "owner") as opened:
                if time.monotonic() >= self._next_sweep:
                    self._sweep(opened)
                if self.doubtful and time.monotonic() >= self._next_late_look:
                    self._look_for_late_jobs(opened)
                self._follow_events(opened)
                found = scan.looks(opened.submit, self.config.intake)
                self._work(opened, found, self._settling.still(found, time.monotonic()))
        except (OSError, ClusterFault) as error:
            self._nas(str(error))
        else:
            self._nas("")

    def _nas(self, trouble: str) -> None:
        """Say it when the NAS goes and when it comes back, once each."""
        if trouble and not self._nas_trouble:
            logger.error(f"Waiting for the NAS: {trouble}")
            notify("STATUS=waiting for the NAS")
        elif self._nas_trouble and not trouble:
            logger.info("The NAS is back.")
            notify("STATUS=watching")
        self._nas_trouble = trouble

    def _pause(self) -> float:
        """Seconds until there is something to do if no event comes."""
        intake = self.config.intake
        if self._nas_trouble:
            return intake.idle_scan_seconds
        now = time.monotonic()
        due = self._settling.next_due(now)
        times = [intake.idle_scan_seconds if due is None else min(due, intake.scan_seconds), self._next_sweep - now]
        if self.doubtful:
            times.append(self._next_late_look - now)
        if self.pending:
            times.append(max(min(self.pending.values()), self._slurm_after) - now)
        return max(0.0, min(times))

    def _work(self, opened: Folders, found: dict[Drop, Look], ready: list[Drop]) -> None:
        """Batch after batch: what waits goes first, then the new drops in the order they came."""
        ready.reverse()
        while not self.stopping():
            now = time.monotonic()
            paused = now < self._slurm_after
            batch = (
                [] if paused else [claim for claim, after in sorted_by_arrival(self.pending) if after <= now][:BATCH]
            )
            while ready and len(batch) < BATCH:
                drop = ready.pop()
                if claim := self._claim(opened, drop, found[drop]):
                    self.pending[claim] = 0.0
                    batch.append(claim)
            if not batch:
                return
            if paused and self._fault:
                for claim in batch:
                    self.desk.tell_waiting(opened, claim, self._fault)
            else:
                self._work_on(opened, batch)

    def _claim(self, opened: Folders, drop: Drop, look: Look) -> Claim | None:
        try:
            if scan.look_again(opened.submit, drop) != look:
                return None  # written to since the pass began: it settles anew
            claim = claims.take(opened, drop, self.desk.reached)
        except OSError as error:
            logger.warning(f"{drop.name!r} cannot be claimed: {error}.")
            self._settling.postpone(drop, time.monotonic() + RETRY_SECONDS)
            return None
        self._settling.taken(drop)
        return claim

    def _work_on(self, opened: Folders, batch: list[Claim]) -> None:
        outcome = self.desk.work(opened, batch)
        now = time.monotonic()
        for claim in (*outcome.finished, *outcome.doubtful):
            self.pending.pop(claim, None)
        for claim in outcome.doubtful:
            self.doubtful.setdefault(claim, now)
        left = [claim for claim in batch if claim in self.pending]
        if outcome.fault is None:
            if self._fault:
                logger.info("Slurm answers again.")
            self._fault, self._failures = None, 0
            for claim in left:
                self.pending[claim] = now + RETRY_SECONDS
            return
        if self._fault is None:
            logger.warning(f"Drops wait: {outcome.fault}")
        self._fault = outcome.fault
        self._failures += 1
        # Jitter: two watchers must not knock at the same moment again and again.
        self._slurm_after = now + min(LONGEST_PAUSE, 2.0**self._failures) * random.uniform(0.5, 1)  # noqa: S311
        for claim in left:
            self.desk.tell_waiting(opened, claim, outcome.fault)

    def _sweep(self, opened: Folders) -> None:
        """Take over claims that nobody works on, look for late second jobs, forget what is long answered."""
        now = time.monotonic()
        self._next_sweep = now + SWEEP_SECONDS
        intake = self.config.intake
        text = texts.readme(
            intake.language, intake.patterns, self.config.images.registry, str(self.config.nas.results_folder)
        )
        receipts.keep_readme(opened, scan.README, text)
        others: dict[Claim, tuple[int, float]] = {}
        for claim in claims.claims(opened.open):
            if claim in self.pending or claim in self.doubtful:
                continue
            changed = os.stat(claim.name, dir_fd=opened.open).st_mtime_ns
            before = self._others.get(claim)
            since = before[1] if before and before[0] == changed else now
            # At the start all are taken at once: they are most likely our own. If another watcher is at work on one,
            # the journal decides between us.
            if not self._swept_once or now - since > 2 * self.config.slurm.command_seconds + SWEEP_SECONDS:
                self.pending[claim] = 0.0
            else:
                others[claim] = (changed, since)
        self._others = others
        self._swept_once = True
        self._forget(opened)

    def _look_for_late_jobs(self, opened: Folders) -> None:
        now = time.monotonic()
        self._next_late_look = max(now + LATE_SECONDS, self._slurm_after)
        for claim, since in list(self.doubtful.items()):
            if self.desk.look_for_others(opened, claim) and now - since > DOUBT_SECONDS:
                claims.finish(opened, claim, self.desk.reached)
                del self.doubtful[claim]

    def _forget(self, opened: Folders) -> None:
        os.utime(opened.done)  # by the server's clock, so that the folder tells what time it is there
        there = os.fstat(opened.done).st_mtime
        here = time.time()
        for claim in claims.claims(opened.done):
            if here - claim.claimed < KEEP_SECONDS:
                break  # they are in order
            old = there - os.stat(claim.name, dir_fd=opened.done).st_mtime > KEEP_SECONDS
            if old and self.desk.look_for_others(opened, claim):
                claims.forget(opened, claim)

    def _follow_events(self, opened: Folders) -> None:
        self.wake.watch(
            scan.folders_to_watch(opened.submit, self.config.nas.jobs_folder / "submit", self.config.intake)
        )


def sorted_by_arrival(pending: dict[Claim, float]) -> list[tuple[Claim, float]]:
    """Claims in the order they came."""
    return sorted(pending.items(), key=lambda item: item[0].name)
