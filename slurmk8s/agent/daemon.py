"""The agent's process: its socket, its jobs, its debts and its reaper."""

import asyncio
import contextlib
import json
import os
import signal
import socket
from collections import Counter
from typing import Any

from loguru import logger

from slurmk8s.after.figures import Figures
from slurmk8s.after.runner import Runner
from slurmk8s.after.spool import Spool
from slurmk8s.agent import peer
from slurmk8s.agent.debts import Debts
from slurmk8s.agent.meter import Meter
from slurmk8s.agent.reaper import Reaper
from slurmk8s.agent.record import Store
from slurmk8s.agent.work import Work
from slurmk8s.config import Config
from slurmk8s.errors import SlurmK8sError
from slurmk8s.metrics import Metrics
from slurmk8s.pod.backend import Backend
from slurmk8s.slurm.client import Slurm

# A question is a word and a number.
LONGEST_QUESTION = 4096
SECONDS_FOR_A_QUESTION = 5
# Connections of one user: above the jobs that one node runs for one person, far below what the agent can hold open.
MOST_CALLERS = 512
# slurmk8s-run takes a longer silence for an agent that hangs.
SECONDS_BETWEEN_SIGNS = 10
LOOKS = 5
# Below what systemd and people wait for a daemon.
SECONDS_TO_STOP = 5


