"""The tables of the file that a site with Kubernetes fills in."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from slurmk8s.config.section import Section

QUANTITY = r"^([0-9]+([.][0-9]+)?(Ki|Mi|Gi|Ti|k|M|G|T)?)?$"


class Toleration(Section):
    """A taint that pods put up with, as in a Pod's own `tolerations`."""

    key: str | None = None
    """The taint's key. Default none: every taint."""
    operator: Literal["Exists", "Equal"] = "Exists"
    """`Equal` compares the value too. Default Exists."""
    value: str | None = None
    """The taint's value, with `Equal`."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """Which effect. Default none: every effect."""


class Quota(Section):
    """What one person's pods may hold at the same time."""

    cpu: int = Field(32, ge=0)
    """CPUs. Default 32 as in the guide; 0 means no limit."""
    memory: str = Field("128Gi", pattern=QUANTITY)
    """Memory, as Kubernetes writes it. Default 128Gi as in the guide; empty means no limit."""
    gpus: int = Field(4, ge=0)
    """GPUs. Default 4 as in the guide; 0 means no limit. Counted by Kubernetes where `gpu.mode` is `count`."""


class Profile(Section):
    """What `mkinst` means by a word such as `std`."""

    image: str | None = None
    """Image, where `--image` names none."""
    cpu: int = Field(2, ge=1)
    """CPUs, where `--cpu` names none."""
    memory: str = Field("4Gi", pattern=QUANTITY)
    """Memory, where `--memory` names none."""
    priority: str | None = None
    """priorityClassName. Default none."""
    partition: str | None = None
    """Partition whose runtime class, node selector and tolerations it has. Default none."""


class Kubernetes(Section):
    """The backend for a cluster: slurmd and kubelet on the same nodes."""

    kubeconfig: Path = Path("/etc/slurmk8s/kubeconfig")
    """Credential of a node's agent, as `slurmk8s cluster kubeconfig` makes it; `%n` stands for Slurm's node name."""
    head_kubeconfig: Path = Path("/etc/slurmk8s/head.kubeconfig")
    """Credential of the watcher on the head node, which keeps namespaces and quotas."""
    namespace: str = Field("user-%u", pattern=r"^[a-z0-9]([-a-z0-9]*)%u$")
    """Namespace of a person's pods; `%u` stands for the uid. Default as in the guide."""
    system_namespace: str = Field("slurmk8s", pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    """Namespace of our own service accounts and of the pods that pull images ahead."""
    nodes: dict[str, str] = {}
    """Kubernetes' name of a node by Slurm's. Default: the same name."""
    quota: Quota = Quota()
    """Everybody's quota."""
    quotas: dict[str, Quota] = {}
    """Other quotas, by login name."""
    quota_wait_seconds: float = Field(60, ge=0)
    """How long a job that found its person's quota full waits before Slurm may start it again. Unit: seconds. Default
    60, on top of what Slurm itself waits after a requeue."""
    pull_secrets: tuple[str, ...] = ()
    """imagePullSecrets of every pod, by name; they must be in each person's namespace. Default none."""
    runtime_class: str | None = None
    """runtimeClassName of every pod. Default none: the node's own."""
    node_selector: dict[str, str] = {}
    """Labels that a node must have. Default none: Slurm has chosen the node, and its kubelet checks these again."""
    tolerations: tuple[Toleration, ...] = (Toleration(key="slurmk8s", operator="Exists"),)
    """Taints that every pod tolerates. Default `slurmk8s`: nodes that Slurm counts should carry it, so that nothing
    else runs there."""
    request_seconds: float = Field(10, gt=0)
    """Longest time one request to the API server may take. Unit: seconds. After it the outcome is unknown."""
    scratch: str = Field("50Gi", pattern=QUANTITY)
    """How much a job may write to its node: its own home there and the container's file system together
    (ephemeral-storage). Default 50Gi: enough for caches, and a runaway job does not fill the node. Empty: no limit."""
    mkinst: Path | None = None
    """A site's own program that makes the pod, called as in the guide. Default none: the agent makes it."""
    profiles: dict[str, Profile] = {"std": Profile()}
    """What `mkinst`'s second word means. Default: `std`."""
    proc: Path = Path("/proc")
    """Where the node's processes are seen: the agent makes sure that a job's are dead. Default: the kernel's place."""

    def namespace_of(self, uid: int) -> str:
        """The namespace of a person's pods."""
        return self.namespace.replace("%u", str(uid))

    def node_of(self, node: str) -> str:
        """Kubernetes' name of a Slurm node."""
        return self.nodes.get(node, node)

    def kubeconfig_of(self, node: str) -> Path:
        """The credential of a node's agent."""
        return Path(str(self.kubeconfig).replace("%n", node))

    def quota_of(self, user: str) -> Quota:
        """A person's quota."""
        return self.quotas.get(user, self.quota)
