"""Every way in which a pod does not start, produced for real, ends in the sentence that people get."""

import io
import json
import socket
import subprocess
import tarfile
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from kube.failing import MANIFEST, Stage, push_index, state, wait
from testbed.layout import REGISTRY
from testbed.shared import OURS_ONLY, Shared

from slurmk8s.errors import ClusterFault, NodeFault, PersonFault, SlurmK8sError

NOBODY = "127.0.0.1:1"
"""Nothing listens there, and containerd asks it without TLS."""
# An ELF header for s390x and nothing more: enough for the kernel to say that it is not for this machine.
OTHER_ELF = b"\x7fELF\x02\x02\x01".ljust(16, b"\0") + b"\x00\x02\x00\x16\x00\x00\x00\x01".ljust(48, b"\0")
# Nobody ever logs in.
HTPASSWD = "somebody:$2y$05$012345678901234567890uy6Xj3rK/vBZ0eVvwRFeL.vgK2gXTSqe\n"


def rootfs(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o755
            tar.addfile(entry, io.BytesIO(data))
    return out.getvalue()


@pytest.fixture(scope="module")
def stage(_testbed: Shared, kube: Any) -> Iterator[Stage]:
    with Stage(kube, _testbed.image, _testbed.nodes[0]) as made:
        yield made


@pytest.fixture(scope="module")
def images(_testbed: Shared) -> dict[str, str]:
    """Images that are wrong, in the cluster's own registry."""
    if not _testbed.own:
        pytest.skip(OURS_ONLY)
    own = _testbed.own
    own.push(rootfs({"hello": b"no shell"}), "without-shell:latest")
    own.push(rootfs({"bin/sh": OTHER_ELF}), "other-processor:latest")
    pushed = own.push(rootfs({"bin/sh": OTHER_ELF}), "other-platform:one", architecture="s390x")
    digest, registry = pushed.partition("@")[2], own.layout.registry_address
    request = urllib.request.Request(f"http://{registry}/v2/other-platform/manifests/one", headers={"Accept": MANIFEST})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
        push_index(registry, "other-platform", answer.read(), digest, "s390x")
    names = ("without-shell", "other-processor", "other-platform")
    return {name: f"{REGISTRY}/{name}:latest" for name in names}


@pytest.fixture(scope="module")
def private_registry(_testbed: Shared, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real registry that wants a password."""
    if not _testbed.own:
        pytest.skip(OURS_ONLY)
    folder = tmp_path_factory.mktemp("private")
    (folder / "htpasswd").write_text(HTPASSWD, encoding="ascii")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    config = {
        "version": "0.1",
        "storage": {"filesystem": {"rootdirectory": str(folder / "images")}},
        "http": {"addr": address},
        "auth": {"htpasswd": {"realm": "private", "path": str(folder / "htpasswd")}},
    }
    (folder / "config.yaml").write_text(json.dumps(config), encoding="ascii")
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(["docker-registry", "serve", str(folder / "config.yaml")], stdout=log, stderr=log)
    host, _, port = address.partition(":")
    try:
        wait(lambda: listens(host, int(port)), f"the registry listens: {(folder / 'log').read_text()}")
        yield address
    finally:
        process.terminate()
        process.wait()


def listens(host: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


def told(fault: SlurmK8sError, kind: type[SlurmK8sError], *said: str) -> SlurmK8sError:
    assert type(fault) is kind, fault
    assert fault.hint
    for words in said:
        assert words in str(fault)
    print(f"{type(fault).__name__}: {fault}")
    return fault


def test_an_image_that_does_not_exist(stage: Stage) -> None:
    image = f"{REGISTRY}/no-such-image:1.0"
    fault = stage.start_fault(stage.pod("absent", image=image))
    told(fault, PersonFault, f"The image {image} does not exist in {REGISTRY}.", "#K8S_IMAGE")


def test_a_registry_that_does_not_answer_and_the_back_off_after_it(stage: Stage) -> None:
    """The kubelet then only says that it backs off; people hear why."""
    name = stage.pod("unreachable", image=f"{NOBODY}/pytorch:2.0")
    first = stage.start_fault(name, reason="ErrImagePull")
    told(first, ClusterFault, f"The registry {NOBODY} does not answer: ", "connection refused")
    later = stage.start_fault(name, reason="ImagePullBackOff")
    assert str(later) == str(first)


def test_a_registry_that_wants_a_password(stage: Stage, private_registry: str) -> None:
    fault = stage.start_fault(stage.pod("private", image=f"{private_registry}/pytorch:2.0"))
    told(fault, PersonFault, f"The registry {private_registry} refuses the image", "pull_secrets")


def test_a_password_that_the_site_forgot_is_not_the_persons_fault(stage: Stage, private_registry: str) -> None:
    image = f"{private_registry}/pytorch:2.0"
    fault = stage.start_fault(stage.pod("forgotten", image=image, imagePullSecrets=[{"name": "hub-login"}]))
    told(fault, ClusterFault, "the pull secret hub-login is missing")


def test_a_name_that_is_no_image(stage: Stage) -> None:
    told(stage.start_fault(stage.pod("misnamed", image="Pytorch:2.0:x")), PersonFault, "Pytorch:2.0:x is no image name")


def test_an_image_list_without_this_machine(stage: Stage, images: dict[str, str]) -> None:
    image = images["other-platform"]
    fault = stage.start_fault(stage.pod("platform", image=image))
    told(fault, PersonFault, f"The image {image} is not made for this machine's processor.")


def test_an_image_whose_shell_is_for_another_machine(stage: Stage, images: dict[str, str]) -> None:
    """Known only when it runs: the kernel refuses it, and runc prints that into the container's own log."""
    name = stage.pod("processor", image=images["other-processor"])
    pod = stage.until(name, lambda pod: "terminated" in state(pod))
    from slurmk8s.pod.kubernetes_words import stillborn

    log = stage.kube.text(f"{stage.pods}/{name}/log")
    told(stillborn(pod, log), PersonFault, "is not made for this machine's processor.")


def test_an_image_without_a_shell(stage: Stage, images: dict[str, str]) -> None:
    image = images["without-shell"]
    fault = stage.start_fault(stage.pod("shell", image=image))
    told(fault, PersonFault, f"The image {image} has no /bin/sh")


def test_less_memory_than_a_container_needs(stage: Stage) -> None:
    name = stage.pod("tiny", resources={"limits": {"memory": "2Mi"}})
    told(stage.start_fault(name), PersonFault, "within 2 MiB", "#SBATCH --mem")


@pytest.mark.parametrize(
    ("kind", "said"), [("Directory", "directory"), ("File", "file"), ("CharDevice", "character device")]
)
def test_a_path_that_is_not_on_the_node(stage: Stage, kind: str, said: str) -> None:
    path = "/nonexistent/mnt/nas"
    volume = {"name": "mount-0", "hostPath": {"path": path, "type": kind}}
    mount = {"name": "mount-0", "mountPath": "/mnt/nas"}
    fault = stage.start_fault(stage.pod(f"path-{kind.lower()}", volumes=[volume], volumeMounts=[mount]))
    told(fault, NodeFault, f"{path} on {stage.node} is not there or is no {said}.")


def test_a_volume_claim_that_is_not_there(stage: Stage) -> None:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "no-claim"}}
    mount = {"name": "data", "mountPath": "/data"}
    fault = stage.start_fault(stage.pod("claim", volumes=[volume], volumeMounts=[mount]))
    told(fault, ClusterFault, f"The volume claim {stage.namespace}/no-claim cannot be used", "not found")


