"""From a job's record to its pod: what its manifest says, what its environment holds, what slurmk8s-run is told.

Pure, but for asking which device files this node has.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from slurmk8s import labels
from slurmk8s.agent import volumes
from slurmk8s.agent.meeting import Places
from slurmk8s.agent.record import Record
from slurmk8s.config import Config, Partition, Toleration
from slurmk8s.labels import PodName
from slurmk8s.pod.manifest import Pod

# A kubelet that must end the pod runs this first: PID 1 takes no signals, so the body hears of it here. The file tells
# slurmk8s-run that the end was not the body's own.
# A job that Slurm ends has heard SIGTERM from slurmk8s-run already, which leaves the other file.
BEFORE_STOP = (
    "/bin/sh",
    "-c",
    'cd "$SLURMK8S_HANDOVER" && { [ -e terminated ] || { : >stopped; kill -s TERM -- -1; }; }',
)


@dataclass(frozen=True)
class Surroundings:
    """What a manifest needs besides the record."""

    node: str
    places: Places
    home: str
    results: Path
    told: dict[str, str]
    gpu_uuids: tuple[str, ...] = ()
    """Of the GPUs that Slurm chose, in mode `pinned`."""


def pod_name(record: Record, node: str) -> PodName:
    """Which pod is this record's."""
    return PodName(record.job_id, record.uid, record.rank(node))


def pod(config: Config, record: Record, around: Surroundings) -> Pod:
    """The manifest's values."""
    name = str(pod_name(record, around.node))
    shared: dict[str, Any] = {
        "name": name,
        "hostname": name,
        "labels": {
            labels.APP: labels.APP_VALUE,
            labels.JOB_ID: str(record.job_id),
            labels.CLUSTER: config.cluster,
            labels.NODE: around.node,
            labels.ATTEMPT: str(record.attempt),
            labels.USER_ID: str(record.uid),
        },
        "image": record.image,
        "container": labels.CONTAINER,
        "uid": record.uid,
        "gid": record.gid,
        "groups": record.groups,
        "environment": environment(config, record, around),
        "priority": record.priority,
        "grace_seconds": int(config.agent.kill_grace_seconds),
    }
    if config.backend == "podman":
        return Pod(
            **shared,
            resources=resources(record),
            volumes=volumes.of_podman(config, record, around.places, around.home, around.results),
            pull_policy="Never",  # the agent has pulled it, with a sentence for each way that can fail
        )
    return _on_kubernetes(config, record, around, shared)


def _on_kubernetes(config: Config, record: Record, around: Surroundings, shared: dict[str, Any]) -> Pod:
    settings = config.kubernetes
    partition = config.partitions.get(record.partition, Partition())
    counted = resources(record)
    if record.gpus and config.gpu.mode == "count":
        counted[config.gpu.resource] = str(len(record.gpus))
    runtime_class = partition.runtime_class or settings.runtime_class
    if record.gpus and config.gpu.mode == "pinned":
        runtime_class = config.gpu.runtime_class
    return Pod(
        **shared,
        namespace=settings.namespace_of(record.uid),
        annotations={labels.JOB_NAME: record.name, labels.USER: record.user, labels.PARTITION: record.partition},
        resources=counted,
        ceilings={"ephemeral-storage": settings.scratch} if settings.scratch else {},
        volumes=volumes.of_kubernetes(config, record, around.places, around.home, around.results, around.told),
        pull_policy=pull_policy(record.image),
        node=settings.node_of(around.node),
        node_selector={**settings.node_selector, **partition.node_selector},
        tolerations=tolerations(settings.tolerations + partition.tolerations),
        runtime_class=runtime_class,
        pull_secrets=settings.pull_secrets,
        before_stop=BEFORE_STOP,
    )


def resources(record: Record) -> dict[str, str]:
    """What Slurm has allocated, as both runtimes count it."""
    counted = {"cpu": str(record.cpus)}
    if record.memory_mb:
        counted["memory"] = f"{record.memory_mb}Mi"
    return counted


def pull_policy(image: str) -> Literal["IfNotPresent", "Always"]:
    """`latest` is looked up again each time, as Kubernetes does by itself."""
    return "Always" if image.endswith(":latest") else "IfNotPresent"


def tolerations(settings: tuple[Toleration, ...]) -> tuple[dict[str, str], ...]:
    """As a Pod has them."""
    return tuple(toleration.model_dump(exclude_none=True) for toleration in settings)


def environment(config: Config, record: Record, around: Surroundings) -> dict[str, str]:
    """What the body has before slurmk8s-run adds SLURM_* and the person's own variables."""
    variables = {
        "HOME": around.home,
        "USER": record.user,
        "LOGNAME": record.user,
        "OMP_NUM_THREADS": str(record.cpus),  # else every library starts a thread per core of the whole machine
        "SLURMK8S_RESULTS": str(around.results),
        "SLURMK8S_OUTPUTS": str(around.results / "outputs"),
        "SLURMK8S_WORKDIR": volumes.workdir_in_pod(config, record, around.results),
        "SLURMK8S_HANDOVER": volumes.handover_in_pod(config, record, around.results),
    }
    if config.backend == "kubernetes":
        variables["SLURMK8S_LOGS"] = "shown"  # by `kubectl logs`; the kubelet keeps them from growing
    if not record.gpus:
        variables["NVIDIA_VISIBLE_DEVICES"] = "void"  # CUDA images say `all`
        return variables
    variables["CUDA_VISIBLE_DEVICES"] = ",".join(str(index) for index in range(len(record.gpus)))
    if config.backend == "podman":
        variables["NVIDIA_VISIBLE_DEVICES"] = ",".join(str(gpu) for gpu in record.gpus)
    elif config.gpu.mode == "pinned":
        variables["NVIDIA_VISIBLE_DEVICES"] = ",".join(around.gpu_uuids)
    return variables  # in mode `count` the device plugin says which


def plan(config: Config, record: Record, results: Path) -> dict[str, Any]:
    """What slurmk8s-run is told."""
    return {
        "stdout": str(results / "stdout.log"),
        "stderr": str(results / "stderr.log"),
        "script": record.script,
        "handover": volumes.handover_in_pod(config, record, results),
        "pass_through": list(config.environment.pass_through),
    }
