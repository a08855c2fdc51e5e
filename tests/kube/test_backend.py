"""The kubernetes backend on a real cluster: make, observe, delete."""

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest
from kube.backend_bed import ENDLESS, Bed, name, run, until

from slurmk8s import labels
from slurmk8s.errors import ClusterFault, PersonFault
from slurmk8s.pod.manifest import Files, Volume


@pytest.fixture
def bed(testbed: Any, kube: Any) -> Iterator[Bed]:
    with Bed(kube, testbed.kubeconfig, testbed.image, testbed.nodes) as made:
        yield made


@run
async def test_a_pod_is_made_started_seen_to_its_end_and_removed(bed: Bed) -> None:
    async with bed.agent() as backend:
        assert await backend.find(name(1)) is None
        await backend.create(bed.pod(1, "sleep 1; exit 3"))
        started = await backend.started(name(1), bed.image, bed.tell)
        assert (started.digest or "").startswith("sha256:")
        found = await backend.find(name(1))
        assert found is not None
        assert found.labels[labels.JOB_ID] == "1"
        assert [pod.name for pod in await backend.pods()] == ["slurm-job-1"]
        ended = await backend.wait(name(1))
        assert ended is not None
        assert (ended.running, ended.exit_code, ended.out_of_memory, ended.fault) == (False, 3, False, None)
        await backend.delete(name(1))
        assert bed.json(1) is None
        assert await backend.find(name(1)) is None
        assert await backend.pods() == []
        assert await backend.wait(name(1)) is not None  # as it was last seen, and nobody is blamed
        assert bed.told == []


@run
async def test_two_pods_live_side_by_side(bed: Bed) -> None:
    async with bed.agent() as backend:
        await asyncio.gather(backend.create(bed.pod(1, ENDLESS)), backend.create(bed.pod(2, "exit 0")))
        await asyncio.gather(*(backend.started(name(job), bed.image, bed.tell) for job in (1, 2)))
        second = await backend.wait(name(2))
        first = await backend.find(name(1))
        assert second is not None
        assert first is not None
        assert (second.exit_code, first.running) == (0, True)
        assert {pod.name for pod in await backend.pods()} == {"slurm-job-1", "slurm-job-2"}
        await asyncio.gather(backend.delete(name(1)), backend.delete(name(2)))


@run
async def test_an_agent_sees_only_its_own_pods(bed: Bed) -> None:
    """Another node's agent, and what mkinst makes by hand."""
    by_hand = bed.pod(7, ENDLESS)
    by_hand = bed.pod(7, ENDLESS, labels={**by_hand.labels, labels.APP: labels.INSTANCE_VALUE})
    async with bed.agent() as first, bed.agent(bed.nodes[1]) as second:
        await second.create(bed.pod(2, ENDLESS, node=bed.nodes[1]))
        await first.create(bed.pod(1, ENDLESS))
        await first.create(by_hand)
        await until(lambda: first._pods.watch.synced and second._pods.watch.synced, "both watch")
        await asyncio.gather(first.started(name(1), bed.image, bed.tell), second.started(name(2), bed.image, bed.tell))
        assert [pod.name for pod in await first.pods()] == ["slurm-job-1"]
        assert [pod.name for pod in await second.pods()] == ["slurm-job-2"]
        assert await first.find(name(2)) is None
        await first.delete(name(2))
        await first.delete(name(7))
        assert bed.json(2) is not None
        assert bed.json(7) is not None
        await asyncio.gather(first.delete(name(1)), second.delete(name(2)))


@run
async def test_making_the_same_pod_again_changes_nothing(bed: Bed) -> None:
    """The agent restarts, or the answer to its first request was lost."""
    async with bed.agent() as backend:
        await backend.create(bed.pod(1, ENDLESS))
        made = await until(lambda: bed.json(1), "the pod is there")
        await backend.create(bed.pod(1, ENDLESS))
    async with bed.agent() as another:
        await another.create(bed.pod(1, ENDLESS))
        still = bed.json(1)
        assert still is not None
        assert still["metadata"]["uid"] == made["metadata"]["uid"]
        await another.started(name(1), bed.image, bed.tell)
        await another.delete(name(1))


@run
async def test_an_earlier_attempts_pod_goes_first(bed: Bed) -> None:
    async with bed.agent() as backend:
        await backend.create(bed.pod(1, ENDLESS, attempt=0))
        await backend.started(name(1), bed.image, bed.tell)
        earlier = bed.json(1)
        assert earlier is not None
        await backend.create(bed.pod(1, "exit 4", attempt=1))
        assert bed.pids(earlier) == []
        ended = await backend.wait(name(1))
        assert ended is not None
        assert (ended.exit_code, ended.labels[labels.ATTEMPT]) == (4, "1")
        await backend.delete(name(1))


