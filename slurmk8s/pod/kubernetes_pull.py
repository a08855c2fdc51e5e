"""What the words of a failed image pull mean: whose fault it is, in one sentence with the next step. Pure.

The words are containerd's (and CRI-O's), which repeat what the registry said, so a person's own registry can write what
it likes into them: nothing here is ever the node's fault. A full disk is no exception: an image may be larger than any
disk, and would drain one node after the other; the kubelet itself keeps pods off a node that runs out of space.
"""

import re

from slurmk8s.errors import ClusterFault, PersonFault, SlurmK8sError
from slurmk8s.pod.kubernetes_text import one_line, registry, telling

_PLATFORM = re.compile(r"no match for platform|no image found in (?:manifest|image index) .* for architecture")
_NO_SPACE = re.compile(r"(?:no space left on device|disk quota exceeded)(?:: unknown)?$")
_DENIED = re.compile(
    r"pull access denied|authorization failed|unauthorized|authentication required|insufficient_scope"
    r"|no basic auth credentials|40[13] (?:Unauthorized|Forbidden)|requested access to the resource is denied",
    re.IGNORECASE,
)
_ABSENT = re.compile(r"not found(?:: unknown)?$|manifest unknown|name unknown|404 Not Found", re.IGNORECASE)
_NO_IMAGE = re.compile(
    r"no longer supported since containerd|unsupported (?:manifest )?media ?type|mismatched image rootfs"
    r"|number of layers and diffIDs don't match|unexpected media type",
    re.IGNORECASE,
)
_PLAIN_HTTP = re.compile(r"server gave HTTP response to HTTPS client")
_CERTIFICATE = re.compile(r"x509:|certificate", re.IGNORECASE)
_UNREACHABLE = re.compile(
    r"connection refused|no such host|timeout|tls:|EOF|connection reset|no route to host|network is unreachable"
    r"|server misbehaving|deadline exceeded|50[0-9] |429 |too ?many ?requests|temporary failure"
    r"|registry is unavailable",
    re.IGNORECASE,
)
_BACK_OFF = re.compile(r"^Back-off pulling image \"[^\"]*\"(?:: )?(?:\w+: )?")
_EVENT = re.compile(r"^Failed to pull image \"[^\"]*\": ")


def cause(words: str) -> str:
    """The words without the kubelet's own "Back-off pulling image", which are no reason; empty when there is none."""
    return _EVENT.sub("", _BACK_OFF.sub("", words))


def pull_fault(image: str, node: str, words: str, missing_secrets: str = "") -> SlurmK8sError:
    """The fault behind a failed pull; `missing_secrets` is what the kubelet said about the site's pull secrets."""
    told = telling(words)
    shown, where = one_line(image), registry(image)
    bare = _bare(image, words)
    if _PLATFORM.search(bare):
        return wrong_machine(image)
    if _NO_SPACE.search(bare):
        return ClusterFault(
            f"The disk of {node} has no room for the image {shown}: {told}.",
            f"Use a smaller image; an admin can make room: `df -h` and `crictl rmi --prune` on {node}.",
        )
    if _DENIED.search(bare):
        if missing_secrets:
            return ClusterFault(
                f"The registry {where} refuses the image {shown}, and {missing_secrets}.",
                "An admin makes the secret that pull_secrets in [kubernetes] names.",
            )
        return PersonFault(
            f"The registry {where} refuses the image {shown}: {told}.",
            "Check its name, or ask for the right to use it; an admin can give jobs a credential (pull_secrets).",
        )
    if _ABSENT.search(bare):
        return PersonFault(f"The image {shown} does not exist in {where}.", "Check its name and tag in #K8S_IMAGE.")
    if _NO_IMAGE.search(bare):
        return PersonFault(f"{shown} is no image that can be run: {told}.", "Build and push it anew.")
    if _PLAIN_HTTP.search(bare):
        return ClusterFault(
            f"The registry {where} answers without TLS, which {node} does not accept: {told}.",
            f"An admin allows it in {node}'s /etc/containerd/certs.d/{where}/hosts.toml.",
        )
    if _CERTIFICATE.search(bare):
        return ClusterFault(
            f"{node} does not trust the registry {where}: {told}.",
            f"An admin puts its CA into {node}'s /etc/containerd/certs.d/{where}/.",
        )
    if _UNREACHABLE.search(bare):
        return ClusterFault(
            f"The registry {where} does not answer: {told}.", "Check its name in #K8S_IMAGE; else it must come back."
        )
    return ClusterFault(f"The image {shown} could not be pulled: {told}.", f"Try `crictl pull {shown}` on {node}.")


def wrong_machine(image: str) -> PersonFault:
    """The image is for another processor."""
    return PersonFault(
        f"The image {one_line(image)} is not made for this machine's processor.", "Use one built for it."
    )


def _bare(image: str, words: str) -> str:
    """The words without names that the person chose: an image may be called `denied/timeout:429`.

    Names stand in quotes, in addresses, or as a whole with their registry; every token with a slash goes.
    """
    words = re.sub(r"\"[^\"]*\"", "", " ".join(words.split()))
    words = re.sub(r"\S*/\S*?(?=[:,)]*(?:\s|$))", "", words)
    words = re.sub(r"\bmanifest \S+ in\b", "", words)  # CRI-O names the tag by itself
    return words.replace(image, "").rstrip(" .")
