"""Measures what a job's container uses, from its start to its end, every few seconds.

Often at first, so that a short job is measured too, then as configured. The samples are on disk, and another agent goes
on with them. Nothing here can hurt a job: what cannot be measured is left out.
"""

import asyncio
import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from loguru import logger

from slurmk8s.agent import blueprint, gpus, samples
from slurmk8s.agent.asking import pauses
from slurmk8s.agent.gpu_meter import GpuMeter
from slurmk8s.agent.record import Record, Store
from slurmk8s.agent.samples import Card, OfCard, Sample
from slurmk8s.config import Config
from slurmk8s.errors import SlurmK8sError
from slurmk8s.pod import cgroup
from slurmk8s.pod.backend import Backend
from slurmk8s.pod.cgroup import Group

SHORTEST_PAUSE = 0.25


class Meter:
    """Measures the jobs of this node."""

    def __init__(self, node: str, config: Config, backend: Backend, store: Store) -> None:
        self._node = node
        self._backend = backend
        self._store = store
        self._gpu = config.gpu
        self._counts_gpus = config.backend == "kubernetes" and config.gpu.mode == "count"
        self._proc = config.kubernetes.proc if config.backend == "kubernetes" else Path("/proc")
        self._cgroups = config.agent.cgroups
        self._pause = config.agent.sample_seconds
        self._driver = GpuMeter(config.gpu, self._pause / 2)

    @contextlib.contextmanager
    def measuring(self, record: Record) -> Iterator[None]:
        """Measure the job as long as this lasts."""
        task = asyncio.create_task(self._until_gone(record))
        try:
            yield
        finally:
            task.cancel()

    async def _until_gone(self, record: Record) -> None:
        try:
            await self._measure(record)
        except (OSError, SlurmK8sError) as error:
            logger.warning(f"job {record.job_id}: its use is not measured any more: {error}")
        except Exception:  # noqa: BLE001 - a bug of ours must not end the job's own watch
            logger.exception(f"job {record.job_id}: its use is not measured any more")

    async def _measure(self, record: Record) -> None:
        path = self._store.samples(record)
        began = time.monotonic()
        pids = await self._pids(record)
        group = await asyncio.to_thread(self._group, pids)
        if group is None:
            if pids:  # else it has ended already
                logger.warning(f"job {record.job_id}: its use is not measured: no control group below {self._cgroups}")
            return
        indices = await self._indices(record, pids)
        known = await asyncio.to_thread(samples.begin, path, await self._cards(indices))
        if known.samples:  # an earlier agent's, which had the eager start
            began -= 60
        while (reading := await asyncio.to_thread(cgroup.read, group)) is not None:
            sample = Sample(time.time(), reading.cpu_seconds, reading.memory, await self._used(known.cards))
            await asyncio.to_thread(samples.add, path, known.cards, sample)
            await asyncio.sleep(pause(time.monotonic() - began, self._pause))

    async def _pids(self, record: Record) -> list[int]:
        """The container's processes; whoever cannot be asked now is asked again."""
        for wait in pauses():
            with contextlib.suppress(SlurmK8sError):
                return await self._backend.processes(blueprint.pod_name(record, self._node))
            await asyncio.sleep(wait)
        raise AssertionError("unreachable")

    def _group(self, pids: list[int]) -> Group | None:
        found = (cgroup.of_process(self._proc, self._cgroups, pid) for pid in pids)
        return next((group for group in found if group is not None), None)

    async def _indices(self, record: Record, pids: list[int]) -> tuple[int, ...]:
        """Which of the node's GPUs are the job's; those that a device plugin has picked are looked up."""
        if not record.gpus or not self._counts_gpus:
            return record.gpus
        with contextlib.suppress(SlurmK8sError):
            minors = await asyncio.to_thread(gpus.minors_of, self._proc, pids)
            cards = await asyncio.to_thread(gpus.cards, self._gpu)
            return tuple(card.index for card in cards if card.minor in minors)
        return ()

    async def _cards(self, indices: tuple[int, ...]) -> list[Card]:
        now = await self._driver.cards() if indices else {}
        return [Card(index, now[index].model, now[index].memory_total) for index in indices if index in now]

    async def _used(self, cards: tuple[Card, ...]) -> tuple[OfCard, ...]:
        now = await self._driver.cards() if cards else {}
        told = (now.get(card.index) for card in cards)
        return tuple(OfCard(card.utilisation, card.memory_used) if card else OfCard(None, 0) for card in told)


def pause(elapsed: float, longest: float) -> float:
    """Seconds until the next sample: a quarter of the time so far, within bounds."""
    return min(longest, max(SHORTEST_PAUSE, elapsed / 4))
