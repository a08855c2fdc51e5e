"""One claim from its first look to its receipt. Each part can be repeated after a crash and then changes nothing."""

import contextlib
import fnmatch
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from loguru import logger

from slurmk8s.config import Config
from slurmk8s.errors import ClusterFault, PersonFault
from slurmk8s.intake import claim as claims
from slurmk8s.intake import identity as people
from slurmk8s.intake import journal, naming, receipts, texts
from slurmk8s.intake.claim import Claim
from slurmk8s.intake.folders import Folders
from slurmk8s.intake.journal import Answer, Submission
from slurmk8s.intake.receipts import Delivery
from slurmk8s.intake.steps import Reached
from slurmk8s.intake.submit import Attempt, cancel_others, settle_answer, submit_once
from slurmk8s.slurm.client import Identity, Slurm

Judge = Callable[[bytes, str, str, Identity | None], Submission]
"""Bytes, name, key and person to what is to be submitted; PersonFault with all findings, ClusterFault for "later"."""

LARGEST = 4 * 1024 * 1024
"""Slurm's own limit of a script, in bytes."""


@dataclass(frozen=True)
class Outcome:
    """What came of a batch. Claims in neither list are tried again later."""

    finished: list[Claim]
    doubtful: list[Claim]
    """Told, but a second job may still turn up in Slurm."""
    fault: ClusterFault | None
    """What the others wait for."""


