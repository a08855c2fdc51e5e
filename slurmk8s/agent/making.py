"""From a record to a running pod: results folder, rendezvous, image, pod. Each step can be done again."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import Any, TypeVar

from slurmk8s.agent import blueprint, gpus, meeting, person, volumes
from slurmk8s.agent.asking import pauses
from slurmk8s.agent.board import Board
from slurmk8s.agent.record import Record, Store
from slurmk8s.config import Config
from slurmk8s.errors import ClusterFault
from slurmk8s.pod.backend import Backend, Started
from slurmk8s.pod.kubernetes_refusals import QuotaFull
from slurmk8s.rendezvous import exists

SECONDS_FOR_CHECKSUMS = 20
# What takes no longer is no news: an image that is here already, and a pod whose kubelet has only to start it.
SECONDS_TO_LOOK = 1
SECONDS_TO_START = 5
Answer = TypeVar("Answer")


class Making:
    """Makes one job's pod on this node."""

    def __init__(
        self, node: str, config: Config, backend: Backend, store: Store, board: Board, places: meeting.Places
    ) -> None:
        self.begun: list[asyncio.Future[None]] = []
        """What must be finished before anything is cleared."""
        self._node = node
        self._config = config
        self._backend = backend
        self._store = store
        self._board = board
        self._places = places
        self._bundles = person.Bundles(config)

    async def make(self, record: Record) -> Record:
        """All of it, from wherever an earlier agent stopped."""
        if not record.running:
            await self._furnish(record)
            if not self._gpus_first(record):
                self._board.tell("planned")  # the hand-over waits in its folder until the launcher comes
            record = await self._pull(record)
            record = await self._create(record)
            record = await self._start(record)
        self._board.tell("planned")
        self._board.tell("running")
        return record

    def _gpus_first(self, record: Record) -> bool:
        """podman is given the very device files; elsewhere somebody else has chosen them, so they are looked at."""
        return bool(record.gpus) and self._config.backend == "kubernetes"

    async def _furnish(self, record: Record) -> None:
        config = self._config
        meeting.require_mounts(config, self._node, record)
        await self._earlier_attempt_written(record)
        await self._patiently(lambda: self._bundles.prepare(record))
        results = self._bundles.folder(record.job_id)
        size = volumes.shm_bytes(config, record) if config.backend == "podman" else None
        plan = blueprint.plan(config, record, results)
        account = person.account(record.uid)
        await self._uninterrupted(
            asyncio.to_thread(
                meeting.furnish, self._places, record, account, results, size, plan, in_bundle=config.uses_claims
            )
        )

    async def _earlier_attempt_written(self, record: Record) -> None:
        """Its summary moves aside together with its logs, so it comes first.

        Its checksums too, if they do not take long: two workers at one bundle get into each other's way.
        """
        patience = time.monotonic() + SECONDS_FOR_CHECKSUMS
        while self._store.still_owes(record.job_id, record.attempt) or (  # noqa: ASYNC110 - the debts' files tell
            time.monotonic() < patience and self._store.owes_anything(record.job_id, record.attempt)
        ):
            await asyncio.sleep(0.05)

    async def _pull(self, record: Record) -> Record:
        if record.digest is not None or record.made:
            return record
        asked = time.time()
        with _Telling(self._board, record.image, SECONDS_TO_LOOK):
            digest = await self._patiently(lambda: self._backend.pull(record.image, self._board.note))
        if digest is None:
            return record  # whoever starts the pod pulls it
        return self._store.save(replace(record, digest=digest, pull_started=asked, pulled=time.time()))

    async def _create(self, record: Record) -> Record:
        if record.made:
            return record
        config = self._config
        account = person.account(record.uid)
        uuids: tuple[str, ...] = ()
        if self._gpus_first(record) and config.gpu.mode == "pinned":
            uuids = await asyncio.to_thread(gpus.uuids, config.gpu, record.gpus)
        around = blueprint.Surroundings(
            self._node,
            self._places,
            person.home(account),
            self._bundles.folder(record.job_id),
            meeting.told(account, record.groups),
            uuids,
        )
        pod = blueprint.pod(config, record, around)
        await self._patiently(
            lambda: self._uninterrupted(self._backend.create(pod)), waits_for_room=not record.may_requeue
        )
        return self._store.save(replace(record, made=True))

    async def _start(self, record: Record) -> Record:
        """Return when the container runs. One that is gone already is for the watch to tell."""
        name = blueprint.pod_name(record, self._node)
        # The kubelet tells late that the container runs; the launcher's word that the body does comes at once.
        begun = self._places.meeting.shell
        with _Telling(self._board, record.image, SECONDS_TO_START, lambda: exists(begun)):
            started = await self._patiently(lambda: self._started_or_gone(record))
        if started is None:
            return record
        if self._gpus_first(record):
            state = await self._backend.find(name)
            if state is None or state.exit_code is not None:
                return record  # it has ended already: the watch tells why
            pids = await self._backend.processes(name)
            await asyncio.to_thread(gpus.require, self._config.gpu, record.gpus, self._config.kubernetes.proc, pids)
        if started.digest is not None:
            record = replace(record, digest=started.digest, pull_started=started.pull_started, pulled=started.pulled)
        return self._store.save(replace(record, running=True, marks=started.marks))

    async def _started_or_gone(self, record: Record) -> Started | None:
        name = blueprint.pod_name(record, self._node)
        if await self._backend.find(name) is None:
            return None
        return await self._backend.started(name, record.image, self._board.note)

    async def _uninterrupted(self, step: Coroutine[Any, Any, None]) -> None:
        """What has begun is finished even if the job ends meanwhile: half a pod cannot be found and removed."""
        self.begun = [asyncio.ensure_future(step)]
        await asyncio.shield(self.begun[0])

    async def _patiently(self, attempt: Callable[[], Awaitable[Answer]], *, waits_for_room: bool = False) -> Answer:
        """Try again while the cluster is at fault, for as long as one attempt may; then the fault stands.

        A full quota is the person's own other jobs: the queue is the place to wait, unless the job may not go back.
        """
        deadline = time.monotonic() + self._config.images.pull_retry_seconds
        for pause in pauses():
            try:
                return await attempt()
            except QuotaFull as fault:
                if not waits_for_room:
                    raise
                self._board.note(f"{fault.sentence} Waiting for it.")
            except ClusterFault as fault:
                if time.monotonic() + pause > deadline:
                    raise
                self._board.note(f"{fault.sentence} Trying again.")
            await asyncio.sleep(pause)
        raise AssertionError("unreachable")


class _Telling:
    """While a pull lasts, the person hears how long."""

    def __init__(self, board: Board, image: str, quiet_seconds: float, is_over: Callable[[], bool] = bool) -> None:
        self._board = board
        self._image = image
        self._quiet = quiet_seconds
        self._is_over = is_over

    def __enter__(self) -> None:
        self._task = asyncio.create_task(self._tell())

    def __exit__(self, *_: object) -> None:
        self._task.cancel()

    async def _tell(self) -> None:
        started = time.monotonic()
        await asyncio.sleep(self._quiet)
        while not self._is_over():
            self._board.tell("pulling", image=self._image, seconds=time.monotonic() - started)
            await asyncio.sleep(1)
