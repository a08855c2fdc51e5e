"""Summaries of jobs whose node was lost and does not come back, written from the head node, beside the watcher.

A node that comes back finishes the bundles it owes itself, and knows more; so the head node waits, as long as
`results.lost_node_seconds` says, and what the node tells later takes the place of the head node's account. Whoever
cannot be asked has not said that a node is lost. From then on it is a debt like the agent's own: `agent/debts.py` pays
it, as the job's owner, and it outlives a crash. Who was first to write a summary tells people, and nobody else does.
"""

import asyncio
import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from loguru import logger

from slurmk8s.after.runner import Runner
from slurmk8s.after.spool import Spool
from slurmk8s.agent import ending
from slurmk8s.agent.asking import ask
from slurmk8s.agent.debts import Debts
from slurmk8s.agent.person import Bundles
from slurmk8s.agent.record import Record, Store
from slurmk8s.agent.request import full_record, plain_record, stamped_lines
from slurmk8s.config import Config
from slurmk8s.errors import ClusterFault, NodeFault, PersonFault, SlurmK8sError
from slurmk8s.ops import last_seen
from slurmk8s.ops.last_seen import Attempt, Book
from slurmk8s.results.summary import HEAD, NODE_AFTER_HEAD
from slurmk8s.results.summary_text import duration, when
from slurmk8s.slurm import nodes, past, queue
from slurmk8s.slurm.client import Job
from slurmk8s.slurm.commands import SlurmCommands
from slurmk8s.slurm.queue import Seen
from slurmk8s.slurm.records import FINISHED

LOOK_SECONDS = 15.0
"""Between two looks: well below SlurmdTimeout, after which Slurm takes jobs from a silent node."""
SECONDS_FOR_A_BUNDLE = 120.0
"""For a look into one; then the NAS hangs."""
NONSENSE = (ValueError, KeyError, TypeError)
"""What comes of an answer that a person has put into the pipe of their own process; other people's jobs go on."""
NAME = "head"


def folder_of(config: Config) -> Path:
    """Where the head node keeps what it remembers and owes."""
    return config.agent.state_folder_of(NAME) / NAME


@dataclass
class LostJobs:
    """Looks every few seconds. Only ever one thread is in it, and one service on a machine."""

    config: Config
    slurm: SlurmCommands
    pod_words: Callable[[Job], str] = lambda _job: ""
    """What Kubernetes says of a job's pod, where it is asked; nothing if it does not answer."""
    _trouble: str = ""

    def run(self, stop: threading.Event) -> None:
        """Look until told to stop; begin anew when the configuration is another."""
        while not stop.is_set():
            try:
                folder = folder_of(self.config)
                with _alone(folder) as alone:
                    if alone:
                        asyncio.run(self._serve(self.config, folder, stop))
                self._tell("")
            except (OSError, SlurmK8sError) as error:
                self._tell(str(error))
            except Exception:  # noqa: BLE001 - a bug in a chore must not end the service; its traceback is for us
                if not stop.is_set():  # the interpreter may be going away under it
                    logger.exception("Looking after jobs of lost nodes met a bug; it is tried again.")
            stop.wait(LOOK_SECONDS)

    async def _serve(self, config: Config, folder: Path, stop: threading.Event) -> None:
        store = Store(folder)
        # An archive is made of what the node itself tells: its original may be removed.
        plain = config.after.model_copy(update={"archive": config.after.archive.model_copy(update={"enabled": False})})
        told = config.model_copy(update={"after": plain})
        after = Runner(told, NAME, Spool(folder / "after").prepare(), self.slurm, store.is_owed)
        debts = Debts(NAME, config, self.slurm, store, after)
        tasks = [asyncio.create_task(errand) for errand in (debts.pay(), after.run())]
        pause = min(LOOK_SECONDS, config.results.lost_node_seconds)
        try:
            while not stop.is_set() and self.config is config:
                try:
                    await self.look(config, store, debts, after)
                    self._tell("")
                except (OSError, SlurmK8sError) as error:
                    self._tell(str(error))
                await asyncio.to_thread(stop.wait, pause)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def look(self, config: Config, store: Store, debts: Debts, after: Runner) -> None:
        """One look at everything; raises if Slurm does not answer, and then nothing has changed."""
        path = store.folder / "last_seen.json"
        before = await asyncio.to_thread(last_seen.load, path)
        book = await ask(lambda: self._asked(config, before))
        if book != before:
            await asyncio.to_thread(book.save, path)
        back = [record for record in store.owed() if record.nodes[0] not in book.away]
        await asyncio.gather(*(_leave_to_node(config, store, after, record) for record in back))
        now = time.time()
        for attempt in book.due(config.results.lost_node_seconds, now):
            if await self._settled(config, store, attempt, book.away[attempt.node], now):
                book = book.with_settled(attempt.key)
                await asyncio.to_thread(book.save, path)
                debts.wake()

    def _asked(self, config: Config, book: Book) -> Book:
        """The book with what Slurm says now."""
        known = nodes.nodes(self.slurm.programs)
        if not known:
            raise ClusterFault("Slurm names no node at all.")
        listed = [seen for seen in queue.on_nodes(self.slurm.programs) if seen.stamped]
        now = time.time()
        book = book.with_nodes(known, now)
        current: dict[int, Job] = {seen.job.job_id: seen.job for seen in listed}
        # What is settled would be found anew as long as Slurm lists it.
        attempts = {key: each for key, each in book.attempts.items() if not each.settled or key[0] in current}
        for seen in listed:
            key = (seen.job.job_id, seen.job.restarts)
            ended = seen.job.state in FINISHED and not seen.job.completing
            # What ended before we saw it is looked at only where nobody else can.
            if key not in attempts and (not ended or seen.job.nodes[0] in book.away):
                with contextlib.suppress(SlurmK8sError):  # no such account here, say
                    attempts[key] = _attempt(seen, config)
        for key, attempt in attempts.items():
            away = attempt.node in book.away
            job = current.get(attempt.record.job_id)
            if away and (not attempt.in_full or (job is None and attempt.over is None)):
                # Its text imitates Slurm's, or its owner has left: what the list says must do.
                with contextlib.suppress(PersonFault, NodeFault):
                    job = self.slurm.job(attempt.record.job_id)
                    attempts[key] = attempt = self._in_full(attempt, job, config)  # noqa: PLW2901
            if job is not None or away or attempt.over is None:
                attempts[key] = attempt.told(job, now)
        return book.with_attempts(attempts.values(), now)

    def _in_full(self, attempt: Attempt, job: Job | None, config: Config) -> Attempt:
        """With what only Slurm's own description of the job has, while it is still about this attempt."""
        if job is None:
            return self._by_accounts(attempt)
        if job.restarts == attempt.record.attempt and attempt.node in job.cpus:
            pod = attempt.pod or self.pod_words(job)
            return replace(attempt, record=_record(job, config), pod=pod, in_full=True)
        mail = plain_record(job, attempt.node)
        record = replace(attempt.record, mail_user=mail.mail_user, mail_types=mail.mail_types)
        return replace(attempt, record=record, in_full=True)

    def _by_accounts(self, attempt: Attempt) -> Attempt:
        """With its end as slurmdbd has it, where slurmctld has forgotten the job before we could see it."""
        record = attempt.record
        name = f"{record.array[0]}_{record.array[1]}" if record.array else str(record.job_id)
        known = attempt.state in FINISHED or attempt.state == last_seen.REQUEUED
        found = None if known else past.end(self.slurm.programs, name, attempt.node, record.started)
        if found is None:
            return replace(attempt, in_full=True)
        return replace(attempt, state=found.state, exit_code=found.exit_code, ended=found.ended, in_full=True)

    async def _settled(self, config: Config, store: Store, attempt: Attempt, since: float, now: float) -> bool:
        """Owe the bundle, if it is not complete; whether nothing more is to be done about it here."""
        record = attempt.record
        try:
            async with asyncio.timeout(SECONDS_FOR_A_BUNDLE):
                if store.is_owed(*attempt.key):
                    return True
                summary = await Bundles(config).summary(record)
                if summary is not None and summary.complete:
                    return True
        except (ClusterFault, TimeoutError, *NONSENSE) as fault:
            logger.warning(f"job {record.job_id}: whether it has a summary cannot be seen yet: {fault}")
            return False
        except SlurmK8sError as fault:
            logger.error(f"job {record.job_id}: there will be no summary: {fault}")
            return True
        store.owe(lost(attempt, since, now))
        logger.warning(f"job {record.job_id}: {attempt.node} is lost, so the head node writes the summary")
        return True

    def _tell(self, trouble: str) -> None:
        """Once when it begins or changes, once when it is over."""
        if trouble and trouble != self._trouble:
            logger.warning(f"Jobs of lost nodes cannot be looked after: {trouble}")
        elif self._trouble and not trouble:
            logger.info("Jobs of lost nodes are looked after again.")
        self._trouble = trouble


