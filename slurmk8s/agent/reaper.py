"""The net below everything: no pod without a live Slurm job, no folder without either.

Fails closed: while Slurm or the runtime cannot be asked, nothing is deleted. What looks abandoned is looked at again in
the next round before anything happens: a job may be between two answers.
"""

import asyncio
from collections.abc import Awaitable, Callable

from loguru import logger

from slurmk8s import labels
from slurmk8s.agent import meeting
from slurmk8s.agent.asking import ask
from slurmk8s.agent.record import Store
from slurmk8s.config import Config
from slurmk8s.errors import SlurmK8sError
from slurmk8s.labels import PodName
from slurmk8s.pod.backend import Backend, PodState
from slurmk8s.slurm.client import Slurm


class Reaper:
    """Compares what is on the node with what Slurm says lives."""

    def __init__(
        self,
        node: str,
        config: Config,
        slurm: Slurm,
        backend: Backend,
        store: Store,
        finish: Callable[[int], Awaitable[None]],
        is_attended: Callable[[int], bool],
    ) -> None:
        self._node = node
        self._config = config
        self._slurm = slurm
        self._backend = backend
        self._store = store
        self._finish = finish
        self._is_attended = is_attended
        self._suspects: set[int] = set()

    async def reap(self) -> None:
        """Until cancelled."""
        while True:
            try:
                await self.round()
            except SlurmK8sError as fault:
                logger.info(f"nothing reaped: {fault}")
                self._suspects.clear()
            except Exception:  # noqa: BLE001 - the net must stay up
                logger.exception("the reaper failed")
            await asyncio.sleep(self._config.agent.reap_seconds)

    async def round(self) -> None:
        """One comparison; whatever was abandoned in the last one too goes now."""
        here = {record.job_id for record in self._store.jobs()} | self._store.hints()
        pods = {int(pod.labels[labels.JOB_ID]): pod for pod in await self._backend.pods()}
        folders = self._folders()
        if not (here or pods or folders):
            self._suspects.clear()
            return
        live = await ask(self._slurm.live_jobs)
        left = here | set(pods) | folders
        abandoned = left - live
        for job_id in left & live:
            if await self._is_elsewhere(job_id):
                abandoned.add(job_id)
        for job_id in abandoned & self._suspects:
            logger.warning(f"job {job_id} is over in Slurm but still here: removed")
            try:
                await self._remove(job_id, pods.get(job_id))
            except Exception:  # noqa: BLE001 - one that cannot be removed must not keep the others here
                logger.exception(f"job {job_id} cannot be removed; tried again in the next round")
        self._suspects = abandoned

    async def _is_elsewhere(self, job_id: int) -> bool:
        """Whether Slurm has the job in the queue or on other nodes: what is here is an earlier attempt's."""
        if self._is_attended(job_id):
            return False
        job = await ask(lambda: self._slurm.job(job_id))
        if job is None or job.completing:
            return False  # the Epilog has begun, or the next round knows
        record = self._store.load(job_id)
        return self._node not in job.nodes or (record is not None and job.restarts > record.attempt)

    async def _remove(self, job_id: int, pod: PodState | None) -> None:
        await self._finish(job_id)
        if pod is not None:
            await self._backend.delete(PodName(job_id, int(pod.labels[labels.USER_ID])))
        await asyncio.to_thread(meeting.clear, meeting.Places.of(self._config, self._node, job_id))

    def _folders(self) -> set[int]:
        any_job = meeting.Places.of(self._config, self._node, 0)
        found = [*any_job.meeting.folder.parent.glob("*"), *any_job.home.parent.glob("*")]
        return {int(path.name) for path in found if path.name.isdigit()}
