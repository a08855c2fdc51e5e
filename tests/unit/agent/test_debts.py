"""What is owed stays owed while Slurm does not answer. Slurm is played: its silence is what is tried here."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from slurmk8s.after.runner import Runner
from slurmk8s.after.spool import Spool
from slurmk8s.agent import jobstats, samples
from slurmk8s.agent.debts import Debts
from slurmk8s.agent.record import Record, Store
from slurmk8s.agent.samples import Sample
from slurmk8s.config import Config, parse
from slurmk8s.errors import PersonFault, SlurmUnreachable
from slurmk8s.results.summary import HEAD, Summary, Times
from slurmk8s.results.usage import Course
from slurmk8s.slurm.client import Job

SUMMARY = Summary(
    *("lab", 7, None, "train", "alice", 1000, "", "gpu", 0, "node1", ("node1",), "image", None, "/workspace", "body"),
    *((), 1, 1, Times(), "completed", 0, None, "", "none"),
)


class Slurm:
    """Answers with what it is given, in order; the last answer repeats."""

    def __init__(self, *answers: Job | Exception | None) -> None:
        self.answers = list(answers)
        self.asked = 0
        self.database = False
        self.kept: list[tuple[str, str]] = []

    def takes_usage(self) -> bool:
        """Whether there is a slurmdbd."""
        return self.database

    def keep_usage(self, job: str, comment: str) -> bool:
        """Remember it."""
        self.kept.append((job, comment))
        return True

    def job(self, _job_id: int) -> Job | None:
        """The next answer."""
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


class Bundles:
    """Takes the place of the worker, which must run as another user."""

    def __init__(self) -> None:
        self.written: list[dict[str, object]] = []
        self.drawn: list[Course | None] = []
        self.hashed: list[int] = []
        self.refuses: Exception | None = None
        self.fault: Exception | None = None

    async def finish(self, _record: Record, summary: dict[str, object], course: Course | None) -> None:
        """Remember the summary."""
        if self.fault:
            raise self.fault
        self.written.append(summary)
        self.drawn.append(course)

    async def checksums(self, record: Record, _tell: object) -> Summary:
        """Remember whose; claim more than was measured."""
        if self.refuses:
            raise self.refuses
        self.hashed.append(record.job_id)
        return replace(SUMMARY, checksums="complete", complete=True, user="root", cause="I am somebody else.")


def pay(
    settings: Config,
    store: Store,
    slurm: Slurm,
    bundles: Bundles,
    done: Callable[[], bool],
    spool: Spool | None = None,
    *,
    waking: bool = True,
) -> None:
    """Let the debts be paid until a condition holds; `waking`: jobs end all the time."""

    async def go() -> None:
        after = Runner(settings, "node1", spool, slurm, store.is_owed) if spool else None  # type: ignore[arg-type]
        debts = Debts("node1", settings, slurm, store, after)  # type: ignore[arg-type]
        debts._bundles = bundles  # type: ignore[assignment]
        task = asyncio.create_task(debts.pay())
        async with asyncio.timeout(10):
            while not done():
                await asyncio.sleep(0.01)
                if waking:
                    debts.wake()
        task.cancel()

    asyncio.run(go())


def test_a_debt_is_paid_with_what_slurm_says(
    settings: Config, store: Store, record: Callable[..., Record], job: Callable[..., Job]
) -> None:
    store.owe(record(exit_code=3, reported=True))
    bundles = Bundles()
    slurm = Slurm(job(completing=True, state="COMPLETING"), job(state="TIMEOUT"))
    pay(settings, store, slurm, bundles, lambda: not list(store.owed()))
    assert [summary["state"] for summary in bundles.written] == ["timeout"]
    assert bundles.hashed == [7]


def test_what_the_head_node_wrote_over_at_the_same_moment_is_told_again(
    settings: Config, store: Store, record: Callable[..., Record], job: Callable[..., Job]
) -> None:
    class WrittenOver(Bundles):
        async def checksums(self, record: Record, tell: object) -> Summary:
            summary = await super().checksums(record, tell)
            return replace(summary, written_by=HEAD) if len(self.written) == 1 else summary

    store.owe(record(exit_code=0, reported=True))
    bundles = WrittenOver()
    pay(settings, store, Slurm(job()), bundles, lambda: not list(store.owed()))
    assert len(bundles.written) == len(bundles.hashed) == 2


def test_while_slurm_is_silent_the_debt_waits(settings: Config, store: Store, record: Callable[..., Record]) -> None:
    store.owe(record())
    slurm, bundles = Slurm(SlurmUnreachable("slurmctld does not answer.")), Bundles()
    pay(settings, store, slurm, bundles, lambda: slurm.asked >= 3)
    assert list(store.owed()) == [record()]
    assert bundles.written == []


def test_a_job_that_slurm_has_forgotten_is_summarised_from_the_record(
    settings: Config, store: Store, record: Callable[..., Record]
) -> None:
    store.owe(record(exit_code=0, reported=True))
    bundles = Bundles()
    pay(settings, store, Slurm(None), bundles, lambda: not list(store.owed()))
    assert bundles.written[0]["state"] == "completed"


def test_a_nas_that_is_away_only_delays(
    settings: Config, store: Store, record: Callable[..., Record], job: Callable[..., Job]
) -> None:
    store.owe(record())
    slurm, bundles = Slurm(job()), Bundles()
    bundles.fault = SlurmUnreachable("The NAS does not answer.")
    pay(settings, store, slurm, bundles, lambda: slurm.asked >= 2)
    assert list(store.owed()) == [record()]


def test_after_a_short_outage_the_bundle_does_not_wait_for_the_next_round(
    settings: Config, store: Store, record: Callable[..., Record], job: Callable[..., Job]
) -> None:
    store.owe(record(exit_code=0, reported=True))
    slurm, bundles = Slurm(job()), Bundles()
    bundles.fault = SlurmUnreachable("The NAS does not answer.")

    def over() -> bool:
        if slurm.asked:
            bundles.fault = None
        return not list(store.owed())

    pay(settings, store, slurm, bundles, over, waking=False)  # within less than a round
    assert len(bundles.written) == 1


def test_a_bundle_that_can_never_be_written_is_given_up(
    settings: Config, store: Store, record: Callable[..., Record], job: Callable[..., Job]
) -> None:
    """Somebody else owns results/7: that is told in the log, not tried for ever."""
    store.owe(record())
    bundles = Bundles()
    bundles.fault = PersonFault("The folder belongs to somebody else.")
    pay(settings, store, Slurm(job()), bundles, lambda: not list(store.owed()))
    assert bundles.hashed == []


def test_after_a_restart_only_what_is_missing_is_done(
    settings: Config, store: Store, record: Callable[..., Record], job: Callable[..., Job]
) -> None:
    store.owe(record(summarised=True))
    slurm, bundles = Slurm(job()), Bundles()
    pay(settings, store, slurm, bundles, lambda: not list(store.owed()))
    assert (bundles.written, bundles.hashed, slurm.asked) == ([], [7], 0)


@pytest.mark.parametrize("restarts", [1, 2])
def test_a_job_that_runs_again_does_not_hold_its_earlier_summary(
    settings: Config, store: Store, record: Callable[..., Record], job: Callable[..., Job], restarts: int
) -> None:
    store.owe(record(exit_code=143, reported=True))
    bundles = Bundles()
    slurm = Slurm(job(state="RUNNING", restarts=restarts, completing=True))
    pay(settings, store, slurm, bundles, lambda: not list(store.owed()))
    assert bundles.written[0]["state"] == "requeued"


def mailing(settings: Config) -> Config:
    data = settings.model_dump(mode="json", exclude={"mounts"})
    return parse({**data, "after": {"mail": {"host": "mx", "domain": "example.org"}}}, "test")


def test_what_follows_a_job_gets_the_agents_own_account_of_it(
    settings: Config, store: Store, record: Callable[..., Record], job: Callable[..., Job], tmp_path: Path
) -> None:
    """The worker is the person's process: of what it answers only the measures count."""
    spool = Spool(tmp_path / "after").prepare()
    store.owe(record(exit_code=3, reported=True, mail_types=("FAIL",), mail_user="alice"))
    slurm, bundles = Slurm(job(state="FAILED")), Bundles()
    pay(mailing(settings), store, slurm, bundles, lambda: not list(store.owed()), spool)
    (item,) = spool.ready()
    assert (item.owner.mail_types, item.owner.uid) == (("FAIL",), 1000)
    assert (item.summary["user"], item.summary["state"], item.summary["complete"]) == ("alice", "failed", True)
    assert item.summary["cause"] == "The body ended with exit code 3."


