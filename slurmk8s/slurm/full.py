"""Which refusals of sbatch pass by themselves. All others are answers, in sbatch's own words.

Read in Slurm's sources of 22.05, the words also in those of 2026; the last three of the first table were read only,
not seen. These wait:

| what sbatch says | why it passes |
|---|---|
| one of SUBMIT_LIMITS, then "Job violates accounting/QOS policy" | jobs end, and then there is room again |
| "temporarily unable to accept job", "job queue full" | MaxJobCount: the same, for everybody |
| "Rate limit exceeded" | slurmctld counts each person's requests in a second |
| "System submissions disabled" | a federation's clusters have not found each other yet |
| "I/O error writing script/environment to file" | slurmctld's own disk is full or broken: not the job's fault |

and these do not:

| what sbatch says | why it is an answer |
|---|---|
| "Job violates accounting/QOS policy" with any other limit's name | the job alone is larger than the limit |
| a submit limit or MaxJobCount below the array's number of tasks | no end of other jobs makes room (0: nobody) |
| "Invalid account …", "Invalid qos …", "Access … denied" | somebody has to change something first |
| "Requested time limit is invalid", "Requested partition configuration not …" | beyond the partition's limits |
| "Required partition not available (inactive or drain)" | an admin closed it to *new* jobs; DOWN lets them wait |
| "Requested reservation is invalid", "Access denied to requested reservation" | over, or not the person's |
| "Requested node configuration is not available" | no node is such, not even one that is down now |
| "Invalid job array specification" | above MaxArraySize |

A reservation or a node that is only busy or down now refuses nobody: the job is queued. Whether any node could hold it
is asked only of jobs that are not held, so a drop, which is, hears of that from our own check alone.
"""

import os
import pwd
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slurmk8s.errors import PersonFault, SlurmFull, SlurmK8sError
from slurmk8s.jobfile import tasks
from slurmk8s.slurm.client import Identity
from slurmk8s.slurm.programs import Programs, refusal, says, verdict

if TYPE_CHECKING:
    import subprocess

SLEEPS = (
    "Slurm temporarily unable to accept job, sleeping and retrying",
    "Slurm job queue full, sleeping and retrying",
)
"""What sbatch says before it tries again by itself, fifteen times in two minutes, while all other drops would wait."""

POLICY = "Job violates accounting/QOS policy"
FULL = (*SLEEPS, "MaxJobCount limit reached")


@dataclass(frozen=True)
class SubmitLimit:
    """A limit of how many jobs may be in the queue."""

    whose: str
    shown: str
    """Where `scontrol show assoc_mgr` shows it: limit, then in brackets what is used."""


SUBMIT_LIMITS = {
    "AssocMaxSubmitJobLimit": SubmitLimit(
        "of {user} in this account", r"^ClusterName=.* UserName={user}\(.* MaxSubmitJobs=(\d+)\("
    ),
    "AssocGrpSubmitJobsLimit": SubmitLimit("of {user}'s account", r"^ClusterName=.* GrpSubmitJobs=(\d+)\("),
    "QOSMaxSubmitJobPerUserLimit": SubmitLimit(
        "of {user} in this QOS", r"^QOS=.* {uid}=\{{[^}}]*MaxSubmitJobsPU=(\d+)\("
    ),
    "MaxSubmitJobsPerAccount": SubmitLimit("of {user}'s account in this QOS", r"MaxSubmitJobsPA=(\d+)\("),
    "QOSGrpSubmitJobsLimit": SubmitLimit("in this QOS", r"^QOS=[^{{]* GrpSubmitJobs=(\d+)\("),
}
"""By the name that slurmctld gives to sbatch, which prints it in the line above its verdict."""

OF_ONE_PERSON = ("Rate limit exceeded",)
OF_EVERYBODY = ("System submissions disabled", "I/O error writing script/environment to file")


