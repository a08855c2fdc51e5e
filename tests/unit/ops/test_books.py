"""Slurm's figures and Kubernetes', on nodes and pods as a real API server (1.34) gives them. Needs nothing."""

from dataclasses import replace
from typing import Any

import pytest
from why_samples import NODE

from slurmk8s import config as configuration
from slurmk8s.config import Config, Toleration
from slurmk8s.ops import book_checks, books, class_checks
from slurmk8s.ops.audit import Audit, NodeAudit
from slurmk8s.ops.books import Amounts

GPU = "nvidia.com/gpu"
GIB = 2**30

KUBE_NODE: dict[str, Any] = {
    "metadata": {"name": "gpu1", "labels": {"kubernetes.io/hostname": "gpu1", "disk": "nvme"}},
    "spec": {"taints": [{"key": "slurmk8s", "value": "slurm", "effect": "NoSchedule"}]},
    "status": {
        "capacity": {"cpu": "8", "memory": "16384000Ki", "ephemeral-storage": "1000Gi", GPU: "2", "pods": "110"},
        "allocatable": {
            "cpu": "7800m",
            "memory": "16000000Ki",
            "ephemeral-storage": "966367641600",
            GPU: "2",
            "pods": "110",
        },
        "conditions": [{"type": "Ready", "status": "True", "message": "kubelet is posting ready status"}],
        "nodeInfo": {"containerRuntimeVersion": "containerd://2.4.2", "kubeletVersion": "v1.34.4"},
        "features": {"supplementalGroupsPolicy": True},
    },
}
KUBELET = {"cpuManagerPolicy": "none", "podPidsLimit": 16384, "topologyManagerPolicy": "none"}


def pod(name: str, requests: dict[str, str], owner: str | None = "DaemonSet", **more: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "namespace": "kube-system", "labels": more.pop("labels", {})}
    if owner:
        metadata["ownerReferences"] = [{"kind": owner, "name": name}]
    return {
        "metadata": metadata,
        "spec": {"containers": [{"resources": {"requests": requests}}], **more},
        "status": {"phase": more.pop("phase", "Running")},
    }


NETWORK = pod("network", {"cpu": "250m", "memory": "100Mi"})
STATIC = pod("proxy", {"cpu": "50m"}, owner="Node")


def counted(*pods: dict[str, Any], node: dict[str, Any] = KUBE_NODE) -> books.Books:
    return books.of_node(node, list(pods), "lab", GPU)


def test_what_daemon_sets_and_static_pods_ask_for_is_not_for_jobs() -> None:
    found = counted(NETWORK, STATIC)
    assert found.allocatable == Amounts(7800, 16000000 * 1024, 2, 110)
    assert found.free == Amounts(7500, 16000000 * 1024 - 100 * 2**20, 2, 108)
    assert (found.free.cpus, found.free.memory_mb) == (7, 15525)
    assert found.strangers_names == ()


def test_jobs_and_ended_pods_are_not_counted_and_strangers_are_named() -> None:
    job = pod("slurm-job-7", {"cpu": "4"}, None, labels={"app": "slurm-job", "slurmk8s/cluster": "lab"})
    other = pod("slurm-job-8", {"cpu": "2"}, None, labels={"app": "slurm-job", "slurmk8s/cluster": "another"})
    ended = pod("done", {"cpu": "1"}, None)
    ended["status"]["phase"] = "Succeeded"
    found = counted(job, other, ended, NETWORK)
    assert found.free.millicores == 7800 - 2000 - 250
    assert found.strangers_names == ("kube-system/slurm-job-8",)


def test_a_pods_request_is_counted_as_the_kubelet_does() -> None:
    """Init containers run one after the other, sidecars stay, and the runtime class adds its overhead."""
    spec = {
        "initContainers": [
            {"resources": {"requests": {"cpu": "1"}}},
            {"restartPolicy": "Always", "resources": {"requests": {"cpu": "200m"}}},
            {"resources": {"requests": {"cpu": "3"}}},
        ],
        "containers": [{"resources": {"requests": {"cpu": "1"}}}, {"resources": {"requests": {"cpu": "500m"}}}, {}],
        "overhead": {"cpu": "100m", "memory": "64Mi"},
    }
    assert books.requests({"spec": spec}, GPU) == Amounts(3300, 64 * 2**20, pods=1)
    spec["initContainers"] = spec["initContainers"][:2]
    assert books.requests({"spec": spec}, GPU).millicores == 1800
    spec["resources"] = {"requests": {"cpu": "5"}}
    assert books.requests({"spec": spec}, GPU).millicores == 5100


