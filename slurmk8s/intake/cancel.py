"""`cancel-<job>`: people who have nothing but the share can end their own jobs."""

import os

from slurmk8s.errors import PersonFault
from slurmk8s.intake.journal import Answer
from slurmk8s.intake.steps import Reached
from slurmk8s.intake.texts import Refused, cancelled
from slurmk8s.language import Language
from slurmk8s.slurm.client import Identity, Slurm
from slurmk8s.slurm.records import FINISHED


def cancel(slurm: Slurm, wanted: str, identity: Identity | None, language: Language, reached: Reached) -> Answer:
    """Cancel the job as that person; Refused if it is not theirs, or has ended. Asked again it says the same."""
    me = identity.uid if identity else os.geteuid()
    parts = [job for job in slurm.parts(wanted) if job.uid == me]
    if not parts:
        raise Refused("no-such-job", job=wanted)  # whose it is, is nobody else's business
    states = {job.state for job in parts}
    if states <= FINISHED and "CANCELLED" not in states:
        raise Refused("job-has-ended", job=wanted, state=", ".join(sorted(states)))
    try:
        slurm.cancel([wanted], identity)
    except PersonFault as fault:
        raise Refused("slurm", words=fault) from None
    reached("cancelled")
    return Answer("cancelled", int(wanted.partition("_")[0]), cancelled(language, wanted))