def judged(
    programs: Programs, done: "subprocess.CompletedProcess[bytes]", script: bytes, identity: Identity | None
) -> SlurmK8sError:
    """What a failed sbatch stands for: SlurmFull, or a PersonFault in its own words."""
    uid = identity.uid if identity else os.geteuid()
    user = identity.name if identity else _name(uid)
    if says(done.stderr, FULL):
        return _queue_full(programs, script, user)
    said = verdict(done.stderr)
    if said.startswith(POLICY) and (name := _limit_named(done.stderr)):
        return _limit_reached(programs, done, name, script, (user, uid))
    if said.startswith(OF_ONE_PERSON):
        sentence = f"Slurm takes no more requests of {user} for the moment: {said}."
        return SlurmFull(sentence, limit="rate", user=user)
    if said.startswith(OF_EVERYBODY):
        return SlurmFull(f"Slurm takes no jobs now: {said}.", "Look at slurmctld's log.", limit="closed")
    return refusal(done)


def _limit_named(stderr: bytes) -> str | None:
    """The submit limit in the line above the verdict, if it is one."""
    lines = [line.strip() for line in stderr.decode(errors="replace").split("\n") if line.strip()]
    named = lines[-2].rpartition(": ")[2] if len(lines) > 1 else ""
    return named if named in SUBMIT_LIMITS else None


def _queue_full(programs: Programs, script: bytes, user: str) -> SlurmK8sError:
    shown = re.search(r"^MaxJobCount\s*=\s*(\d+)", _asked(programs, "show", "config"), re.MULTILINE)
    most = int(shown[1]) if shown else None
    size = tasks(script)
    if most is not None and size >= most:  # Slurm keeps one place free
        return PersonFault(
            f"The array has {size} tasks, and this Slurm takes fewer than {most} jobs in all (MaxJobCount).",
            "Make the array smaller, or ask the admin for a larger MaxJobCount.",
        )
    allowed = f" (MaxJobCount {most})" if most is not None else ""
    sentence = f"Slurm's queue is full{allowed}: it takes new jobs when others have ended."
    hint = "Finished jobs count until MinJobAge has passed; the admin may raise MaxJobCount in slurm.conf."
    # A large array may wait for long, and the single jobs of others fit meanwhile.
    return SlurmFull(sentence, hint, limit="MaxJobCount", user=user if size > 1 else None, most=most)


def _limit_reached(
    programs: Programs,
    done: "subprocess.CompletedProcess[bytes]",
    name: str,
    script: bytes,
    person: tuple[str, int],
) -> SlurmK8sError:
    user, uid = person
    limit = SUBMIT_LIMITS[name]
    shown = _asked(programs, "show", "assoc_mgr", f"users={user}", "flags=assoc,qos")
    pattern = limit.shown.format(user=re.escape(user), uid=uid)
    found = [int(most) for most in re.findall(pattern, shown, re.MULTILINE)]
    size = tasks(script)
    # Which account and QOS the job would have had is not told, so the most generous one decides that it never fits.
    if found and size > max(found):
        return PersonFault(
            refusal(done).sentence,
            f"The file asks for {size} jobs at once and the limit is {max(found)}: "
            + ("make the array smaller, or ask the admin." if max(found) else "ask the admin."),
        )
    most = found[0] if len(set(found)) == 1 else None
    allowed = f"the limit of {most} submitted jobs" if most is not None else "the limit of submitted jobs"
    whose = limit.whose.format(user=user)
    sentence = f"Slurm takes no more jobs {whose} now: {allowed} is reached ({name})."
    hint = f"`scontrol show assoc_mgr users={user}` shows the limits and what is used of them."
    return SlurmFull(sentence, hint, limit=name, user=user, most=most)


def _asked(programs: Programs, *arguments: str) -> str:
    """More about a limit; nothing where Slurm does not tell, since the limit itself is certain."""
    try:
        return programs.ask("scontrol", "--oneliner", *arguments)
    except SlurmK8sError:
        return ""


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
