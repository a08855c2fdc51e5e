"""Drops from their first look to their receipt, a batch at a time, step by step.

A step is done for all drops of the batch before the next one, so that the disk is asked once for all of them, and one
program releases all their jobs. Each step can be repeated after a crash and then changes nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from loguru import logger

from slurmk8s import durable
from slurmk8s.config import Config
from slurmk8s.errors import ClusterFault, PersonFault
from slurmk8s.intake import claim as claims
from slurmk8s.intake import journal, receipts, scan
from slurmk8s.intake.answer import LARGEST, Answering
from slurmk8s.intake.case import Case, opened
from slurmk8s.intake.claim import Claim
from slurmk8s.intake.drop import Arrived
from slurmk8s.intake.folders import Folders
from slurmk8s.intake.full import is_personal
from slurmk8s.intake.journal import Answer, Fact
from slurmk8s.intake.keys import cancel_others, settle
from slurmk8s.intake.steps import Reached
from slurmk8s.intake.telling import Telling

if TYPE_CHECKING:
    from slurmk8s.slurm.client import Identity

Item = Claim | Arrived

IN_A_GO = 4
"""So many of a person's drops, for each sbatch at a time, before it is looked whether Slurm still answers."""


@dataclass(frozen=True)
class Fate:
    """What became of a claim, or of a drop that was to be one."""

    state: Literal["finished", "doubtful", "waits", "unclaimed", "filling"]
    """doubtful: told, but a second job may still turn up; unclaimed: no claim came about; filling: still being
    copied."""
    claim: Claim | None = None
    drop: Arrived | None = None
    """One that could not be claimed, or not yet; None also for one that has changed or gone."""
    fault: ClusterFault | None = None
    """What it waits for; None: its own trouble, told in the log."""
    answer: Answer | None = None
    """What was told, if it was told now."""


@dataclass(frozen=True)
class Desk:
    """Works on drops."""

    config: Config
    answering: Answering
    telling: Telling
    reached: Reached

    def work(
        self,
        folders: Folders,
        items: Sequence[Item],
        waiting_for: ClusterFault | None = None,
        full: Mapping[str, ClusterFault] | None = None,
        at_once: int = 1,
    ) -> list[Fate]:
        """Bring a batch as far as it gets. With something to wait for, claim and tell people so, no more.

        `full` has the people of whom Slurm takes no more jobs now, and why; `at_once` sbatch run at a time.
        """
        self.answering.keyed.renew()
        return _Round(self, folders, waiting_for, dict(full or {}), at_once).run(items)

    def look_for_others(self, folders: Folders, claim: Claim) -> bool:
        """Cancel a second job of an answered claim that Slurm has accepted late; whether Slurm could be asked."""
        try:
            with claims.opened(folders, claim) as folder:
                recorded, uid = journal.read(folder, journal.ANSWER), journal.read(folder, journal.DOUBT)
                if recorded and uid:
                    found = self.answering.keyed.ids(int(uid), claim.key)
                    cancel_others(self.answering.slurm, found, claim.key, Answer.from_bytes(recorded))
                return True
        except Exception as error:  # noqa: BLE001 - one claim's trouble must not stop the others
            trouble(claim, error)
            return False


