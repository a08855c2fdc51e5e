"""One job on this node: from the first hint to a running pod, and back to nothing.

`ensure` may be asked any number of times, by the Prolog's hint and by slurmk8s-run; there is one worker per job, and it
starts where an earlier agent stopped. Whoever listens hears each stage.
"""

import asyncio
import contextlib
import errno
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from loguru import logger

from slurmk8s.agent import blueprint, meeting, person
from slurmk8s.agent.asking import ask, pauses
from slurmk8s.agent.board import Board
from slurmk8s.agent.making import Making
from slurmk8s.agent.meter import Meter
from slurmk8s.agent.record import Record, Store
from slurmk8s.agent.request import full_record, plain_record, stamped_lines
from slurmk8s.config import Config
from slurmk8s.errors import ClusterFault, NodeFault, PersonFault, SlurmK8sError
from slurmk8s.labels import PodName
from slurmk8s.pod.backend import Backend, DeadButListed, PodState
from slurmk8s.pod.kubernetes_refusals import QuotaFull
from slurmk8s.pod.kubernetes_words import deleted
from slurmk8s.rendezvous import exists
from slurmk8s.slurm.client import Job, Slurm
from slurmk8s.slurm.records import FINISHED

ALIVE = ("RUNNING", "CONFIGURING", "SUSPENDED", "STOPPED", "SIGNALING")
LOOKS = 5
# A kubelet tells why it has ended a container a moment after the container's own end.
SECONDS_FOR_A_REASON = 5
DISK_TROUBLE = (errno.ENOSPC, errno.EROFS, errno.EIO, errno.EDQUOT)


