"""Every way in which Kubernetes ends a pod or does not admit it, produced for real, ends in the sentence people get."""

import secrets
import time
from collections.abc import Iterator
from typing import Any

import pytest
from kube.failing import Json, Stage, state, wait
from testbed.cluster import Cluster
from testbed.shared import Shared

from slurmk8s.errors import ClusterFault, NodeFault, PersonFault, SlurmK8sError
from slurmk8s.kube.faults import Gone
from slurmk8s.pod.kubernetes_start import REPEAT_SECONDS
from slurmk8s.pod.kubernetes_words import end_fault

DEAF = "trap '' TERM; while :; do sleep 1; done"
LOST = ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")
FILL = "dd if=/dev/zero of=$FILE bs=1M count=24; sleep 600"


@pytest.fixture(scope="module")
def stage(_testbed: Shared, kube: Any) -> Iterator[Stage]:
    """The pods that the kubelet looks at only every ten seconds are made first, so that all wait together."""
    with Stage(kube, _testbed.image, _testbed.nodes[0]) as made:
        scratch = {"name": "home", "emptyDir": {"sizeLimit": "1Mi"}}
        home = {"name": "home", "mountPath": "/home/kim"}
        fill = FILL.replace("$FILE", "/home/kim/x")
        made.pod("full-home", fill, volumes=[scratch], volumeMounts=[home])
        fill = FILL.replace("$FILE", "/x")
        made.pod("full-disk", fill, resources={"limits": {"ephemeral-storage": "4Mi"}})
        made.pod("deadline", activeDeadlineSeconds=1)
        made.pod("no-node", nodeName="no-such-node")
        yield made


def told(fault: SlurmK8sError, kind: type[SlurmK8sError], *said: str) -> None:
    assert type(fault) is kind, fault
    assert fault.hint
    for words in said:
        assert words in str(fault)
    print(f"{type(fault).__name__}: {fault}")


@pytest.mark.parametrize(
    ("resource", "amount", "said"),
    [
        ("cpu", "1000", "CPUs: 1000 needed, "),
        ("memory", "100Ti", "MiB of memory: 104857600 needed, "),
    ],
)
def test_more_than_the_node_has(stage: Stage, resource: str, amount: str, said: str) -> None:
    """Slurm thought that it fits: the two sets of books disagree, so the job is tried again and both numbers told."""
    name = stage.pod(f"books-{resource}", resources={"limits": {resource: amount}})
    fault = stage.end_fault(name)
    told(fault, ClusterFault, f"no room for the job on {stage.node} ({said}", " taken)", "`slurmk8s cluster books`")


def test_more_devices_than_the_plugin_has(stage: Stage) -> None:
    name = stage.pod("devices", resources={"limits": {"nvidia.com/gpu": "9"}})
    told(stage.end_fault(name), ClusterFault, "nvidia.com/gpu: 9 needed, ", "`slurmk8s cluster books`")


def test_a_node_that_does_not_fit_the_selector(stage: Stage) -> None:
    name = stage.pod("selector", nodeSelector={"slurmk8s.test/room": "none"})
    told(stage.end_fault(name), ClusterFault, f"{stage.node} does not admit the job's pod", "node_selector")


def test_killed_at_its_memory_limit(stage: Stage) -> None:
    """An exit code says it, with the kubelet's word: no fault here."""
    name = stage.pod("memory", "dd if=/dev/zero of=/dev/null bs=512M", resources={"limits": {"memory": "64Mi"}})
    pod = stage.until(name, lambda pod: "terminated" in state(pod))
    assert state(pod)["terminated"]["reason"] == "OOMKilled"
    assert end_fault(pod) is None


def test_a_deadline_that_somebody_set(stage: Stage) -> None:
    told(stage.end_fault("deadline"), ClusterFault, "activeDeadlineSeconds=1", "time limit is Slurm's")


def test_deleted_by_somebody(stage: Stage) -> None:
    stage.pod("deleted", DEAF, terminationGracePeriodSeconds=5)
    stage.running("deleted")
    stage.kube.delete(f"{stage.pods}/deleted")
    told(stage.end_fault("deleted"), ClusterFault, "Somebody deleted the pod deleted in Kubernetes.", "scancel")


def test_evicted_by_an_admin_who_drains_the_node(stage: Stage) -> None:
    stage.pod("drained", DEAF, terminationGracePeriodSeconds=5)
    stage.running("drained")
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "drained"}}
    stage.kube.create(f"{stage.pods}/drained/eviction", eviction)
    told(stage.end_fault("drained"), NodeFault, "kubectl drain", "kubectl uncordon")


@pytest.fixture
def seat(stage: Stage) -> Iterator[Json]:
    """What asks for the only seat on the node: a resource of ours that nobody else counts."""
    node, seat = f"/api/v1/nodes/{stage.node}", f"slurmk8s.test/seat-{secrets.token_hex(4)}"
    stage.kube.patch(f"{node}/status", {"status": {"capacity": {seat: "1"}, "allocatable": {seat: "1"}}})
    yield {"limits": {seat: "1"}}
    stage.kube.patch(f"{node}/status", {"status": {"capacity": {seat: None}, "allocatable": {seat: None}}})


