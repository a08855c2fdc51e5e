"""Two sets of books: what Slurm lets jobs have on a node, and what its kubelet will admit. Pure, on plain JSON.

A pod that asks for more than is allocatable and not asked for by others is refused by the kubelet (OutOfcpu), so
Slurm's figures must never be the larger ones: then a job that gets the whole node starts, too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from slurmk8s import labels
from slurmk8s.kube.quantity import bytes_of, millicores, number
from slurmk8s.slurm.nodes import Node

Json = dict[str, Any]

MIB = 2**20
_ENDED = ("Succeeded", "Failed")
# The annotation of a pod that the kubelet read from its own folder.
_MIRROR = "kubernetes.io/config.mirror"


@dataclass(frozen=True)
class Amounts:
    """What a node has, or a pod asks for."""

    millicores: int = 0
    memory: int = 0
    """Bytes."""
    gpus: int = 0
    pods: int = 0

    def __add__(self, other: "Amounts") -> "Amounts":
        return Amounts(**{name: value + getattr(other, name) for name, value in vars(self).items()})

    def __sub__(self, other: "Amounts") -> "Amounts":
        return Amounts(**{name: value - getattr(other, name) for name, value in vars(self).items()})

    def largest(self, other: "Amounts") -> "Amounts":
        """The greater of each."""
        return Amounts(**{name: max(value, getattr(other, name)) for name, value in vars(self).items()})

    @property
    def cpus(self) -> int:
        """Whole CPUs: Slurm gives no parts of one."""
        return max(0, self.millicores // 1000)

    @property
    def memory_mb(self) -> int:
        """Whole MiB, as Slurm counts."""
        return max(0, self.memory // MIB)


@dataclass(frozen=True)
class Books:
    """One node in Kubernetes' books."""

    allocatable: Amounts
    system: Amounts
    """What DaemonSets and the node's own static pods ask for: they are always there."""
    strangers: Amounts
    """What other pods ask for that are none of Slurm's jobs; on a dedicated node there are none."""
    strangers_names: tuple[str, ...] = ()

    @property
    def free(self) -> Amounts:
        """The most that all jobs together may have."""
        return self.allocatable - self.system - self.strangers


def of_node(node: Json, pods: Sequence[Json], cluster: str, gpu: str) -> Books:
    """Count one node; `pods` are those on it, `gpu` the name of the device plugin's resource."""
    system, strangers = Amounts(), Amounts()
    names = []
    for pod in pods:
        if (pod.get("status") or {}).get("phase") in _ENDED or _is_job(pod, cluster):
            continue
        if _belongs_to_the_node(pod):
            system += requests(pod, gpu)
        else:
            strangers += requests(pod, gpu)
            names.append(f"{pod['metadata'].get('namespace', 'default')}/{pod['metadata']['name']}")
    return Books(_amounts((node.get("status") or {}).get("allocatable") or {}, gpu), system, strangers, tuple(names))


def _is_job(pod: Json, cluster: str) -> bool:
    found = pod["metadata"].get("labels") or {}
    return found.get(labels.APP) == labels.APP_VALUE and found.get(labels.CLUSTER, cluster) == cluster


def _belongs_to_the_node(pod: Json) -> bool:
    owners = pod["metadata"].get("ownerReferences") or []
    mirror = _MIRROR in (pod["metadata"].get("annotations") or {})
    return mirror or any(owner.get("kind") in ("DaemonSet", "Node") for owner in owners)


def requests(pod: Json, gpu: str) -> Amounts:
    """What the kubelet counts for a pod: its containers, or an init container if that is larger, and its overhead."""
    spec = pod.get("spec") or {}
    running, highest = Amounts(), Amounts()
    for init in spec.get("initContainers") or []:
        if init.get("restartPolicy") == "Always":  # a sidecar: it stays
            running += _asked(init, gpu)
            highest = highest.largest(running)
        else:
            highest = highest.largest(running + _asked(init, gpu))
    for container in spec.get("containers") or []:
        running += _asked(container, gpu)
    whole = _whole_pod(spec, running.largest(highest), gpu)
    return whole + _amounts(spec.get("overhead") or {}, gpu) + Amounts(pods=1)


def _whole_pod(spec: Json, containers: Amounts, gpu: str) -> Amounts:
    """Resources that the pod itself names count instead of its containers'."""
    named = (spec.get("resources") or {}).get("requests") or {}
    own = _amounts(named, gpu)
    return Amounts(
        millicores=own.millicores if "cpu" in named else containers.millicores,
        memory=own.memory if "memory" in named else containers.memory,
        gpus=containers.gpus,
    )


def _asked(container: Json, gpu: str) -> Amounts:
    return _amounts((container.get("resources") or {}).get("requests") or {}, gpu)


def _amounts(quantities: Mapping[str, str | int], gpu: str) -> Amounts:
    return Amounts(
        millicores=millicores(quantities.get("cpu", 0)),
        memory=bytes_of(quantities.get("memory", 0)),
        gpus=int(number(quantities.get(gpu, 0))),
        pods=int(number(quantities.get("pods", 0))),
    )


def core_spec_count(node: Node, cpus: int) -> int:
    """How many cores Slurm must keep back, so that jobs get at most so many CPUs. It keeps back whole cores."""
    per_core = max(1, node.cpus // max(1, node.cores))
    return max(0, -(-(node.cpus - cpus) // per_core))


def conf_line(node: Node, books: Books, *, count_gpus: bool) -> str:
    """The node's line for slurm.conf with the largest figures that agree; the rest of its line stays as it is."""
    free = books.free
    settings = [f"NodeName={node.name}"]
    memory = free.memory_mb
    if node.memory_reserved_mb:
        # The site keeps some back for the system: jobs get what is left of RealMemory.
        settings += [f"RealMemory={memory + node.memory_reserved_mb}", f"MemSpecLimit={node.memory_reserved_mb}"]
    else:
        settings.append(f"RealMemory={memory}")
    if kept := core_spec_count(node, free.cpus):
        settings.append(f"CoreSpecCount={kept}")
    if count_gpus and free.gpus != node.gpus:
        settings.append(f"Gres=gpu:{free.gpus}")
    return " ".join(settings)
