"""The queue as a person may see it: what a job asks for, what it waits for, and how many go before it."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from slurmk8s.errors import PersonFault
from slurmk8s.slurm import records, stamp
from slurmk8s.slurm.client import Job
from slurmk8s.slurm.facts import gpu_count
from slurmk8s.slurm.hostlist import expand
from slurmk8s.slurm.programs import Programs

_MORE = (
    *("PriorityLong", "SchedNodes", "ReqNodes", "NumCPUs", "NumNodes", "tres-alloc"),
    *("tres-per-node", "tres-per-job", "Dependency", "Licenses", "QOS", "Reservation", "Feature", "admin_comment"),
)
_ON_NODES = ("RUNNING", "CONFIGURING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING")
WAITING = ("PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "SPECIAL_EXIT")
"""States of a job in the queue; all but the first are squeue's finer words for it."""
_FIELDS = (*records.FIELDS, *_MORE)
_PLACE = ("JobID", "PriorityLong", "Reason")
_UNKNOWN_JOB = "Invalid job id specified"
# Jobs that no place in the queue would help: Slurm does not consider them now.
_NOT_IN_LINE = (
    *("BeginTime", "Dependency", "DependencyNeverSatisfied", "JobHeldAdmin", "JobHeldUser", "JobArrayTaskLimit"),
    *("PartitionDown", "PartitionInactive", "launch", "job"),  # "launch failed requeued held", "job requeued in …"
)
_MEMORY = re.compile(r"(?:^|,)mem=([0-9.]+)([KMGT]?)(?=,|$)")
_IN_MB = {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1024**2}


@dataclass(frozen=True)
class Seen:
    """A job, with what matters to somebody who waits for it."""

    job: Job
    """Without its allocation."""
    stamped: bool
    """Whether it is a container job."""
    tasks: str
    """Of an array's part that waits as one: `4-7%1`; else empty."""
    priority: int
    expected_start: float | None
    """Of a waiting job: when it may start or is planned to."""
    ends: float | None
    """Of a running job: when its time limit is reached."""
    planned_nodes: tuple[str, ...]
    required_nodes: tuple[str, ...]
    cpus: int
    nodes: int
    memory_mb: int | None
    """Of all its nodes together."""
    gpus: int
    """Per node or of the whole job, as it asked."""
    dependency: str
    licenses: str
    qos: str
    reservation: str
    features: str

    @property
    def name(self) -> str:
        """As people name it: `7`, or `7_2`."""
        if self.job.array_job_id is not None and self.job.array_task_id is not None:
            return f"{self.job.array_job_id}_{self.job.array_task_id}"
        return str(self.job.job_id)

    @property
    def waits(self) -> bool:
        """Whether it is in the queue: neither on a node nor at its end."""
        return self.job.state in WAITING and not self.job.completing

    @property
    def partitions(self) -> tuple[str, ...]:
        """A waiting job may name several."""
        return tuple(filter(None, self.job.partition.split(",")))


@dataclass(frozen=True)
class Place:
    """Where a job stands among those that Slurm could start in its partition."""

    partition: str
    position: int
    """From 1."""
    waiting: int
    """How many there are, this one among them."""


def find(programs: Programs, job: str) -> list[Seen]:
    """The job, or every part of an array that stands by itself; nothing if slurmctld does not know it (any more)."""
    return [_seen(row) for row in _rows(programs, _FIELDS, "--jobs", job, "--states=all")]


def in_line(reason: str) -> bool:
    """Whether Slurm would start a job that waits for this reason if only there were room."""
    return re.split(r"[ ,_]", reason, maxsplit=1)[0] not in _NOT_IN_LINE


def jobs(programs: Programs, user: str | None) -> list[Seen]:
    """All jobs that slurmctld has, of this person or of everybody we may see; also those that have just ended."""
    choice = ("--user", user) if user is not None else ()
    return [_seen(row) for row in _rows(programs, _FIELDS, *choice, "--states=all")]


