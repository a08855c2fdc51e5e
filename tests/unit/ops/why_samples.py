"""Values that several tests of `slurmk8s why` start from."""

from dataclasses import replace
from typing import Any

from slurmk8s.results.summary import Summary, Times
from slurmk8s.slurm.client import Job
from slurmk8s.slurm.nodes import Node
from slurmk8s.slurm.queue import Seen

NOW = 1_794_852_000.0

JOB = Job(
    job_id=7,
    name="train",
    user="kim",
    uid=1001,
    gid=1001,
    partition="gpu",
    account="lab",
    state="PENDING",
    reason="Priority",
    exit_code="0:0",
    comment="",
    admin_comment="",
    restarts=0,
    requeue=True,
    batch_host="",
    nodes=(),
    work_folder="/home/kim",
    stdout="/home/kim/slurm-7.out",
    stderr="/home/kim/slurm-7.out",
    time_limit="1:00:00",
    submitted=NOW - 600,
    started=None,
    ended=None,
    array_job_id=None,
    array_task_id=None,
)

SEEN = Seen(
    job=JOB,
    stamped=True,
    tasks="",
    priority=500,
    expected_start=None,
    ends=None,
    planned_nodes=(),
    required_nodes=(),
    cpus=4,
    nodes=1,
    memory_mb=4000,
    gpus=2,
    dependency="",
    licenses="",
    qos="normal",
    reservation="",
    features="",
)

NODE = Node(
    name="gpu1",
    states=("MIXED",),
    reason="",
    reason_by="",
    reason_since=None,
    cpus=8,
    cpus_for_jobs=8,
    cpus_used=6,
    cores=4,
    core_spec=0,
    memory_mb=16000,
    memory_reserved_mb=0,
    memory_used_mb=8000,
    gpus=2,
    gpus_used=1,
    gres="gpu:tesla:2",
    partitions=("gpu",),
)

SUMMARY = Summary(
    cluster="lab",
    job_id=7,
    array=None,
    name="train",
    user="kim",
    uid=1001,
    account="lab",
    partition="gpu",
    attempt=0,
    node="gpu1",
    nodes=("gpu1",),
    image="pytorch:2.0",
    image_digest=None,
    workdir="/workspace",
    command="the job file's own body",
    gpus=(),
    cpus=4,
    memory_mb=4000,
    times=Times(ended=NOW - 60),
    state="failed",
    exit_code=3,
    signal=None,
    cause="The body ended with exit code 3.",
    fault="person",
)


def seen(reason: str = "Priority", **changes: Any) -> Seen:
    """A job; `job_…` changes the job itself."""
    of_job = {name.removeprefix("job_"): value for name, value in changes.items() if name.startswith("job_")}
    rest = {name: value for name, value in changes.items() if not name.startswith("job_")}
    return replace(SEEN, job=replace(JOB, reason=reason, **of_job), **rest)


def running(**changes: Any) -> Seen:
    """A job on gpu1 for ten minutes, with fifty left."""
    facts: dict[str, Any] = {"job_state": "RUNNING", "job_nodes": ("gpu1",), "job_started": NOW - 600}
    return seen("None", **(facts | {"ends": NOW + 3000} | changes))