@pytest.mark.parametrize(
    ("cpus", "cores", "for_jobs", "kept"),
    [
        (8, 8, 7, 1),  # no hyper-threads
        (8, 4, 7, 1),  # two threads to a core, and cores are kept back whole
        (8, 4, 5, 2),
        (8, 4, 8, 0),
        (8, 4, 12, 0),  # Slurm knows fewer than Kubernetes
        (4, 8, 3, 1),  # CPUs= counts cores, and only some
        (64, 32, 61, 2),
    ],
)
def test_whole_cores_are_kept_back(cpus: int, cores: int, for_jobs: int, kept: int) -> None:
    node = replace(NODE, cpus=cpus, cores=cores)
    assert books.core_spec_count(node, for_jobs) == kept
    assert cpus - kept * max(1, cpus // cores) <= for_jobs


def test_the_line_for_slurm_conf_makes_the_books_agree() -> None:
    found = counted(NETWORK, STATIC)
    line = books.conf_line(NODE, found, count_gpus=True)
    assert line == "NodeName=gpu1 RealMemory=15525 CoreSpecCount=1"
    kept = replace(NODE, memory_reserved_mb=500, gpus=4)
    line = books.conf_line(kept, found, count_gpus=True)
    assert line == "NodeName=gpu1 RealMemory=16025 MemSpecLimit=500 CoreSpecCount=1 Gres=gpu:2"
    assert "Gres" not in books.conf_line(kept, found, count_gpus=False)


def site(**tables: Any) -> Config:
    return configuration.parse({"cluster": "lab", "kubernetes": {"scratch": "50Gi"}, **tables}, "test")


def verdicts(checks: list[book_checks.Check]) -> dict[str, str]:
    return {check.what: check.verdict for check in checks}


def checked(
    node: Any = NODE, kube_node: Any = KUBE_NODE, kubelet: Any = KUBELET, config: Config | None = None, pods: Any = ()
) -> list[book_checks.Check]:
    return book_checks.of_node(node, kube_node, counted(*pods, node=kube_node), kubelet, config or site())


AGREEING = replace(NODE, cpus_for_jobs=7, memory_mb=15525)


def test_a_node_with_those_figures_agrees_in_every_point() -> None:
    found = checked(AGREEING, pods=[NETWORK, STATIC])
    assert {check.verdict for check in found} == {"ok"}, found
    assert all(not check.step for check in found)
    assert verdicts(checked(replace(AGREEING, memory_mb=15526), pods=[NETWORK, STATIC]))["memory"] == "differs"


def changed(**parts: Any) -> dict[str, Any]:
    """The node with other status, spec or metadata."""
    return {name: {**KUBE_NODE[name], **parts.get(name, {})} for name in KUBE_NODE}


@pytest.mark.parametrize(
    ("what", "given", "step"),
    [
        ("cpu", {"node": NODE}, "slurm.conf"),
        ("memory", {"node": NODE, "pods": [pod("x", {"memory": "2Gi"})]}, "slurm.conf"),
        ("gpu", {"node": replace(AGREEING, gpus=4)}, "device plugin"),
        (
            "pods",
            {"kube_node": changed(status={"allocatable": {**KUBE_NODE["status"]["allocatable"], "pods": "5"}})},
            "maxPods",
        ),
        ("alone", {"pods": [pod("web", {"cpu": "1"}, "ReplicaSet")]}, "another node"),
        ("dedicated", {"kube_node": changed(spec={"taints": []})}, "kubectl taint node gpu1"),
        (
            "tolerated",
            {"kube_node": changed(spec={"taints": [{"key": "gpu-only", "effect": "NoExecute"}]})},
            '{ key = "gpu-only" }',
        ),
        ("labels", {"config": site(kubernetes={"node_selector": {"disk": "ssd"}})}, "kubectl label node gpu1 disk=ssd"),
        ("cpu manager", {"kubelet": {**KUBELET, "cpuManagerPolicy": "static"}}, "none"),
        ("processes", {"kubelet": {**KUBELET, "podPidsLimit": -1}}, "fork bomb"),
        (
            "ready",
            {"kube_node": changed(status={"conditions": [{"type": "Ready", "status": "Unknown"}]})},
            "kubectl describe node gpu1",
        ),
        ("groups", {"kube_node": changed(status={"features": {"supplementalGroupsPolicy": False}})}, "containerd 2"),
        (
            "version",
            {"kube_node": changed(status={"nodeInfo": {"kubeletVersion": "v1.30.2"}})},
            "Kubernetes 1.33 or newer",
        ),
    ],
)
def test_each_point_that_differs_is_told_with_the_next_step(what: str, given: dict[str, Any], step: str) -> None:
    found = {check.what: check for check in checked(**({"node": AGREEING} | given))}
    assert found[what].verdict == "differs"
    assert step in found[what].step


def test_what_may_not_be_read_is_not_known_and_is_no_difference() -> None:
    found = checked(AGREEING, kubelet=None)
    assert verdicts(found)["cpu manager"] == verdicts(found)["processes"] == "unknown"
    whole = Audit((NodeAudit("gpu1", "gpu1", tuple(found), ""),), ())
    assert whole.agrees


@pytest.mark.parametrize(
    ("runtime", "verdict"),
    [("containerd://2.0.1", "ok"), ("containerd://1.7.24", "differs"), ("cri-o://1.31.0", "unknown"), ("", "unknown")],
)
def test_a_kubelet_that_does_not_tell_is_judged_by_its_runtime(runtime: str, verdict: str) -> None:
    info = {"containerRuntimeVersion": runtime, "kubeletVersion": "v1.34.4"}
    found = checked(AGREEING, changed(status={"nodeInfo": info, "features": None}))
    assert verdicts(found)["groups"] == verdict


def test_pinned_gpus_are_not_counted_by_kubernetes() -> None:
    without = {key: value for key, value in KUBE_NODE["status"]["allocatable"].items() if key != GPU}
    found = checked(AGREEING, changed(status={"allocatable": without}), config=site(gpu={"mode": "pinned"}))
    assert verdicts(found)["gpu"] == "ok"


@pytest.mark.parametrize(
    ("toleration", "tolerates"),
    [
        ({"key": "a"}, True),
        ({"key": "b"}, False),
        ({}, True),
        ({"key": "a", "operator": "Equal", "value": "x"}, True),
        ({"key": "a", "operator": "Equal", "value": "y"}, False),
        ({"key": "a", "effect": "NoSchedule"}, False),
    ],
)
def test_taints_are_tolerated_as_kubernetes_says(toleration: dict[str, str], tolerates: bool) -> None:
    taint = {"key": "a", "value": "x", "effect": "NoExecute"}
    assert book_checks.tolerated(taint, [Toleration.model_validate(toleration)]) is tolerates


def test_priority_classes_must_exist_and_pre_empt_nobody() -> None:
    config = site(priorities=["high"], partitions={"gpu": {"priority": "gpu"}, "cpu": {}})
    assert class_checks.priorities(config) == ["gpu", "high"]
    found = class_checks.priority_classes(config, {"gpu": None, "high": {"preemptionPolicy": "Never"}})
    assert [(check.what, check.verdict) for check in found] == [("priority gpu", "differs"), ("priority high", "ok")]
    (default,) = class_checks.priority_classes(site(priorities=["high"]), {"high": {"value": 1000}})
    assert default.verdict == "differs"  # Kubernetes' own default pre-empts
    (hidden,) = class_checks.priority_classes(site(priorities=["high"]), {})
    assert hidden.verdict == "unknown"


def test_a_runtime_class_with_overhead_is_told() -> None:
    config = site(kubernetes={"runtime_class": "kata"}, partitions={"gpu": {"runtime_class": "nvidia"}})
    overhead = {"overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}}}
    kata, nvidia = class_checks.runtime_classes(config, {"kata": overhead, "nvidia": {}})
    assert (kata.verdict, kata.found) == (
        "differs",
        "each pod costs cpu 250m and memory 120Mi that Slurm does not count",
    )
    assert nvidia.verdict == "ok"
    assert class_checks.runtimes(site(gpu={"mode": "pinned"})) == ["nvidia"]


def test_a_node_that_kubernetes_does_not_have() -> None:
    check = book_checks.missing(NODE, "gpu-1")
    assert (check.verdict, check.found) == ("differs", "Kubernetes has no node gpu-1")
    assert '[kubernetes.nodes] "gpu1"' in check.step
    assert not Audit((NodeAudit("gpu1", "gpu-1", (check,), None),), ()).agrees
