"""Whose fault it is that a sandbox, a volume or a container cannot be made."""

import pytest
from kubernetes_samples import (
    CLAIM,
    FULL,
    HOOK,
    MOUNT,
    NETWORK,
    NFS,
    NO_SH,
    NOT_THERE,
    SANDBOX,
    START,
    checked,
    ended,
    event,
    pod,
    waiting,
)

from slurmk8s.errors import ClusterFault, NodeFault, PersonFault, SlurmK8sError
from slurmk8s.pod.kubernetes_words import end_fault, start_fault, stillborn


@pytest.mark.parametrize(
    ("words", "kind", "said"),
    [
        (NO_SH, PersonFault, "has no /bin/sh"),
        (START + 'exec: "/bin/sh": permission denied', PersonFault, "has no /bin/sh"),
        (START + 'exec: "bash": executable file not found in $PATH', PersonFault, "has no bash"),
        (START + "exec /bin/sh: exec format error", PersonFault, "not made for this machine's processor"),
        (START + "container init was OOM-killed (memory limit too low?)", PersonFault, "within 1024 MiB"),
        (
            START + 'error during container init: error mounting "/run/slurmk8s/5/outputs" to rootfs at "/workspace": '
            "mount /run/slurmk8s/5/outputs:/workspace (via /proc/self/fd/6), flags: 0x5000: not a directory",
            PersonFault,
            "has a file at /workspace",
        ),
        (
            HOOK + "initialization error: nvml error: driver not loaded",
            NodeFault,
            "nvml error: driver not loaded.",
        ),
        (HOOK + "device error: GPU-1: unknown device", NodeFault, "GPU-1: unknown device."),
        (HOOK + "requirement error: unsatisfied condition: cuda>=13.0", PersonFault, "cuda>=13.0."),
        (START + "error during container init: mkdir /bin/sh: not a directory", PersonFault, "cannot be entered"),
        ("OCI runtime create failed: runc did not terminate successfully", ClusterFault, "container runtime of node1"),
        (START + "something runc never said before", SlurmK8sError, "never said before"),
    ],
)
def test_a_container_that_does_not_start_is_somebodys_fault(words: str, kind: type[SlurmK8sError], said: str) -> None:
    checked(start_fault(ended("StartError", words, 128), []), kind, said)
    checked(start_fault(waiting("RunContainerError", words), []), kind, said)


@pytest.mark.parametrize(
    ("reason", "words", "kind", "said"),
    [
        (
            "CreateContainerError",
            "failed to create containerd container: mkdir /var/lib/containerd/x: no space left on device",
            NodeFault,
            "has no room",
        ),
        (
            "CreateContainerError",
            "failed to inject devices: unresolvable CDI devices nvidia.com/gpu=GPU-1",
            NodeFault,
            "unresolvable CDI devices nvidia.com/gpu=GPU-1",
        ),
        ("CreateContainerError", "context deadline exceeded", ClusterFault, "container runtime of node1 failed"),
        ("CreateContainerConfigError", 'configmap "slurm-job-5" not found', ClusterFault, 'configmap "slurm-job-5"'),
        (
            "CreateContainerConfigError",
            'failed to prepare subPath for volumeMount "outputs" of container "job"',
            ClusterFault,
            "subPath",
        ),
    ],
)
def test_a_container_that_cannot_be_made(reason: str, words: str, kind: type[SlurmK8sError], said: str) -> None:
    checked(start_fault(waiting(reason, words), []), kind, said)


@pytest.mark.parametrize(
    "words",
    [
        # The image's WORKDIR and its requirements are the image's own words.
        START + 'chdir to cwd ("/error running hook, stdout: , stderr: nvidia-container-cli: device error: x") set in '
        "config.json failed: permission denied",
        START + 'chdir to cwd ("/failed to inject devices: unresolvable CDI devices x") set in config.json failed: '
        "permission denied",
        HOOK + "requirement error: invalid expression nvidia-container-cli: device error: x",
        START + "mkdir /no space left on device: read-only file system",
    ],
)
def test_nothing_that_an_image_says_drains_a_node(words: str) -> None:
    for reason in ("RunContainerError", "CreateContainerError"):
        fault = start_fault(waiting(reason, words), [])
        assert fault is not None
        assert fault.fault in ("person", "ours")


def test_a_jobs_own_termination_message_is_never_looked_at() -> None:
    for words in (NO_SH, FULL, HOOK + "device error: x", NETWORK, "Evicted: no space left on device"):
        for reason in ("Error", "Completed", "OOMKilled"):
            assert end_fault(ended(reason, words, 137)) is None
            assert start_fault(ended(reason, words, 137), []) is None


@pytest.mark.parametrize("memory", ["4Mi", "20M"])
def test_too_little_memory_is_the_persons_whatever_the_runtime_says(memory: str) -> None:
    """runc is killed as well then, and the words are about pipes; a node must not be drained for it."""
    words = (
        'failed to start sandbox "0a1b": failed to start sandbox container task "0a1b": cannot start a stopped process'
    )
    small = waiting("ContainerCreating")
    small["spec"]["containers"][0]["resources"]["limits"]["memory"] = memory
    seen = [event("FailedCreatePodSandBox", SANDBOX + words, 20, 59)]
    fault = checked(start_fault(small, seen), PersonFault, "does not start within")
    assert "#SBATCH --mem" in fault.hint


