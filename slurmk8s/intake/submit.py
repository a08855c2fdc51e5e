"""Exactly one job per claim: submitted held with a key, recorded, and only then let go.

A held job never leaves slurmctld's memory, so whatever happened to an earlier attempt, asking for the key finds it.
Two watchers that both submit are told apart by the journal: the recorded job stays, the other is cancelled unrun.
"""

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from loguru import logger

from slurmk8s.errors import PersonFault, SlurmUnreachable
from slurmk8s.intake import journal, texts
from slurmk8s.intake.journal import Answer, Submission
from slurmk8s.intake.steps import Reached
from slurmk8s.language import Language
from slurmk8s.slurm.client import Identity, Slurm


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


class Keyed:
    """The jobs that slurmctld has, by key: asked once per person and round of work, however many claims are in doubt.

    Older than a claim's own attempt it must not be. Another watcher's attempt may be younger: then there are two held
    jobs, and the journal decides.
    """

    def __init__(self, slurm: Slurm) -> None:
        self._slurm = slurm
        self._lock = threading.Lock()
        self._known: dict[int, dict[str, list[int]]] = {}

    def renew(self) -> None:
        """A new round: forget what was answered."""
        with self._lock:
            self._known.clear()

    def ids(self, uid: int, key: str) -> list[int]:
        """The ids of that person's jobs with this key, lowest first."""
        with self._lock:
            if uid not in self._known:
                self._known[uid] = self._slurm.ids_by_key(uid)
            return self._known[uid].get(key, [])


def submit_once(slurm: Slurm, keyed: Keyed, attempt: Attempt, language: Language, reached: Reached) -> Answer:
    """The recorded answer of this claim."""
    submission, folder, first = attempt.submission, attempt.folder, attempt.first
    uid, key = attempt.uid, attempt.key
    known: list[int] = []
    if not first:
        journal.record(folder, journal.DOUBT, str(uid).encode())
        known = keyed.ids(uid, key)
    if known:
        ours = journal.job(known[0], submission)
    else:
        try:
            ours = journal.job(slurm.submit(submission.script, submission.options, attempt.identity), submission)
            reached("submitted")
        except SlurmUnreachable:
            journal.record(folder, journal.DOUBT, str(uid).encode())
            raise
        except PersonFault as fault:
            # A refusal may be *because* an attempt that we heard nothing of was accepted (a limit of one job each).
            known = [] if first else slurm.ids_by_key(uid).get(key, [])
            refused = journal.refused(texts.Refused("slurm", words=fault).text(language), "slurm")
            ours = journal.job(known[0], submission) if known else refused
    answer = settle_answer(folder, ours)
    reached("answer recorded")
    if ours.submitted is not None and answer.submitted != ours.submitted:
        # As the person: nothing that ran as them, and named the job, has a say about other people's. Others of theirs,
        # if there are any, are found later: the claim is in doubt.
        _cancel(slurm, [ours.submitted], key, answer, attempt.identity)
    return answer


def settle_answer(folder: int, ours: Answer) -> Answer:
    """Record our answer, or learn the one that another watcher recorded first."""
    if journal.record(folder, journal.ANSWER, ours.to_bytes()):
        return ours
    recorded = journal.read(folder, journal.ANSWER)
    assert recorded is not None  # a recorded answer is never removed while its claim is worked on
    return Answer.from_bytes(recorded)


def cancel_others(slurm: Slurm, found: Sequence[int], key: str, answer: Answer) -> None:
    """Cancel every job with this key that is not the recorded one."""
    if extra := [job_id for job_id in found if job_id != answer.submitted]:
        _cancel(slurm, extra, key, answer)


def _cancel(slurm: Slurm, extra: Sequence[int], key: str, answer: Answer, identity: Identity | None = None) -> None:
    logger.warning(f"Cancelling {extra}, submitted a second time with key {key}; the job is {answer.submitted}.")
    slurm.cancel(extra, identity)
