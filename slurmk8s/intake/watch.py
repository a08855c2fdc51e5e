"""The watcher: pass after pass over `submit/`, and a sweep now and then for whatever an earlier run left behind."""

import os
import random
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from loguru import logger

from slurmk8s.config import Config
from slurmk8s.errors import ClusterFault
from slurmk8s.intake import claim as claims
from slurmk8s.intake import folders, receipts, texts
from slurmk8s.intake.claim import Claim
from slurmk8s.intake.crew import Crew
from slurmk8s.intake.drop import Arrived, Drop, Look
from slurmk8s.intake.figures import Figures
from slurmk8s.intake.folders import Folders
from slurmk8s.intake.full import Full, is_personal
from slurmk8s.intake.notify import Pulse, notify
from slurmk8s.intake.scan import README, Scanner
from slurmk8s.intake.settle import Settling
from slurmk8s.intake.tidy import now_there, tidy
from slurmk8s.intake.wake import Wake
from slurmk8s.intake.work import Desk, Fate, Item

AT_A_TIME = 1000
"""Items of one round of work: then it is noted what became of them, and how many sbatch at a time Slurm stands."""
LONGEST_PAUSE = 60.0
"""Between two questions to a Slurm that does not answer."""
LATE_SECONDS = 5.0
"""Between two looks for a late second job; there are few such claims, and a person should not wonder at two jobs."""
DOUBT_SECONDS = 900.0
"""How long a second job is looked for after an attempt without an answer: slurmctld may accept it minutes later."""
KEEP_SECONDS = 3600.0
"""How long an answered claim is remembered, for a watcher that was stopped in mid-work and goes on."""
TIDY_SECONDS = 6 * 3600.0
SHORTEST_GAP = 0.1
"""Between two passes, however many events there are."""
SCAN_SHARE = 100
"""A pass is followed by a pause of so many times its length, when nothing moves: one per cent of a core at most."""


