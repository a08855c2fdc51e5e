"""The test cluster itself: what other tests rely on, and that nothing is left of it."""

import json
import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from testbed import gpus, leftovers, lifecycle
from testbed.cluster import Cluster
from testbed.images import with_files
from testbed.network import TestbedError
from testbed.shared import Shared

from slurmk8s.local.images import busybox_tar

WaitFor = Callable[..., Any]


def manifest(name: str, node: str, script: str, image: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "job", "image": image, "command": ["sh", "-c", script]}
    container |= {key: spec.pop(key) for key in ("resources", "env") if key in spec}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "nodeName": node,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
            **spec,
        },
    }


class Pods:
    """Pods in a namespace of the test's own."""

    def __init__(self, testbed: Shared, wait_for: WaitFor) -> None:
        self.testbed, self.wait_for = testbed, wait_for
        self.namespace = f"test-{uuid.uuid4().hex[:8]}"
        testbed.kubectl("create", "namespace", self.namespace)
        wait_for(self._has_account, "a service account in the namespace")

    def _has_account(self) -> str:
        return self.kubectl("get", "serviceaccount", "default", "--ignore-not-found", "-o", "name")

    def kubectl(self, *arguments: str, **options: Any) -> str:
        """In that namespace."""
        return self.testbed.kubectl("-n", self.namespace, *arguments, **options)

    def start(self, name: str, node: str, script: str, image: str = "", **spec: Any) -> str:
        """Make a pod that runs a script."""
        wanted = manifest(name, node, script, image or self.testbed.image, **spec)
        self.kubectl("create", "-f", "-", text=json.dumps(wanted))
        return name

    def status(self, name: str) -> dict[str, Any]:
        """As the API has it."""
        found: dict[str, Any] = json.loads(self.kubectl("get", "pod", name, "-o", "json"))["status"]
        return found

    def phase(self, name: str, *phases: str, seconds: float = 60) -> dict[str, Any]:
        """The status once the pod has reached one of these phases."""

        def reached() -> dict[str, Any] | None:
            status = self.status(name)
            return status if status["phase"] in phases else None

        found: dict[str, Any] = self.wait_for(reached, f"{name} is {' or '.join(phases)}", seconds)
        return found

    def output(self, name: str, node: str, script: str, **spec: Any) -> str:
        """What a script says that comes to an end."""
        self.start(name, node, script, **spec)
        self.phase(name, "Succeeded", "Failed")
        return self.kubectl("logs", name)


@pytest.fixture
def pods(testbed: Shared, wait_for: WaitFor) -> Iterator[Pods]:
    found = Pods(testbed, wait_for)
    yield found
    testbed.kubectl("delete", "namespace", found.namespace, "--wait=false", "--now")


def test_a_pod_runs_on_each_node_and_its_log_can_be_read(testbed: Shared, pods: Pods) -> None:
    for node in testbed.nodes[:2]:
        assert pods.output(f"on-{node}", node, "echo hello") == "hello\n"


def test_a_container_that_needs_more_memory_than_its_limit_is_killed_for_it(testbed: Shared, pods: Pods) -> None:
    script = "exec dd if=/dev/zero of=/dev/null bs=200M count=1"
    pods.start("hungry", testbed.nodes[0], script, resources={"limits": {"memory": "20Mi", "cpu": "500m"}})
    state = pods.phase("hungry", "Failed")["containerStatuses"][0]["state"]["terminated"]
    assert (state["reason"], state["exitCode"]) == ("OOMKilled", 137)


def test_the_kubelet_refuses_a_pod_that_does_not_fit(own_cluster: Cluster, pods: Pods) -> None:
    pods.start("wide", "kube1", "true", resources={"limits": {"cpu": "400"}})
    pods.start("many", "kube2", "true", resources={"limits": {"nvidia.com/gpu": "3"}})
    assert pods.phase("wide", "Failed")["reason"] == "OutOfcpu"
    assert pods.phase("many", "Failed")["reason"] == "UnexpectedAdmissionError"


