"""A local cluster's part in Kubernetes: which nodes it uses, what `up` puts there, and its removal by `down`.

An admin's kubeconfig is used by `up` and `down` alone; the daemons get credentials of their own. Everything that is
made carries the cluster's name, so that several local clusters can share one Kubernetes and each removes only its own.
"""

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml

from slurmk8s import labels
from slurmk8s.config import Config, load
from slurmk8s.errors import SetupError, SlurmK8sError
from slurmk8s.kube import credentials, policy
from slurmk8s.kube.client import Kube
from slurmk8s.kube.nodes import readiness
from slurmk8s.kube.quantity import number
from slurmk8s.local.plan import Decided, Node, Plan
from slurmk8s.ops import books

Some = TypeVar("Some")
CREDENTIAL_DAYS = 365
GONE_SECONDS = 60.0
"""For pods to die and namespaces to go; a kubelet that is away would be waited for without end."""


def admin(plan: Plan) -> Kube:
    """The connection of `up` and `down`."""
    from slurmk8s.kube.connection import connect  # noqa: PLC0415 - half a second that podman need not pay

    assert plan.kubeconfig
    return connect(plan.kubeconfig)


def nodes(kube: Kube, plan: Plan, share: Node) -> dict[str, Node]:
    """Our nodes, each with its Kubernetes node and as large as both the machine and Kubernetes allow."""
    known = kube.items("/api/v1/nodes")
    chosen = choose(known, plan)
    by_name = {node["metadata"]["name"]: node for node in known}
    found = {}
    for name, kube_name in chosen.items():
        pods = kube.items("/api/v1/pods", fieldSelector=f"spec.nodeName={kube_name}")
        found[name] = size(kube_name, books.of_node(by_name[kube_name], pods, plan.layout.cluster, "").free, share)
    return found


def choose(known: list[dict[str, Any]], plan: Plan) -> dict[str, str]:
    """Kubernetes' node for each of ours: those that were named, in order, else those that are ready, by name."""
    ready = {node["metadata"]["name"] for node in known if is_ready(node)}
    names = list(plan.kube_nodes) or sorted(ready)
    for name in names:
        if name not in ready:
            raise SetupError(
                f"Kubernetes has no node {name!r} that is ready.", f"Ready are: {', '.join(sorted(ready)) or 'none'}."
            )
    if len(set(names)) < plan.nodes:
        raise SetupError(
            f"{plan.nodes} nodes were asked for, but Kubernetes has {len(set(names))} for them.",
            "Lower --nodes, or name more with --kube-node: each pod is pinned to the node that Slurm chose.",
        )
    return dict(zip(plan.node_names, dict.fromkeys(names), strict=False))


def is_ready(node: dict[str, Any]) -> bool:
    """Whether it answers and takes pods."""
    return readiness(node) == "True" and not node["spec"].get("unschedulable")


def size(name: str, free: books.Amounts, share: Node) -> Node:
    """What Slurm may give away: no more than Kubernetes can, or the kubelet refuses the pod (OutOfcpu)."""
    if not free.cpus or not free.memory_mb:
        raise SetupError(
            f"Other pods leave too little of the Kubernetes node {name}: {free.cpus} CPUs, {free.memory_mb} MiB.",
            f"See `kubectl describe node {name}`.",
        )
    return Node(min(free.cpus, share.cpus), min(free.memory_mb, share.memory_mb), name)


def require_gpus(kube: Kube, decided: Decided, config: Config) -> None:
    """Slurm must not count GPUs that no device plugin offers: a job would be refused by the kubelet."""
    plan = decided.plan
    if not plan.gpus or config.gpu.mode != "count":
        return
    for name in (node.kube for node in decided.nodes.values()):
        allocatable = kube.get(f"/api/v1/nodes/{name}")["status"]["allocatable"]
        offered = int(number(allocatable.get(config.gpu.resource, 0)))
        if offered < plan.gpus:
            raise SetupError(
                f"--gpus {plan.gpus} was asked for, but the Kubernetes node {name} offers {offered} "
                f"{config.gpu.resource}.",
                "Lower --gpus, or see why its device plugin offers no more.",
            )