@dataclass
class Watcher:
    """Holds what is in progress; everything that matters is on the NAS and in Slurm."""

    config: Config
    desk: Desk
    crew: Crew
    wake: Wake
    figures: Figures
    stopping: Callable[[], bool]
    pulse: Pulse = field(default_factory=Pulse)
    pending: dict[Claim, float] = field(default_factory=dict)
    """Claims to work on, and not before when (monotonic)."""
    doubtful: dict[Claim, float] = field(default_factory=dict)
    """Answered claims that may get a second job, and since when we know them."""
    _others: dict[Claim, tuple[int, float]] = field(default_factory=dict)
    """Claims of other watchers: the folder's last change, and since when it is so."""
    _settling: Settling = field(init=False)
    _scanner: Scanner = field(init=False)
    _scan_seconds: float = 0.0
    _next_sweep: float = 0.0
    _next_tidy: float = 0.0
    _next_late_look: float = 0.0
    _swept_once: bool = False
    _slurm_after: float = 0.0
    _failures: int = 0
    _fault: ClusterFault | None = None
    _nas_trouble: str = ""
    _full: Full = field(default_factory=Full)

    def __post_init__(self) -> None:
        self._settling = Settling(self.config.intake.settle_seconds, self.config.intake.broken_copy_seconds)
        self._scanner = Scanner(self.config.intake)

    def use(self, config: Config, desk: Desk) -> None:
        """Go on with another configuration."""
        same_nas = config.nas == self.config.nas
        self.config = config
        self.desk = desk
        self.crew.use(desk, config.intake.submitters)
        self._scanner = Scanner(config.intake)
        self._settling.settle_seconds = config.intake.settle_seconds
        self._settling.hole_seconds = config.intake.broken_copy_seconds
        self._next_sweep = 0.0
        if not same_nas:  # what was left there is found when that NAS is watched again
            self.pending.clear()
            self.doubtful.clear()
            self._swept_once = False

    def run(self, reload: Callable[[], None]) -> bool:
        """Work until told to stop, which is a good end. `reload` is called between two passes."""
        notify("READY=1")
        logger.info(f"Watching {self.config.nas.jobs_folder / 'submit'}.")
        while not self.stopping():
            started = time.monotonic()
            reload()
            self.one_pass()
            self.pulse.beat()
            self.wake.wait(min(self._pause(), self.pulse.longest_pause))
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
            now = time.monotonic()
            if self._settling.next_due(now) is None and all(after > now for after in self.pending.values()):
                self._next_late_look = 0.0
                self.one_pass()  # a last look for second jobs
                return not self.pending
            self.wake.wait(self._pause())
        return False

    def one_pass(self) -> None:
        """Look, claim, work. Trouble with the NAS as a whole ends the pass; the next one tries again."""
        try:
            with folders.of(self.config) as opened:
                self._chores(opened)
                started = time.thread_time()
                found = self._scanner.looks(opened.submit)
                self._scan_seconds = time.thread_time() - started
                self.wake.watch(self._scanner.watched(opened.submit, self.config.nas.jobs_folder / "submit"))
                self._work(found, self._settling.still(found, time.monotonic()))
        except (OSError, ClusterFault) as error:
            self._nas(str(error))
        else:
            self._nas("")
        self._show()

    def _nas(self, trouble: str) -> None:
        """Say it when the NAS goes and when it comes back, once each."""
        if trouble and not self._nas_trouble:
            logger.error(f"Waiting for the NAS: {trouble}")
            notify("STATUS=waiting for the NAS")
        elif self._nas_trouble and not trouble:
            logger.info("The NAS is back.")
            notify("STATUS=watching")
        self._nas_trouble = trouble

    def _show(self) -> None:
        oldest = min((claim.claimed for claim in self.pending), default=None)
        self.figures.show(
            claimed=len(self.pending),
            arriving=self._settling.arriving,
            doubtful=len(self.doubtful),
            oldest=max(0.0, time.time() - oldest) if oldest is not None else 0.0,
            slurm=self._fault is None,
        )

    def _pause(self) -> float:
        """Seconds until there is something to do if no event comes."""
        intake = self.config.intake
        idle = max(intake.idle_scan_seconds, min(LONGEST_PAUSE, SCAN_SHARE * self._scan_seconds))
        if self._nas_trouble:
            return idle
        now = time.monotonic()
        due = self._settling.next_due(now)
        moving = max(intake.scan_seconds, self._scan_seconds)
        times = [idle if due is None else min(max(due, SHORTEST_GAP), moving), self._next_sweep - now]
        if self.doubtful:
            times.append(self._next_late_look - now)
        if self.pending:
            times.append(max(min(self.pending.values()), self._slurm_after) - now)
        return max(0.0, min(times))

    def _work(self, found: dict[Drop, Look], ready: list[Drop]) -> None:
        """What waits goes first, then the new drops, each in the order they came."""
        now = time.monotonic()
        paused = self._fault if now < self._slurm_after else None
        due = [] if paused else [claim for claim, after in sorted_by_arrival(self.pending) if after <= now]
        arrived = [Arrived(drop, found[drop], self._settling.has_waited(drop)) for drop in ready]
        left: deque[Item] = deque([*due, *arrived])
        while left and not self.stopping():
            portion: deque[Item] = deque(left.popleft() for _ in range(min(AT_A_TIME, len(left))))
            begun = list(portion)
            fates = self.crew.work(portion, paused, self._full.now())
            if self.crew.lost:  # the claims of a process that was killed are nobody's but ours
                self._next_sweep, self._swept_once = 0.0, False
            for item in begun[: len(begun) - len(portion)]:
                if isinstance(item, Arrived):
                    self._settling.taken(item.drop)
            for fate in fates:
                self._note(fate)
            if portion:  # Slurm has stopped answering in the middle: what is left is claimed, and people are told
                self._slurm_fails(self.crew.fault)
                paused = self._fault
                left = deque(item for item in (*portion, *left) if isinstance(item, Arrived))
            elif not paused:
                self._slurm_answers(self.crew.fault)

    def _note(self, fate: Fate) -> None:
        now = time.monotonic()
        if fate.drop is not None and fate.state == "filling":
            self._settling.wait_for_filling(fate.drop, now)
        elif fate.drop is not None:
            self._settling.postpone(fate.drop, now + self.config.intake.retry_seconds)
        if fate.claim is None:
            return
        self.figures.count(fate)
        self.pending.pop(fate.claim, None)
        if fate.state == "doubtful":
            self.doubtful.setdefault(fate.claim, now)
        elif fate.state == "waits":
            self.pending[fate.claim] = self._due(fate.fault)

    def _due(self, fault: ClusterFault | None) -> float:
        seconds = self.config.intake.retry_seconds
        if fault is None:
            return time.monotonic() + seconds
        return self._full.until(fault, seconds) if is_personal(fault) else 0.0

    def _slurm_answers(self, fault: ClusterFault | None) -> None:
        if fault is not None:
            self._slurm_fails(fault)
            return
        if self._fault:
            logger.info("Slurm answers again.")
        self._fault, self._failures = None, 0

    def _slurm_fails(self, fault: ClusterFault | None) -> None:
        if fault is None:
            return  # told to stop
        if self._fault is None:
            logger.warning(f"Drops wait: {fault}")
        self._fault = fault
        self._failures += 1
        # Jitter: two watchers must not knock at the same moment again and again.
        pause = min(LONGEST_PAUSE, 2.0**self._failures) * random.uniform(0.5, 1)  # noqa: S311
        self._slurm_after = time.monotonic() + pause

    def _chores(self, opened: Folders) -> None:
        now = time.monotonic()
        if now >= self._next_sweep:
            self._sweep(opened)
        if self.doubtful and now >= self._next_late_look:
            self._look_for_late_jobs(opened)
        if self.config.intake.keep_receipts_days and now >= self._next_tidy:
            # Not at the start: there is something better to do then.
            if self._next_tidy:
                tidy(opened, self.config.intake.keep_receipts_days, self.pulse.beat)
            self._next_tidy = now + TIDY_SECONDS * random.uniform(0.5, 1)  # noqa: S311 - two watchers take turns

    def _sweep(self, opened: Folders) -> None:
        """Take over claims that nobody works on, look for late second jobs, forget what is long answered."""
        now = time.monotonic()
        intake = self.config.intake
        self._next_sweep = now + intake.retry_seconds
        folders.keep_index(self.config.nas)
        results = str(self.config.nas.results_folder)
        guide = texts.readme(intake.language, intake, self.config.images.registry, results)
        try:
            receipts.keep_readme(opened, README, guide)
        except OSError as error:  # a folder of that name, say: claims are looked after all the same
            logger.warning(f"{README} in submit/ cannot be kept: {error}.")
        others: dict[Claim, tuple[int, float]] = {}
        for claim in claims.claims(opened.open):
            if claim in self.pending or claim in self.doubtful:
                continue
            try:
                changed = os.stat(claim.name, dir_fd=opened.open).st_mtime_ns
            except FileNotFoundError:  # another watcher has just finished it
                continue
            before = self._others.get(claim)
            since = before[1] if before and before[0] == changed else now
            # At the start all are taken at once: they are most likely our own. If another watcher is at work on one,
            # the journal decides between us.
            if not self._swept_once or now - since > 2 * self.config.slurm.command_seconds + intake.retry_seconds:
                self.pending[claim] = 0.0
            else:
                others[claim] = (changed, since)
        self._others = others
        self._swept_once = True
        self._forget(opened)

    def _look_for_late_jobs(self, opened: Folders) -> None:
        now = time.monotonic()
        self._next_late_look = max(now + LATE_SECONDS, self._slurm_after)
        self.desk.answering.keyed.renew()
        for claim, since in list(self.doubtful.items()):
            if self.desk.look_for_others(opened, claim) and now - since > DOUBT_SECONDS:
                with claims.opened(opened, claim) as folder:
                    claims.finish(opened, claim, folder, self.desk.reached)
                del self.doubtful[claim]

    def _forget(self, opened: Folders) -> None:
        self.desk.answering.keyed.renew()
        there, here = now_there(opened.done), time.time()
        for claim in claims.claims(opened.done):
            if here - claim.claimed < KEEP_SECONDS:
                break  # they are in order
            try:
                old = there - os.stat(claim.name, dir_fd=opened.done).st_mtime > KEEP_SECONDS
            except FileNotFoundError:  # forgotten by another watcher
                continue
            if old and self.desk.look_for_others(opened, claim):
                claims.forget(opened, claim)
                self.pulse.beat()


def sorted_by_arrival(pending: dict[Claim, float]) -> list[tuple[Claim, float]]:
    """Claims in the order they came."""
    return sorted(pending.items(), key=lambda item: item[0].name)