@dataclass
class _Round:
    """One batch. A drop leaves it with its fate; the others go on to the next step."""

    desk: Desk
    folders: Folders
    waiting_for: ClusterFault | None
    waits: dict[str, ClusterFault]
    at_once: int
    fates: list[Fate] = field(default_factory=list)

    def run(self, items: Sequence[Item]) -> list[Fate]:
        cases = [case for item in items if (case := self._opened(item))]
        cases = self._each(cases, self._prepare)
        self._record_submissions(cases)
        cases = self._each(cases, self._may_be_submitted)
        cases = self._submit_all(cases)
        cases = self._record_answers(cases)
        cases = self._release(cases)
        cases = self._each(cases, self._write_receipt)
        self._keep(cases, lambda case: case.receipt.opened if case.receipt else [])
        cases = self._each(cases, self._publish)
        self._keep(cases, lambda case: [case.receipt.folder] if case.receipt else [])
        self._each(cases, self._finish)
        return self.fates

    def _each(self, cases: list[Case], step: Callable[[Case], Fate | None]) -> list[Case]:
        """Do one step for each; those that go on."""
        left = []
        for case in cases:
            try:
                fate = step(case)
            except ClusterFault as fault:
                fate = self._waits(case, fault)
            except FileNotFoundError as error:
                fate = _gone(self.folders, case.claim, error) or trouble(case.claim, error)
            except Exception as error:  # noqa: BLE001 - one claim's trouble must not stop the others
                fate = trouble(case.claim, error)
            if fate is None:
                left.append(case)
            else:
                if case.receipt is not None and case.receipt.hidden:
                    receipts.discard(case.receipt)
                case.close()
                self.fates.append(fate)
        return left

    def _waits(self, case: Case, fault: ClusterFault) -> Fate:
        if self.waiting_for is not None:
            fault = self.waiting_for
        elif case.identity is not None and case.identity.name in self.waits:
            fault = self.waits[case.identity.name]
        else:
            fault = self.desk.answering.whose(fault, case.identity)
        if is_personal(fault):
            self.waits[fault.user] = fault
        else:
            self.waiting_for = fault  # nobody's drop would fare better
        self.desk.telling.waiting(self.folders, case, fault)
        return Fate("waits", case.claim, fault=fault)

    # The steps

    def _opened(self, item: Item) -> Case | None:
        claim = self._take(item) if isinstance(item, Arrived) else item
        if isinstance(claim, Claim):
            try:
                return opened(self.folders, claim, self.desk.config.intake)
            except OSError as error:
                claim = _gone(self.folders, claim, error) or trouble(claim, error)
        self.fates.append(claim)
        return None

    def _take(self, arrived: Arrived) -> Fate | Claim:
        """Claim a drop that has been still."""
        drop = arrived.drop
        try:
            if scan.look_again(self.folders.submit, drop) != arrived.look:
                return Fate("unclaimed")  # written to since the pass began: it settles anew
            if not arrived.as_it_is and scan.has_hole(self.folders.submit, drop, LARGEST):
                return Fate("filling", drop=arrived)
            return claims.take(self.folders, drop, self.desk.reached) or Fate("unclaimed")
        except OSError as error:
            logger.warning(f"{drop.name!r} cannot be claimed: {error}.")
            return Fate("unclaimed", drop=arrived)

    def _prepare(self, case: Case) -> Fate | None:
        """Check it; or find what an earlier run knew of it."""
        if self.waiting_for is not None:
            raise self.waiting_for
        if self.desk.answering.prepare(case):
            return None
        claims.drop_empty(self.folders, case.claim)  # a crash before the rename
        return Fate("finished", case.claim)

    def _record_submissions(self, cases: list[Case]) -> None:
        new = [case for case in cases if case.submission and not case.answer and journal.SUBMISSION not in case.facts]
        facts = [Fact(case.folder, journal.SUBMISSION, case.submission.to_bytes()) for case in new if case.submission]
        for case, won in zip(new, _recorded(facts), strict=True):
            case.first = won is True
            if won is False:  # another watcher was faster: its bytes count
                self.desk.answering.read_submission(case)
            elif isinstance(won, OSError):
                case.trouble = won
        self.desk.reached("submission recorded")

    def _may_be_submitted(self, case: Case) -> Fate | None:
        _untroubled(case)
        if case.answer is None:
            if self.waiting_for is not None:
                raise self.waiting_for
            if not case.first:
                self.desk.answering.find(case)
        return None

    def _submit_all(self, cases: list[Case]) -> list[Case]:
        """Person by person, in the order of arrival; not many into a Slurm that has stopped answering."""
        left = [case for case in cases if case.answer is None]
        answered = [case for case in cases if case.answer is not None]
        while left:
            person = left[0].identity
            portion = [case for case in left if case.identity == person][: IN_A_GO * self.at_once]
            left = [case for case in left if case not in portion]
            portion = self._each(portion, self._need_not_wait)
            if portion:
                self.desk.answering.submit(portion, self.at_once)
            answered += self._each(portion, _untroubled)
        return answered

    def _need_not_wait(self, case: Case) -> Fate | None:
        """Nobody waits for what is known not to work; nor does a drop overtake the person's earlier ones."""
        if self.waiting_for is not None:
            raise self.waiting_for
        if case.identity is not None and case.identity.name in self.waits:
            raise self.waits[case.identity.name]
        return None

    def _record_answers(self, cases: list[Case]) -> list[Case]:
        new = [case for case in cases if not case.recorded]
        facts = [Fact(case.folder, journal.ANSWER, case.answer.to_bytes()) for case in new if case.answer]
        for case, won in zip(new, _recorded(facts), strict=True):
            case.trouble = won if isinstance(won, OSError) else None
            case.recorded = won is True
        self.desk.reached("answer recorded")
        return self._each(cases, self._settle)

    def _settle(self, case: Case) -> Fate | None:
        _untroubled(case)
        if not case.recorded and case.answer is not None:
            slurm = self.desk.answering.slurm
            case.answer = settle(slurm, case.folder, case.claim.key, case.answer, case.identity)
        return None

    def _release(self, cases: list[Case]) -> list[Case]:
        """Let jobs go, by each person's own right: the number that sbatch told is the person's word."""
        people: dict[Identity | None, list[int]] = {}
        for case in cases:
            if case.answer and case.answer.release and case.answer.job_id is not None:
                people.setdefault(case.identity, []).append(case.answer.job_id)
        faults: dict[Identity | None, ClusterFault] = {}
        for person, ids in people.items():
            try:
                self.desk.answering.slurm.release(ids, person)
            except ClusterFault as unreachable:
                faults[person] = unreachable
            except PersonFault as refused:  # an admin holds one of them by now: it is a job all the same
                logger.warning(f"Not all of the jobs {ids} were let go: {refused}")
        self.desk.reached("released")

        def held_up(case: Case) -> None:
            if case.answer and case.answer.release and case.identity in faults:
                raise faults[case.identity]

        return self._each(cases, held_up)

    def _write_receipt(self, case: Case) -> Fate | None:
        self.desk.telling.prepare(self.folders, case)
        return None

    def _keep(self, cases: list[Case], what: Callable[[Case], list[int]]) -> None:
        """Have the disk keep it. Where it does not, the drop stays where it is until it does."""
        try:
            durable.keep([descriptor for case in cases for descriptor in what(case)])
        except OSError as error:
            for case in cases:
                case.trouble = error

    def _publish(self, case: Case) -> Fate | None:
        _untroubled(case)
        if case.receipt is not None:
            receipts.publish(case.receipt)
        return None

    def _finish(self, case: Case) -> Fate | None:
        _untroubled(case)
        if case.told:
            journal.mark(case.folder, journal.TOLD)
            self.desk.reached("telling recorded")
        receipts.clear_waiting(self.folders, case.claim, case.folder, case.identity)
        told = case.answer if case.told else None
        if journal.read(case.folder, journal.DOUBT) is not None:
            return Fate("doubtful", case.claim, answer=told)
        claims.finish(self.folders, case.claim, case.folder, self.desk.reached)
        return Fate("finished", case.claim, answer=told)


def trouble(claim: Claim, error: Exception) -> Fate:
    """The claim stays as it is and is tried again."""
    if isinstance(error, (OSError, ClusterFault)):
        logger.warning(f"Claim {claim.key} waits: {error}")
    else:
        logger.opt(exception=error).error(f"Claim {claim.key} met a bug; it is tried again.")
    return Fate("waits", claim)


def _untroubled(case: Case) -> None:
    """What a step for the whole batch met with this one is told now."""
    if case.trouble is not None:
        raise case.trouble


def _gone(folders: Folders, claim: Claim, error: OSError) -> Fate | None:
    if not isinstance(error, FileNotFoundError) or not claims.is_gone(folders, claim):
        return None
    logger.debug(f"Claim {claim.key} was finished by another watcher ({error.filename}).")
    return Fate("finished", claim)


def _recorded(facts: list[Fact]) -> list[bool | OSError]:
    """Record them together; if that fails, each by itself, so that one claim's trouble is its own."""
    try:
        return list(journal.record_all(facts))
    except OSError:
        return [_recorded_alone(fact) for fact in facts]


def _recorded_alone(fact: Fact) -> bool | OSError:
    try:
        return journal.record(fact.folder, fact.name, fact.data)
    except OSError as error:
        return error
