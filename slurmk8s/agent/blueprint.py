"""From a job's record to its pod: which folders it sees, what its environment holds, what slurmk8s-run is told.

Pure, but for asking which device files this node has.
"""

import os
from pathlib import Path
from typing import Any

from slurmk8s.agent.meeting import Places
from slurmk8s.agent.record import Record
from slurmk8s.config import Config
from slurmk8s.jobfile.k8s import WORKSPACE, is_under
from slurmk8s.pod import labels
from slurmk8s.pod.manifest import Pod, Volume
from slurmk8s.rendezvous import IN_POD

# An image that asks for less than this cannot even start a shell with its libraries.
SMALLEST_SHM = 64 << 20


def pod(config: Config, node: str, record: Record, places: Places, home: str, results: Path) -> Pod:
    """The manifest's values."""
    name = labels.pod_name(record.job_id, record.rank(node))
    resources = {"cpu": str(record.cpus)}
    if record.memory_mb:
        resources["memory"] = f"{record.memory_mb}Mi"
    return Pod(
        name=name,
        hostname=name,
        labels={
            labels.APP: labels.APP_VALUE,
            labels.JOB_ID: str(record.job_id),
            labels.CLUSTER: config.cluster,
            labels.NODE: node,
            labels.ATTEMPT: str(record.attempt),
            labels.USER_ID: str(record.uid),
        },
        image=record.image,
        container=labels.CONTAINER,
        uid=record.uid,
        gid=record.gid,
        groups=record.groups,
        resources=resources,
        environment=environment(record, home, results),
        volumes=volumes(config, record, places, home, results),
        priority=record.priority,
        grace_seconds=int(config.agent.kill_grace_seconds),
        pull_policy="Never",  # the agent has pulled it, with a sentence for each way that can fail
    )


def environment(record: Record, home: str, results: Path) -> dict[str, str]:
    """What the body has before slurmk8s-run adds SLURM_* and the person's own variables."""
    gpus = [str(gpu) for gpu in record.gpus]
    variables = {
        "HOME": home,
        "USER": record.user,
        "LOGNAME": record.user,
        "OMP_NUM_THREADS": str(record.cpus),  # else every library starts a thread per core of the whole machine
        "NVIDIA_VISIBLE_DEVICES": ",".join(gpus) or "void",  # CUDA images say `all`
        "SLURMK8S_RESULTS": str(results),
        "SLURMK8S_OUTPUTS": str(results / "outputs"),
        "SLURMK8S_WORKDIR": record.workdir,
    }
    if gpus:
        variables["CUDA_VISIBLE_DEVICES"] = ",".join(str(index) for index in range(len(gpus)))
    return variables


def volumes(config: Config, record: Record, places: Places, home: str, results: Path) -> tuple[Volume, ...]:
    """The host's paths that the pod sees, and nothing else."""
    meeting = places.meeting
    chosen = [
        Volume("told", str(meeting.told), str(IN_POD / "told"), read_only=True),
        Volume("handover", str(meeting.handover), str(IN_POD / "handover")),
        Volume("passwd", str(places.passwd), "/etc/passwd", read_only=True, kind="File"),
        Volume("group", str(places.group), "/etc/group", read_only=True, kind="File"),
        Volume("shm", str(places.shm), "/dev/shm"),  # noqa: S108 - in the pod
    ]
    names = dict.fromkeys([*config.standard_mounts, *record.mounts])
    mounts = [config.mounts[name] for name in names]
    for index, mount in enumerate(mounts):
        chosen.append(Volume(f"mount-{index}", str(mount.source), str(mount.target), read_only=mount.read_only))
    targets = [str(mount.target) for mount in mounts]
    if not is_under(str(results), targets):
        chosen.append(Volume("results", str(places.results), str(results)))
    if not is_under(home, targets):
        chosen.append(Volume("home", str(places.home), home))
    chosen.append(Volume("outputs", str(places.outputs), WORKSPACE))
    for index in record.gpus:
        device = config.gpu.devices.replace("%d", str(index))
        chosen.append(Volume(f"gpu-{index}", device, f"/dev/{os.path.basename(device)}", kind="CharDevice"))
    if record.gpus:
        for number, path in enumerate(path for path in config.gpu.shared_devices if path.exists()):
            chosen.append(Volume(f"gpu-shared-{number}", str(path), str(path), kind="CharDevice"))
    return tuple(chosen)


def shm_bytes(config: Config, record: Record) -> int:
    """Size of /dev/shm."""
    if record.shm_bytes:
        return record.shm_bytes
    return max(SMALLEST_SHM, int(record.memory_mb * (1 << 20) * config.environment.shm_fraction))


def plan(config: Config, record: Record, results: Path) -> dict[str, Any]:
    """What slurmk8s-run is told."""
    return {
        "stdout": str(results / "stdout.log"),
        "stderr": str(results / "stderr.log"),
        "script": record.script,
        "pass_through": list(config.environment.pass_through),
    }
