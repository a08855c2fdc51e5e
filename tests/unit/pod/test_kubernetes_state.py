from typing import Any

import pytest

from slurmk8s.errors import ClusterFault
from slurmk8s.pod import kubernetes_state as says
from slurmk8s.pod.backend import PodState

UID = "0b6a0ad4-6f5e-4f4e-9a3e-d0f0c1c5b1aa"
DIGEST = "sha256:" + "ab" * 32


def pod(phase: str = "Running", state: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    container = {"name": "job", "state": state or {}, **more}
    return {
        "metadata": {"name": "slurm-job-5", "namespace": "user-1", "uid": UID, "labels": {"job-id": "5"}},
        "spec": {"nodeName": "k1"},
        "status": {"phase": phase, "startTime": "2026-01-01T00:00:00Z", "containerStatuses": [container]},
    }


def new_pod() -> dict[str, Any]:
    return {"metadata": {"name": "slurm-job-5", "uid": UID}, "spec": {}, "status": {"phase": "Pending"}}


def test_a_pod_that_no_kubelet_has_seen_neither_runs_nor_has_ended() -> None:
    assert says.state(new_pod()) == PodState("slurm-job-5")
    assert not says.seen_by_kubelet(new_pod())
    assert not says.ended(new_pod())


def test_a_running_container_runs() -> None:
    running = pod(state={"running": {"startedAt": "2026-01-01T00:00:01Z"}})
    assert says.state(running) == PodState("slurm-job-5", {"job-id": "5"}, running=True)
    assert not says.ended(running)


def test_the_exit_code_counts_as_soon_as_the_container_has_ended() -> None:
    """The pod's phase follows one round of the kubelet later."""
    ended = pod(state={"terminated": {"exitCode": 3, "reason": "Error"}})
    assert says.ended(ended)
    assert says.state(ended) == PodState("slurm-job-5", {"job-id": "5"}, exit_code=3)


def test_the_kernels_kill_is_told_from_other_ends() -> None:
    killed = pod("Failed", {"terminated": {"exitCode": 137, "reason": "OOMKilled"}})
    assert says.state(killed).out_of_memory
    assert not says.state(pod("Failed", {"terminated": {"exitCode": 137, "reason": "Error"}})).out_of_memory


@pytest.mark.parametrize(("reason", "code"), [("Unknown", 255), ("ContainerStatusUnknown", 137)])
def test_an_exit_code_that_nobody_saw_is_not_told(reason: str, code: int) -> None:
    lost = pod("Failed", {"terminated": {"exitCode": code, "reason": reason}})
    assert says.state(lost).exit_code is None
    assert says.ended(lost)


def test_a_refused_pod_has_ended_without_an_exit_code() -> None:
    refused = new_pod()
    refused["status"] = {"phase": "Failed", "reason": "OutOfcpu"}
    fault = ClusterFault("No room.")
    assert says.ended(refused)
    assert says.state(refused, fault) == PodState("slurm-job-5", fault=fault)


def test_a_container_that_a_lost_kubelet_calls_running_does_not_run_in_a_failed_pod() -> None:
    assert not says.state(pod("Failed", {"running": {}})).running


@pytest.mark.parametrize(
    ("reason", "complains"),
    [("ContainerCreating", False), ("PodInitializing", False), ("ErrImagePull", True), ("CreateContainerError", True)],
)
def test_a_kubelet_at_work_does_not_complain(reason: str, complains: bool) -> None:
    assert says.complains(pod("Pending", {"waiting": {"reason": reason}})) is complains
    assert not says.complains(new_pod())


@pytest.mark.parametrize(
    ("image_id", "digest"),
    [
        (f"nas-hub.local:5407/pytorch@{DIGEST}", DIGEST),
        (f"docker-pullable://nas-hub.local:5407/pytorch@{DIGEST}", DIGEST),
        (DIGEST, DIGEST),
        ("", None),
    ],
)
def test_the_digest_is_found_in_every_runtimes_form(image_id: str, digest: str | None) -> None:
    assert says.digest(pod(imageID=image_id)) == digest


def test_the_marks_of_a_pod_are_its_containers_and_its_uid_as_both_cgroup_drivers_write_it() -> None:
    """A container's id also when it has ended, or when the kubelet has lost sight of it."""
    dead = pod(
        state={"terminated": {"containerID": "containerd://bbb"}},
        containerID="containerd://aaa",
        lastState={"terminated": {"containerID": "containerd://ccc"}},
    )
    assert says.container_ids(dead) == {"aaa", "bbb", "ccc"}
    assert says.marks(dead) == {UID, UID.replace("-", "_"), "aaa", "bbb", "ccc"}
    assert says.marks(new_pod()) == {UID, UID.replace("-", "_")}


def pulled(message: str, at: str = "2026-01-01T00:01:00Z") -> dict[str, Any]:
    return {"reason": "Pulled", "message": message, "lastTimestamp": at}


def test_a_pull_lasts_as_long_as_the_kubelet_says() -> None:
    """Its events count whole seconds; its own figure is exact, and includes the time in its queue."""
    words = 'Successfully pulled image "x" in 5.213s (1m2.5s including waiting). Image size: 4 bytes.'
    begun, done = says.pull_times([{"reason": "Pulling", "lastTimestamp": "2026-01-01T00:00:59Z"}, pulled(words)])
    assert (done or 0) - (begun or 0) == pytest.approx(62.5)


def test_a_pull_without_a_figure_lasts_from_event_to_event() -> None:
    events = [{"reason": "Pulling", "lastTimestamp": "2026-01-01T00:00:40Z"}, pulled("Successfully pulled image")]
    begun, done = says.pull_times(events)
    assert (done or 0) - (begun or 0) == pytest.approx(20)


@pytest.mark.parametrize("events", [[], [pulled('Container image "x" already present on machine')]])
def test_an_image_that_is_there_takes_no_time(events: list[dict[str, Any]]) -> None:
    assert says.pull_times(events) == (None, None)


@pytest.mark.parametrize(
    ("steps", "pulling"),
    [
        ([], False),
        (["Scheduled", "Pulling"], True),
        (["Pulling", "Failed", "BackOff"], False),
        (["Pulling", "Failed", "Pulling"], True),
        (["Pulling", "Pulled", "Created", "Started"], False),
    ],
)
def test_a_kubelet_pulls_until_it_says_how_that_ended(steps: list[str], pulling: bool) -> None:
    assert says.pulling([{"reason": reason} for reason in steps]) is pulling


def test_the_memory_of_a_pod_is_spent_on_what_is_asked_for() -> None:
    whole = pod()
    whole["metadata"]["managedFields"] = [{"manager": "kubelet"}]
    whole["spec"] |= {
        "containers": [{"name": "job", "image": "x", "env": [{"name": "A"}], "resources": {"limits": {"cpu": "1"}}}],
        "volumes": [{"name": "nas"}],
    }
    kept = says.trimmed(whole)
    assert "managedFields" not in kept["metadata"]
    assert kept["spec"] == {
        "nodeName": "k1",
        "containers": [{"name": "job", "image": "x", "resources": {"limits": {"cpu": "1"}}}],
    }
    assert kept["status"] == whole["status"]
