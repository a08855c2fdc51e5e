"""From an answer to the text that its person reads."""

import time
from dataclasses import dataclass

from loguru import logger

from slurmk8s.config import Config
from slurmk8s.errors import ClusterFault
from slurmk8s.intake import journal, naming, receipts, texts
from slurmk8s.intake.case import Case, language_of, owner_of
from slurmk8s.intake.folders import Folders
from slurmk8s.intake.journal import Answer, Submission
from slurmk8s.intake.receipts import Delivery, Prepared
from slurmk8s.intake.steps import Reached


@dataclass(frozen=True)
class Telling:
    """Writes receipts and notes."""

    config: Config
    reached: Reached

    def prepare(self, folders: Folders, case: Case) -> None:
        """Write the receipt, unless the person has it."""
        assert case.answer is not None
        if case.name and journal.TOLD not in case.facts:
            case.receipt = self._receipt(self._delivery(folders, case), case, case.answer)
            case.told = True

    def _receipt(self, to: Delivery, case: Case, answer: Answer) -> Prepared:
        told, language = _told(case), language_of(case, self.config.intake)
        if answer.kind == "job":
            assert answer.job_id is not None
            logger.info(f"Submitted {told.file} of {told.user} ({told.key}): job {answer.job_id}")
            sent = case.submission or Submission.from_bytes(journal.read(case.folder, journal.SUBMISSION) or b"")
            where = sent.where.replace("%j", str(answer.job_id))
            text = texts.job(language, told, answer.job_id, where, answer.text, held=not sent.release)
            return receipts.prepare_job(to, answer.job_id, sent.script, text)
        if answer.kind == "cancelled":
            logger.info(f"Cancelled job {answer.job_id} for {told.user} ({told.key})")
            return receipts.prepare_text(to, texts.done(language, told, answer.text))
        logger.info(f"Refused {told.file} of {told.user} ({told.key}): {answer.text.splitlines()[0]}")
        return receipts.prepare_refusal(to, texts.refused(language, told, answer.text))

    def waiting(self, folders: Folders, case: Case, fault: ClusterFault) -> None:
        """Tell the person, once, that the drop waits. That it cannot be told must not hide why."""
        if not case.name or journal.WAITING in case.facts:
            return
        try:
            told, language = _told(case), language_of(case, self.config.intake)
            text = texts.waiting(language, told, texts.cause(language, fault))
            receipts.tell_waiting(self._delivery(folders, case), text)
        except OSError as error:
            logger.warning(f"Nobody could be told that claim {case.claim.key} waits: {error}.")

    def _delivery(self, folders: Folders, case: Case) -> Delivery:
        nobodys = case.identity is None and case.objection is not None
        assert case.status is not None
        # A reason for nobody in particular is left for whoever looks.
        mode = 0o644 if nobodys else receipts.mode_for(case.status)
        return Delivery(folders, case.claim, case.folder, case.name, case.identity, mode, self.reached)


def _told(case: Case) -> texts.Told:
    when = time.strftime("%Y-%m-%d %H:%M:%S")
    return texts.Told(naming.printable(case.name), owner_of(case), case.claim.key, when)