class Work:
    """The job's state here, and the task that moves it on."""

    def __init__(
        self, job_id: int, node: str, config: Config, slurm: Slurm, backend: Backend, store: Store, meter: Meter
    ) -> None:
        self.job_id = job_id
        self.refused = False
        """Not a job of ours, or not here: nothing was made."""
        self.over = False
        """What is here is of an attempt that has ended; the next one is another piece of work."""
        self.board = Board()
        self._node = node
        self._config = config
        self._slurm = slurm
        self._backend = backend
        self._store = store
        self._meter = meter
        self._bundles = person.Bundles(config)
        self._finishing = asyncio.Lock()
        self._places = meeting.Places.of(config, node, job_id)
        self._making = Making(node, config, backend, store, self.board, self._places)
        self._task = asyncio.create_task(self._live())

    # Life: make the pod, watch it, tell its end.

    async def _live(self) -> None:
        try:
            record = await self._begin()
            if record is None:
                self.over = True  # the Epilog, the reaper or the next attempt comes
                return
            if record.failure is not None:  # an earlier agent got this far
                await self._act_on_failure(record, noted=True)
                return
            record = await self._making.make(record)
            with self._meter.measuring(record):
                await self._watch(record)
        except SlurmK8sError as fault:
            await self._fail(fault)
        except OSError as error:
            if error.errno not in DISK_TROUBLE:
                raise
            await self._fail(NodeFault(f"The node's disk does not take the job's record: {error.strerror}."))
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - a bug of ours: never silence
            logger.exception(f"job {self.job_id}: {error}")
            log = self._config.log_folder / f"agent_{self._node}.log"
            sentence = f"slurmk8s itself failed ({type(error).__name__}: {error}); see {log} on {self._node}."
            await self._fail(SlurmK8sError(sentence))

    async def _begin(self) -> Record | None:
        """The job's record: an earlier agent's, or a new one from what Slurm says. None if the job has ended."""
        record = self._store.load(self.job_id)
        if record is not None and record.made and await self._may_be_ours(record):
            return record
        job = await self._job()
        if record is not None and job is not None and job.restarts != record.attempt:
            # Slurm has begun another attempt here, after a reboot perhaps: what is left of the last one goes first.
            await self._end(record)
            record = None
        for _ in range(LOOKS if record is None else 0):  # whoever asked for it says it runs: Slurm may be a moment late
            if job is not None:
                break
            await asyncio.sleep(0.3)
            job = await self._job()
        if job is None and record is None:
            raise PersonFault(f"Slurm does not run job {self.job_id} on {self._node}.")
        if job is None or (record is not None and record.image):
            return record if job else None
        lines = stamped_lines(job)
        record = self._store.save(plain_record(job, self._node))
        return self._store.save(full_record(record, job, lines, self._config))

    async def _job(self) -> Job | None:
        """The job as slurmctld knows it, None if it does not run here; waits while slurmctld does not answer."""
        for pause in pauses():
            try:
                job = await ask(lambda: self._slurm.job(self.job_id))
            except ClusterFault as fault:
                self.board.note(f"{fault} Waiting for it.")
                await asyncio.sleep(pause)
                continue
            return job if job is not None and self._lives_here(job) else None
        raise AssertionError("unreachable")

    def _lives_here(self, job: Job) -> bool:
        return job.state in ALIVE and not job.completing and self._node in job.nodes

    async def _may_be_ours(self, record: Record) -> bool:
        """Whether this attempt still runs, as far as Slurm says: what is over must not touch the next attempt."""
        try:
            job = await ask(lambda: self._slurm.job(self.job_id))
        except ClusterFault:
            return True  # unknown is not gone
        return job is not None and self._lives_here(job) and job.restarts == record.attempt

    async def _watch(self, record: Record) -> None:
        name = blueprint.pod_name(record, self._node)
        state = await self._ended(name)
        code = self._places.meeting.read_exit()
        if code is None or self._places.meeting.was_ended_from_outside(code):
            state = await self._with_reason(name, state)
            if state is not None and state.fault is not None:
                raise state.fault
            if state is None and self._config.backend == "kubernetes":  # it went while no agent was there to see it
                raise deleted(str(name))
        if code is None and state is not None and not exists(self._places.meeting.shell):
            raise await self._backend.start_fault(name, record.image)
        if code is None:
            code = state.exit_code if state and state.exit_code is not None else 137
            logger.warning(f"job {self.job_id}: the pod is gone without an exit code of the body ({state})")
        self._store.save(replace(record, out_of_memory=bool(state and state.out_of_memory)))
        self.board.tell("gone", exit_code=code)

    async def _ended(self, name: PodName) -> PodState | None:
        """The pod's last state, None if it is gone. While the cluster cannot be asked, the body runs on."""
        for pause in pauses():
            try:
                return await self._backend.wait(name)
            except ClusterFault as fault:
                logger.info(f"job {self.job_id}: {fault}")
                await asyncio.sleep(pause)
        raise AssertionError("unreachable")

    async def _with_reason(self, name: PodName, state: PodState | None) -> PodState | None:
        """The state once its reason is told, for a pod that somebody else has ended."""
        deadline = time.monotonic() + SECONDS_FOR_A_REASON
        while state and not (state.fault or state.out_of_memory) and exists(self._places.meeting.shell):
            if time.monotonic() > deadline:
                break
            await asyncio.sleep(0.2)
            with contextlib.suppress(ClusterFault):
                state = await self._backend.wait(name) or state
        return state

    async def _fail(self, fault: SlurmK8sError) -> None:
        """Whose fault decides: the person's job ends, the cluster's is tried again elsewhere or later."""
        logger.warning(f"job {self.job_id}: {fault.fault}: {fault}")
        sentence = str(fault)
        record = self._store.load(self.job_id)
        if record is None:  # nothing was made, so nothing is owed
            self.refused = True
            self.board.tell("refused", sentence=sentence, exit_code=1)
            return
        again = isinstance(fault, (ClusterFault, NodeFault)) and record.may_requeue
        waiting = isinstance(fault, QuotaFull)  # the person's other jobs are nobody's fault
        if again and not waiting and record.tries >= self._config.agent.attempts:
            again = False
            sentence += f" It was tried {record.tries} times."
        noted = False
        with contextlib.suppress(SlurmK8sError, OSError):
            await self._bundles.note(record, sentence + (" The job goes back to the queue." if again else ""))
            noted = self._places.meeting.plan.exists()  # only then does slurmk8s-run copy the log
        record = replace(record, failure=sentence, fault=fault.fault, requeueing=again, waiting=waiting)
        try:
            self._store.save(record)
        except OSError as error:  # slurmk8s-run must hear of the end all the same
            logger.error(f"job {self.job_id}: its record cannot be written: {error}")
        if isinstance(fault, NodeFault):
            await self._with_slurm(lambda: self._slurm.drain(self._node, f"slurmk8s: {fault.sentence}"))
        await self._act_on_failure(record, noted)

    async def _act_on_failure(self, record: Record, noted: bool) -> None:
        """Tell slurmk8s-run, which ends the job, or have Slurm put it back into the queue."""
        if record.requeueing:
            self.board.tell("requeueing", sentence=record.failure, noted=noted)
            delay = self._config.agent.requeue_delay_seconds
            if record.waiting:
                delay = self._config.kubernetes.quota_wait_seconds
            await self._with_slurm(
                lambda: self._slurm.requeue(
                    self.job_id, record.failure or "", delay, attempt=record.attempt, waited=record.waiting
                )
            )
        else:
            self.board.tell("failed", sentence=record.failure, noted=noted, exit_code=1)

    async def _with_slurm(self, question: Any) -> None:  # noqa: ANN401 - any call
        for pause in pauses():
            try:
                await ask(question)
            except ClusterFault:
                await asyncio.sleep(pause)
                continue
            except SlurmK8sError as fault:
                logger.error(f"job {self.job_id}: {fault}")
            return

    # Death: nothing is left on the node, and the bundle is owed.

    async def finish(self) -> None:
        """Stop the work, kill and remove the pod, keep what the bundle needs. Safe to do twice."""
        async with self._finishing:
            self._task.cancel()
            # However they ended: what counts is what is here now.
            await asyncio.gather(self._task, *self._making.begun, return_exceptions=True)
            record = self._store.load(self.job_id) or await self._unknown_so_far()
            if record is None:
                self._store.forget(self.job_id)
                return
            record = await self._end(record)
            self.board.tell("gone", exit_code=record.exit_code or 1)

    async def _unknown_so_far(self) -> Record | None:
        """The record of a job that was over before Slurm had told us of it: its person is owed a bundle all the same.

        Its hint is gone once it was finished. One that goes back to the queue has its bundle from the next attempt.
        """
        if self.job_id not in self._store.hints():
            return None
        try:
            job = await ask(lambda: self._slurm.job(self.job_id))
            # While it completes, Slurm's word for a cancelled job and one that is requeued is the same; the end is not.
            over = job is not None and (job.completing or job.state in FINISHED) and job.ended is not None
            if job is None or not over or self._node not in job.nodes or not stamped_lines(job):
                return None
            return self._store.save(plain_record(job, self._node))
        except (SlurmK8sError, OSError) as error:  # the node must not wait for it: nothing of the job is on it
            logger.warning(f"job {self.job_id}: over before it was known here: {error}")
            return None

    async def _end(self, record: Record) -> Record:
        """Kill and remove the pod, owe the bundle, clear the node."""
        name = blueprint.pod_name(record, self._node)
        state, cut_short = await self._stop_body(name)
        code = self._places.meeting.read_exit()
        try:
            await self._backend.delete(name, record.marks)
        except DeadButListed as fault:  # the node is free; the reaper removes what is left of it
            logger.warning(f"job {self.job_id}: {fault}")
        await asyncio.to_thread(meeting.clear_home, self._places)
        record = replace(
            record,
            exit_code=code if code is not None else (state.exit_code if state else None),
            reported=code is not None,
            cut_short=cut_short,
            told_to_end=exists(self._places.meeting.terminated),
            problem=self._places.meeting.read_problem(),
            peak_bytes=self._places.meeting.read_peak(),
            cpu_seconds=self._places.meeting.read_cpu_seconds(),
            script_sha256=self._places.meeting.read_sha256(),
            out_of_memory=record.out_of_memory
            or bool(state and state.out_of_memory)
            or exists(self._places.meeting.out_of_memory),
            body_started=_modified(self._places.meeting.shell),
            ended=_modified(self._places.meeting.exit) or time.time(),
        )
        self._store.owe(record)
        await asyncio.to_thread(meeting.clear, self._places)
        return record

    async def _stop_body(self, name: PodName) -> tuple[PodState | None, bool]:
        """Give a body that still runs its grace; slurmk8s-run has passed SIGTERM on, unless it was killed itself."""
        state = await self._backend.find(name)
        if state is None or not (state.running or self._has_just_begun(state)):
            return state, False
        exited = self._places.meeting.read_exit() is not None
        cut_short = not exited and not exists(self._places.meeting.terminated)
        if not exists(self._places.meeting.shell):
            return state, cut_short  # only the launcher, waiting for a hand-over: nobody to give time to
        if cut_short:
            self._places.meeting.send_signal("all", "TERM")
        grace = 2.0 if exited else self._config.agent.kill_grace_seconds
        try:
            async with asyncio.timeout(grace):
                return await self._backend.wait(name), cut_short
        except TimeoutError:
            logger.info(f"job {self.job_id}: still running after {grace:g} s of grace; killed")
            return await self._backend.find(name), cut_short

    def _has_just_begun(self, state: PodState) -> bool:
        """A kubelet tells a second late that the container runs; the body's own file tells at once."""
        return state.exit_code is None and state.fault is None and exists(self._places.meeting.shell)

    async def close(self) -> None:
        """The agent stops: leave the pod as it is."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


def _modified(path: Path) -> float | None:
    """When a file of the hand-over folder was written; the user may have put anything there."""
    try:
        return min(path.lstat().st_mtime, time.time())
    except OSError:
        return None
