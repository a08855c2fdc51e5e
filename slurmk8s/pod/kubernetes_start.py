"""Why a pod's sandbox, volumes or container could not be made: whose fault, in one sentence with the next step. Pure.

The node is blamed only for words that no image, registry or job can choose: the kubelet's about the host's paths and
its own folders, the sandbox's (which holds nothing of the person's), and the GPU driver's about itself.
"""

import re
from typing import Any

from slurmk8s.errors import ClusterFault, NodeFault, PersonFault, SlurmK8sError
from slurmk8s.pod import kubernetes_text as text
from slurmk8s.pod.kubernetes_pull import wrong_machine

SMALLEST_MEMORY = 32 << 20
"""With less the runtime itself is killed, and says anything: `broken pipe`, `connection reset by peer`, nothing."""
REPEATS, REPEAT_SECONDS = 3, 20
"""A sandbox that fails may succeed at the next try (a network plugin that starts, an address that is given back)."""

_OUT_OF_MEMORY = re.compile(r"OOM-killed|memory limit too low|OOMKilled")
_NO_SPACE = re.compile(r": no space left on device(?:: unknown)?$")
_NO_SH = re.compile(
    r'exec:? "?(?P<program>/bin/sh)"?:? .*(?:no such file|not found|permission denied|not a directory|too many levels)'
    r'|exec:? "(?P<other>[^"]+)": (?:stat |executable file )',
)
_ONTO_A_FILE = re.compile(r'error mounting "[^"]*" to rootfs at "(?P<target>[^"]*)": .*not a directory')
_WORKDIR = re.compile(r"chdir to cwd|error during container init: mkdir ")
_RUNTIME = re.compile(
    r"context deadline exceeded|is reserved for|did not terminate success|(?:ttrpc|rpc): |connection error"
)
_GPU = re.compile(
    r"error running (?:\w+ )?hook[^,]*, stdout: .*?, stderr: (?:(?!nvidia-container-cli: ).)*"
    r"nvidia-container-cli: (?P<kind>\w+) error: (?P<why>.*)"
)
_CDI = re.compile(r"failed to inject (?:CDI )?devices: unresolvable CDI devices (?P<devices>\S+)")
_NO_RUNTIME = re.compile(r'no runtime for "(?P<handler>[^"]*)" is configured')
_NOT_THERE = re.compile(r"hostPath type check failed: (?P<path>.+?) is not an? (?P<kind>[\w ]+?)\Z")
_VOLUME = re.compile(r'(?:MountVolume|MapVolume|WaitForAttach)\S* failed for volume "(?P<volume>[^"]+)" ?: ')
_CLAIM = re.compile(r"error processing PVC (?P<claim>\S+): (?P<why>.*)")
# The kubelet's own knowledge of the pod's objects, and its right to read them, come a moment after the pod.
_PASSING = re.compile(
    r"not registered|failed to sync \w+ cache|no relationship found between node|operation was canceled"
)
_NO_HELPER = re.compile(r"need a /sbin/mount\.<?(\w+)>? helper program|unknown filesystem type '(\w+)'")


def container_fault(pod: dict[str, Any], reason: str, words: str) -> SlurmK8sError:
    """The container was not made or its first process not started. What is not understood is the job's end."""
    image, node = text.one_line(text.image(pod)), text.node(pod)
    words = " ".join(words.split())
    told = text.telling(words)
    unquoted = re.sub(r'"(?:[^"\\]|\\.)*"', "", words)  # an image's WORKDIR is quoted, and may say anything
    if reason == "CreateContainerConfigError":
        return ClusterFault(
            f"The container's settings cannot be met on {node}: {told}.",
            f"See `kubectl describe pod {text.name(pod)}`.",
        )
    if _OUT_OF_MEMORY.search(words):
        return too_little_memory(pod)
    if "exec format error" in words:
        return wrong_machine(image)
    if match := _NO_SH.search(words):
        program = text.one_line(match["program"] or match["other"])
        return PersonFault(f"The image {image} has no {program}, which every job needs.", "Use an image that has it.")
    if match := _ONTO_A_FILE.search(words):
        target = text.one_line(match["target"])
        return PersonFault(f"The image {image} has a file at {target}, where the job needs a folder.", "Rebuild it.")
    if _WORKDIR.search(words):
        return PersonFault(f"The image {image} cannot be entered: {told}.", "Check its WORKDIR.")
    if match := _GPU.search(unquoted):
        return _gpu_fault(image, node, match["kind"], text.one_line(match["why"].removesuffix(": unknown")))
    if match := _CDI.search(unquoted):
        return NodeFault(
            f"{node} cannot give the job its GPUs: unresolvable CDI devices {text.one_line(match['devices'])}.",
            f"Run `nvidia-ctk cdi list` on {node}.",
        )
    if reason == "CreateContainerError" and _NO_SPACE.search(unquoted) and "volume" not in words:
        return NodeFault(f"{node} has no room to make a container: {told}.", f"See `df -h` on {node}.")
    if _too_little_memory(pod):  # and what was said is nothing that is known
        return too_little_memory(pod)
    if _RUNTIME.search(words):
        return ClusterFault(f"The container runtime of {node} failed: {told}.", f"See containerd's log on {node}.")
    return SlurmK8sError(
        f"The container of {image} could not be started: {told}.", f"See `kubectl describe pod {text.name(pod)}`."
    )


