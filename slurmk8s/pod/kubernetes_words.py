"""Why a pod did not start, or did not end by itself: from what Kubernetes says, one sentence with the next step. Pure.

The kubelet's one-word reasons decide first, words second. A container's own termination message is never looked at:
the job writes it.
"""

import re
from typing import Any

from slurmk8s.errors import ClusterFault, NodeFault, PersonFault, SlurmK8sError
from slurmk8s.pod import kubernetes_text as text
from slurmk8s.pod.kubernetes_pull import cause, pull_fault, wrong_machine
from slurmk8s.pod.kubernetes_start import container_fault, preparation_fault, too_little_memory

BOOKS = "`slurmk8s cluster books` compares what Slurm and Kubernetes count."
_PULL = ("ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "SignatureValidationFailed", "ImageInspectError")
_START = (
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "PreCreateHookError",
    "PreStartHookError",
    "PostStartHookError",
)
# The container's own process never ran, so what is said is the runtime's.
_NEVER_RAN = ("StartError", "ContainerCannotRun")
_ROOM = re.compile(
    r"enough resource: (?P<what>\S+), requested: (?P<asked>\d+), used: (?P<used>\d+), capacity: (?P<all>\d+)"
)
_DEVICES = re.compile(r"devices unavailable for (?P<what>\S+?)\. Requested: (?P<asked>\d+), Available: (?P<free>\d+)")
_UNHEALTHY = re.compile(r"cannot allocate unhealthy devices (?P<what>[^\s,]+)")
_FULL_VOLUME = re.compile(r'EmptyDir volume "(?P<volume>[^"]+)" exceeds the limit "(?P<size>[^"]+)"')
_FULL_DISK = re.compile(
    r'exceeded its local ephemeral storage limit "(?P<one>[^"]+)"|exceeds the total limit of containers (?P<all>\S+?)\.'
)


def start_fault(pod: dict[str, Any], events: list[dict[str, Any]]) -> SlurmK8sError | None:
    """Why the container has not started; None: nothing is wrong yet, keep waiting.

    A cluster's fault may pass: the kubelet tries again by itself while the pod is there.
    """
    if fault := end_fault(pod):
        return fault
    told = text.kubelets(pod, events)
    state = text.container(pod).get("state") or {}
    waiting, terminated = state.get("waiting") or {}, state.get("terminated") or {}
    reason, words = str(waiting.get("reason") or ""), str(waiting.get("message") or "")
    image = text.image(pod)
    if reason in _PULL:
        words = cause(words) or _last_pull(told)
        if reason == "SignatureValidationFailed" or "signature validation failed" in words:
            return PersonFault(f"The signature of the image {text.one_line(image)} is not valid.", "Push it signed.")
        # A back-off whose cause has not been told yet is no answer: it comes with the next event.
        return pull_fault(image, text.node(pod), words, _missing_secrets(told)) if words else None
    if reason == "InvalidImageName":
        return PersonFault(f"{text.one_line(image)} is no image name: {text.telling(words)}.", "Correct #K8S_IMAGE.")
    if reason == "ErrImageNeverPull":
        return SlurmK8sError(
            f"The image {text.one_line(image)} is not on {text.node(pod)}, and the pod may not pull it."
        )
    if reason in _START:
        return container_fault(pod, reason, words)
    if terminated.get("reason") in _NEVER_RAN:
        return container_fault(pod, "RunContainerError", str(terminated.get("message") or ""))
    if not state or reason in ("", "ContainerCreating", "PodInitializing"):
        return None if state.get("running") or terminated else preparation_fault(pod, told)
    return None


def stillborn(pod: dict[str, Any], log: str) -> SlurmK8sError:
    """Why a container ended before its launcher did anything; `log` is all that it printed (runc prints there too)."""
    if fault := start_fault(pod, []):
        return fault
    image = text.one_line(text.image(pod))
    last = text.one_line(log.strip().splitlines()[-1] if log.strip() else "")
    how = (text.container(pod).get("state") or {}).get("terminated") or {}
    code = int(how.get("exitCode") or 0)
    if how.get("reason") == "OOMKilled":
        return too_little_memory(pod)
    if "exec format error" in last:
        return wrong_machine(image)
    if code > 128:
        return ClusterFault(
            f"The container was killed by signal {code - 128} on {text.node(pod)} before the job began.",
            f"See `kubectl describe pod {text.name(pod)}`.",
        )
    said = f": {last}" if last else ""
    return PersonFault(
        f"The shell of the image {image} ended at once with exit code {code}{said}.", "Check that its /bin/sh works."
    )


def _last_pull(events: list[dict[str, Any]]) -> str:
    """What the kubelet said when the pull failed, before it backed off."""
    messages = [str(event.get("message") or "") for event in events if event.get("reason") == "Failed"]
    return next((cause(words) for words in reversed(messages) if words.startswith("Failed to pull image")), "")


def _missing_secrets(events: list[dict[str, Any]]) -> str:
    for event in events:
        if event.get("reason") == "FailedToRetrieveImagePullSecret":
            match = re.search(r"image pull secrets \(([^)]*)\)", str(event.get("message") or ""))
            return f"the pull secret {match[1]} is missing" if match else "a pull secret is missing"
    return ""


def end_fault(pod: dict[str, Any]) -> SlurmK8sError | None:
    """Why a pod ended, where an exit code does not say it. Asked only when slurmk8s itself has not ended it."""
    status = pod.get("status") or {}
    reason, message = str(status.get("reason") or ""), str(status.get("message") or "")
    if reason and status.get("phase") != "Succeeded":
        return _reason_fault(pod, reason, message)
    if _ended_by_itself(pod):
        return None
    disruption = text.condition(pod, "DisruptionTarget")
    if disruption:
        return _disruption_fault(pod, str(disruption.get("reason") or ""), str(disruption.get("message") or ""))
    if (pod.get("metadata") or {}).get("deletionTimestamp"):
        return deleted(text.name(pod))
    terminated = (text.container(pod).get("state") or {}).get("terminated") or {}
    if terminated.get("reason") == "ContainerStatusUnknown":
        return ClusterFault(
            f"{text.node(pod)} lost the job's container: it, or its container runtime, was started again.",
            f"See `uptime` and the logs of containerd on {text.node(pod)}.",
        )
    return None


def deleted(name: str) -> ClusterFault:
    """The pod is gone or going, and not by us."""
    return ClusterFault(f"Somebody deleted the pod {name} in Kubernetes.", "To end a job for good use scancel.")


def _ended_by_itself(pod: dict[str, Any]) -> bool:
    """Its process had ended before anybody asked for the pod's deletion."""
    metadata = pod.get("metadata") or {}
    terminated = (text.container(pod).get("state") or {}).get("terminated") or {}
    asked = text.time_of(metadata.get("deletionTimestamp"))
    finished = text.time_of(terminated.get("finishedAt"))
    if asked is None or finished is None or terminated.get("reason") == "ContainerStatusUnknown":
        return False
    return finished < asked - int(metadata.get("deletionGracePeriodSeconds") or 0)


def _reason_fault(pod: dict[str, Any], reason: str, message: str) -> SlurmK8sError:
    node, told = text.node(pod), text.telling(message)
    if reason == "Evicted":
        return _evicted(pod, message)
    if reason.startswith("OutOf"):
        return _no_room(node, reason, message)
    if reason == "UnexpectedAdmissionError":
        return _no_device(node, message)
    if reason == "Preempting":
        return _pre_empted(node, "a critical pod")
    if reason == "DeadlineExceeded":
        seconds = (pod.get("spec") or {}).get("activeDeadlineSeconds")
        return ClusterFault(
            f"Kubernetes stopped the pod at its activeDeadlineSeconds={seconds}, which slurmk8s never sets.",
            "An admin finds out what does (an admission webhook?): the time limit is Slurm's.",
        )
    if reason == "NodeLost":
        return _lost(node)
    if reason in ("Terminated", "NodeShutdown", "Shutdown"):
        return ClusterFault(f"{node} is being shut down.", "The job starts again when there is a node for it.")
    if reason == "SupplementalGroupsPolicyNotSupported":
        return NodeFault(
            f"The container runtime of {node} cannot keep an image's own groups out (supplementalGroupsPolicy).",
            "It needs containerd 2 or newer.",
        )
    if reason in ("NodeAffinity", "TaintToleration"):
        return ClusterFault(
            f"{node} does not admit the job's pod: {told}.",
            "Correct node_selector, tolerations or nodes in [kubernetes], or the node's labels and taints.",
        )
    return ClusterFault(f"The kubelet of {node} refused the pod ({text.one_line(reason, 60)}): {told}.", BOOKS)


def _disruption_fault(pod: dict[str, Any], reason: str, message: str) -> SlurmK8sError:
    node = text.node(pod)
    if reason == "PreemptionByScheduler":
        return _pre_empted(node, "a pod of higher priority")
    if reason == "DeletionByTaintManager":
        return _lost(node)
    if reason == "DeletionByPodGC":
        return NodeFault(
            f"Kubernetes has no node called {node}.", "Check `kubectl get nodes`, and nodes in [kubernetes]."
        )
    if reason == "EvictionByEvictionAPI":
        return NodeFault(
            f"The pod was evicted from {node} by an admin (kubectl drain).",
            "When the work is done: `kubectl uncordon`, then `scontrol update nodename=… state=resume`.",
        )
    return ClusterFault(
        f"Kubernetes ended the pod on {node} ({text.one_line(reason, 60)}): {text.telling(message)}.",
        f"See `kubectl describe pod {text.name(pod)}`.",
    )


def _lost(node: str) -> NodeFault:
    """Its kubelet has not answered for minutes, or somebody has closed the node to running pods."""
    return NodeFault(
        f"Kubernetes took the pod off {node}: the node does not answer or has a NoExecute taint.",
        f"See `kubectl describe node {node}` and its kubelet.",
    )


def _pre_empted(node: str, by: str) -> ClusterFault:
    return ClusterFault(
        f"The pod was pre-empted on {node} by {by} in Kubernetes.",
        "An admin keeps other pods off Slurm's nodes (a taint), and gives PriorityClasses preemptionPolicy: Never.",
    )


def _evicted(pod: dict[str, Any], message: str) -> SlurmK8sError:
    node = text.node(pod)
    if match := _FULL_VOLUME.search(message):
        mounts = {mount.get("name"): mount.get("mountPath") for mount in text.asked(pod).get("volumeMounts") or []}
        place = text.one_line(str(mounts.get(match["volume"]) or match["volume"]))
        hint = "Ask for more with #K8S_SHM." if place.endswith("/shm") else "Write large files to /workspace."
        return PersonFault(f"The job wrote more to {place} than the {match['size']} it may hold.", hint)
    if match := _FULL_DISK.search(message):
        size = match["one"] or match["all"]
        return PersonFault(
            f"The job wrote more than the {size} it may to the node's own disk.",
            "Write large files to /workspace, which is on the NAS.",
        )
    return ClusterFault(
        f"The kubelet of {node} evicted the pod: {text.telling(message)}.",
        f"See `kubectl describe node {node}`; {BOOKS}",
    )


def _no_room(node: str, reason: str, message: str) -> ClusterFault:
    """Two sets of books: Slurm thinks that there is room."""
    match = _ROOM.search(message)
    if match is None:
        return ClusterFault(f"Kubernetes has no room for the job on {node} ({reason}): {text.telling(message)}.", BOOKS)
    what = match["what"]
    asked, used, capacity = (_amount(what, int(match[part])) for part in ("asked", "used", "all"))
    unit = {"cpu": "CPUs", "memory": "MiB of memory", "ephemeral-storage": "MiB of disk"}.get(what, what)
    numbers = f"{unit}: {asked} needed, {used} of {capacity} taken"
    return ClusterFault(f"Kubernetes has no room for the job on {node} ({numbers}).", BOOKS)


def _amount(what: str, value: int) -> str:
    """The kubelet counts CPUs in thousandths and memory in bytes."""
    if what == "cpu":
        return f"{value / 1000:g}"
    return str(value >> 20 if what in ("memory", "ephemeral-storage") else value)


def _no_device(node: str, message: str) -> ClusterFault:
    refused = f"Kubernetes cannot give the job its devices on {node}"
    if match := _DEVICES.search(message):
        return ClusterFault(f"{refused} ({match['what']}: {match['asked']} needed, {match['free']} free).", BOOKS)
    if match := _UNHEALTHY.search(message):
        hint = f"See the device plugin's log and `nvidia-smi` on {node}."
        return ClusterFault(f"{refused} ({match['what']}: none is healthy).", hint)
    return ClusterFault(f"The kubelet of {node} refused the pod: {text.telling(message)}.", BOOKS)