@run
async def test_an_earlier_attempts_pod_on_another_node_is_waited_for_and_never_touched(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bed.agent() as first, bed.agent(bed.nodes[1]) as second:
        await first.create(bed.pod(1, ENDLESS))
        await first.started(name(1), bed.image, bed.tell)
        with monkeypatch.context() as patched:
            patched.setattr("slurmk8s.pod.kubernetes.SECONDS_FOR_NAME", 1)
            with pytest.raises(ClusterFault, match=f"another pod slurm-job-1 in {bed.namespace}, on {bed.nodes[0]}"):
                await second.create(bed.pod(1, "exit 0", node=bed.nodes[1], attempt=1))
        making = asyncio.create_task(second.create(bed.pod(1, "exit 0", node=bed.nodes[1], attempt=1)))
        await first.delete(name(1))
        await making
        ended = await second.wait(name(1))
        assert ended is not None
        assert ended.labels[labels.NODE] == bed.nodes[1]
        await second.delete(name(1))


@run
async def test_a_pod_that_somebody_deletes_is_told_as_that(bed: Bed, testbed: Any) -> None:
    async with bed.agent() as backend:
        await backend.create(bed.pod(1, ENDLESS))
        await backend.started(name(1), bed.image, bed.tell)
        waiting = asyncio.create_task(backend.wait(name(1)))
        await asyncio.sleep(0)
        testbed.kubectl("-n", bed.namespace, "delete", "pod", "slurm-job-1", "--wait=false")
        ended = await waiting
        assert ended is not None
        assert isinstance(ended.fault, ClusterFault)
        assert "Somebody deleted the pod slurm-job-1" in str(ended.fault)
        await backend.delete(name(1))
        assert bed.json(1) is None


@run
async def test_what_vanished_while_no_agent_looked_is_gone(bed: Bed) -> None:
    async with bed.agent() as backend:
        assert await backend.wait(name(1)) is None
        await backend.delete(name(1))


@run
async def test_an_image_that_does_not_exist_ends_the_wait(bed: Bed) -> None:
    async with bed.agent() as backend:
        image = bed.image.rpartition("/")[0] + "/no-such-image:1"
        await backend.create(bed.pod(1, "exit 0", image=image))
        with pytest.raises(PersonFault, match="does not exist"):
            await backend.started(name(1), image, bed.tell)
        begun = time.monotonic()
        await backend.delete(name(1))
        assert time.monotonic() - begun < 10


@run
async def test_a_pull_is_timed(bed: Bed, testbed: Any) -> None:
    if not testbed.own:
        pytest.skip("needs a registry to push to")
    from testbed.images import with_files

    from slurmk8s.local.images import busybox_tar

    rootfs = with_files(busybox_tar(), {"token": bed.token})
    digest = testbed.own.push(rootfs, f"timed:{bed.token}").partition("@")[2]
    image = f"{bed.image.rpartition('/')[0]}/timed:{bed.token}"
    async with bed.agent() as backend:
        before = time.time()
        await backend.create(bed.pod(1, "exit 0", image=image))
        started = await backend.started(name(1), image, bed.tell)
        assert started.digest == digest
        assert started.pull_started is not None
        assert started.pulled is not None
        assert before - 1.5 < started.pull_started < started.pulled < time.time() + 1.5
        await backend.delete(name(1))
        await backend.create(bed.pod(2, "exit 0", image=image))
        again = await backend.started(name(2), image, bed.tell)
        assert (again.digest, again.pull_started, again.pulled) == (digest, None, None)
        await backend.delete(name(2))


@run
async def test_the_files_of_a_pod_come_and_go_with_it(bed: Bed) -> None:
    """Where mounts are claims, nothing of the node's own can be mounted, so the launcher comes by ConfigMap."""
    where = f"/api/v1/namespaces/{bed.namespace}/configmaps/slurm-job-1"
    volume = Volume("told", Files({"launcher.sh": "exit 7"}), "/told", read_only=True)
    config = bed.config()
    config = config.model_copy(
        update={"mounts": {**config.mounts, "nas": config.mounts["nas"].model_copy(update={"claim": "nas"})}}
    )
    async with bed.agent(config=config) as backend, bed.agent(bed.nodes[1], config=config) as other:
        pod = bed.pod(1, "", volumes=(volume,), command=("/bin/sh", "/told/launcher.sh"))
        await backend.create(pod)
        await backend.create(pod)
        ended = await backend.wait(name(1))
        assert ended is not None
        assert ended.exit_code == 7
        await other.delete(name(1))
        assert bed.kube.find(where) is not None
        await backend.delete(name(1))
        assert bed.kube.find(where) is None


@run
async def test_a_missing_namespace_is_waited_for(bed: Bed) -> None:
    """The head node makes it."""
    async with bed.agent(config=bed.config(namespace="nobody-made-%u")) as backend:
        with pytest.raises(ClusterFault, match="namespace"):
            await backend.create(bed.pod(1, "exit 0", namespace="nobody-made-12345"))
