"""What becomes of one drop: a job, a reason why not, or another job's end. Nothing is recorded or told here."""

import fnmatch
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from slurmk8s.config import Config
from slurmk8s.errors import ClusterFault, PersonFault, SlurmFull, SlurmK8sError, SlurmUnreachable
from slurmk8s.intake import cancel, journal, texts
from slurmk8s.intake import claim as claims
from slurmk8s.intake.case import Case, language_of
from slurmk8s.intake.drop import job_to_cancel
from slurmk8s.intake.full import Unanswered
from slurmk8s.intake.journal import Answer, Submission
from slurmk8s.intake.keys import Keyed
from slurmk8s.intake.steps import Reached
from slurmk8s.slurm.client import Identity, Slurm

Judge = Callable[[bytes, str, str, Identity | None], Submission]
"""Bytes, name, key and person to what is to be submitted; PersonFault with all findings, ClusterFault for "later"."""

LARGEST = 4 * 1024 * 1024
"""Slurm's own limit of a script, in bytes."""


@dataclass(frozen=True)
class Answering:
    """Checks and submits."""

    config: Config
    slurm: Slurm
    judge: Judge
    keyed: Keyed
    reached: Reached

    def prepare(self, case: Case) -> bool:
        """Find the answer, or what is to be submitted; False if there is nothing in the claim."""
        if journal.ANSWER in case.facts and (recorded := journal.read(case.folder, journal.ANSWER)):
            answer = Answer.from_bytes(recorded)
            # Told is released: the person may have held the job again since.
            case.answer = replace(answer, release=False) if journal.TOLD in case.facts else answer
            case.recorded = True
            return True
        if not case.name:
            return False
        language = language_of(case, self.config.intake)
        try:
            if case.objection is not None:
                raise case.objection
            if (wanted := self._to_cancel(case)) is not None:
                case.answer = cancel.cancel(self.slurm, wanted, case.identity, language, self.reached)
            elif journal.SUBMISSION in case.facts:
                self.read_submission(case)
            else:
                case.submission = self._judged(case)
        except PersonFault as fault:
            why = fault.code if isinstance(fault, texts.Refused) else "check"
            case.answer = journal.refused(texts.reason(language, fault), why)
        return True

    def read_submission(self, case: Case) -> None:
        """What an earlier run, or another watcher, wanted to submit."""
        case.submission = Submission.from_bytes(journal.read(case.folder, journal.SUBMISSION) or b"")

    def find(self, case: Case) -> None:
        """Before it is submitted again: an earlier attempt may have become a job, which is held and never forgotten."""
        assert case.submission is not None
        self._doubt(case)
        if known := self.keyed.ids(case.uid, case.claim.key):
            case.answer = journal.job(known[0], case.submission)

    def submit(self, cases: Sequence[Case], at_once: int) -> None:
        """Submit one person's drops; each gets its answer, or its trouble."""
        jobs = [(case.submission.script, case.submission.options) for case in cases if case.submission]
        outcomes = self.slurm.submit_all(jobs, cases[0].identity, at_once)
        self.reached("submitted")
        for case, outcome in zip(cases, outcomes, strict=True):
            try:
                case.answer = self._answer(case, outcome)
            except SlurmK8sError as fault:
                case.trouble = fault

    def _answer(self, case: Case, outcome: int | SlurmK8sError) -> Answer:
        assert case.submission is not None
        if isinstance(outcome, int):
            return journal.job(outcome, case.submission)
        if isinstance(outcome, PersonFault):
            # It may be *because* an attempt that we heard nothing of was accepted (a limit of one job each).
            known = [] if case.first else self.slurm.ids_by_key(case.uid).get(case.claim.key, [])
            if known:
                return journal.job(known[0], case.submission)
            words = texts.Refused("slurm", words=outcome).text(language_of(case, self.config.intake))
            return journal.refused(words, "slurm")
        if isinstance(outcome, SlurmUnreachable):
            self._doubt(case)
        raise outcome

    def whose(self, fault: ClusterFault, identity: Identity | None) -> ClusterFault:
        """The same, as what has to wait for it: that person's drops, or everybody's.

        People can stop or kill what runs as them, or make it say anything. That must not look as if nobody could
        submit, and nobody else reads those words.
        """
        if identity is None:
            return fault
        if isinstance(fault, SlurmFull) and fault.user is None:
            return SlurmFull(fault.sentence, fault.hint, limit=fault.limit, user=identity.name, most=fault.most)
        if isinstance(fault, SlurmUnreachable) and fault.of_person:
            if self.slurm.answers():
                return Unanswered(fault, identity.name)
            return SlurmUnreachable("slurmctld does not answer.", "Look at its log.")
        return fault

    def _doubt(self, case: Case) -> None:
        journal.record(case.folder, journal.DOUBT, str(case.uid).encode())

    def _to_cancel(self, case: Case) -> str | None:
        return None if self._is_job_file(case.name) else job_to_cancel(case.name)

    def _is_job_file(self, name: str) -> bool:
        return any(fnmatch.fnmatchcase(name.lower(), pattern.lower()) for pattern in self.config.intake.patterns)

    def _judged(self, case: Case) -> Submission:
        assert case.status is not None
        if refusal := claims.refusal(case.status):
            raise refusal
        if self.config.intake.identity == "owner" and case.status.st_mode & stat.S_IWOTH:
            raise texts.Refused("open-file")  # anybody may have written into it what would run as its owner
        if case.status.st_size > LARGEST:
            raise texts.Refused("too-large", size=f"{case.status.st_size:,}", limit=f"{LARGEST:,}")
        if not self._is_job_file(case.name):
            raise texts.Refused("wrong-name", patterns=texts.listed(self.config.intake.patterns))
        data = claims.read_drop(case.folder, case.name, case.identity, LARGEST)
        return self.judge(data, case.name, case.claim.key, case.identity)