class Agent:
    """One node's agent."""

    def __init__(self, node: str, config: Config, slurm: Slurm, backend: Backend) -> None:
        self._node = node
        self._config = config
        self._slurm = slurm
        self._backend = backend
        self._run_folder = config.agent.run_folder_of(node)
        self._store = Store(config.agent.state_folder_of(node))
        self._meter = Meter(node, config, backend, self._store)
        self._metrics = Metrics("agent")
        self._after = self._runner()
        self._debts = Debts(node, config, slurm, self._store, self._after)
        self._reaper = Reaper(node, config, slurm, backend, self._store, self.finish, self._is_attended)
        self._works: dict[int, Work] = {}
        self._callers: Counter[int] = Counter()
        self._refused: set[tuple[int, int]] = set()

    async def serve(self) -> None:
        """Until SIGTERM: answer, pay, reap. Pods run on while no agent does."""
        os.umask(0o022)
        hear_all_signals()
        stopped = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        server = await asyncio.start_unix_server(self._answer, sock=self._socket(), limit=LONGEST_QUESTION)
        settings = self._config.metrics
        textfile = settings.textfile_of(f"agent_{self._node}")
        self._metrics.expose(settings.agent_address, textfile, settings.seconds)
        errands = (self._backend.serve(), self._debts.pay(), self._reaper.reap(), self._after.run())
        tasks = [asyncio.create_task(errand) for errand in errands]
        for record in self._store.jobs():
            self.ensure(record.job_id)
        for job_id in self._store.hints():
            self.ensure(job_id)
        logger.info(f"agent of {self._node} ready")
        async with server:
            await stopped.wait()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=SECONDS_TO_STOP)
        for work in self._works.values():
            await work.close()
        await asyncio.to_thread(self._metrics.close)
        logger.info(f"agent of {self._node} stopped")

    def _socket(self) -> socket.socket:
        """Everyone may ask; who may have what is decided by who asks."""
        self._run_folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        path = self._run_folder / "agent.sock"
        building = self._run_folder / "agent.sock.tmp"
        building.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(building))
        building.chmod(0o666)
        listener.listen(512)
        building.rename(path)  # a predecessor's socket is replaced in one step
        return listener

    def _runner(self) -> Runner:
        """What happens when bundles are complete."""
        spool = Spool(self._config.agent.state_folder_of(self._node) / "after").prepare()
        figures = Figures(self._metrics, users=self._config.metrics.users)
        return Runner(self._config, self._node, spool, self._slurm, self._store.is_owed, figures)

    def ensure(self, job_id: int) -> Work:
        """The job's work, begun if it was not. What was refused, or is over, is forgotten once nobody listens."""
        for other, work in list(self._works.items()):
            if (work.refused or work.over) and not work.board.listeners:
                del self._works[other]
        if job_id not in self._works:
            self._works[job_id] = Work(
                job_id, self._node, self._config, self._slurm, self._backend, self._store, self._meter
            )
        return self._works[job_id]

    def _is_attended(self, job_id: int) -> bool:
        """Whether a process of that very job is connected: then it lives here."""
        return job_id in self._works and bool(self._works[job_id].board.listeners)

    async def finish(self, job_id: int) -> None:
        """The job is over: nothing of it stays on the node."""
        if job_id not in self._works and self._store.load(job_id) is None and job_id not in self._store.hints():
            return
        await self.ensure(job_id).finish()
        self._works.pop(job_id, None)
        self._debts.wake()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One caller, one question."""
        caller = peer.of(writer.get_extra_info("socket"))
        self._callers[caller.uid] += 1
        try:
            if caller.uid != 0 and self._callers[caller.uid] > MOST_CALLERS:
                return
            async with asyncio.timeout(SECONDS_FOR_A_QUESTION):
                question = json.loads(await reader.readline() or b"null")
            if not isinstance(question, dict):
                return
            job_id = question.get("job_id")
            match question.get("ask"):
                case "hint" if caller.uid == 0 and isinstance(job_id, int):
                    self.ensure(job_id)
                case "finish" if caller.uid == 0 and isinstance(job_id, int):
                    await self._answer_finish(job_id, writer)
                case "pod" if isinstance(job_id, int):
                    await self._answer_pod(caller, job_id, reader, writer)
                case "status":
                    await _send(writer, {"node": self._node, "ready": True, "jobs": len(self._works)})
                case _:
                    await _send(writer, {"stage": "refused", "sentence": "The agent does not take this question."})
        except (ConnectionError, ValueError, TimeoutError, RecursionError, asyncio.LimitOverrunError):
            pass  # a caller that is gone, says nothing or talks nonsense
        except Exception as error:  # noqa: BLE001 - one caller's trouble is not the next one's
            logger.exception(f"a question failed: {error}")
        finally:
            writer.close()
            self._callers[caller.uid] -= 1
            if not self._callers[caller.uid]:
                del self._callers[caller.uid]

    async def _answer_finish(self, job_id: int, writer: asyncio.StreamWriter) -> None:
        try:
            await self.finish(job_id)
        except SlurmK8sError as fault:
            await _send(writer, {"done": False, "sentence": str(fault)})
            return
        await _send(writer, {"done": True})

    async def _answer_pod(
        self, caller: peer.Peer, job_id: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """News of the pod until it is gone, for a process of that very job."""
        for _ in range(LOOKS):
            if caller.job_id is not None:
                break
            await asyncio.sleep(0.1)  # slurmstepd may not have taken its name yet
            caller = peer.of(writer.get_extra_info("socket"))
        if caller.job_id != job_id:
            if len(self._refused) < 1000 and (caller.uid, job_id) not in self._refused:  # a flood must not fill the log
                self._refused.add((caller.uid, job_id))
                logger.warning(f"pid {caller.pid} of uid {caller.uid} (job {caller.job_id}) asked for job {job_id}")
            await _send(writer, {"stage": "refused", "sentence": f"This process is not part of job {job_id}."})
            return
        work = self.ensure(job_id)
        queue = work.board.listen()
        await _send(writer, {"stage": "here"})
        gone = asyncio.create_task(reader.read())
        try:
            while not gone.done():
                news = asyncio.create_task(queue.get())
                await asyncio.wait({news, gone}, timeout=SECONDS_BETWEEN_SIGNS, return_when=asyncio.FIRST_COMPLETED)
                if news.done():
                    await _send(writer, news.result())
                    continue
                news.cancel()
                await _send(writer, {"stage": "here"})
        finally:
            gone.cancel()
            with contextlib.suppress(asyncio.CancelledError, ConnectionError):
                await gone
            work.board.listeners.discard(queue)


def hear_all_signals() -> None:
    """An ignored signal stays ignored in every program that we start, down to a job's body, which could not trap it.

    We were started ignoring some if that was done by nohup, or in the background of a script.
    """
    for number in signal.valid_signals() - {signal.SIGPIPE, signal.SIGCHLD}:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)  # for ourselves as before; a program that we start has the default


async def _send(writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
    writer.write(json.dumps(message).encode() + b"\n")
    await writer.drain()