def test_a_volume_claim_that_is_not_bound(stage: Stage) -> None:
    claim = {
        "metadata": {"name": "unbound"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "none",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    stage.kube.create(f"/api/v1/namespaces/{stage.namespace}/persistentvolumeclaims", claim)
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "unbound"}}
    mount = {"name": "data", "mountPath": "/data"}
    fault = stage.start_fault(stage.pod("unbound", volumes=[volume], volumeMounts=[mount]))
    told(fault, ClusterFault, f"The volume claim {stage.namespace}/unbound cannot be used", "not bound")


def test_files_that_nobody_made(stage: Stage) -> None:
    volume = {"name": "files", "configMap": {"name": "no-files"}}
    mount = {"name": "files", "mountPath": "/files"}
    fault = stage.start_fault(stage.pod("files", volumes=[volume], volumeMounts=[mount]))
    told(fault, ClusterFault, 'configmap "no-files" not found')


def test_a_container_setting_that_cannot_be_met(stage: Stage) -> None:
    manifest = stage.manifest("setting")
    reference = {"secretKeyRef": {"name": "no-secret", "key": "x"}}
    manifest["spec"]["containers"][0]["env"] = [{"name": "X", "valueFrom": reference}]
    stage.kube.create(stage.pods, manifest)
    told(stage.start_fault("setting"), ClusterFault, 'secret "no-secret" not found')


def test_an_image_with_a_file_where_a_folder_is_mounted(stage: Stage) -> None:
    volume = {"name": "outputs", "hostPath": {"path": "/tmp", "type": "Directory"}}
    mount = {"name": "outputs", "mountPath": "/bin/busybox"}
    fault = stage.start_fault(stage.pod("onto-file", volumes=[volume], volumeMounts=[mount]))
    told(fault, PersonFault, "has a file at /bin/busybox")


def test_a_runtime_that_the_node_does_not_have(stage: Stage) -> None:
    runtime_class = f"absent-{stage.namespace}"
    path = "/apis/node.k8s.io/v1/runtimeclasses"
    stage.kube.create(path, {"metadata": {"name": runtime_class}, "handler": "no-such-runtime"})
    try:
        fault = stage.start_fault(stage.pod("runtime", runtimeClassName=runtime_class))
        told(fault, NodeFault, f"containerd on {stage.node} has no runtime called no-such-runtime.")
    finally:
        stage.kube.delete(f"{path}/{runtime_class}")


def test_a_job_that_writes_our_own_words_is_not_believed(stage: Stage) -> None:
    """A termination message is the job's own; it must neither drain a node nor requeue the job."""
    words = "failed to create containerd container: mkdir /x: no space left on device"
    name = stage.pod("liar", f"echo '{words}' >/dev/termination-log; exit 1")
    pod = stage.until(name, lambda pod: "terminated" in state(pod))
    assert words in state(pod)["terminated"]["message"]
    from slurmk8s.pod.kubernetes_words import start_fault

    assert start_fault(pod, stage.events(pod)) is None