@pytest.mark.parametrize("step", ["finish", "checksums"])
def test_a_person_is_told_of_a_bundle_that_will_never_be_complete(
    settings: Config, store: Store, record: Callable[..., Record], job: Callable[..., Job], tmp_path: Path, step: str
) -> None:
    spool = Spool(tmp_path / "after").prepare()
    store.owe(record(exit_code=0, reported=True, mail_types=("END",)))
    bundles = Bundles()
    fault = PersonFault("The folder belongs to somebody else.")
    bundles.fault, bundles.refuses = (fault, None) if step == "finish" else (None, fault)
    pay(mailing(settings), store, Slurm(job()), bundles, lambda: not list(store.owed()), spool)
    (item,) = spool.ready()
    assert item.summary["checksums"] == "failed: The folder belongs to somebody else."
    assert item.summary["complete"] is False


def test_a_spool_that_cannot_be_written_does_not_hurt_the_bundle(
    settings: Config, store: Store, record: Callable[..., Record], job: Callable[..., Job], tmp_path: Path
) -> None:
    store.owe(record(exit_code=0, reported=True, mail_types=("END",)))
    (tmp_path / "after").write_text("a file where a folder should be")
    bundles = Bundles()
    spool = Spool(tmp_path / "after")
    pay(mailing(settings), store, Slurm(job()), bundles, lambda: not list(store.owed()), spool)
    assert bundles.hashed == [7]


