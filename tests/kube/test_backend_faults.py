"""The control plane and the kubelet go away and come back in the middle of a job: the job goes on, its end is right."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from kube.backend_bed import Bed, name, removed, run, until

from slurmk8s.errors import NodeFault
from slurmk8s.kube.faults import KubeUnreachable

WAITS = "until [ -e /tmp/go ]; do sleep 0.1; done; exit 5"


@pytest.fixture
def bed(testbed: Any, kube: Any) -> Iterator[Bed]:
    with Bed(kube, testbed.kubeconfig, testbed.image, testbed.nodes) as made:
        yield made


def let_go(bed: Bed, pod: dict[str, Any]) -> None:
    """Tell the body to end, past every daemon: through its own root folder."""
    with open(f"/proc/{bed.pids(pod)[0]}/root/tmp/go", "w", encoding="ascii"):
        pass


@pytest.mark.parametrize("component", ["kube-apiserver", "etcd", "kubelet", "containerd"])
@pytest.mark.parametrize("how", ["killed", "paused"])
@run
async def test_a_job_outlives_its_cluster(bed: Bed, machine_room: Any, component: str, how: str) -> None:
    """While it is away the pod is unknown, never gone; it ends in that time, and its exit code is right."""
    part = f"{component}-{bed.nodes[0]}" if component in ("kubelet", "containerd") else component
    async with bed.agent() as backend:
        await backend.create(bed.pod(1, WAITS))
        await backend.started(name(1), bed.image, bed.tell)
        pod = bed.json(1)
        assert pod is not None
        waiting = asyncio.create_task(backend.wait(name(1)))
        (machine_room.kill if how == "killed" else machine_room.pause)(part)
        await asyncio.sleep(1)
        assert await seen(backend) in ("there", "unknown")
        let_go(bed, pod)
        await until(lambda: bed.pids(pod) == [], "the body has ended")
        assert not waiting.done() or component == "kubelet"
        if how == "killed":
            await asyncio.to_thread(machine_room.start, part)
        else:
            machine_room.resume(part)
        async with asyncio.timeout(150):
            ended = await waiting
        assert ended is not None
        assert ended.fault is None
        # An end that containerd itself has missed is told as one without an exit code; the launcher's own file has it.
        assert ended.exit_code in ((5, None) if part.startswith("containerd") else (5,))
        await removed(backend, name(1))
        assert await asyncio.to_thread(bed.json, 1) is None


async def seen(backend: Any) -> str:
    """How an agent would see the pod now."""
    try:
        return "gone" if await backend.find(name(1)) is None or not await backend.pods() else "there"
    except KubeUnreachable:
        return "unknown"


@run
async def test_an_agent_may_start_before_its_cluster(bed: Bed, machine_room: Any) -> None:
    machine_room.stop("kube-apiserver")
    async with bed.agent() as backend:
        for question in (backend.find(name(1)), backend.pods(), backend.create(bed.pod(1, "exit 0"))):
            with pytest.raises(KubeUnreachable, match="does not answer"):
                await question
        await asyncio.to_thread(machine_room.start, "kube-apiserver")
        await until(lambda: backend._pods.watch.synced, "the watch is there")
        await backend.create(bed.pod(1, "exit 0"))
        ended = await backend.wait(name(1))
        assert ended is not None
        assert ended.exit_code == 0
        await removed(backend, name(1))


@run
async def test_a_kubelet_that_does_not_take_the_pod_is_told_and_then_the_nodes_fault(
    bed: Bed, machine_room: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slurmk8s.pod.kubernetes.SECONDS_WITHOUT_KUBELET", 1)
    monkeypatch.setattr("slurmk8s.pod.kubernetes.SECONDS_UNTIL_KUBELET_IS_DEAD", 3)
    monkeypatch.setattr("slurmk8s.pod.kubernetes.SECONDS_BETWEEN_LOOKS", 1)
    kubelet = f"kubelet-{bed.nodes[0]}"
    machine_room.pause(kubelet)
    async with bed.agent() as backend:
        await backend.create(bed.pod(1, "exit 0"))
        with pytest.raises(NodeFault, match=f"The kubelet of {bed.nodes[0]} does not start the pod slurm-job-1"):
            await backend.started(name(1), bed.image, bed.tell)
        assert bed.told == [f"The kubelet of {bed.nodes[0]} does not start the pod slurm-job-1. Waiting for it."]
        machine_room.resume(kubelet)
        await backend.delete(name(1))


@run
async def test_a_pod_that_went_while_nobody_could_tell_is_gone_after_the_next_list(bed: Bed, machine_room: Any) -> None:
    """A restarted API server has forgotten the version that the watch goes on from: 410, and the list is read again."""
    async with bed.agent() as backend:
        await backend.create(bed.pod(1, "sleep 1000"))
        await backend.started(name(1), bed.image, bed.tell)
        waiting = asyncio.create_task(backend.wait(name(1)))
        cut_off(backend)
        await until(lambda: not backend._pods.watch.synced, "the watch is lost")
        machine_room.kubectl("-n", bed.namespace, "delete", "pod", "slurm-job-1", "--grace-period=1")
        await asyncio.to_thread(machine_room.restart, "kube-apiserver")
        assert not waiting.done()
        connect_again(backend)
        async with asyncio.timeout(30):
            ended = await waiting
        assert ended is not None
        assert "Somebody deleted" in str(ended.fault)


def cut_off(backend: Any) -> None:
    """The agent's own network is down: it reaches nothing, and its open watch breaks."""

    def unreachable() -> Any:
        raise KubeUnreachable("The network is down.")

    backend._pods._connect = backend._pods.watch._connect = unreachable
    backend._pods.watch._stream.close()


def connect_again(backend: Any) -> None:
    del backend._pods._connect
    backend._pods.watch._connect = backend._pods._connect
