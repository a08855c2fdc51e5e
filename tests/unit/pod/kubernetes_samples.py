"""Pods and events as the API gives them, and what Kubernetes 1.34 with containerd 2.4 and runc 1.1 said in them.

tests/kube/test_failures_*.py gets most of these messages anew. What older containerds say differs in its wrappers only;
NVIDIA's messages are from public reports.
"""

from typing import Any

from slurmk8s.errors import SlurmK8sError

IMAGE = "nas-hub.local:5407/pytorch:2.0"
UID = "0b9d0f9e-5d0c-4a53-8f59-8e3f1c7a2f10"
PULL = 'failed to pull and unpack image "nas-hub.local:5407/pytorch:2.0": '
RESOLVE = PULL + "failed to resolve image: "
OLDER_RESOLVE = PULL + 'failed to resolve reference "nas-hub.local:5407/pytorch:2.0": '
HEAD = 'failed to do request: Head "https://nas-hub.local:5407/v2/pytorch/manifests/2.0": '
STATUS = "unexpected status from HEAD request to https://nas-hub.local:5407/v2/pytorch/manifests/2.0: "
ABSENT = "rpc error: code = NotFound desc = " + RESOLVE + "nas-hub.local:5407/pytorch:2.0: not found"
REFUSED = RESOLVE + HEAD + "dial tcp 127.0.0.1:5407: connect: connection refused"
NO_HOST = RESOLVE + HEAD + "dial tcp: lookup nas-hub.local on 10.0.0.2:53: no such host"
DENIED = RESOLVE + (
    "pull access denied, repository does not exist or may require authorization: authorization failed: no basic auth "
    "credentials"
)
OTHER_PLATFORM = (
    "rpc error: code = NotFound desc = get image config descriptor: no match for platform in manifest sha256:bd386eb1: "
    "not found"
)
FULL = PULL + (
    "failed to extract layer sha256:ab12: write /var/lib/containerd/tmpmounts/containerd-mount1/lib/x: no space left "
    "on device"
)
START = (
    "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: "
    "unable to start container process: "
)
NO_SH = START + 'exec: "/bin/sh": stat /bin/sh: no such file or directory'
HOOK = START + (
    "error during container init: error running prestart hook #0: exit status 1, stdout: , stderr: Auto-detected mode "
    "as 'legacy' nvidia-container-cli: "
)
SANDBOX = "Failed to create pod sandbox: rpc error: code = Unknown desc = "
NETWORK = SANDBOX + (
    'failed to setup network for sandbox "0a1b": plugin type="bridge" failed (add): failed to allocate for range 0: no '
    "IP addresses available in range set: 10.88.0.1-10.88.255.254"
)
MOUNT = 'MountVolume.SetUp failed for volume "mount-0" : '
NOT_THERE = MOUNT + "hostPath type check failed: /mnt/nas is not a directory"
NFS = MOUNT + (
    "mount failed: exit status 32\nMounting command: mount\nMounting arguments: -t nfs nas:/export /var/lib/kubelet/x\n"
    "Output: mount: /var/lib/kubelet/x: "
)
CLAIM = (
    "Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[], failed to process "
    "volumes=[data]: error processing PVC user-1000/data: "
)
LOW = (
    "The node was low on resource: memory. Threshold quantity: 100Mi, available: 80Mi. Container job was using 5Gi, "
    "request is 4Gi, has larger consumption of memory. "
)
REJECTED = "Pod was rejected: "
NO_DEVICE = REJECTED + (
    "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. Requested: 2, Available: 1, "
    "which is unexpected"
)
UNHEALTHY = REJECTED + (
    "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu, which is "
    "unexpected"
)


def pod(image: str = IMAGE, memory: str = "1Gi", **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "slurm-job-5", "namespace": "user-1000", "uid": UID},
        "spec": {
            "nodeName": "node1",
            "containers": [
                {
                    "name": "job",
                    "image": image,
                    "resources": {"limits": {"cpu": "1", "memory": memory}},
                    "volumeMounts": [
                        {"name": "home", "mountPath": "/home/kim"},
                        {"name": "shm", "mountPath": "/dev/shm"},
                    ],
                }
            ],
        },
        "status": {"phase": "Pending", **status},
    }


def waiting(reason: str, message: str = "", **fields: Any) -> dict[str, Any]:
    state = {"waiting": {"reason": reason, "message": message}}
    return pod(containerStatuses=[{"name": "job", "state": state}], **fields)


def ended(reason: str, message: str = "", code: int = 1, **status: Any) -> dict[str, Any]:
    """`message` is the container's termination message: the job may write anything there."""
    how = {"reason": reason, "message": message, "exitCode": code, "finishedAt": "2026-01-01T00:00:10Z"}
    status = {"phase": "Failed", **status}
    return pod(containerStatuses=[{"name": "job", "state": {"terminated": how}}], **status)


def event(reason: str, message: str, count: int = 1, seconds: int = 0, uid: str = UID) -> dict[str, Any]:
    return {
        "involvedObject": {"uid": uid, "name": "slurm-job-5"},
        "source": {"component": "kubelet", "host": "node1"},
        "reason": reason,
        "message": message,
        "count": count,
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": f"2026-01-01T00:00:{seconds:02}Z",
    }


def checked(fault: SlurmK8sError | None, kind: type[SlurmK8sError], said: str) -> SlurmK8sError:
    assert fault is not None
    assert type(fault) is kind, fault
    assert said in fault.sentence
    assert "\n" not in str(fault)
    assert fault.sentence.endswith(".")
    assert len(fault.sentence) < 700
    return fault