def test_a_counted_gpu_comes_with_its_device_and_uuid(own_cluster: Cluster, pods: Pods) -> None:
    said = pods.output(
        "counted",
        "kube2",
        "ls /dev | grep nvidia[0-9]; echo $NVIDIA_VISIBLE_DEVICES; nvidia-smi --query-gpu=uuid --format=csv,noheader",
        resources={"limits": {"nvidia.com/gpu": "1"}},
    )
    device, visible, listed = said.split()
    assert visible == listed == gpus.gpu_uuid(own_cluster.layout.node("kube2"), int(device.removeprefix("nvidia")))


def test_a_pinned_gpu_is_the_one_that_was_named(own_cluster: Cluster, pods: Pods) -> None:
    wanted = gpus.gpu_uuid(own_cluster.layout.node("kube1"), 1)
    env = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": wanted}]
    script = "ls /dev | grep nvidia[0-9]; nvidia-smi -L"
    said = pods.output("pinned", "kube1", script, env=env, runtimeClassName="nvidia")
    assert said.splitlines() == ["nvidia1", f"GPU 1: NVIDIA Imaginary (UUID: {wanted})"]


def test_a_container_without_gpus_sees_none(own_cluster: Cluster, pods: Pods) -> None:
    env = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]
    said = pods.output("without", "kube1", "ls /dev | grep -c nvidia", env=env, runtimeClassName="nvidia")
    assert said == "0\n"


def test_a_gpu_that_no_node_has_is_told_by_the_runtime(own_cluster: Cluster, pods: Pods) -> None:
    env = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "GPU-none"}]
    pods.start("unknown", "kube1", "true", env=env, runtimeClassName="nvidia")
    state = pods.phase("unknown", "Failed")["containerStatuses"][0]["state"]["terminated"]
    assert "GPU-none: unknown device" in state["message"]


def test_a_gpu_that_falls_ill_is_no_longer_allocatable(machine_room: Cluster, wait_for: WaitFor) -> None:
    def allocatable() -> str:
        return machine_room.kubectl("get", "node", "kube2", "-o", r"jsonpath={.status.allocatable.nvidia\.com/gpu}")

    path = machine_room.layout.node("kube2").gpus
    before = path.read_text(encoding="utf-8")
    known = json.loads(before)
    known["gpus"][1]["healthy"] = False
    try:
        path.write_text(json.dumps(known), encoding="utf-8")
        wait_for(lambda: allocatable() == "1", "one GPU is left")
    finally:
        path.write_text(before, encoding="utf-8")
    wait_for(lambda: allocatable() == "2", "it is well again")


