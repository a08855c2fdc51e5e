"""Drops from their first look to their receipt, a batch at a time: their jobs are released by one program.

Each part can be repeated after a crash and then changes nothing.
"""

import fnmatch
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from loguru import logger

from slurmk8s.config import Config
from slurmk8s.errors import ClusterFault, NoAnswer, PersonFault
from slurmk8s.intake import accounts, cancel, journal, naming, receipts, scan, texts
from slurmk8s.intake import claim as claims
from slurmk8s.intake.case import Case, opened
from slurmk8s.intake.claim import Claim
from slurmk8s.intake.drop import Arrived, job_to_cancel
from slurmk8s.intake.folders import Folders
from slurmk8s.intake.full import Unanswered, is_personal
from slurmk8s.intake.journal import Answer, Submission
from slurmk8s.intake.receipts import Delivery
from slurmk8s.intake.steps import Reached
from slurmk8s.intake.submit import Attempt, Keyed, cancel_others, settle_answer, submit_once
from slurmk8s.language import Language
from slurmk8s.slurm.client import Identity, Slurm

Judge = Callable[[bytes, str, str, Identity | None], Submission]
"""Bytes, name, key and person to what is to be submitted; PersonFault with all findings, ClusterFault for "later"."""

Item = Claim | Arrived

