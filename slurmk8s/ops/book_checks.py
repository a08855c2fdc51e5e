"""Whether Slurm's books and Kubernetes' agree, point by point, each with what to do if not. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from slurmk8s.config import Config, Toleration
from slurmk8s.kube.nodes import readiness
from slurmk8s.ops.books import Books
from slurmk8s.ops.waiting import count, listed
from slurmk8s.results.summary_text import printable, size
from slurmk8s.slurm.nodes import Node

Json = dict[str, Any]

OLDEST_KUBERNETES = (1, 33)
"""supplementalGroupsPolicy and ValidatingAdmissionPolicy are on by default from here on."""
NAMES_SHOWN = 3


@dataclass(frozen=True)
class Check:
    """One point."""

    what: str
    verdict: Literal["ok", "differs", "unknown"]
    found: str
    step: str = ""


def of_node(node: Node, kube_node: Json, books: Books, kubelet: Json | None, config: Config) -> list[Check]:
    """All points of one node; `kubelet` is its configuration (configz), None if that may not be read."""
    return [
        _ready(kube_node),
        _cpus(node, books),
        _memory(node, books),
        _gpus(node, books, config),
        _pod_count(node, books),
        _strangers(books),
        *_taints(kube_node, _tolerations(node, config)),
        _labels(node, kube_node, config),
        _cpu_manager(kubelet),
        _process_limit(kubelet),
        _groups(kube_node),
        _version(kube_node),
    ]


def missing(node: Node, kube_name: str) -> Check:
    """Slurm has a node that Kubernetes does not have."""
    return Check(
        "node",
        "differs",
        f"Kubernetes has no node {kube_name}",
        f'Name it in the configuration: [kubernetes.nodes] "{node.name}" = "…", or keep container jobs off it.',
    )


def _ready(kube_node: Json) -> Check:
    state = readiness(kube_node)
    if state == "True":
        return Check("ready", "ok", "the kubelet is ready")
    conditions = (kube_node.get("status") or {}).get("conditions") or []
    said = next((str(each.get("message") or "") for each in conditions if each.get("type") == "Ready"), "")
    name = kube_node["metadata"]["name"]
    what = "has not been heard of" if state == "Unknown" else "is not ready"
    return Check("ready", "differs", f"the kubelet {what}: {printable(said)}", f"See `kubectl describe node {name}`.")


def _cpus(node: Node, books: Books) -> Check:
    free = books.free.millicores
    held = books.allocatable.millicores - free
    found = f"Slurm gives jobs {node.cpus_for_jobs} CPUs; Kubernetes has {free / 1000:g} for them"
    found += f" ({books.allocatable.millicores / 1000:g} allocatable, {held / 1000:g} asked for by other pods)"
    return _compared("cpu", node.cpus_for_jobs * 1000 <= free, found)


def _memory(node: Node, books: Books) -> Check:
    free, mine = books.free.memory, node.memory_for_jobs_mb
    held = books.allocatable.memory - free
    found = f"Slurm gives jobs {mine} MiB; Kubernetes has {books.free.memory_mb} MiB for them"
    found += f" ({size(books.allocatable.memory)} allocatable, {size(held)} asked for by other pods)"
    return _compared("memory", mine <= books.free.memory_mb, found)


def _gpus(node: Node, books: Books, config: Config) -> Check:
    found = f"Slurm has {count(node.gpus, 'GPU')}; Kubernetes has {books.free.gpus} {config.gpu.resource}"
    if config.gpu.mode == "pinned":
        return Check("gpu", "ok", f"Slurm has {count(node.gpus, 'GPU')}, and pins them itself (gpu.mode)")
    if node.gpus == books.free.gpus:
        return Check("gpu", "ok", found)
    step = "See the device plugin's pod on the node, and Gres in slurm.conf and gres.conf; the line is below."
    return Check("gpu", "differs", found, step)


def _pod_count(node: Node, books: Books) -> Check:
    found = f"the kubelet takes {books.free.pods} more pods, and Slurm may start {node.cpus_for_jobs} jobs"
    if books.free.pods >= node.cpus_for_jobs:
        return Check("pods", "ok", found)
    return Check("pods", "differs", found, "Raise maxPods in the kubelet's configuration.")


def _compared(what: str, agrees: bool, found: str) -> Check:
    step = "" if agrees else "Put the line below into slurm.conf, then `scontrol reconfigure` and restart slurmd."
    return Check(what, "ok" if agrees else "differs", found, step)


def _strangers(books: Books) -> Check:
    names = books.strangers_names
    if not names:
        return Check("alone", "ok", "no pods but Slurm's jobs and the node's own (DaemonSets, static pods)")
    shown = ", ".join(names[:NAMES_SHOWN]) + (f" and {len(names) - NAMES_SHOWN} more" if names[NAMES_SHOWN:] else "")
    step = "Move them to another node; the figures count them as long as they are there."
    return Check("alone", "differs", f"other pods run here: {shown}", step)


def _tolerations(node: Node, config: Config) -> tuple[Toleration, ...]:
    more = [
        each for name in node.partitions if name in config.partitions for each in config.partitions[name].tolerations
    ]
    return (*config.kubernetes.tolerations, *more)


def tolerated(taint: Mapping[str, str], tolerations: Iterable[Toleration]) -> bool:
    """Whether a pod with these tolerations puts up with the taint, as Kubernetes decides it."""
    for each in tolerations:
        if each.key not in (None, taint["key"]) or each.effect not in (None, taint["effect"]):
            continue
        if each.operator == "Exists" or (each.key is not None and (each.value or "") == taint.get("value", "")):
            return True
    return False


def _taints(kube_node: Json, tolerations: Sequence[Toleration]) -> list[Check]:
    name = kube_node["metadata"]["name"]
    taints = (kube_node.get("spec") or {}).get("taints") or []
    # Kubernetes' own come and go with the node's health.
    chosen = [taint for taint in taints if not taint["key"].startswith("node.kubernetes.io/")]
    keeping = [taint for taint in chosen if taint["effect"] in ("NoSchedule", "NoExecute")]
    checks = []
    if keeping:
        checks.append(Check("dedicated", "ok", f"other pods are kept away by the taint {_taint(keeping[0])}"))
    else:
        step = f"`kubectl taint node {name} slurmk8s=slurm:NoSchedule` keeps other pods away."
        checks.append(Check("dedicated", "differs", "no taint keeps other pods away", step))
    # The node is named in the pod, so NoSchedule is nobody's business; the kubelet itself minds NoExecute.
    fatal = [taint for taint in chosen if taint["effect"] == "NoExecute" and not tolerated(taint, tolerations)]
    if fatal:
        step = f'Add {{ key = "{fatal[0]["key"]}" }} to kubernetes.tolerations.'
        checks.append(Check("tolerated", "differs", f"jobs' pods do not tolerate {_taint(fatal[0])}", step))
    return checks


def _taint(taint: Mapping[str, str]) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return printable(f"{taint['key']}{value}:{taint['effect']}")


def _labels(node: Node, kube_node: Json, config: Config) -> Check:
    wanted = dict(config.kubernetes.node_selector)
    for name in node.partitions:
        if name in config.partitions:
            wanted |= config.partitions[name].node_selector
    have = kube_node["metadata"].get("labels") or {}
    lacking = sorted(f"{key}={value}" for key, value in wanted.items() if have.get(key) != value)
    if not lacking:
        return Check("labels", "ok", "the node has all labels that the configuration asks for")
    step = f"`kubectl label node {kube_node['metadata']['name']} {' '.join(lacking)}`, or correct node_selector."
    return Check("labels", "differs", f"the node lacks {listed(lacking)}, so its kubelet refuses jobs' pods", step)


def _cpu_manager(kubelet: Json | None) -> Check:
    if kubelet is None:
        return _not_known("cpu manager", "cpuManagerPolicy: none")
    policies = {key: kubelet.get(key) or "none" for key in ("cpuManagerPolicy", "topologyManagerPolicy")}
    policies["memoryManagerPolicy"] = kubelet.get("memoryManagerPolicy") or "None"
    other = [f"{key} is {value}" for key, value in policies.items() if value.lower() != "none"]
    if not other:
        return Check("cpu manager", "ok", "the kubelet leaves the placing of CPUs to Slurm and the kernel")
    step = "Set it to none in the kubelet's configuration: it may refuse a pod for which Slurm has counted right."
    return Check("cpu manager", "differs", f"the kubelet's {listed(other)}", step)


def _process_limit(kubelet: Json | None) -> Check:
    if kubelet is None:
        return _not_known("processes", "podPidsLimit")
    limit = int(kubelet.get("podPidsLimit", -1))
    if limit > 0:
        return Check("processes", "ok", f"a pod may have {limit} processes")
    step = "Set podPidsLimit in the kubelet's configuration, such as 16384: a fork bomb would take the whole node."
    return Check("processes", "differs", "nothing limits the number of a pod's processes", step)


def _not_known(what: str, setting: str) -> Check:
    step = f"Check {setting} in the kubelet's configuration, or run this with the right to get nodes/proxy."
    return Check(what, "unknown", "this credential may not read the kubelet's configuration", step)


def _groups(kube_node: Json) -> Check:
    """supplementalGroupsPolicy: Strict, without which an image's /etc/group gives its user any group on the NAS."""
    status = kube_node.get("status") or {}
    runtime = str((status.get("nodeInfo") or {}).get("containerRuntimeVersion") or "")
    said = (status.get("features") or {}).get("supplementalGroupsPolicy")
    match = re.match(r"containerd://v?(\d+)\.", runtime)
    if said is True or (said is None and match is not None and int(match[1]) >= 2):
        return Check("groups", "ok", f"{runtime} keeps an image's own groups out (Strict)")
    step = "Install containerd 2 (or CRI-O 1.31) or newer; until then an image can give its user any group on the NAS."
    if said is None and match is None:
        return Check(
            "groups", "unknown", f"whether {printable(runtime) or 'the runtime'} knows Strict is not said", step
        )
    return Check("groups", "differs", f"{printable(runtime)} cannot keep an image's own groups out", step)


def _version(kube_node: Json) -> Check:
    found = str(((kube_node.get("status") or {}).get("nodeInfo") or {}).get("kubeletVersion") or "")
    match = re.match(r"v?(\d+)\.(\d+)", found)
    if match is None:
        return Check("version", "unknown", "the kubelet does not say its version")
    oldest = ".".join(map(str, OLDEST_KUBERNETES))
    if (int(match[1]), int(match[2])) >= OLDEST_KUBERNETES:
        return Check("version", "ok", f"kubelet {found}")
    return Check("version", "differs", f"kubelet {found}", f"slurmk8s needs Kubernetes {oldest} or newer.")
