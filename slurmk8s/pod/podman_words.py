"""What podman's and the registry's words mean: whose fault an error is, in one sentence with the next step. Pure."""

import re

from slurmk8s.errors import ClusterFault, NodeFault, PersonFault, SlurmK8sError

# The registry's own answers, as podman 4 and 5 print them.
_ABSENT = re.compile(
    r"manifest unknown|name unknown|not found: manifest|repository .* not found|404 \(?Not Found", re.IGNORECASE
)
_DENIED = re.compile(
    r"unauthorized|authentication required|access to the requested resource|denied|403 \(?Forbidden", re.IGNORECASE
)
_ARCHITECTURE = re.compile(
    r"no image found in (manifest|image index) .* for architecture|exec format error", re.IGNORECASE
)
_UNREACHABLE = re.compile(
    r"connection refused|no such host|i/o timeout|timeout|TLS|certificate|EOF|connection reset|no route to host"
    r"|network is unreachable|server misbehaving|deadline exceeded|server gave HTTP response"
    r"|50[0-9] |429|too ?many ?requests|pinging container registry|temporary failure",
    re.IGNORECASE,
)
_NO_SPACE = re.compile(r"no space left on device|disk quota exceeded", re.IGNORECASE)
_NO_SH = re.compile(r'"?/bin/sh"?:? .*(no such file|not found)|executable file .*not found', re.IGNORECASE)
_BROKEN_SH = re.compile(r"/bin/sh.*(permission denied|too many levels|not a directory)", re.IGNORECASE)
_MOUNT = re.compile(r"statfs|stat .*: no such file|error checking path|mount .* (failed|no such)", re.IGNORECASE)


def pull_fault(image: str, registry: str, words: str) -> SlurmK8sError:
    """The fault behind a failed pull."""
    last = last_line(words)
    words = words.replace(image.partition("/")[2] or image, "")  # an image may be called denied/timeout
    if _ABSENT.search(words):
        return PersonFault(f"The image {image} does not exist in {registry}.", "Check its name and tag in #K8S_IMAGE.")
    if _ARCHITECTURE.search(words):
        return PersonFault(f"The image {image} is not made for this machine's processor.", "Use one built for it.")
    if _NO_SPACE.search(words):
        return NodeFault(f"The node's disk is full: the image {image} cannot be stored ({last}).")
    if _DENIED.search(words):
        return PersonFault(
            f"The registry {registry} refuses the image {image}: {last}.",
            "Check its name, or ask for the right to use it.",
        )
    if _UNREACHABLE.search(words):
        return ClusterFault(f"The registry {registry} does not answer: {last}.")
    return ClusterFault(f"The image {image} could not be pulled: {last}.")


def create_fault(image: str, words: str) -> SlurmK8sError:
    """The fault behind a pod that did not start. What is not understood is the job's end, not the node's."""
    last = last_line(words)
    if _ARCHITECTURE.search(words):
        return PersonFault(f"The image {image} is not made for this machine's processor.", "Use one built for it.")
    if _NO_SH.search(words) or _BROKEN_SH.search(words):
        return PersonFault(
            f"The image {image} has no /bin/sh, which every job needs.", "Use an image that has a shell."
        )
    if _NO_SPACE.search(words):
        return NodeFault(f"The node's disk is full: no container can be made ({last}).")
    if _MOUNT.search(words):
        return NodeFault(f"A folder that the pod needs is not there: {last}.")
    return SlurmK8sError(f"The container of {image} could not be started: {last}.")


def last_line(words: str) -> str:
    """The telling part of podman's output: its last `Error:` line, without the chain of wrappers before it."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"(Error:|\[starting container)", line)]
    line = (errors or lines or ["podman gave no reason"])[-1]
    return line.removeprefix("Error:").strip().rstrip(".")[-400:]