def test_a_shell_that_ends_at_once_is_told_with_its_last_words() -> None:
    """runc prints what exec(2) says to the container's own output, so no status holds it."""
    checked(stillborn(ended("Error"), "exec /bin/sh: exec format error\n"), PersonFault, "processor")
    checked(
        stillborn(ended("Error", code=127), "a\n/bin/sh: libc.so.6: not found\n"), PersonFault, "libc.so.6: not found"
    )
    checked(stillborn(ended("Error", code=1), ""), PersonFault, "with exit code 1.")
    checked(stillborn(ended("StartError", NO_SH, 128), ""), PersonFault, "has no /bin/sh")
    checked(stillborn(ended("OOMKilled", code=137), ""), PersonFault, "within 1024 MiB")


def test_a_shell_that_was_killed_from_outside_is_not_the_persons() -> None:
    checked(stillborn(ended("Error", code=137), "no space left on device"), ClusterFault, "killed by signal 9 on node1")


def test_a_small_job_hears_of_its_memory_only_if_nothing_else_is_wrong() -> None:
    small = ended("StartError", NO_SH, 128)
    small["spec"]["containers"][0]["resources"]["limits"]["memory"] = "8Mi"
    checked(start_fault(small, []), PersonFault, "has no /bin/sh")
    small["status"] = ended("StartError", START + "broken pipe", 128)["status"]
    checked(start_fault(small, []), PersonFault, "within 8 MiB")


@pytest.mark.parametrize(
    ("words", "kind", "said"),
    [
        (NOT_THERE, NodeFault, "/mnt/nas on node1 is not there or is no directory."),
        (
            MOUNT + "hostPath type check failed: /dev/nvidia0 is not a character device",
            NodeFault,
            "/dev/nvidia0 on node1 is not there or is no character device.",
        ),
        (MOUNT + "mkdir /var/lib/kubelet/pods/1/volumes: no space left on device", NodeFault, "has no room"),
        (
            "error making pod data directories: mkdir /var/lib/kubelet/pods/1: no space left on device",
            NodeFault,
            "has no room",
        ),
        (NFS + "unknown filesystem type 'nfs'.", NodeFault, "node1 cannot mount nfs volumes."),
        (
            NFS
            + "bad option; for several filesystems (e.g. nfs, cifs) you might need a /sbin/mount.nfs helper program.",
            NodeFault,
            "node1 cannot mount nfs volumes.",
        ),
        (NFS + "mount.nfs: Connection refused", ClusterFault, "mount.nfs: Connection refused."),
        (CLAIM + "PVC is not bound", ClusterFault, "The volume claim user-1000/data cannot be used: PVC is not bound."),
        (
            CLAIM + 'failed to fetch PVC from API server: persistentvolumeclaims "data" not found',
            ClusterFault,
            "cannot be used: failed to fetch PVC",
        ),
        (MOUNT + 'configmap "slurm-job-5" not found', ClusterFault, 'configmap "slurm-job-5" not found.'),
    ],
)
def test_a_volume_that_cannot_be_mounted(words: str, kind: type[SlurmK8sError], said: str) -> None:
    checked(start_fault(waiting("ContainerCreating"), [event("FailedMount", words)]), kind, said)


def test_what_passes_by_itself_is_waited_for() -> None:
    words = MOUNT + 'object "user-1000"/"slurm-job-5" not registered'
    assert start_fault(waiting("ContainerCreating"), [event("FailedMount", words)]) is None
    words = CLAIM + "failed to fetch PVC from API server: no relationship found between node 'node1' and this object"
    assert start_fault(waiting("ContainerCreating"), [event("FailedMount", words)]) is None
    assert start_fault(waiting("ContainerCreating"), []) is None
    assert start_fault(pod(), []) is None
    running = pod(phase="Running", containerStatuses=[{"name": "job", "state": {"running": {}}}])
    assert start_fault(running, [event("FailedMount", "MountVolume.SetUp failed")]) is None


def test_what_failed_before_and_succeeded_since_is_no_fault() -> None:
    ready = [{"type": "PodReadyToStartContainers", "status": "True"}]
    assert start_fault(waiting("ContainerCreating", conditions=ready), [event("FailedMount", NOT_THERE)]) is None


def test_a_sandbox_that_fails_is_tried_again_before_the_node_is_drained() -> None:
    assert start_fault(waiting("ContainerCreating"), [event("FailedCreatePodSandBox", NETWORK)]) is None
    assert start_fault(waiting("ContainerCreating"), [event("FailedCreatePodSandBox", NETWORK, 5, 3)]) is None
    seen = [event("FailedCreatePodSandBox", NETWORK), event("FailedCreatePodSandBox", NETWORK, 2, 40)]
    checked(start_fault(waiting("ContainerCreating"), seen), NodeFault, "no IP addresses available")


def test_an_unknown_runtime_drains_at_once() -> None:
    words = SANDBOX + 'unable to get OCI runtime for sandbox "0a1b": no runtime for "nvidia" is configured'
    seen = [event("FailedCreatePodSandBox", words)]
    checked(start_fault(waiting("ContainerCreating"), seen), NodeFault, "has no runtime called nvidia")


def test_only_the_kubelets_events_count() -> None:
    forged = event("FailedMount", NOT_THERE)
    forged["source"] = {"component": "kubectl"}
    assert start_fault(waiting("ContainerCreating"), [forged]) is None