def _gpu_fault(image: str, node: str, kind: str, why: str) -> SlurmK8sError:
    """NVIDIA's own hook: its word before `error` is its own, what follows may hold an image's variables."""
    if kind in ("initialization", "device"):
        return NodeFault(f"{node} cannot give the job its GPUs: {why}.", f"Run `nvidia-smi` on {node}.")
    if kind == "requirement":
        return PersonFault(f"The image {image} needs another GPU driver than {node} has: {why}.", "Use an older image.")
    return SlurmK8sError(f"The container of {image} could not be given its GPUs: {kind} error: {why}.")


def too_little_memory(pod: dict[str, Any]) -> PersonFault:
    """Not even the container's own start fits into the job's memory."""
    size = (text.memory_limit(pod) or 0) >> 20
    return PersonFault(
        f"The container of {text.one_line(text.image(pod))} does not start within {size} MiB.",
        "Ask for more memory with #SBATCH --mem.",
    )


def _too_little_memory(pod: dict[str, Any]) -> bool:
    limit = text.memory_limit(pod)
    return limit is not None and limit < SMALLEST_MEMORY


def preparation_fault(pod: dict[str, Any], events: list[dict[str, Any]]) -> SlurmK8sError | None:
    """What the kubelet's events say while it prepares volumes and sandbox; None: it is still at it."""
    if text.condition(pod, "PodReadyToStartContainers"):
        return None  # whatever failed before has succeeded since
    volumes = [event for event in events if event.get("reason") in ("FailedMount", "FailedMapVolume", "Failed")]
    for event in reversed(volumes):
        if fault := volume_fault(pod, str(event.get("message") or "")):
            return fault
    sandbox = [event for event in events if event.get("reason") in ("FailedCreatePodSandBox", "NetworkNotReady")]
    return _sandbox_fault(pod, sandbox) if sandbox else None


def volume_fault(pod: dict[str, Any], words: str) -> SlurmK8sError | None:
    """A volume that cannot be mounted; None for what passes by itself, and for what only says that it failed."""
    node = text.node(pod)
    words = " ".join(words.split())
    told = text.telling(_VOLUME.sub("", words))
    if match := _NOT_THERE.search(words):
        path, kind = text.one_line(match["path"]), match["kind"]
        return NodeFault(f"{path} on {node} is not there or is no {kind}.", f"Look there: `ls -ld {path}`.")
    if words.startswith("error making pod data directories") or _VOLUME.search(words):
        if _NO_SPACE.search(words):
            return NodeFault(f"{node} has no room for the pod's folders: {told}.", f"See `df -h` on {node}.")
        if match := _NO_HELPER.search(words):
            kind = match[1] or match[2]
            return NodeFault(
                f"{node} cannot mount {kind} volumes.", f"Install mount.{kind} there (for NFS: the package nfs-common)."
            )
    if _PASSING.search(words):
        return None
    if match := _CLAIM.search(words):
        return ClusterFault(
            f"The volume claim {match['claim']} cannot be used: {text.one_line(match['why'])}.",
            "An admin makes it and binds it: `kubectl get pvc -A`.",
        )
    if not (_VOLUME.search(words) or words.startswith("Unable to attach or mount volumes")):
        return None
    return ClusterFault(
        f"A volume of the job cannot be mounted on {node}: {told}.", f"See `kubectl describe pod {text.name(pod)}`."
    )


def _sandbox_fault(pod: dict[str, Any], events: list[dict[str, Any]]) -> SlurmK8sError | None:
    node = text.node(pod)
    words = " ".join(str(events[-1].get("message") or "").split())
    told = text.telling(words.removeprefix("Failed to create pod sandbox: "))
    if match := _NO_RUNTIME.search(words):
        return NodeFault(
            f"containerd on {node} has no runtime called {match['handler']}.",
            "Configure it there, or correct runtime_class in the configuration.",
        )
    if _OUT_OF_MEMORY.search(words) or _too_little_memory(pod):
        return too_little_memory(pod)
    spans = [text.span(event) for event in events]
    lasted = max(last for _, last in spans) - min(first for first, _ in spans)
    if sum(map(text.count, events)) < REPEATS or lasted < REPEAT_SECONDS:
        return None
    if "failed to get sandbox image" in words:
        return ClusterFault(f"{node} cannot get its pause image: {told}.", f"Pull it there: `crictl images` on {node}.")
    return NodeFault(f"{node} cannot make pods: {told}.", f"See the logs of kubelet and containerd on {node}.")
