"""One job per claim, whatever happened to an earlier attempt.

Jobs are submitted held, with a key, recorded, and only then let go. A held job never leaves slurmctld's memory, so
asking for the key finds it. Two watchers that both submit are told apart by the journal: the recorded job stays, the
other is cancelled unrun.
"""

from collections.abc import Sequence

from loguru import logger

from slurmk8s.intake import journal
from slurmk8s.intake.journal import Answer
from slurmk8s.slurm.client import Identity, Slurm


class Keyed:
    """The jobs that slurmctld has, by key: asked once per person and round of work, however many claims are in doubt.

    Older than a claim's own attempt it must not be. Another watcher's attempt may be younger: then there are two held
    jobs, and the journal decides.
    """

    def __init__(self, slurm: Slurm) -> None:
        self._slurm = slurm
        self._known: dict[int, dict[str, list[int]]] = {}

    def renew(self) -> None:
        """A new round: forget what was answered."""
        self._known.clear()

    def ids(self, uid: int, key: str) -> list[int]:
        """The ids of that person's jobs with this key, lowest first."""
        if uid not in self._known:
            self._known[uid] = self._slurm.ids_by_key(uid)
        return self._known[uid].get(key, [])


def settle(slurm: Slurm, folder: int, key: str, ours: Answer, identity: Identity | None) -> Answer:
    """The answer that another watcher recorded before ours."""
    recorded = journal.read(folder, journal.ANSWER)
    assert recorded is not None  # a recorded answer is never removed while its claim is worked on
    answer = Answer.from_bytes(recorded)
    if ours.submitted is not None and answer.submitted != ours.submitted:
        # As the person: nothing that ran as them, and named the job, has a say about other people's. Others of theirs,
        # if there are any, are found later: the claim is in doubt.
        _cancel(slurm, [ours.submitted], key, answer, identity)
    return answer


def cancel_others(slurm: Slurm, found: Sequence[int], key: str, answer: Answer) -> None:
    """Cancel every job with this key that is not the recorded one."""
    if extra := [job_id for job_id in found if job_id != answer.submitted]:
        _cancel(slurm, extra, key, answer)


def _cancel(slurm: Slurm, extra: Sequence[int], key: str, answer: Answer, identity: Identity | None = None) -> None:
    logger.warning(f"Cancelling {extra}, submitted a second time with key {key}; the job is {answer.submitted}.")
    slurm.cancel(extra, identity)
