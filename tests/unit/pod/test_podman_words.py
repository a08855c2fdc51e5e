"""Whose fault podman's words mean. The texts are those of podman 4.3 (tests/podman produces some of them anew)."""

import pytest

from slurmk8s.errors import ClusterFault, NodeFault, PersonFault, SlurmK8sError
from slurmk8s.pod.podman_words import create_fault, last_line, pull_fault

IMAGE = "nas-hub.local:5407/pytorch:2.0"
REGISTRY = "nas-hub.local:5407"

ABSENT = (
    "Error: initializing source docker://nas-hub.local:5407/pytorch:2.0: reading manifest 2.0 in "
    "nas-hub.local:5407/pytorch: manifest unknown: manifest unknown"
)
NO_NAME = (
    "Error: initializing source docker://nas-hub.local:5407/no:1: reading manifest 1 in nas-hub.local:5407/no: "
    "name unknown: repository name not known to registry"
)
DENIED = (
    "Error: initializing source docker://nas-hub.local:5407/pytorch:2.0: reading manifest 2.0 in "
    "nas-hub.local:5407/pytorch: unauthorized: authentication required"
)
REFUSED = (
    'time="2024-01-01T00:00:00Z" level=warning msg="failed, retrying in 1s ... (1/3). Error: initializing source '
    'docker://nas-hub.local:5407/pytorch:2.0: pinging container registry nas-hub.local:5407"\n'
    "Error: initializing source docker://nas-hub.local:5407/pytorch:2.0: pinging container registry "
    'nas-hub.local:5407: Get "https://nas-hub.local:5407/v2/": dial tcp 127.0.0.1:5407: connect: connection refused'
)
TOO_MANY = (
    "Error: initializing source docker://nas-hub.local:5407/pytorch:2.0: reading manifest 2.0 in "
    "nas-hub.local:5407/pytorch: toomanyrequests: You have reached your pull rate limit"
)
OTHER_PROCESSOR = (
    "Error: choosing an image from manifest list docker://nas-hub.local:5407/pytorch:2.0: no image found in manifest "
    'list for architecture amd64, variant "", OS linux'
)
NO_SH = (
    'Error: runc: runc create failed: unable to start container process: exec: "/bin/sh": stat /bin/sh: no such file '
    "or directory: OCI runtime attempted to invoke a command that was not found"
)
FULL = (
    "Error: copying system image from manifest list: writing blob: adding layer with blob sha256:ab: Error processing "
    "tar file(exit status 1): write /lib/x: no space left on device"
)


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (ABSENT, PersonFault),
        (NO_NAME, PersonFault),
        (DENIED, PersonFault),
        (OTHER_PROCESSOR, PersonFault),
        (REFUSED, ClusterFault),
        (TOO_MANY, ClusterFault),
        ("Error: something podman never said before", ClusterFault),
        ("", ClusterFault),
        (FULL, NodeFault),
    ],
)
def test_a_failed_pull_is_somebodys_fault(words: str, kind: type[SlurmK8sError]) -> None:
    fault = pull_fault(IMAGE, REGISTRY, words)
    assert type(fault) is kind
    assert "\n" not in fault.sentence
    assert fault.sentence.endswith(".")


@pytest.mark.parametrize("name", ["denied", "unauthorized/access", "manifest-unknown/x", "no space left on device"])
def test_an_images_name_does_not_decide(name: str) -> None:
    image = f"{REGISTRY}/{name}:2.0"
    fault = pull_fault(image, REGISTRY, REFUSED.replace(IMAGE, image))
    assert type(fault) is ClusterFault


@pytest.mark.parametrize(
    ("words", "kind", "said"),
    [
        (
            "Error: crun: executable file `/bin/sh` not found in $PATH: No such file or directory: OCI runtime error",
            PersonFault,
            "has no /bin/sh",
        ),
        (
            NO_SH,
            PersonFault,
            "has no /bin/sh",
        ),
        ("exec /bin/sh: exec format error", PersonFault, "not made for this machine's processor"),
        (
            'Error: runc: exec: "/bin/sh": permission denied: OCI permission denied',
            PersonFault,
            "has no /bin/sh",
        ),
        ("Error: writing /var/lib/containers: no space left on device", NodeFault, "disk is full"),
        ("Error: statfs /mnt/nas: no such file or directory", NodeFault, "is not there: statfs /mnt/nas"),
        ("Error: something podman never said before", SlurmK8sError, "never said before"),
    ],
)
def test_a_pod_that_does_not_start_is_somebodys_fault(words: str, kind: type[SlurmK8sError], said: str) -> None:
    fault = create_fault(IMAGE, words)
    assert type(fault) is kind
    assert said in fault.sentence


def test_what_is_not_understood_neither_drains_nor_blames() -> None:
    assert create_fault(IMAGE, "Error: ?").fault == "ours"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("Trying to pull…\nError: the reason.\n", "the reason"),
        ("one\ntwo\n\n", "two"),
        ("Error: first\nexit status 1", "first"),
        ("", "podman gave no reason"),
        ("Error: " + "x" * 1000, "x" * 400),
    ],
)
def test_the_telling_line_is_the_last_error(words: str, expected: str) -> None:
    assert last_line(words) == expected