def measured(store: Store, record: Record) -> None:
    """As the meter leaves it after twenty minutes."""
    path = store.samples(record)
    samples.begin(path, [])
    for number in range(241):
        samples.add(path, [], Sample(1700000010.0 + number * 5, number * 10.0, 1 << 30))


def test_what_was_measured_reaches_the_summary_and_is_then_forgotten(
    settings: Config, store: Store, record: Callable[..., Record], job: Callable[..., Job]
) -> None:
    owed = record(exit_code=0, reported=True, body_started=1700000010.0, ended=1700001210.0, memory_mb=65536)
    measured(store, owed)
    store.owe(owed)
    bundles, slurm = Bundles(), Slurm(job(state="COMPLETED"))
    pay(settings, store, slurm, bundles, lambda: not list(store.owed()))
    usage = bundles.written[0]["usage"]
    assert isinstance(usage, dict)
    assert (usage["cpu_seconds"], usage["cpu_cores"], usage["memory_peak_bytes"]) == (2400.0, 2.0, 1 << 30)
    assert usage["notes"] == ["Used 1 of 64 GB of memory; ask for 2G next time with #SBATCH --mem=2G."]
    assert bundles.drawn[0] is not None
    assert bundles.drawn[0].seconds[-1] == 1200.0
    assert not store.samples(owed).exists()
    assert slurm.kept == []


def test_slurmdbd_hears_what_a_job_has_used(
    settings: Config, store: Store, record: Callable[..., Record], job: Callable[..., Job]
) -> None:
    owed = record(exit_code=0, reported=True, body_started=1700000010.0, ended=1700001204.5, array=(5, 3))
    measured(store, owed)
    store.owe(owed)
    slurm = Slurm(job(state="COMPLETED", admin_comment="slurmk8s/1:%23K8S_IMAGE%3Dx"))
    slurm.database = True
    pay(settings, store, slurm, Bundles(), lambda: bool(slurm.kept))
    name, comment = slurm.kept[0]
    assert name == "5_3"
    assert jobstats.stamp_in(comment) == "slurmk8s/1:%23K8S_IMAGE%3Dx"
    assert (jobstats.decode(comment) or {})["nodes"]["node1"]["total_time"] == 2400.0


def test_a_job_that_starts_again_is_not_told_to_slurmdbd(
    settings: Config, store: Store, record: Callable[..., Record], job: Callable[..., Job]
) -> None:
    owed = record(body_started=1700000010.0, ended=1700001210.0)
    measured(store, owed)
    store.owe(owed)
    slurm, bundles = Slurm(job(state="PENDING", restarts=1)), Bundles()
    slurm.database = True
    pay(settings, store, slurm, bundles, lambda: not list(store.owed()))
    assert bundles.written[0]["state"] == "requeued"
    assert slurm.kept == []
