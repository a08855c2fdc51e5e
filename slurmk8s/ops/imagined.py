"""The pod that a job file would have: an imagined job goes through the very code that the node's agent uses.

What only Slurm decides (the node, the job's number, the GPUs) is made up, and said so. Nothing is asked: neither Slurm
nor a cluster need be there.
"""

import pwd
from dataclasses import dataclass

from slurmk8s.agent import blueprint, meeting
from slurmk8s.agent.meeting import Places
from slurmk8s.agent.record import Record
from slurmk8s.agent.request import full_record, plain_record
from slurmk8s.config import Config
from slurmk8s.errors import PersonFault
from slurmk8s.jobfile import JobFile, header, options
from slurmk8s.jobfile.asked import understand
from slurmk8s.jobfile.quota import amounts
from slurmk8s.pod.manifest import Pod, files
from slurmk8s.slurm.client import Job


@dataclass(frozen=True)
class Imagined:
    """The pod, and what in it is made up: one sentence each."""

    pod: Pod
    notes: tuple[str, ...]


def imagined(job: JobFile, text: str, config: Config, node: str, account: pwd.struct_passwd, job_id: int) -> Imagined:
    """The pod of a job file that was found right; `text` is what the check read."""
    if not job.is_container:
        raise PersonFault("It is a plain Slurm job: it names no image, so it gets no pod.", "Write #K8S_IMAGE=….")
    asked, _ = understand(options.read(header.parse(text.split("\n")).words)[0])
    cpus, memory_mb, gpus = amounts(asked)
    allocated = Job(
        job_id=job_id,
        name=job.name or "job",
        user=account.pw_name,
        uid=account.pw_uid,
        gid=account.pw_gid,
        partition=(job.partition or "").partition(",")[0],
        account="",
        state="RUNNING",
        reason="",
        exit_code="0:0",
        comment="",
        admin_comment="",
        restarts=0,
        requeue=True,
        batch_host=node,
        nodes=(node,),
        work_folder=job.chdir or "",
        stdout="",
        stderr="",
        time_limit="",
        submitted=None,
        started=None,
        ended=None,
        array_job_id=None,
        array_task_id=None,
        cpus={node: cpus},
        memory_mb={node: memory_mb},
        gpus={node: tuple(range(gpus))},
    )
    record = full_record(plain_record(allocated, node), allocated, stamped(job, text), config)
    home = account.pw_dir if account.pw_dir.startswith("/") else "/"
    around = blueprint.Surroundings(
        node=node,
        places=Places.of(config, node, job_id),
        home=home,
        results=config.nas.results_folder / str(job_id),
        told=meeting.told(account, record.groups),
        gpu_uuids=tuple(f"GPU-{index}-of-{node}" for index in record.gpus),
    )
    pod = blueprint.pod(config, record, around)
    return Imagined(pod, tuple(_notes(config, pod, record)))


def stamped(job: JobFile, text: str) -> str:
    """The job's `#K8S_` lines as job_submit.lua stamps them: as they stand, with the image that a partition gives."""
    lines = text.split("\n")
    found = [lines[line.spot.line - 1] for line in job.k8s.values()]
    return "\n".join(found if "IMAGE" in job.k8s else [*found, f"#K8S_IMAGE={job.image}"])


def _notes(config: Config, pod: Pod, record: Record) -> list[str]:
    notes = []
    if not record.uid:
        notes.append("No pod runs as root, so this one would be refused; name a person with --user.")
    if not record.partition and config.partitions:
        notes.append("The file names no partition; what the configuration gives to Slurm's default one is left out.")
    if not record.memory_mb:
        notes.append("The file asks for no memory of its own; Slurm's default becomes the pod's limit.")
    if record.gpus and (config.backend == "podman" or config.gpu.mode == "pinned"):
        notes.append("Which GPUs the pod gets is Slurm's choice; those shown are made up.")
    if files(pod):
        notes.append(f"Beside it the agent makes a ConfigMap {pod.name} with {', '.join(sorted(files(pod)))}.")
    return notes