@dataclass(frozen=True)
class Desk:
    """Works on claims."""

    config: Config
    slurm: Slurm
    judge: Judge
    reached: Reached

    def work(self, folders: Folders, batch: Sequence[Claim]) -> Outcome:
        """Bring claims as far as they get."""
        outcome = Outcome([], [], None)
        answers: dict[Claim, Answer] = {}
        fault: ClusterFault | None = None
        for claim in batch:
            with _alone(claim):
                try:
                    answer = self._answer(folders, claim)
                except FileNotFoundError as error:
                    if not claims.is_gone(folders, claim):
                        raise
                    logger.debug(f"Claim {claim.key} was finished by another watcher ({error.filename}).")
                    outcome.finished.append(claim)
                    continue
                except ClusterFault as unreachable:
                    fault = unreachable
                    break
                if answer is None:
                    outcome.finished.append(claim)
                else:
                    answers[claim] = answer
        try:
            # Many at a time: one program instead of one per job.
            if released := [answer.job_id for answer in answers.values() if answer.job_id and answer.release]:
                self.slurm.release(released)
            self.reached("released")
        except ClusterFault as unreachable:
            fault = unreachable
            answers = {claim: answer for claim, answer in answers.items() if answer.job_id is None}
        for claim, answer in answers.items():
            with _alone(claim):
                if self._tell(folders, claim, answer):
                    outcome.doubtful.append(claim)
                else:
                    claims.finish(folders, claim, self.reached)
                    outcome.finished.append(claim)
        return Outcome(outcome.finished, outcome.doubtful, fault)

    def look_for_others(self, folders: Folders, claim: Claim) -> bool:
        """Cancel a second job of an answered claim that Slurm has accepted late; whether Slurm could be asked."""
        with _alone(claim), claims.opened(folders, claim) as folder:
            recorded = journal.read(folder, journal.ANSWER)
            uid = journal.read(folder, journal.DOUBT)
            if recorded and uid:
                cancel_others(self.slurm, int(uid), claim.key, Answer.from_bytes(recorded))
            return True
        return False

    def tell_waiting(self, folders: Folders, claim: Claim, fault: ClusterFault) -> None:
        """Tell the person, once, that the drop waits."""
        with _alone(claim), claims.opened(folders, claim) as inside:
            if name := claims.dropped_name(inside):
                to = self._delivery(folders, claim, inside, name)
                receipts.tell_waiting(to, texts.waiting(self._language, self._told(to), fault.sentence))

    def _answer(self, folders: Folders, claim: Claim) -> Answer | None:
        """The claim's recorded answer, brought about if need be; None if there is nothing in the claim."""
        with claims.opened(folders, claim) as folder:
            if recorded := journal.read(folder, journal.ANSWER):
                answer = Answer.from_bytes(recorded)
                # Told is released: the person may have held the job again since.
                return answer if journal.read(folder, journal.TOLD) is None else replace(answer, release=False)
            name = claims.dropped_name(folder)
            if name is None:  # a crash before the rename
                claims.drop_empty(folders, claim)
                return None
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            kept = journal.read(folder, journal.SUBMISSION)
            try:
                identity = people.of_drop(status, claim.folder, self.config.intake)
                submission = (
                    Submission.from_bytes(kept) if kept else self._judged(claim, folder, name, status, identity)
                )
            except PersonFault as refused:
                answer = settle_answer(folder, Answer(None, texts.reason(self._language, refused)))
                self.reached("answer recorded")
                return answer
            first = not kept and journal.record(folder, journal.SUBMISSION, submission.to_bytes())
            self.reached("submission recorded")
            if not first and not kept:  # another watcher was faster: its bytes count
                submission = Submission.from_bytes(journal.read(folder, journal.SUBMISSION) or b"")
            attempt = Attempt(folder, claim.key, submission, identity, first)
            return submit_once(self.slurm, attempt, self._language, self.reached)

    def _judged(
        self, claim: Claim, folder: int, name: str, status: os.stat_result, identity: Identity | None
    ) -> Submission:
        if refusal := claims.refusal(status):
            raise refusal
        if status.st_size > LARGEST:
            raise texts.Refused("too-large", size=f"{status.st_size:,}", limit=f"{LARGEST:,}")
        patterns = self.config.intake.patterns
        if not any(fnmatch.fnmatchcase(name.lower(), pattern.lower()) for pattern in patterns):
            raise texts.Refused("wrong-name", patterns=texts.listed(patterns))
        data = claims.read_drop(folder, name, identity, LARGEST)
        return self.judge(data, name, claim.key, identity)

    def _tell(self, folders: Folders, claim: Claim, answer: Answer) -> bool:
        """Give the person the receipt; whether the claim is in doubt."""
        with claims.opened(folders, claim) as inside:
            identity = None
            if name := claims.dropped_name(inside):
                to = self._delivery(folders, claim, inside, name)
                identity = to.identity
                if journal.read(inside, journal.TOLD) is None:
                    self._deliver(to, answer)
                    journal.record(inside, journal.TOLD)
                    self.reached("telling recorded")
            receipts.clear_waiting(folders, claim, inside, identity)
            return journal.read(inside, journal.DOUBT) is not None

    def _deliver(self, to: Delivery, answer: Answer) -> None:
        told = self._told(to)
        if answer.job_id is None:
            logger.info(f"Refused {told.file} of {told.user} ({told.key}): {answer.text.splitlines()[0]}")
            receipts.deliver_refusal(to, texts.refused(self._language, told, answer.text))
            return
        logger.info(f"Submitted {told.file} of {told.user} ({told.key}): job {answer.job_id}")
        submission = Submission.from_bytes(journal.read(to.inside, journal.SUBMISSION) or b"")
        where = submission.where.replace("%j", str(answer.job_id))
        text = texts.job(self._language, told, answer.job_id, where, answer.text, held=not answer.release)
        receipts.deliver_job(to, answer.job_id, submission.script, text)

    @property
    def _language(self) -> texts.Language:
        return self.config.intake.language

    def _delivery(self, folders: Folders, claim: Claim, inside: int, name: str) -> Delivery:
        status = os.stat(name, dir_fd=inside, follow_symlinks=False)
        try:
            identity = people.of_drop(status, claim.folder, self.config.intake)
        except PersonFault:  # nobody's: the reason is left for whoever looks
            return Delivery(folders, claim, inside, name, None, 0o644, self.reached)
        return Delivery(folders, claim, inside, name, identity, receipts.mode_for(status), self.reached)

    def _told(self, to: Delivery) -> texts.Told:
        owner = os.stat(to.name, dir_fd=to.inside, follow_symlinks=False).st_uid
        user = to.identity.name if to.identity else people.name_of(owner)
        return texts.Told(naming.printable(to.name), user, to.claim.key, time.strftime("%Y-%m-%d %H:%M:%S"))


@contextlib.contextmanager
def _alone(claim: Claim) -> Iterator[None]:
    """One claim's trouble must not stop the others: it stays as it is and is tried again."""
    try:
        yield
    except OSError as error:
        logger.warning(f"Claim {claim.key} waits: {error}.")
    except ClusterFault as fault:
        logger.warning(f"Claim {claim.key} waits: {fault}")
    except Exception:  # noqa: BLE001 - a bug of ours, told in full
        logger.exception(f"Claim {claim.key} met a bug; it is tried again.")
