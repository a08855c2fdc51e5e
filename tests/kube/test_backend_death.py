"""A pod is dead when the API server has forgotten it and no process of it lives: neither alone is believed."""

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest
from kube.backend_bed import DEAF, ENDLESS, Bed, name, removed, run, timed, until

from slurmk8s.errors import ClusterFault, NodeFault
from slurmk8s.local.images import busybox_tar
from slurmk8s.pod.backend import DeadButListed


@pytest.fixture
def bed(testbed: Any, kube: Any) -> Iterator[Bed]:
    with Bed(kube, testbed.kubeconfig, testbed.image, testbed.nodes) as made:
        yield made


async def running(bed: Bed, backend: Any, body: str) -> dict[str, Any]:
    begun = time.monotonic()
    await backend.create(bed.pod(1, body))
    await backend.started(name(1), bed.image, bed.tell)
    timed("create to started", begun)
    found = await asyncio.to_thread(bed.json, 1)
    assert found is not None
    return found


@run
async def test_a_body_that_ignores_sigterm_is_dead_when_the_delete_returns(bed: Bed) -> None:
    async with bed.agent() as backend:
        pod = await running(bed, backend, DEAF)
        assert bed.pids(pod)
        begun = time.monotonic()
        await backend.delete(name(1))
        timed("delete of a deaf body", begun)
        assert bed.pids(pod) == []
        assert bed.json(1) is None
        assert time.monotonic() - begun < 8


@run
async def test_a_pod_that_has_ended_goes_at_once(bed: Bed) -> None:
    async with bed.agent() as backend:
        await running(bed, backend, "exit 0")
        await backend.wait(name(1))
        begun = time.monotonic()
        await backend.delete(name(1))
        timed("delete of an ended body", begun)
        assert time.monotonic() - begun < 3


@run
async def test_a_pod_deleted_by_force_is_dead_only_when_its_processes_are(bed: Bed, machine_room: Any) -> None:
    """`kubectl delete --force` makes the API server forget a pod whose kubelet has not even heard of it."""
    async with bed.agent() as backend:
        pod = await running(bed, backend, ENDLESS)
        machine_room.pause(f"kubelet-{bed.nodes[0]}")
        machine_room.kubectl("-n", bed.namespace, "delete", "pod", "slurm-job-1", "--force", "--grace-period=0")
        assert bed.json(1) is None
        deleting = asyncio.create_task(backend.delete(name(1)))
        await asyncio.sleep(2)
        assert not deleting.done()
        assert bed.pids(pod)
        machine_room.resume(f"kubelet-{bed.nodes[0]}")
        await deleting
        assert bed.pids(pod) == []


@run
async def test_a_pod_that_cannot_be_killed_is_the_nodes_fault(
    bed: Bed, machine_room: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bed.agent() as backend:
        pod = await running(bed, backend, ENDLESS)
        machine_room.pause(f"kubelet-{bed.nodes[0]}")
        with monkeypatch.context() as patched:
            patched.setattr("slurmk8s.pod.kubernetes_death.SECONDS", 1)
            with pytest.raises(NodeFault, match=r"slurm-job-1 cannot be killed: .* of its processes live on") as raised:
                await backend.delete(name(1))
        assert str(bed.pids(pod)[0]) in raised.value.hint
        machine_room.resume(f"kubelet-{bed.nodes[0]}")
        await backend.delete(name(1))
        assert bed.pids(pod) == []


@run
async def test_a_dead_pod_that_the_kubelet_does_not_remove_leaves_the_node_free(
    bed: Bed, machine_room: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for a minute or two after the API server was away: the kubelet is healthy, and does not listen yet."""
    async with bed.agent() as backend:
        pod = await running(bed, backend, ENDLESS)
        machine_room.pause(f"kubelet-{bed.nodes[0]}")
        bed.kill(pod)
        with monkeypatch.context() as patched:
            patched.setattr("slurmk8s.pod.kubernetes_death.SECONDS", 1)
            with pytest.raises(DeadButListed, match="slurm-job-1 is dead, but the kubelet of"):
                await backend.delete(name(1))
        machine_room.resume(f"kubelet-{bed.nodes[0]}")
        await backend.delete(name(1))
        assert bed.json(1) is None


@run
async def test_while_the_api_server_is_away_a_living_pod_cannot_be_ended_and_a_dead_one_is_known_to_be(
    bed: Bed, machine_room: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slurmk8s.pod.kubernetes_death.SECONDS", 1)
    async with bed.agent() as backend:
        pod = await running(bed, backend, "trap 'exit 0' USR1; sleep 1000 & wait")
        machine_room.stop("kube-apiserver")
        try:
            with pytest.raises(ClusterFault, match="cannot be ended: The Kubernetes API server") as raised:
                await backend.delete(name(1))
            assert not isinstance(raised.value, DeadButListed)
            bed.kill(pod)
            with pytest.raises(DeadButListed, match="is dead but cannot be removed"):
                await backend.delete(name(1))
        finally:
            machine_room.start("kube-apiserver")
        await removed(backend, name(1))
        assert bed.json(1) is None


@run
async def test_a_pod_in_the_middle_of_its_pull_does_not_hold_up_the_node(bed: Bed, machine_room: Any) -> None:
    """scancel while a large image comes: the kubelet never gives a pull up, and nothing of the job runs meanwhile."""
    machine_room.push(busybox_tar(), f"slow:{bed.token}")
    image = f"{bed.image.rpartition('/')[0]}/slow:{bed.token}"
    async with bed.agent() as backend:
        machine_room.pause("registry")
        try:
            await backend.create(bed.pod(1, ENDLESS, image=image))
            await until(lambda: _pulling(bed), "the kubelet pulls")
            begun = time.monotonic()
            with pytest.raises(DeadButListed, match="still pulls the image of the pod slurm-job-1"):
                await backend.delete(name(1))
            timed("delete in the middle of a pull", begun)
            assert time.monotonic() - begun < 10
        finally:
            machine_room.resume("registry")
        await backend.delete(name(1))
        assert bed.json(1) is None


def _pulling(bed: Bed) -> bool:
    events = bed.kube.items(f"/api/v1/namespaces/{bed.namespace}/events")
    return any(event["reason"] == "Pulling" for event in events)
