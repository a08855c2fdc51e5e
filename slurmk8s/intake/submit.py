"""Exactly one job per claim: submitted held with a key, recorded, and only then let go.

A held job never leaves slurmctld's memory, so whatever happened to an earlier attempt, asking for the key finds it.
Two watchers that both submit are told apart by the journal: the recorded job stays, the other is cancelled unrun.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass

from loguru import logger

from slurmk8s.errors import PersonFault, SlurmUnreachable
from slurmk8s.intake import journal, texts
from slurmk8s.intake.journal import Answer, Submission
from slurmk8s.intake.steps import Reached
from slurmk8s.slurm.client import Identity, Job, Slurm


@dataclass(frozen=True)
class Attempt:
    """One attempt to bring a claim's job about."""

    folder: int
    """The claim's own."""
    key: str
    submission: Submission
    identity: Identity | None
    first: bool
    """Whether nobody can have tried before."""

    @property
    def uid(self) -> int:
        """Whose job it is."""
        return self.identity.uid if self.identity else os.geteuid()


def submit_once(slurm: Slurm, attempt: Attempt, language: texts.Language, reached: Reached) -> Answer:
    """The recorded answer of this claim."""
    submission, folder, first = attempt.submission, attempt.folder, attempt.first
    uid, key = attempt.uid, attempt.key
    accepted = Answer(None, submission.remarks, submission.release)
    known: list[int] = []
    if not first:
        journal.record(folder, journal.DOUBT, str(uid).encode())
        known = _ids(slurm.jobs_with_key(uid, key))
    if known:
        ours = accepted.with_job(known[0])
    else:
        try:
            ours = accepted.with_job(slurm.submit(submission.script, submission.options, attempt.identity))
            reached("submitted")
        except SlurmUnreachable:
            journal.record(folder, journal.DOUBT, str(uid).encode())
            raise
        except PersonFault as fault:
            # A refusal may be *because* an attempt that we heard nothing of was accepted (a limit of one job each).
            known = [] if first else _ids(slurm.jobs_with_key(uid, key))
            refused = Answer(None, texts.Refused("slurm", words=fault).text(language))
            ours = accepted.with_job(known[0]) if known else refused
    answer = settle_answer(folder, ours)
    reached("answer recorded")
    if not first or answer != ours:
        cancel_others(slurm, uid, key, answer)
    return answer


def settle_answer(folder: int, ours: Answer) -> Answer:
    """Record our answer, or learn the one that another watcher recorded first."""
    if journal.record(folder, journal.ANSWER, ours.to_bytes()):
        return ours
    recorded = journal.read(folder, journal.ANSWER)
    assert recorded is not None  # a recorded answer is never removed while its claim is worked on
    return Answer.from_bytes(recorded)


def cancel_others(slurm: Slurm, uid: int, key: str, answer: Answer) -> None:
    """Cancel every job with this key that is not the recorded one."""
    extra = [job_id for job_id in _ids(slurm.jobs_with_key(uid, key)) if job_id != answer.job_id]
    if extra:
        logger.warning(f"Cancelling {extra}, submitted a second time with key {key}; the job is {answer.job_id}.")
        slurm.cancel(extra)


def _ids(jobs: Iterable[Job]) -> list[int]:
    """The jobs' own ids, lowest first; the tasks of an array are one job."""
    return sorted({job.array_job_id or job.job_id for job in jobs})