async def _leave_to_node(config: Config, store: Store, after: Runner, record: Record) -> None:
    """The node is back and finishes the bundle; people still hear from us if our summary was the first."""
    try:
        async with asyncio.timeout(SECONDS_FOR_A_BUNDLE):
            summary = await Bundles(config).summary(record)
            is_ours = summary is not None and summary.written_by in (HEAD, NODE_AFTER_HEAD)
    except (ClusterFault, TimeoutError, *NONSENSE) as fault:
        logger.warning(f"job {record.job_id}: who tells of it cannot be seen yet: {fault}")
        return
    except SlurmK8sError as fault:
        logger.warning(f"job {record.job_id}: its summary cannot be read, so its node tells of it: {fault}")
        is_ours = False
    logger.info(f"job {record.job_id}: {record.nodes[0]} is back and finishes the bundle itself")
    if is_ours:  # before the debt goes, as always: after a crash in between it is handed over again
        after.complete(record.job_id, record.attempt, {})
    store.paid(record)


def lost(attempt: Attempt, since: float, now: float) -> Record:
    """The record to pay from: how it ended, as far as Slurm knows."""
    words = f"Node {attempt.node} was lost at {when(since)} and had not come back {duration(now - since)} later"
    end = ending.of_lost(attempt.record, attempt.state, attempt.exit_code, words, attempt.pod)
    return replace(
        attempt.record,
        state=end.state,
        failure=end.cause,
        fault=end.fault,
        exit_code=end.exit_code,
        ended=attempt.ended or since,
    )


def _attempt(seen: Seen, config: Config) -> Attempt:
    """From Slurm's list of jobs. Which GPUs it had is not in it, only how many."""
    node = seen.job.nodes[0]
    allocation = {node: seen.cpus}, {node: seen.memory_mb or 0}, {node: tuple(range(seen.gpus))}
    job = replace(seen.job, cpus=allocation[0], memory_mb=allocation[1], gpus=allocation[2])
    return Attempt(_record(job, config), job.state, job.exit_code, job.ended)


def _record(job: Job, config: Config) -> Record:
    """As its agent made it."""
    record = plain_record(job, job.nodes[0])
    with contextlib.suppress(PersonFault):  # its agent has refused it for the same reason
        record = full_record(record, job, stamped_lines(job), config)
    return record


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[bool]:
    """Whether we are the only service here that looks after them: two would tell people twice."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(lock)
