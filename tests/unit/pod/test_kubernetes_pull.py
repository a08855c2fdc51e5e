"""Whose fault a failed pull is."""

import pytest
from kubernetes_samples import (
    ABSENT,
    DENIED,
    FULL,
    HEAD,
    IMAGE,
    NO_HOST,
    NOT_THERE,
    OLDER_RESOLVE,
    OTHER_PLATFORM,
    PULL,
    REFUSED,
    RESOLVE,
    STATUS,
    checked,
    event,
    waiting,
)

from slurmk8s.errors import ClusterFault, PersonFault, SlurmK8sError
from slurmk8s.pod.kubernetes_words import start_fault


@pytest.mark.parametrize(
    ("words", "kind", "said"),
    [
        (ABSENT, PersonFault, f"The image {IMAGE} does not exist in nas-hub.local:5407."),
        (RESOLVE + STATUS + "404 Not Found", PersonFault, "does not exist"),
        (
            REFUSED,
            ClusterFault,
            "nas-hub.local:5407 does not answer: dial tcp 127.0.0.1:5407: connect: connection refused.",
        ),
        (NO_HOST, ClusterFault, "no such host"),
        (RESOLVE + STATUS + "503 Service Unavailable", ClusterFault, "503 Service Unavailable"),
        (DENIED, PersonFault, "refuses the image"),
        (RESOLVE + STATUS + "403 Forbidden", PersonFault, "refuses the image"),
        (RESOLVE + HEAD + "http: server gave HTTP response to HTTPS client", ClusterFault, "without TLS"),
        (RESOLVE + HEAD + "tls: failed to verify certificate: x509: unknown authority", ClusterFault, "does not trust"),
        (OTHER_PLATFORM, PersonFault, "not made for this machine's processor"),
        (FULL, ClusterFault, "has no room for the image"),
        (PULL + "mismatched image rootfs and manifest layers", PersonFault, "no image that can be run"),
        ("something containerd never said before", ClusterFault, "never said before"),
    ],
)
def test_a_failed_pull_is_somebodys_fault(words: str, kind: type[SlurmK8sError], said: str) -> None:
    first = checked(start_fault(waiting("ErrImagePull", words), []), kind, said)
    assert first.hint
    backing_off = f'Back-off pulling image "{IMAGE}": ErrImagePull: {words}'
    again = checked(start_fault(waiting("ImagePullBackOff", backing_off), []), kind, said)
    older = words.replace(RESOLVE, OLDER_RESOLVE)
    assert str(start_fault(waiting("ErrImagePull", older), [])) == str(first)
    assert str(again) == str(first)
    assert "ack-off" not in str(again)


def test_a_bare_back_off_is_explained_by_the_event_before_it() -> None:
    """Kubelets before 1.32 say no more than that in the pod's status."""
    seen = [event("Failed", f'Failed to pull image "{IMAGE}": {ABSENT}')]
    bare = waiting("ImagePullBackOff", f'Back-off pulling image "{IMAGE}"')
    checked(start_fault(bare, seen), PersonFault, "does not exist")
    assert start_fault(bare, []) is None


def test_an_earlier_pods_events_say_nothing_about_this_one() -> None:
    old = event("Failed", f'Failed to pull image "{IMAGE}": {ABSENT}', uid="another")
    assert start_fault(waiting("ImagePullBackOff", f'Back-off pulling image "{IMAGE}"'), [old]) is None
    assert start_fault(waiting("ContainerCreating"), [event("FailedMount", NOT_THERE, uid="another")]) is None


def test_a_refusal_for_want_of_the_sites_secret_is_not_the_persons() -> None:
    words = "Unable to retrieve some image pull secrets (hub-login); attempting to pull the image may not succeed."
    seen = [event("FailedToRetrieveImagePullSecret", words)]
    checked(start_fault(waiting("ErrImagePull", DENIED), seen), ClusterFault, "the pull secret hub-login is missing")


@pytest.mark.parametrize(
    "image",
    [
        "nas-hub.local:5407/denied/unauthorized:timeout",
        "nas-hub.local:5407/not-found/x:404",
        "nas-hub.local:5407/x:no-match-for-platform",
        "timeout.eof.local:429/eof/tls:503",
    ],
)
@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (ABSENT, PersonFault),
        (REFUSED, ClusterFault),
        (DENIED, PersonFault),
        (OTHER_PLATFORM, PersonFault),
        (FULL, ClusterFault),
        ("something containerd never said before", ClusterFault),
    ],
)
def test_an_images_name_does_not_decide(image: str, words: str, kind: type[SlurmK8sError]) -> None:
    registry, _, path = image.partition("/")
    name, _, tag = path.rpartition(":")
    words = words.replace(IMAGE, image).replace("nas-hub.local:5407", registry)
    words = words.replace("v2/pytorch/manifests/2.0", f"v2/{name}/manifests/{tag}")
    plain = start_fault(waiting("ErrImagePull", words.replace(image, IMAGE)), [])
    named = waiting("ErrImagePull", words)
    named["spec"]["containers"][0]["image"] = image
    fault = checked(start_fault(named, []), kind, "")
    assert plain is not None
    assert fault.hint.partition(" ")[0] == plain.hint.partition(" ")[0]


@pytest.mark.parametrize(
    "words",
    [
        RESOLVE + "unexpected status from GET request: 500: write /var/lib/containerd/x: no space left on device",
        FULL,
        RESOLVE + "nvidia-container-cli: initialization error: nvml error: driver not loaded",
        RESOLVE + NOT_THERE,
        'Failed to create pod sandbox: no runtime for "nvidia" is configured',
    ],
)
def test_nothing_that_a_registry_says_drains_a_node(words: str) -> None:
    fault = start_fault(waiting("ErrImagePull", words), [event("Failed", f'Failed to pull image "{IMAGE}": {words}')])
    assert fault is not None
    assert fault.fault in ("person", "cluster")


def test_other_reasons_about_images() -> None:
    words = 'Failed to apply default image tag "A:b:c": couldn\'t parse image name "A:b:c": invalid reference format'
    checked(start_fault(waiting("InvalidImageName", words), []), PersonFault, "is no image name")
    words = f"image pull failed for {IMAGE} because the signature validation failed: no signature"
    checked(start_fault(waiting("SignatureValidationFailed", words), []), PersonFault, "is not valid")
    words = f"image pull failed for {IMAGE} because the registry is unavailable: ping"
    checked(start_fault(waiting("RegistryUnavailable", words), []), ClusterFault, "does not answer")