def install(kube: Kube, decided: Decided, config: Config) -> None:
    """What an admin does once on a real cluster: policy and roles, and a credential for each daemon."""
    require_gpus(kube, decided, config)
    remove_pods(kube, config.cluster)  # of an earlier life that was killed: no Slurm job is theirs
    policy.apply(kube, config, [node.kube for node in decided.nodes.values()])
    for name, node in decided.nodes.items():
        text = credentials.agent_kubeconfig(kube, config, node.kube, CREDENTIAL_DAYS)
        _write_secret(config.kubernetes.kubeconfig_of(name), text)
    _write_secret(config.kubernetes.head_kubeconfig, credentials.head_kubeconfig(kube, config, CREDENTIAL_DAYS))


def remove(decided: Decided) -> list[str]:
    """Remove all that is this cluster's; what stays, as sentences."""
    layout = decided.plan.layout
    if not layout.config.exists():  # `up` did not come as far as Kubernetes
        return []
    try:
        config = load(layout.config)
        kube = admin(decided.plan)
        remove_pods(kube, config.cluster)
        _remove_rights(kube, config, [node.kube for node in decided.nodes.values()])
        for namespace in _namespaces(kube, config):
            kube.delete(f"/api/v1/namespaces/{namespace['metadata']['name']}")
        left = _until_none(lambda: _namespaces(kube, config))
    except SlurmK8sError as error:
        what = f"namespaces and pods labelled {labels.CLUSTER}={layout.cluster} and this cluster's roles and policies"
        return [f"{error.sentence} So {what} stay in Kubernetes. Run `slurmk8s local down` again once it answers."]
    return [_why_it_stays(namespace) for namespace in left]


def _why_it_stays(namespace: dict[str, Any]) -> str:
    """In Kubernetes' own words: a pod whose kubelet is away, an API of an extension that does not answer."""
    conditions = namespace["status"].get("conditions") or []
    reasons = "; ".join(one["message"] for one in conditions if one["status"] == "True")
    return f"The namespace {namespace['metadata']['name']} is still being deleted: {reasons or 'no reason is told'}."


def _remove_rights(kube: Kube, config: Config, kube_names: list[str]) -> None:
    """All that `install` applied, and whatever was bound to its roles since."""
    made = [document for document in yaml.safe_load_all(policy.render(config, kube_names)) if document]
    roles = {document["metadata"]["name"] for document in made if document["kind"] == "ClusterRole"}
    bindings = policy.PLACES["ClusterRoleBinding"]
    for binding in kube.items(bindings):
        if binding["roleRef"]["name"] in roles:
            kube.delete(f"{bindings}/{binding['metadata']['name']}")
    for document in reversed(made):
        kube.delete(policy.path(document))


def remove_pods(kube: Kube, cluster: str) -> None:
    """All pods of this cluster, and wait for their end as far as their kubelets answer."""

    def look() -> list[str]:
        return [_path(pod) for pod in kube.items("/api/v1/pods", labelSelector=f"{labels.CLUSTER}={cluster}")]

    for path in look():
        kube.delete(path, gracePeriodSeconds=1)
    _until_none(look)


def _namespaces(kube: Kube, config: Config) -> list[dict[str, Any]]:
    """People's, by their label, and the one of our own accounts."""
    found = kube.items("/api/v1/namespaces", labelSelector=f"{labels.CLUSTER}={config.cluster}")
    own = kube.find(f"/api/v1/namespaces/{config.kubernetes.system_namespace}")
    return [*found, own] if own else found


def _until_none(look: Callable[[], list[Some]]) -> list[Some]:
    deadline = time.monotonic() + GONE_SECONDS
    while (left := look()) and time.monotonic() < deadline:
        time.sleep(0.2)
    return left


def _path(pod: Mapping[str, Any]) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def _write_secret(path: Path, text: str) -> None:
    """Root's alone from the first byte."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(descriptor, 0o600)
        file.write(text)
