"""Asks Slurm and Kubernetes for both sets of books and compares them, node by node."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slurmk8s.config import Config
from slurmk8s.errors import PersonFault, SlurmK8sError
from slurmk8s.kube.faults import Refused
from slurmk8s.ops import book_checks, books, class_checks
from slurmk8s.ops.book_checks import Check
from slurmk8s.slurm import nodes
from slurmk8s.slurm.nodes import Node
from slurmk8s.slurm.programs import Programs

if TYPE_CHECKING:
    from slurmk8s.kube.client import Kube

Json = dict[str, Any]


@dataclass(frozen=True)
class NodeAudit:
    """One node."""

    name: str
    kube_name: str
    checks: tuple[Check, ...]
    conf_line: str | None
    """For slurm.conf; None if Kubernetes does not have the node."""


@dataclass(frozen=True)
class Audit:
    """All of it."""

    nodes: tuple[NodeAudit, ...]
    cluster: tuple[Check, ...]
    """What is not a single node's."""

    @property
    def agrees(self) -> bool:
        """Whether nothing differs, as far as it is known."""
        checks = [*self.cluster, *(check for node in self.nodes for check in node.checks)]
        return not any(check.verdict == "differs" for check in checks)

    def to_json(self) -> dict[str, object]:
        """For programs."""
        return {
            "agrees": self.agrees,
            "nodes": [
                {
                    "node": node.name,
                    "kubernetes_node": node.kube_name,
                    "slurm_conf": node.conf_line,
                    "checks": [vars(check) for check in node.checks],
                }
                for node in self.nodes
            ],
            "cluster": [vars(check) for check in self.cluster],
        }


def audit(config: Config, programs: Programs, kube: "Kube", wanted: Sequence[str]) -> Audit:
    """Compare these nodes of Slurm, or all."""
    known = nodes.nodes(programs)
    for name in wanted:
        if name not in known:
            raise PersonFault(f"Slurm has no node {name}.", f"It has {', '.join(sorted(known)) or 'none'}.")
    chosen = [known[name] for name in wanted] if wanted else [known[name] for name in sorted(known)]
    return Audit(tuple(_node(config, kube, node) for node in chosen), tuple(_cluster(config, kube)))


def _node(config: Config, kube: "Kube", node: Node) -> NodeAudit:
    name = config.kubernetes.node_of(node.name)
    found = kube.find(f"/api/v1/nodes/{name}")
    if found is None:
        return NodeAudit(node.name, name, (book_checks.missing(node, name),), None)
    pods = kube.items("/api/v1/pods", fieldSelector=f"spec.nodeName={name}")
    counted = books.of_node(found, pods, config.cluster, config.gpu.resource)
    checks = book_checks.of_node(node, found, counted, _kubelet(kube, name), config)
    line = books.conf_line(node, counted, count_gpus=config.gpu.mode == "count")
    return NodeAudit(node.name, name, tuple(checks), line)


def _kubelet(kube: "Kube", name: str) -> Json | None:
    """The kubelet's configuration as it runs; few may read it, and it may be away."""
    try:
        answer = kube.get(f"/api/v1/nodes/{name}/proxy/configz")
    except SlurmK8sError:
        return None
    found = answer.get("kubeletconfig")
    return found if isinstance(found, dict) else None


def _cluster(config: Config, kube: "Kube") -> list[Check]:
    priorities = _classes(kube, "/apis/scheduling.k8s.io/v1/priorityclasses", class_checks.priorities(config))
    runtimes = _classes(kube, "/apis/node.k8s.io/v1/runtimeclasses", class_checks.runtimes(config))
    return [*class_checks.priority_classes(config, priorities), *class_checks.runtime_classes(config, runtimes)]


def _classes(kube: "Kube", path: str, names: Sequence[str]) -> dict[str, Json | None]:
    """Those of these names that may be read; None for one that does not exist."""
    found = {}
    for name in names:
        with contextlib.suppress(Refused):
            found[name] = kube.find(f"{path}/{name}")
    return found
