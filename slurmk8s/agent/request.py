"""What a job asks of this node, before anything is made: from Slurm's own words to a record."""

import os
from dataclasses import replace

from slurmk8s.agent import person
from slurmk8s.agent.record import Record
from slurmk8s.config import Config
from slurmk8s.errors import PersonFault
from slurmk8s.jobfile import pod_request, quota
from slurmk8s.kube.quotas import limits_of
from slurmk8s.site import site_of
from slurmk8s.slurm import stamp
from slurmk8s.slurm.client import Job


def stamped_lines(job: Job) -> str:
    """The job's `#K8S_` lines as Lua stamped them; PersonFault if it is no job of ours."""
    try:
        lines = stamp.decode(job.admin_comment)
    except ValueError as error:
        raise PersonFault(f"The job's stamp cannot be read ({error}).", "Submit the job again.") from None
    if not lines:
        raise PersonFault(
            f"Job {job.job_id} is not a container job: it has no stamp.",
            "Ask your administrator whether job_submit.lua is installed.",
        )
    return lines


def plain_record(job: Job, node: str) -> Record:
    """Who and where, without what: enough to tell a person that their `#K8S_` lines are wrong."""
    account = person.account(job.uid)
    in_array = job.array_job_id is not None and job.array_task_id is not None
    return Record(
        job_id=job.job_id,
        attempt=job.restarts,
        name=job.name.encode("utf-8", "surrogateescape").decode("utf-8", "replace"),  # any bytes may be a job's name
        user=account.pw_name,
        uid=job.uid,
        gid=job.gid,
        # Group 0 opens files of the node's that are root's.
        groups=tuple(sorted(set(os.getgrouplist(account.pw_name, job.gid)) - {0})),
        account=job.account,
        partition=job.partition,
        nodes=job.nodes,
        array=(job.array_job_id or 0, job.array_task_id or 0) if in_array else None,
        may_requeue=job.requeue,
        time_limit=job.time_limit,
        cpus=job.cpus.get(node, 1),
        memory_mb=job.memory_mb.get(node, 0),
        gpus=job.gpus.get(node, ()),
        submitted=job.submitted,
        started=job.started,
        dropped=stamp.dropped_at(job.comment, job.submitted),
        mail_user=job.mail_user.encode("utf-8", "surrogateescape").decode("utf-8", "replace"),
        mail_types=job.mail_types,
        waits=stamp.waits(job.admin_comment),
    )


def full_record(record: Record, job: Job, lines: str, config: Config) -> Record:
    """With the pod it asks for. Policy is checked here: a job by plain sbatch has passed no other check of ours."""
    if len(job.nodes) > 1:
        raise PersonFault(
            f"The job got {len(job.nodes)} nodes, and a container job runs on one.",
            "Ask for one with #SBATCH --nodes=1.",
        )
    over = quota.exceeds(record.cpus, record.memory_mb, len(record.gpus), limits_of(config, record.user))
    if over is not None:
        raise PersonFault(over, "Ask for less, or ask your administrator for a larger quota.")
    # A dropped file has no folder of its own; the watcher submits it from where Slurm can open its default output.
    dropped = stamp.key_of(job.comment) is not None and job.work_folder == str(config.nas.results_folder)
    request = pod_request(lines, site_of(config), job.partition, None if dropped else job.work_folder)
    return replace(
        record,
        image=request.image,
        workdir=request.workdir,
        script=request.script,
        priority=request.priority,
        shm_bytes=request.shm_bytes,
        mounts=request.mounts,
    )
