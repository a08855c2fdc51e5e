"""The net below everything fails closed. Slurm and the runtime are played: their faults are what is tried here."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slurmk8s import labels
from slurmk8s.agent.reaper import Reaper
from slurmk8s.agent.record import Record, Store
from slurmk8s.config import Config
from slurmk8s.errors import NodeFault, SlurmUnreachable
from slurmk8s.labels import PodName
from slurmk8s.pod.backend import PodState
from slurmk8s.slurm.client import Job


class Node:
    """A node on which things were left; remembers what was removed."""

    def __init__(self, settings: Config, store: Store) -> None:
        self.live: set[int] | Exception = set()
        self.running: dict[str, str] | Exception = {}
        self.finished: list[int] = []
        self.deleted: list[str] = []
        self.stubborn: set[int] = set()
        self.attended: set[int] = set()
        self.jobs: dict[int, Job] = {}
        attended = self.attended.__contains__
        self.reaper = Reaper("node1", settings, self, self, store, self.finish, attended)  # type: ignore[arg-type]

    def job(self, job_id: int) -> Job | None:
        """As Slurm tells it."""
        return self.jobs.get(job_id)

    def live_jobs(self) -> set[int]:
        """As Slurm tells them."""
        if isinstance(self.live, Exception):
            raise self.live
        return self.live

    async def pods(self) -> list[PodState]:
        """As the runtime tells them."""
        if isinstance(self.running, Exception):
            raise self.running
        return [
            PodState(name, {labels.JOB_ID: job_id, labels.USER_ID: "1000"}) for name, job_id in self.running.items()
        ]

    async def delete(self, name: PodName) -> None:
        """As the runtime does."""
        self.deleted.append(str(name))

    async def finish(self, job_id: int) -> None:
        """As the agent does."""
        if job_id in self.stubborn:
            raise NodeFault("podman hangs.")
        self.finished.append(job_id)

    def rounds(self, count: int) -> None:
        """Let the reaper look so many times."""

        async def go() -> None:
            for _ in range(count):
                await self.reaper.round()

        asyncio.run(go())


@pytest.fixture
def node(settings: Config, store: Store) -> Node:
    return Node(settings, store)


@pytest.fixture
def folder(settings: Config) -> Callable[[int], Path]:
    """A rendezvous folder that was left behind."""

    def make(job_id: int) -> Path:
        path = settings.agent.run_folder / "jobs" / str(job_id) / "told"
        path.mkdir(parents=True)
        return path.parent

    return make


def test_a_pod_without_a_job_goes_in_the_second_round(node: Node) -> None:
    """A job may be between two answers, so once is not enough."""
    node.running = {"slurm-job-9": "9"}
    node.rounds(1)
    assert (node.finished, node.deleted) == ([], [])
    node.rounds(1)
    assert (node.finished, node.deleted) == ([9], ["slurm-job-9"])


def test_a_job_that_is_back_in_the_second_round_stays(node: Node) -> None:
    node.running = {"slurm-job-9": "9"}
    node.rounds(1)
    node.live = {9}
    node.rounds(1)
    node.live = set()
    node.rounds(1)
    assert node.deleted == []


def test_what_lives_is_left_alone(node: Node, store: Store, record: Callable[..., Record]) -> None:
    store.save(record())
    node.running = {"slurm-job-7": "7"}
    node.live = {7}
    node.rounds(3)
    assert (node.finished, node.deleted) == ([], [])


def test_records_hints_and_folders_without_a_job_go(
    node: Node, store: Store, record: Callable[..., Record], folder: Callable[[int], Path], tmp_path: Path
) -> None:
    store.save(record())
    (tmp_path / "state/hints/8").touch()
    left = folder(9)
    node.rounds(2)
    assert sorted(node.finished) == [7, 8, 9]
    assert not left.exists()


@pytest.mark.parametrize("part", ["live", "running"])
def test_nothing_is_removed_while_one_side_is_silent(node: Node, folder: Callable[[int], Path], part: str) -> None:
    left = folder(9)
    node.rounds(1)
    setattr(
        node, part, SlurmUnreachable("slurmctld does not answer.") if part == "live" else NodeFault("podman hangs.")
    )
    with pytest.raises((SlurmUnreachable, NodeFault)):
        node.rounds(1)
    assert node.finished == []
    assert left.exists()


def test_silence_makes_the_count_start_again(
    node: Node, folder: Callable[[int], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder(9)
    answers: list[Any] = [set(), SlurmUnreachable("slurmctld does not answer."), set(), {9}]
    asked: list[Any] = []

    def live_jobs() -> set[int]:
        answer = answers[len(asked)]
        asked.append(answer)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(node, "live_jobs", live_jobs)

    async def go() -> None:
        task = asyncio.create_task(node.reaper.reap())
        while len(asked) < len(answers):  # noqa: ASYNC110 - the last answer ends it
            await asyncio.sleep(0)
        task.cancel()

    asyncio.run(go())
    assert node.finished == []


def test_one_that_cannot_be_removed_does_not_keep_the_others(node: Node) -> None:
    node.running = {f"slurm-job-{number}": str(number) for number in range(1, 6)}
    node.stubborn = {3}
    node.rounds(2)
    assert sorted(node.finished) == [1, 2, 4, 5]
    node.stubborn = set()
    node.running = {"slurm-job-3": "3"}
    node.rounds(1)
    assert 3 in node.finished


def test_with_nothing_here_slurm_is_not_asked(node: Node) -> None:
    node.live = SlurmUnreachable("must not be asked")
    node.rounds(2)


def test_what_an_earlier_attempt_left_goes_when_the_job_is_elsewhere(
    node: Node, store: Store, record: Callable[..., Record], job: Callable[..., Job]
) -> None:
    """The node was lost, Slurm started the job on another one, and now this node is back."""
    store.save(record())
    node.running = {"slurm-job-7": "7"}
    node.live = {7}
    node.jobs[7] = job(state="RUNNING", nodes=("node2",), restarts=1)
    node.rounds(2)
    assert (node.finished, node.deleted) == ([7], ["slurm-job-7"])


def test_a_later_attempt_here_is_not_the_earlier_ones_record(
    node: Node, store: Store, record: Callable[..., Record], job: Callable[..., Job]
) -> None:
    store.save(record(attempt=1))
    node.live = {7}
    node.jobs[7] = job(state="RUNNING", nodes=("node1",), restarts=1)
    node.rounds(3)
    assert node.finished == []


def test_a_job_whose_own_process_is_connected_lives_here(
    node: Node, store: Store, record: Callable[..., Record], job: Callable[..., Job]
) -> None:
    store.save(record())
    node.live = {7}
    node.attended.add(7)
    node.jobs[7] = job(state="RUNNING", nodes=("node2",), restarts=1)
    node.rounds(3)
    assert node.finished == []
