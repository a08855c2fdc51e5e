"""How an attempt of a job ended, by slurmdbd where there is one: slurmctld forgets jobs soon after their end."""

from dataclasses import dataclass

from slurmk8s.errors import ClusterFault, PersonFault
from slurmk8s.slurm.hostlist import expand
from slurmk8s.slurm.programs import Programs

FIELDS = ("State", "ExitCode", "Start", "End", "NodeList")
_OFF = "accounting storage is disabled"
# None of these fields is a person's text.
_DIVIDER = "|"


@dataclass(frozen=True)
class Past:
    """The end of one attempt."""

    state: str
    """Slurm's word: COMPLETED, NODE_FAIL, REQUEUED …"""
    exit_code: str
    """As Slurm writes it: `code:signal`."""
    ended: float | None


def end(programs: Programs, job: str, node: str, started: float | None) -> Past | None:
    """The attempt of this job (`7`, or `7_2`) that began on that node at that time.

    None if there is no slurmdbd, or it does not know of its end; ClusterFault if it does not answer.
    """
    question = ("--duplicates", "--allocations", "--noheader", "--parsable2", "--jobs", job)
    try:
        rows = programs.ask("sacct", *question, f"--format={','.join(FIELDS)}").splitlines()
    except PersonFault as fault:
        if _OFF in fault.sentence:
            return None
        raise ClusterFault(f"slurmdbd could not be asked: {fault.sentence}") from None
    for row in rows:
        state, code, start, ended, nodes = row.split(_DIVIDER)
        moment = float(ended) if ended.isdecimal() else None
        if start.isdecimal() and float(start) == started and node in expand(nodes) and moment is not None:
            return Past(state.partition(" ")[0], code, moment)  # "CANCELLED by 1000"
    return None