LARGEST = 4 * 1024 * 1024
"""Slurm's own limit of a script, in bytes."""


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
    """Works on claims."""

    config: Config
    slurm: Slurm
    judge: Judge
    reached: Reached
    keyed: Keyed

    def work(
        self,
        folders: Folders,
        items: Sequence[Item],
        waiting_for: ClusterFault | None = None,
        full: Mapping[str, ClusterFault] | None = None,
    ) -> list[Fate]:
        """Bring a batch as far as it gets. With something to wait for, claim and tell people so, no more.

        `full` has the people of whom Slurm takes no more jobs now, and why.
        """
        self.keyed.renew()
        waits = dict(full or {})
        fates: list[Fate] = []
        answered: list[Case] = []
        for item in items:
            claim = self._take(folders, item) if isinstance(item, Arrived) else item
            ended = claim if isinstance(claim, Fate) else self._answer(folders, claim, waiting_for, waits)
            if isinstance(ended, Case):
                answered.append(ended)
                continue
            fates.append(ended)
            if ended.fault is not None and waiting_for is None:
                if is_personal(ended.fault):
                    waits[ended.fault.user] = ended.fault
                else:
                    waiting_for = ended.fault  # nobody's drop would fare better
        return fates + self._tell_all(folders, answered)

    # Taking

    def _take(self, folders: Folders, arrived: Arrived) -> Fate | Claim:
        """Claim a drop that has been still."""
        drop = arrived.drop
        try:
            if scan.look_again(folders.submit, drop) != arrived.look:
                return Fate("unclaimed")  # written to since the pass began: it settles anew
            if not arrived.as_it_is and scan.has_hole(folders.submit, drop, LARGEST):
                return Fate("filling", drop=arrived)
            return claims.take(folders, drop, self.reached) or Fate("unclaimed")
        except OSError as error:
            logger.warning(f"{drop.name!r} cannot be claimed: {error}.")
            return Fate("unclaimed", drop=arrived)

    # Answering

    def _answer(
        self, folders: Folders, claim: Claim, waiting_for: ClusterFault | None, waits: Mapping[str, ClusterFault]
    ) -> "Fate | Case":
        """Bring about the claim's recorded answer: the case, to be told; or what became of it instead."""
        case = None
        try:
            case = opened(folders, claim, self.config.intake)
            try:
                if waiting_for is not None:
                    raise waiting_for
                case.answer = self._answer_to(case, waits)
            except ClusterFault as fault:
                self._tell_waiting(folders, case, fault)
                return Fate("waits", claim, fault=fault)
            if case.answer is None:  # a crash before the rename
                claims.drop_empty(folders, claim)
                return Fate("finished", claim)
            kept, case = case, None  # telling closes it
            return kept
        except FileNotFoundError as error:
            if claims.is_gone(folders, claim):
                logger.debug(f"Claim {claim.key} was finished by another watcher ({error.filename}).")
                return Fate("finished", claim)
            return self._trouble(claim, error)
        except Exception as error:  # noqa: BLE001 - one claim's trouble must not stop the others
            return self._trouble(claim, error)
        finally:
            if case is not None:
                case.close()

    def _trouble(self, claim: Claim, error: Exception) -> Fate:
        """The claim stays as it is and is tried again."""
        if isinstance(error, (OSError, ClusterFault)):
            logger.warning(f"Claim {claim.key} waits: {error}")
        else:
            logger.opt(exception=error).error(f"Claim {claim.key} met a bug; it is tried again.")
        return Fate("waits", claim, fault=error if isinstance(error, ClusterFault) else None)

    def _answer_to(self, case: Case, waits: Mapping[str, ClusterFault]) -> Answer | None:
        """The recorded answer, brought about if need be; None if there is nothing in the claim."""
        if journal.ANSWER in case.facts and (recorded := journal.read(case.folder, journal.ANSWER)):
            answer = Answer.from_bytes(recorded)
            # Told is released: the person may have held the job again since.
            return replace(answer, release=False) if journal.TOLD in case.facts else answer
        if not case.name:
            return None
        try:
            if case.objection is not None:
                raise case.objection
            if (wanted := self._to_cancel(case)) is not None:
                answer = cancel.cancel(self.slurm, wanted, case.identity, self._language(case), self.reached)
                answer = settle_answer(case.folder, answer)
                self.reached("answer recorded")
                return answer
            kept = journal.read(case.folder, journal.SUBMISSION) if journal.SUBMISSION in case.facts else None
            case.submission = Submission.from_bytes(kept) if kept else self._judged(case)
        except PersonFault as fault:
            why = fault.code if isinstance(fault, texts.Refused) else "check"
            answer = settle_answer(case.folder, journal.refused(texts.reason(self._language(case), fault), why))
            self.reached("answer recorded")
            return answer
        first = not kept and journal.record(case.folder, journal.SUBMISSION, case.submission.to_bytes())
        self.reached("submission recorded")
        if not first and not kept:  # another watcher was faster: its bytes count
            case.submission = Submission.from_bytes(journal.read(case.folder, journal.SUBMISSION) or b"")
        attempt = Attempt(case.folder, case.claim.key, case.submission, case.identity, first)
        user = case.identity.name if case.identity else None
        if user is not None and user in waits:  # it would only be refused again, or overtake the person's earlier drops
            raise waits[user]
        try:
            return submit_once(self.slurm, self.keyed, attempt, self._language(case), self.reached)
        except NoAnswer as fault:
            # People can stop or kill what runs as them. That must not look as if nobody could submit.
            if user is not None and self.slurm.answers():
                raise Unanswered(fault, user) from None
            raise

    def _to_cancel(self, case: Case) -> str | None:
        return None if self._is_job_file(case.name) else job_to_cancel(case.name)

    def _is_job_file(self, name: str) -> bool:
        return any(fnmatch.fnmatchcase(name.lower(), pattern.lower()) for pattern in self.config.intake.patterns)

    def _judged(self, case: Case) -> Submission:
        assert case.status is not None
        if refusal := claims.refusal(case.status):
            raise refusal
        if case.status.st_size > LARGEST:
            raise texts.Refused("too-large", size=f"{case.status.st_size:,}", limit=f"{LARGEST:,}")
        if not self._is_job_file(case.name):
            raise texts.Refused("wrong-name", patterns=texts.listed(self.config.intake.patterns))
        data = claims.read_drop(case.folder, case.name, case.identity, LARGEST)
        return self.judge(data, case.name, case.claim.key, case.identity)

    # Telling

    def _tell_all(self, folders: Folders, cases: Sequence[Case]) -> list[Fate]:
        """Release the jobs of answered claims and give people their receipts. Closes the cases."""
        to_release: dict[Identity | None, list[int]] = {}
        for case in cases:
            if case.answer and case.answer.release and case.answer.job_id is not None:
                to_release.setdefault(case.identity, []).append(case.answer.job_id)
        faults = {person: self._release(ids, person) for person, ids in to_release.items()}
        self.reached("released")
        return [self._finish(folders, case, faults.get(case.identity)) for case in cases]

    def _release(self, ids: list[int], person: Identity | None) -> ClusterFault | None:
        """Let a person's jobs go, by that person's own right: the number that sbatch told is the person's word."""
        try:
            self.slurm.release(ids, person)
        except ClusterFault as unreachable:
            return unreachable
        except PersonFault as refused:  # an admin holds one of them by now: it is a job all the same
            logger.warning(f"Not all of the jobs {ids} were let go: {refused}")
        return None

    def _finish(self, folders: Folders, case: Case, fault: ClusterFault | None) -> Fate:
        claim = case.claim
        try:
            assert case.answer is not None
            if fault is not None and case.answer.release:
                self._tell_waiting(folders, case, fault)
                return Fate("waits", claim, fault=fault)
            told = case.answer if self._tell(folders, case, case.answer) else None
            if journal.read(case.folder, journal.DOUBT) is not None:
                return Fate("doubtful", claim, answer=told)
            claims.finish(folders, claim, case.folder, self.reached)
            return Fate("finished", claim, answer=told)
        except Exception as error:  # noqa: BLE001 - as above
            return self._trouble(claim, error)
        finally:
            case.close()

    def _tell(self, folders: Folders, case: Case, answer: Answer) -> bool:
        """Give the person the receipt; False if they have it."""
        untold = bool(case.name) and journal.TOLD not in case.facts
        if untold:
            self._deliver(self._delivery(folders, case), case, answer)
            journal.mark(case.folder, journal.TOLD)
            self.reached("telling recorded")
        receipts.clear_waiting(folders, case.claim, case.folder, case.identity)
        return untold

    def _deliver(self, to: Delivery, case: Case, answer: Answer) -> None:
        told, language = self._told(case), self._language(case)
        if answer.kind == "job":
            assert answer.job_id is not None
            logger.info(f"Submitted {told.file} of {told.user} ({told.key}): job {answer.job_id}")
            sent = case.submission or Submission.from_bytes(journal.read(to.inside, journal.SUBMISSION) or b"")
            where = sent.where.replace("%j", str(answer.job_id))
            text = texts.job(language, told, answer.job_id, where, answer.text, held=not sent.release)
            receipts.deliver_job(to, answer.job_id, sent.script, text)
        elif answer.kind == "cancelled":
            logger.info(f"Cancelled job {answer.job_id} for {told.user} ({told.key})")
            receipts.deliver_text(to, texts.done(language, told, answer.text))
        else:
            logger.info(f"Refused {told.file} of {told.user} ({told.key}): {answer.text.splitlines()[0]}")
            receipts.deliver_refusal(to, texts.refused(language, told, answer.text))

    def _tell_waiting(self, folders: Folders, case: Case, fault: ClusterFault) -> None:
        """Tell the person, once, that the drop waits. That it cannot be told must not hide why."""
        if not case.name or journal.WAITING in case.facts:
            return
        try:
            told, language = self._told(case), self._language(case)
            text = texts.waiting(language, told, texts.cause(language, fault))
            receipts.tell_waiting(self._delivery(folders, case), text)
        except OSError as error:
            logger.warning(f"Nobody could be told that claim {case.claim.key} waits: {error}.")

    def look_for_others(self, folders: Folders, claim: Claim) -> bool:
        """Cancel a second job of an answered claim that Slurm has accepted late; whether Slurm could be asked."""
        try:
            with claims.opened(folders, claim) as folder:
                recorded, uid = journal.read(folder, journal.ANSWER), journal.read(folder, journal.DOUBT)
                if recorded and uid:
                    found = self.keyed.ids(int(uid), claim.key)
                    cancel_others(self.slurm, found, claim.key, Answer.from_bytes(recorded))
                return True
        except Exception as error:  # noqa: BLE001 - as above
            self._trouble(claim, error)
            return False

    def _language(self, case: Case) -> Language:
        """The one that the drop's person reads."""
        user = case.identity.name if case.identity else accounts.name_of(case.status.st_uid) if case.status else None
        return self.config.intake.language_of(user)

    def _delivery(self, folders: Folders, case: Case) -> Delivery:
        nobodys = case.identity is None and case.objection is not None
        assert case.status is not None
        # A reason for nobody in particular is left for whoever looks.
        mode = 0o644 if nobodys else receipts.mode_for(case.status)
        return Delivery(folders, case.claim, case.folder, case.name, case.identity, mode, self.reached)

    def _told(self, case: Case) -> texts.Told:
        assert case.status is not None
        user = case.identity.name if case.identity else accounts.name_of(case.status.st_uid)
        when = time.strftime("%Y-%m-%d %H:%M:%S")
        return texts.Told(naming.printable(case.name), user, case.claim.key, when)