def test_nvidia_smi_of_a_node_lists_its_gpus(own_cluster: Cluster) -> None:
    node = own_cluster.layout.node("kube2")
    query = [str(node.nvidia_smi), "--query-gpu=index,uuid", "--format=csv,noheader"]
    said = subprocess.run(query, capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == [f"{index}, {gpus.gpu_uuid(node, index)}" for index in range(2)]


def test_an_image_of_the_tests_own_can_be_pushed(own_cluster: Cluster, pods: Pods) -> None:
    rootfs = with_files(busybox_tar(), {"etc/motd": "made here"})
    name = own_cluster.push(rootfs, "own:1", config={"Env": ["PATH=/bin", "WHAT=image"]})
    assert pods.output("own", "kube1", "echo $WHAT; cat /etc/motd", image=name) == "image\nmade here"


def test_kubectl_top_knows_a_pod(testbed: Shared, pods: Pods, wait_for: WaitFor) -> None:
    pods.start("busy", testbed.nodes[0], "sleep 300")
    wait_for(lambda: "busy" in pods.kubectl("top", "pods", check=False), "kubectl top names the pod", 90)


@pytest.mark.parametrize("name", ["kube-apiserver", "etcd", "kubelet-kube1", "containerd-kube1", "registry"])
def test_a_running_pod_outlives_a_killed_component(
    name: str, machine_room: Cluster, pods: Pods, wait_for: WaitFor
) -> None:
    pods.start("steady", "kube1", "sleep 300")
    began = pods.phase("steady", "Running")["containerStatuses"][0]["containerID"]
    machine_room.kill(name)
    assert machine_room.pid(name) is None
    machine_room.start(name)
    wait_for(machine_room.nodes_ready, "the nodes are ready again", 60)
    assert pods.status("steady")["containerStatuses"][0]["containerID"] == began
    assert pods.output("next", "kube1", "echo hello") == "hello\n"


def test_a_node_whose_kubelet_does_not_answer_is_lost_within_seconds(machine_room: Cluster, wait_for: WaitFor) -> None:
    machine_room.pause("kubelet-kube2")
    wait_for(lambda: not machine_room.nodes_ready(), "kube2 is lost", 40)
    machine_room.resume("kubelet-kube2")
    machine_room.wait_nodes()


def seen_on_this_machine(folder: Path) -> dict[str, object]:
    """Everything a cluster could leave behind, apart from what other clusters own."""
    links = json.loads(subprocess.run(["ip", "-json", "link"], capture_output=True, check=True).stdout)
    arguments = {pid: leftovers._arguments(pid) for pid in leftovers._pids()}
    return {
        "processes": [
            f"{pid}: {words}" for pid, words in arguments.items() if any(str(folder) in word for word in words)
        ],
        "mounts": leftovers.mounts(folder),
        "bridges": [link["ifname"] for link in links if link.get("ifalias") == str(folder)],
        "firewall": subprocess.run(["iptables-save"], capture_output=True, text=True, check=True).stdout.count(
            "10.213."
        ),
        "folders": [str(path) for path in (folder, Path("/var/lib/kubelet"), Path("/run/containerd")) if path.exists()],
        "cni": [path.name for path in leftovers.CNI_CACHE.glob("*") if str(folder) in path.read_text(encoding="utf-8")],
    }


KERNEL = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "net/ipv4/ip_forward")


@pytest.mark.timeout(180)
def test_nothing_is_left_of_a_cluster_that_was_killed_and_taken_down(own_cluster: Cluster, wait_for: WaitFor) -> None:
    """A second one beside the first: killed in the middle of its work, brought up again, killed, taken down."""
    folder = Path(tempfile.mkdtemp(prefix="slurmk8s-testbed-", dir="/var/tmp"))
    try:
        before = seen_on_this_machine(Path("/nowhere")), [Path(f"/proc/sys/{name}").read_text() for name in KERNEL]
        for _ in range(2):  # the second time over what the first left
            cluster = lifecycle.up(folder, lambda _: None)
            assert cluster.layout.number != own_cluster.layout.number
            own = Pods(Shared(cluster.kubeconfig, cluster.nodes, cluster.sample_image, cluster), wait_for)
            own.start("steady", "kube1", "sleep 300", resources={"limits": {"nvidia.com/gpu": "1"}})
            own.phase("steady", "Running")
            for name in cluster.components:
                cluster.kill(name)
        sockets, cgroup = cluster.layout.sockets, cluster.layout.cgroup
        assert lifecycle.down(folder)
    finally:
        if folder.exists():
            lifecycle.down(folder)
    assert (seen_on_this_machine(folder), [Path(f"/proc/sys/{name}").read_text() for name in KERNEL]) == before
    assert not sockets.exists()
    assert not list(Path("/sys/fs/cgroup").glob(f"*/{cgroup}"))
    assert not lifecycle.down(folder)
    assert own_cluster.nodes_ready()


def test_a_folder_with_somebodys_files_is_left_alone(own_cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("…")
    for action in (lambda: lifecycle.up(tmp_path, lambda _: None), lambda: lifecycle.down(tmp_path)):
        with pytest.raises(TestbedError, match=r"not a test cluster's|not empty"):
            action()
    assert os.listdir(tmp_path) == ["thesis.tex"]
    shutil.rmtree(tmp_path)
