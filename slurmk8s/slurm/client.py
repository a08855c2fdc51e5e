"""What the rest of the program may ask of Slurm: one small interface and the values it answers with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from slurmk8s.errors import SlurmK8sError
from slurmk8s.jobfile.facts import ClusterFacts


@dataclass(frozen=True)
class Identity:
    """Whom a program runs as. None in place of an Identity means: as ourselves."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str


@dataclass(frozen=True)
class Job:
    """A job as slurmctld knows it (`scontrol show job -d`)."""

    job_id: int
    name: str
    user: str
    uid: int
    gid: int
    partition: str
    account: str
    state: str
    """Slurm's base state as a word: PENDING, RUNNING, COMPLETING, CANCELLED, TIMEOUT, FAILED, …

    While a job is completing Slurm shows only COMPLETING. The end behind it is given where reason and exit code tell
    it; COMPLETING remains where they do not (a good end, or a cancelled job that ended well or is not yet dead)."""
    reason: str
    exit_code: str
    """As Slurm writes it: `code:signal`."""
    comment: str
    admin_comment: str
    """As far as its first space: `stamp.decode` reads ours, which has none."""
    restarts: int
    requeue: bool
    """Whether the job may be requeued (not `--no-requeue`)."""
    batch_host: str
    nodes: tuple[str, ...]
    work_folder: str
    stdout: str
    stderr: str
    time_limit: str
    submitted: float | None
    """Unix times; None while unknown."""
    started: float | None
    ended: float | None
    array_job_id: int | None
    array_task_id: int | None
    cpus: Mapping[str, int] = field(default_factory=dict)
    """CPUs by node name."""
    memory_mb: Mapping[str, int] = field(default_factory=dict)
    """Real memory by node name, in MiB."""
    gpus: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """GPU indices by node name."""
    mail_user: str = ""
    """`--mail-user`, as the person wrote it; Slurm puts their login name where they name nobody."""
    mail_types: tuple[str, ...] = ()
    """`--mail-type` in Slurm's words, such as END and FAIL; empty if they ask for no mail."""
    preempted: float | None = None
    """When a job of higher priority last took its place."""
    completing: bool = False
    """Whether it has ended (or was requeued) and its Epilog has not, whatever `state` says."""


class Slurm(Protocol):
    """Every method raises SlurmUnreachable when there is no answer, PersonFault with Slurm's own words on refusal."""

    def answers(self) -> bool:
        """Whether slurmctld answers us at all."""

    def submit(self, script: bytes, options: Sequence[str], identity: Identity | None) -> int:
        """Run sbatch with the script on stdin and the options, as that person; the job's id.

        SlurmFull where Slurm takes no more jobs now, of that person or of anybody.
        """

    def job(self, job_id: int) -> Job | None:
        """The job, or None if slurmctld says that it does not know it."""

    def submit_all(
        self, jobs: Sequence[tuple[bytes, Sequence[str]]], identity: Identity | None, at_once: int
    ) -> list[int | SlurmK8sError]:
        """Run sbatch for each, begun in this order, so many at a time; each job's id, or what `submit` raises."""

    def parts(self, name: str) -> list[Job]:
        """All records of a job as people name it: `12`, an array's tasks too, or `12_3`.

        Allocation (CPUs, memory, GPUs) and admin_comment are left out: `job` has them.
        """

    def ids_by_key(self, uid: int) -> dict[str, list[int]]:
        """The ids of this user's jobs with a key that slurmctld still has, by key, lowest first.

        A job array, or a heterogeneous job, counts as one job.
        """

    def release(self, job_ids: Sequence[int], identity: Identity | None = None) -> None:
        """Let held jobs run, as that person. A job that is already released or gone is no error."""

    def cancel(self, jobs: Sequence[int | str], identity: Identity | None = None) -> None:
        """Cancel jobs, as that person. A job that is already gone is no error."""

    def requeue(
        self, job_id: int, reason: str, delay_seconds: float = 0, *, attempt: int, waited: bool = False
    ) -> None:
        """Put a running job back in the queue, the reason at the end of its comment; one that has ended stays so.

        Only that attempt of it: a later one is not ours to end. `waited`: it found its person's quota full.
        """

    def drain(self, node: str, reason: str) -> None:
        """Take a node out of service with a readable reason."""

    def takes_usage(self) -> bool:
        """Whether there is a slurmdbd that can be told what jobs have used."""

    def keep_usage(self, job: str, comment: str) -> bool:
        """Put this comment into slurmdbd's record of an ended job; False while it does not know of the job's end."""

    def live_jobs(self) -> set[int]:
        """Ids of all jobs that are not finished (pending, running, completing)."""

    def facts(self, identity: Identity | None = None) -> ClusterFacts:
        """Partitions, limits and nodes, for the check of a job file."""
