"""Pays what is owed: the summary soon after a job's end, the checksums after that, one bundle at a time.

The debts are files, so a crash, a full NAS or a stopped Slurm only delays them.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import replace

from loguru import logger

from slurmk8s.after.item import Owner
from slurmk8s.after.runner import Runner
from slurmk8s.agent import ending, figures, samples
from slurmk8s.agent.accounts import Accounts
from slurmk8s.agent.asking import ask
from slurmk8s.agent.person import Bundles
from slurmk8s.agent.record import Record, Store
from slurmk8s.config import Config
from slurmk8s.errors import ClusterFault, NasFull, SlurmK8sError
from slurmk8s.results import room
from slurmk8s.results.progress import Progress, text
from slurmk8s.results.summary import FAILED, HEAD, NODE, ArrayTask, Summary, Times
from slurmk8s.slurm.client import Job, Slurm

SECONDS_BETWEEN_ROUNDS = 15.0
# Slurm shows COMPLETING until every Epilog has ended; then it says how the job ended.
SECONDS_TO_COMPLETE = 30.0
SECONDS_TO_TELL = 30.0
LONGEST_PAUSE = 300.0
# The points between which the agent can die, in their order; the tests kill it after each.
STEPS = (
    "summary written",
    "use noted for slurmdbd",
    "summary settled",
    "checksums written",
    "handed over",
    "debt paid",
)


class _Telling:
    """Says in the log how far the hashing of a large bundle is: at first after a while, then seldom."""

    def __init__(self, job_id: int) -> None:
        self._job_id = job_id
        self._next = SECONDS_TO_TELL

    def __call__(self, progress: Progress) -> None:
        if progress.seconds >= self._next:
            self._next = max(progress.seconds + SECONDS_TO_TELL, progress.seconds * 1.5)
            logger.info(f"job {self._job_id}: hashed {text(progress)}")


class Debts:
    """Each payment is a task of its own; what fails is tried again in the next round."""

    def __init__(
        self,
        node: str,
        config: Config,
        slurm: Slurm,
        store: Store,
        after: Runner | None = None,
        at: Callable[[str], None] = lambda _step: None,
    ) -> None:
        self._node = node
        self._config = config
        self._slurm = slurm
        self._store = store
        self._bundles = Bundles(config)
        self._after = after
        self._at = at
        self._wake = asyncio.Event()
        self._accounts = Accounts(store.folder / "accounts", slurm)
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._later: dict[str, tuple[float, float]] = {}
        """What failed: not before this time, and the pause until then."""

    def wake(self) -> None:
        """A job has just ended."""
        self._wake.set()

    async def pay(self) -> None:
        """Until cancelled: pay what can be paid."""
        while True:
            self._wake.clear()
            try:
                self._begin_payments()
            except OSError:
                logger.exception("the debts cannot be read")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._until_next()):
                    await self._wake.wait()

    def _until_next(self) -> float:
        """A round, or less where something was put off for less."""
        now = time.monotonic()
        return min([SECONDS_BETWEEN_ROUNDS, *(at - now for at, _ in self._later.values() if at > now)])

    def _begin_payments(self) -> None:
        """Every summary at once; checksums one bundle of a person at a time, so that nobody waits for another's."""
        now = time.monotonic()
        if "accounts" not in self._busy:
            self._busy["accounts"] = asyncio.create_task(self._tell_accounts())
        for record in self._store.owed():
            if self._later.get(_name(record), (0.0, 0.0))[0] > now:
                continue  # what fails must not stand in the way of the person's other bundles
            key = f"uid {record.uid}" if record.summarised else f"job {record.job_id}.{record.attempt}"
            if key not in self._busy:
                self._busy[key] = asyncio.create_task(self._payment(key, record))

    async def _payment(self, key: str, record: Record) -> None:
        what = "checksums" if record.summarised else "summary"
        try:
            await (self._checksum(record) if record.summarised else self._summarise(record))
            self._later.pop(_name(record), None)
            self._wake.set()
        except ClusterFault as fault:
            pause = self._put_off(record)
            logger.warning(f"job {record.job_id}: the {what} must wait {pause:g} s: {fault}")
            if isinstance(fault, NasFull) and not record.summarised and record.no_room is None:
                self._store.update_owed(replace(record, no_room=fault.sentence))
        except SlurmK8sError as fault:
            logger.error(f"job {record.job_id}: there will be no {what}: {fault}")
            self._hand_over(record, {"checksums": f"{FAILED}{fault.sentence}", "complete": False})
            self._store.paid(record)
        except Exception:  # noqa: BLE001 - told in the log, tried again
            self._put_off(record)
            logger.exception(f"job {record.job_id}: the {what} failed")
        finally:
            del self._busy[key]

    def _put_off(self, record: Record) -> float:
        """Soon at first, then seldom: a NAS may be full for days."""
        pause = min(LONGEST_PAUSE, 2 * self._later.get(_name(record), (0.0, 0.5))[1])
        self._later[_name(record)] = (time.monotonic() + pause, pause)
        self._wake.set()  # it may come before the next round
        return pause

    async def _tell_accounts(self) -> None:
        try:
            await self._accounts.pay()
        except Exception:  # noqa: BLE001 - told in the log, tried again in the next round
            logger.exception("slurmdbd could not be told what jobs have used")
        finally:
            del self._busy["accounts"]

    async def _summarise(self, record: Record) -> None:
        job = await self._ended_job(record)
        history = await asyncio.to_thread(samples.read, self._store.samples(record))
        summary = self._summary(record, job, history)
        if self._after is not None:  # first: a person is told of a bundle that cannot be written, too
            self._after.expect(_owner(record), summary.to_json())
        await self._bundles.finish(record, summary.to_json(), figures.course(history, record))
        self._at("summary written")
        await self._accounts.owe(summary, job.admin_comment if job else "")
        self._at("use noted for slurmdbd")
        self._store.update_owed(replace(record, summarised=True))
        self._at("summary settled")
        logger.info(f"job {record.job_id}: summary written")

    async def _checksum(self, record: Record) -> None:
        summary = await self._bundles.checksums(record, _Telling(record.job_id))
        if summary.written_by == HEAD and record.state is None:
            # There are no locks: the head node was writing at the same moment and did not see what was told here.
            self._store.update_owed(replace(record, summarised=False))
            raise ClusterFault("The head node's account has taken the place of this node's, which is told again.")
        self._at("checksums written")
        # The worker is the person's process: only what it has measured is taken from it.
        measured = ("outputs", "checksums", "complete", "written_by")
        self._hand_over(record, {key: value for key, value in summary.to_json().items() if key in measured})
        self._at("handed over")
        self._store.paid(record)
        self._at("debt paid")
        logger.info(f"job {record.job_id}: checksums {summary.checksums}")

    def _hand_over(self, record: Record, added: dict[str, object]) -> None:
        """Before the debt is paid: after a crash in between it is handed over again, and nobody has begun with it."""
        if self._after is not None:
            self._after.complete(record.job_id, record.attempt, added)

    async def _ended_job(self, record: Record) -> Job | None:
        """How Slurm says it ended; None where it has forgotten the job."""
        pause = 0.05
        job = await ask(lambda: self._slurm.job(record.job_id))
        waited = 0.0
        while job is not None and job.completing and job.restarts == record.attempt and waited < SECONDS_TO_COMPLETE:
            await asyncio.sleep(pause)
            waited += pause
            pause = min(1.0, pause * 2)
            job = await ask(lambda: self._slurm.job(record.job_id))
        return job

    def _summary(self, record: Record, job: Job | None, history: samples.History) -> Summary:
        end = ending.of(record, job)
        return Summary(
            cluster=self._config.cluster,
            job_id=record.job_id,
            array=ArrayTask(*record.array) if record.array else None,
            name=record.name,
            user=record.user,
            uid=record.uid,
            account=record.account,
            partition=record.partition,
            attempt=record.attempt,
            node=self._node if record.state is None else record.nodes[0],
            nodes=record.nodes,
            image=record.image,
            image_digest=record.digest,
            workdir=record.workdir,
            command=record.script or "the job file's own body",
            gpus=tuple(str(gpu) for gpu in record.gpus),
            cpus=record.cpus,
            memory_mb=record.memory_mb,
            times=Times(
                submitted=record.submitted,
                started=record.started,
                pull_started=record.pull_started,
                pulled=record.pulled,
                body_started=record.body_started,
                ended=record.ended,
                dropped=record.dropped,
            ),
            state=end.state,
            exit_code=end.exit_code,
            signal=end.signal,
            cause=_with_loss(end.cause, record.no_room),
            fault=end.fault,
            script_sha256=record.script_sha256,
            usage=figures.usage(history, record, end.state),
            written_by=NODE if record.state is None else HEAD,
        )


def _owner(record: Record) -> Owner:
    return Owner(record.user, record.uid, record.gid, record.groups, record.mail_user, record.mail_types)


def _name(record: Record) -> str:
    return f"{record.job_id}.{record.attempt}"


def _with_loss(cause: str, no_room: str | None) -> str:
    """The NAS has room again by the time this is written; that it had none explains what is missing."""
    return cause if no_room is None else f"{cause} {room.QUOTA if 'quota' in no_room else room.FULL}"