def on_nodes(programs: Programs) -> list[Seen]:
    """All jobs that have a node, or had one when they ended, as long as slurmctld knows them."""
    states = ",".join(sorted({*_ON_NODES, *records.FINISHED}))
    return [seen for row in _rows(programs, _FIELDS, f"--states={states}") if (seen := _seen(row)).job.nodes]


def place(programs: Programs, seen: Seen) -> Place | None:
    """The job's place; None if it does not stand in line, or if other people's jobs are hidden from us."""
    return places(programs, [seen]).get(seen.job.job_id)


def places(programs: Programs, waiting: Sequence[Seen]) -> dict[int, Place]:
    """The places of several jobs by their ids: the best of each, where it names several partitions."""
    wanted = [seen for seen in waiting if in_line(seen.job.reason)]
    partitions = sorted({partition for seen in wanted for partition in seen.partitions})
    if not partitions or (os.geteuid() != 0 and _hides_jobs(programs)):
        return {}
    ids = {seen.job.job_id for seen in wanted}
    found: dict[int, Place] = {}
    for partition in partitions:
        rows = _rows(programs, _PLACE, "--partition", partition, "--states=PENDING")
        order = sorted((-_number(row["PriorityLong"]), _number(row["JobID"])) for row in rows if in_line(row["Reason"]))
        for index, (_, job_id) in enumerate(order):
            if job_id in ids and (job_id not in found or found[job_id].position > index + 1):
                found[job_id] = Place(partition, index + 1, len(order))
    return found


def _hides_jobs(programs: Programs) -> bool:
    """Whether this site shows people their own jobs only (PrivateData)."""
    shown = re.search(r"^PrivateData\s*=\s*(.*)$", programs.ask("scontrol", "show", "config"), re.MULTILINE)
    return shown is not None and any(word in ("jobs", "all") for word in re.split(r"[,\s]+", shown[1]))


def _rows(programs: Programs, fields: Sequence[str], *choice: str) -> list[dict[str, str]]:
    word = records.divider()
    try:
        shape = ["--all", "--noheader", f"--Format={records.squeue_format(word, fields)}"]
        output = programs.ask("squeue", *choice, *shape)
    except PersonFault as error:
        if _UNKNOWN_JOB in error.sentence:
            return []
        raise
    return list(records.rows(output, word, fields))


def _seen(row: dict[str, str]) -> Seen:
    job = records.job(row, records.Detail(admin_comment=_text(row["admin_comment"]).partition(" ")[0]))
    memory = _MEMORY.search(row["tres-alloc"])
    return Seen(
        job=job,
        stamped=stamp.is_stamped(row["admin_comment"]),
        tasks=row["ArrayTaskID"] if job.array_job_id is not None and job.array_task_id is None else "",
        priority=_number(row["PriorityLong"]),
        expected_start=_time(row["StartTime"]) if job.state in WAITING else None,
        ends=_time(row["EndTime"]),
        planned_nodes=expand(_text(row["SchedNodes"])),
        required_nodes=expand(_text(row["ReqNodes"])),
        cpus=_number(row["NumCPUs"]),
        nodes=max(1, _number(row["NumNodes"].partition("-")[0])),
        memory_mb=int(float(memory[1]) * _IN_MB[memory[2]]) if memory else None,
        gpus=_gpus(row["tres-per-node"]) or _gpus(row["tres-per-job"]),
        dependency=_text(row["Dependency"]),
        licenses=_text(row["Licenses"]),
        qos=_text(row["QOS"]),
        reservation=_text(row["Reservation"]),
        features=_text(row["Feature"]),
    )


def _gpus(tres: str) -> int:
    """`gres:gpu:2` (22.05), `gres/gpu:tesla:2` (later) → 2."""
    return gpu_count(re.sub(r"(^|,)gres[:/]", r"\1", tres))


def _text(value: str) -> str:
    return "" if value in records.UNSET else value


def _number(value: str) -> int:
    return int(value) if value.isascii() and value.isdecimal() else 0


def _time(value: str) -> float | None:
    return float(value) if value.isascii() and value.isdecimal() else None
