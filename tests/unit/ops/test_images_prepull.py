"""What the kubelet's words about a short pod mean: how far a pull is. Needs nothing."""

from typing import Any

import pytest

from slurmk8s.config import parse
from slurmk8s.ops.images import Target
from slurmk8s.ops.prepull import pod_of, stage
from slurmk8s.pod.manifest import manifest

IMAGE = "nas-hub.local:5407/pytorch:2.0"


def pod(phase: str = "Pending", **container: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "prepull-1-0", "uid": "u"},
        "spec": {"nodeName": "node1", "containers": [{"name": "job", "image": IMAGE}]},
        "status": {"phase": phase, "containerStatuses": [{"name": "job", **container}] if container else []},
    }


def event(reason: str, message: str) -> dict[str, Any]:
    return {"reason": reason, "message": message, "involvedObject": {"uid": "u"}, "source": {"component": "kubelet"}}


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    return pod(state={"waiting": {"reason": reason, "message": message}})


PULLING = event("Pulling", f'Pulling image "{IMAGE}"')


def test_a_pod_that_no_kubelet_has_looked_at_waits() -> None:
    assert stage(pod(), [], 3).word == "waiting"


def test_a_pull_under_way_shows_its_time() -> None:
    assert str(stage(waiting("ContainerCreating"), [PULLING], 12)) == "pulling 12 s"


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (f'Container image "{IMAGE}" already present on machine', "present"),
        (f'Container image "{IMAGE}" already present on machine and can be accessed by the pod', "present"),
        (
            f'Successfully pulled image "{IMAGE}" in 34.2s (40.1s including waiting). Image size: 1 bytes.',
            "pulled in 34 s",
        ),
        (f'Successfully pulled image "{IMAGE}" in 1m2.5s (1m2.5s including waiting)', "pulled in 62 s"),
    ],
)
def test_the_kubelets_word_ends_it(message: str, text: str) -> None:
    assert str(stage(waiting("ContainerCreating"), [PULLING, event("Pulled", message)], 50)) == text


def test_an_image_without_the_command_has_been_pulled_all_the_same() -> None:
    ended = {"terminated": {"reason": "StartError", "exitCode": 128, "message": "exec: /bin/true: no such file"}}
    assert str(stage(pod("Failed", imageID="x@sha256:1", state=ended), [], 7)) == "pulled in 7.0 s"


def test_an_image_that_does_not_exist_fails_at_once() -> None:
    said = f'rpc error: code = NotFound desc = failed to pull and unpack image "{IMAGE}": {IMAGE}: not found'
    now = stage(waiting("ErrImagePull", said), [PULLING], 1)
    assert str(now) == f"failed: The image {IMAGE} does not exist in nas-hub.local:5407."


def test_a_registry_that_is_down_is_waited_for_with_the_reason_shown() -> None:
    said = 'failed to do request: Head "https://nas-hub.local:5407/v2/x": dial tcp: connect: connection refused'
    now = stage(waiting("ErrImagePull", said), [PULLING], 4)
    assert not now.is_final
    assert str(now).startswith("pulling 4 s (The registry nas-hub.local:5407 does not answer")


def test_a_pod_that_the_kubelet_refuses_fails_with_its_words() -> None:
    refused = pod("Failed")
    refused["status"] |= {"reason": "OutOfpods", "message": "Node didn't have enough resource: pods"}
    now = stage(refused, [], 1)
    assert now.word == "failed"
    assert "node1" in now.sentence


def test_the_pod_is_what_pod_security_restricted_asks_for() -> None:
    config = parse({"backend": "kubernetes", "kubernetes": {"pull_secrets": ["hub"]}}, "test")
    made = manifest(pod_of((Target("node1", "worker-1"), IMAGE), "prepull-1-0", "1", config))
    spec, (container,) = made["spec"], made["spec"]["containers"]
    assert (made["metadata"]["namespace"], made["metadata"]["labels"]["app"]) == ("slurmk8s", "slurmk8s-prepull")
    assert (spec["nodeName"], spec["tolerations"]) == ("worker-1", [{"operator": "Exists"}])
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "privileged": False,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not spec["volumes"]
    assert spec["imagePullSecrets"] == [{"name": "hub"}]
    assert container["imagePullPolicy"] == "IfNotPresent"