def test_pre_empted_by_a_pod_of_higher_priority(stage: Stage, seat: Json) -> None:
    stage.pod("victim", DEAF, resources=seat, terminationGracePeriodSeconds=5)
    stage.running("victim")
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    stage.kube.create(classes, {"metadata": {"name": stage.namespace}, "value": 1_000_000})
    try:
        stronger = stage.manifest("stronger", resources=seat, priorityClassName=stage.namespace)
        stronger["spec"].pop("nodeName")  # the scheduler looks for its place
        stronger["spec"]["nodeSelector"] = {"kubernetes.io/hostname": stage.node}
        stage.kube.create(stage.pods, stronger)
        fault = stage.end_fault("victim")
        told(fault, ClusterFault, f"pre-empted on {stage.node} by a pod of higher priority", "taint")
    finally:
        stage.kube.delete(f"{classes}/{stage.namespace}")


def test_pre_empted_by_the_kubelet_for_a_critical_pod(stage: Stage, seat: Json) -> None:
    stage.pod("weaker", resources=seat)
    stage.running("weaker")
    stage.pod("critical", resources=seat, priorityClassName="system-node-critical")
    told(stage.end_fault("weaker"), ClusterFault, f"pre-empted on {stage.node} by a critical pod", "taint")


def test_evicted_for_filling_its_home(stage: Stage) -> None:
    told(stage.end_fault("full-home"), PersonFault, "The job wrote more to /home/kim than the 1Mi it may hold.")


def test_evicted_for_filling_the_nodes_disk(stage: Stage) -> None:
    told(stage.end_fault("full-disk"), PersonFault, "more than the 4Mi it may", "/workspace")


def test_devices_that_went_away(stage: Stage, machine_room: Cluster) -> None:
    """The plugin has died: the kubelet knows its devices, and takes none of them for healthy."""
    machine_room.kill(f"gpu-plugin-{stage.node}")
    node = f"/api/v1/nodes/{stage.node}"
    wait(lambda: stage.kube.get(node)["status"]["allocatable"]["nvidia.com/gpu"] == "0", "the GPUs are gone")
    name = stage.pod("unhealthy", resources={"limits": {"nvidia.com/gpu": "1"}})
    told(stage.end_fault(name), ClusterFault, "Kubernetes cannot give the job its devices", "none is healthy")


def test_a_node_that_is_lost(stage: Stage, machine_room: Cluster) -> None:
    """Its kubelet hangs. The API server's answer is all there is; other tests' pods are on the other node."""
    other = next(name for name in machine_room.nodes if name != stage.node)
    patience = [{"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1} for key in LOST]
    stage.pod("lost", nodeName=other, tolerations=patience)
    stage.running("lost")
    machine_room.pause(f"kubelet-{other}")
    told(stage.end_fault("lost"), NodeFault, f"took the pod off {other}", f"kubectl describe node {other}")


def test_a_node_without_a_network_for_pods(stage: Stage, machine_room: Cluster) -> None:
    """Told only when it has lasted: a network plugin may just be starting."""
    other = next(node for node in machine_room.layout.nodes if node.name != stage.node)
    settings = other.folder / "cni" / "10-testbed.conflist"
    kept = settings.read_text(encoding="utf-8")
    try:
        broken = kept.replace('"type": "bridge"', '"type": "no-such-plugin"')
        assert broken != kept
        settings.write_text(broken, encoding="utf-8")
        machine_room.restart(f"containerd-{other.name}")  # it reads them at its start
        stage.pod("network", nodeName=other.name)
        began = time.monotonic()
        fault = stage.start_fault("network", 120)
        told(fault, NodeFault, f"{other.name} cannot make pods: failed to setup network", "no-such-plugin")
        assert time.monotonic() - began > REPEAT_SECONDS / 2
    finally:
        settings.write_text(kept, encoding="utf-8")
        machine_room.restart(f"containerd-{other.name}")


def deleted(stage: Stage, name: str, version: str) -> dict[str, Any]:
    """The pod as it was when it was deleted."""
    events = stage.kube.watch(stage.pods, version, 150, fieldSelector=f"metadata.name={name}")
    return next(event["object"] for event in events if event["type"] == "DELETED")


def test_a_node_that_kubernetes_does_not_know(stage: Stage) -> None:
    """Such a pod is deleted within a minute, and goes at once: what it was is in the watch."""
    try:
        last = deleted(stage, "no-node", stage.version)
    except Gone:  # it went long ago, and the server has forgotten: once more, watched from its beginning
        version = stage.kube.listing(stage.pods)[1]
        last = deleted(stage, stage.pod("no-node-again", nodeName="no-such-node"), version)
    fault = end_fault(last)
    assert fault
    told(fault, NodeFault, "Kubernetes has no node called no-such-node", "[kubernetes]")
