"""Needs nothing: the meter on sample folders that look like a container's control group."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from slurmk8s.agent import asking, samples
from slurmk8s.agent.meter import Meter, pause
from slurmk8s.agent.record import Record, Store
from slurmk8s.config import Config
from slurmk8s.errors import ClusterFault
from slurmk8s.labels import PodName


class Backend:
    """Knows one process of one container; is away at first, if told so."""

    def __init__(self, away: int = 0) -> None:
        self.away = away

    async def processes(self, _name: PodName) -> list[int]:
        """The launcher."""
        if self.away:
            self.away -= 1
            raise ClusterFault("The API server does not answer.")
        return [42]


@pytest.fixture
def container(tmp_path: Path) -> Path:
    """Its control group (version 2), below a folder that stands for the machine."""
    group = tmp_path / "sys" / "pod" / "container"
    group.mkdir(parents=True)
    (group / "cpu.stat").write_text("usage_usec 1500000\n")
    (group / "memory.stat").write_text("anon 1000\nshmem 234\n")
    (tmp_path / "proc" / "42").mkdir(parents=True)
    (tmp_path / "proc" / "42" / "cgroup").write_text("0::/pod/container\n")
    return group


def config(tmp_path: Path, settings: Config) -> Config:
    agent = settings.agent.model_copy(update={"sample_seconds": 0.5, "cgroups": tmp_path / "sys"})
    kubernetes = settings.kubernetes.model_copy(update={"proc": tmp_path / "proc"})
    return settings.model_copy(update={"backend": "kubernetes", "agent": agent, "kubernetes": kubernetes})


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - a file tells
            await asyncio.sleep(0.02)


def test_samples_are_taken_until_the_container_is_gone(
    tmp_path: Path, container: Path, settings: Config, store: Store, record: Callable[..., Record]
) -> None:
    job = record()
    meter = Meter("node1", config(tmp_path, settings), Backend(), store)  # type: ignore[arg-type]

    async def story() -> None:
        with meter.measuring(job):
            await until(lambda: len(samples.read(store.samples(job)).samples) >= 3)
            (container / "memory.stat").unlink()

    asyncio.run(story())
    taken = samples.read(store.samples(job)).samples
    assert {(each.cpu_seconds, each.memory) for each in taken} == {(1.5, 1234)}


def test_a_server_that_is_away_is_asked_again(
    tmp_path: Path,
    container: Path,
    settings: Config,
    store: Store,
    record: Callable[..., Record],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("slurmk8s.agent.meter.pauses", lambda: iter([0.01] * 10))
    assert next(asking.pauses()) == 1
    job = record()
    meter = Meter("node1", config(tmp_path, settings), Backend(away=3), store)  # type: ignore[arg-type]

    async def story() -> None:
        with meter.measuring(job):
            await until(lambda: samples.read(store.samples(job)).samples)

    asyncio.run(story())


def test_a_full_disk_ends_the_measuring_and_nothing_else(
    tmp_path: Path, container: Path, settings: Config, store: Store, record: Callable[..., Record]
) -> None:
    job = record()
    store.samples(job).mkdir()  # nothing can be written there
    meter = Meter("node1", config(tmp_path, settings), Backend(), store)  # type: ignore[arg-type]

    async def story() -> str:
        with meter.measuring(job):
            await asyncio.sleep(0.2)
            return "the watch goes on"

    assert asyncio.run(story()) == "the watch goes on"


def test_often_at_first_then_as_configured() -> None:
    assert [pause(elapsed, 5.0) for elapsed in (0.0, 1.0, 4.0, 20.0, 86400.0)] == [0.25, 0.25, 1.0, 5.0, 5.0]
    assert pause(3600.0, 60.0) == 60.0
