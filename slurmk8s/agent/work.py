"""One job on this node: from the first hint to a running pod, and back to nothing.

`ensure` may be asked any number of times, by the Prolog's hint and by slurmk8s-run; there is one worker per job, and it
starts where an earlier agent stopped. Whoever listens hears each stage.
"""

import asyncio
import contextlib
import errno
import time
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

from loguru import logger

from slurmk8s.agent import blueprint, meeting, person
from slurmk8s.agent.asking import ask, pauses
from slurmk8s.agent.record import Record, Store
from slurmk8s.agent.request import full_record, plain_record, stamped_lines
from slurmk8s.config import Config
from slurmk8s.errors import ClusterFault, NodeFault, PersonFault, SlurmK8sError
from slurmk8s.pod import labels
from slurmk8s.pod.backend import Backend, PodState
from slurmk8s.rendezvous import exists
from slurmk8s.slurm.client import Job, Slurm

ALIVE = ("RUNNING", "CONFIGURING", "SUSPENDED", "STOPPED", "SIGNALING")
LOOKS = 5
SECONDS_FOR_CHECKSUMS = 20
DISK_TROUBLE = (errno.ENOSPC, errno.EROFS, errno.EIO, errno.EDQUOT)


class Work:
    """The job's state here, and the task that moves it on."""

    def __init__(self, job_id: int, node: str, config: Config, slurm: Slurm, backend: Backend, store: Store) -> None:
        self.job_id = job_id
        self.refused = False
        """Not a job of ours, or not here: nothing was made."""
        self.listeners: set[asyncio.Queue[dict[str, Any]]] = set()
        self._node = node
        self._config = config
        self._slurm = slurm
        self._backend = backend
        self._store = store
        self._bundles = person.Bundles(config)
        self._news: dict[str, dict[str, Any]] = {}
        self._finishing = asyncio.Lock()
        self._begun: list[asyncio.Future[None]] = []
        self._places = meeting.Places.of(config, node, job_id)
        self._results = self._bundles.folder(job_id)
        self._task = asyncio.create_task(self._live())

    @property
    def _pod(self) -> str:
        """The pod's name. Which of the job's nodes this one is stands in the record, which is there before the pod."""
        record = self._store.load(self.job_id)
        return labels.pod_name(self.job_id, record.rank(self._node) if record else 0)

    # News: the latest message of each kind is kept for whoever comes later.

    def listen(self) -> asyncio.Queue[dict[str, Any]]:
        """A queue that gets what has happened and what will."""
        queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        for message in self._news.values():
            queue.put_nowait(message)
        self.listeners.add(queue)
        return queue

    def _tell(self, stage: str, **fields: Any) -> None:  # noqa: ANN401 - JSON
        message = {"stage": stage, **fields}
        self._news[stage] = message
        for queue in self.listeners:
            queue.put_nowait(message)

    # Life: make the pod, watch it, tell its end.

    async def _live(self) -> None:
        try:
            record = await self._begin()
            if record is None:
                return  # it is over already; the Epilog or the reaper comes
            if record.failure is not None:  # an earlier agent got this far
                await self._act_on_failure(record, noted=True)
                return
            record = await self._make(record)
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
        if record is not None and record.made:
            return record
        job = await self._job()
        for _ in range(LOOKS if record is None else 0):  # whoever asked for it says it runs: Slurm may be a moment late
            if job is not None:
                break
            await asyncio.sleep(0.3)
            job = await self._job()
        if job is None and record is None:
            raise PersonFault(f"Slurm does not run job {self.job_id} on {self._node}.")
        if job is None or (record is not None and record.attempt == job.restarts and record.image):
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
                self._tell("note", sentence=f"{fault} Waiting for it.")
                await asyncio.sleep(pause)
                continue
            alive = job is not None and job.state in ALIVE and not job.completing and self._node in job.nodes
            return job if alive else None
        raise AssertionError("unreachable")

    async def _make(self, record: Record) -> Record:
        """Results folder, rendezvous, image, pod; each step can be done again."""
        meeting.require_mounts(self._config, self._node, record)
        await self._earlier_attempt_written(record)
        await self._until_cluster_answers(lambda: self._bundles.prepare(record))
        account = person.account(record.uid)
        home = account.pw_dir if account.pw_dir.startswith("/") else "/"
        size = blueprint.shm_bytes(self._config, record)
        plan = blueprint.plan(self._config, record, self._results)
        await self._uninterrupted(
            asyncio.to_thread(meeting.furnish, self._places, record, account, self._results, size, plan)
        )
        self._tell("planned")
        record = await self._pull(record)
        if not (record.made and await self._backend.find(self._pod)):
            if record.made:
                return record  # it was there and is gone: _watch tells it
            pod = blueprint.pod(self._config, self._node, record, self._places, home, self._results)
            await self._uninterrupted(self._backend.create(pod))
            record = self._store.save(replace(record, made=True))
        self._tell("running")
        return record

    async def _earlier_attempt_written(self, record: Record) -> None:
        """Its summary moves aside together with its logs, so it comes first.

        Its checksums too, if they do not take long: two workers at one bundle get into each other's way.
        """
        patience = time.monotonic() + SECONDS_FOR_CHECKSUMS
        while self._store.still_owes(record.job_id, record.attempt) or (  # noqa: ASYNC110 - the debts' files tell
            time.monotonic() < patience and self._store.owes_anything(record.job_id, record.attempt)
        ):
            await asyncio.sleep(0.05)

    async def _uninterrupted(self, step: Coroutine[Any, Any, None]) -> None:
        """What has begun is finished even if the job ends meanwhile: half a pod cannot be found and removed."""
        self._begun = [asyncio.ensure_future(step)]
        await asyncio.shield(self._begun[0])

    async def _pull(self, record: Record) -> Record:
        if record.digest is not None:
            return record
        record = self._store.save(replace(record, pull_started=time.time()))
        news = asyncio.create_task(self._tell_pull(record.image))
        notes: set[str] = set()

        def tell(sentence: str) -> None:
            if sentence not in notes:  # once is enough for people
                notes.add(sentence)
                self._tell("note", sentence=sentence)

        try:
            digest = await self._until_cluster_answers(lambda: self._backend.pull(record.image, tell), tell)
        finally:
            news.cancel()
        return self._store.save(replace(record, digest=digest, pulled=time.time()))

    async def _tell_pull(self, image: str) -> None:
        started = time.monotonic()
        while True:
            await asyncio.sleep(1)  # an image that is here already is no news
            self._tell("pulling", image=image, seconds=time.monotonic() - started)

    async def _until_cluster_answers(self, attempt: Any, tell: Any = None) -> Any:  # noqa: ANN401 - any coroutine
        """Try again while the cluster is at fault, for as long as one attempt may; then the fault stands."""
        deadline = time.monotonic() + self._config.images.pull_retry_seconds
        for pause in pauses():
            try:
                return await attempt()
            except ClusterFault as fault:
                if time.monotonic() + pause > deadline:
                    raise
                (tell or (lambda sentence: self._tell("note", sentence=sentence)))(f"{fault.sentence} Trying again.")
                await asyncio.sleep(pause)
        raise AssertionError("unreachable")

    async def _watch(self, record: Record) -> None:
        state = await self._backend.wait(self._pod)
        code = self._places.meeting.read_exit()
        if code is None and state is not None and not exists(self._places.meeting.shell):
            raise await self._backend.start_fault(self._pod, record.image)
        if code is None:
            code = state.exit_code if state and state.exit_code is not None else 137
            logger.warning(f"job {self.job_id}: the pod is gone without an exit code of the body ({state})")
        self._store.save(replace(record, out_of_memory=bool(state and state.out_of_memory)))
        self._tell("gone", exit_code=code)

    async def _fail(self, fault: SlurmK8sError) -> None:
        """Whose fault decides: the person's job ends, the cluster's is tried again elsewhere or later."""
        logger.warning(f"job {self.job_id}: {fault.fault}: {fault}")
        sentence = str(fault)
        record = self._store.load(self.job_id)
        if record is None:  # nothing was made, so nothing is owed
            self.refused = True
            self._tell("refused", sentence=sentence, exit_code=1)
            return
        again = isinstance(fault, (ClusterFault, NodeFault)) and record.may_requeue
        if again and record.attempt + 1 >= self._config.agent.attempts:
            again = False
            sentence += f" It was tried {record.attempt + 1} times."
        noted = False
        with contextlib.suppress(SlurmK8sError, OSError):
            await self._bundles.note(record, sentence + (" The job goes back to the queue." if again else ""))
            noted = self._places.meeting.plan.exists()  # only then does slurmk8s-run copy the log
        record = replace(record, failure=sentence, fault=fault.fault, requeueing=again)
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
            self._tell("requeueing", sentence=record.failure, noted=noted)
            delay = self._config.agent.requeue_delay_seconds
            await self._with_slurm(lambda: self._slurm.requeue(self.job_id, record.failure or "", delay))
        else:
            self._tell("failed", sentence=record.failure, noted=noted, exit_code=1)

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
            await asyncio.gather(self._task, *self._begun, return_exceptions=True)
            record = self._store.load(self.job_id)
            if record is None:
                self._store.forget(self.job_id)
                return
            state, cut_short = await self._stop_body()
            code = self._places.meeting.read_exit()
            await self._backend.delete(self._pod)
            await asyncio.to_thread(meeting.clear_home, self._places)
            record = replace(
                record,
                exit_code=code if code is not None else (state.exit_code if state else None),
                reported=code is not None,
                cut_short=cut_short,
                problem=self._places.meeting.read_problem(),
                out_of_memory=record.out_of_memory
                or bool(state and state.out_of_memory)
                or exists(self._places.meeting.out_of_memory),
                body_started=_modified(self._places.meeting.shell),
                ended=_modified(self._places.meeting.exit) or time.time(),
            )
            self._store.owe(record)
            await asyncio.to_thread(meeting.clear, self._places)
            for queue in self.listeners:
                queue.put_nowait({"stage": "gone", "exit_code": record.exit_code or 1})

    async def _stop_body(self) -> tuple[PodState | None, bool]:
        """Give a body that still runs its grace; slurmk8s-run has passed SIGTERM on, unless it was killed itself."""
        state = await self._backend.find(self._pod)
        if state is None or not state.running:
            return state, False
        exited = self._places.meeting.read_exit() is not None
        cut_short = not exited and not exists(self._places.meeting.terminated)
        if not exists(self._places.meeting.shell):
            return state, cut_short  # only the launcher, waiting for a hand-over: nobody to give time to
        if cut_short:
            await self._backend.terminate(self._pod)
        grace = 2.0 if exited else self._config.agent.kill_grace_seconds
        try:
            async with asyncio.timeout(grace):
                return await self._backend.wait(self._pod), cut_short
        except TimeoutError:
            logger.info(f"job {self.job_id}: still running after {grace:g} s of grace; killed")
            return await self._backend.find(self._pod), cut_short

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
