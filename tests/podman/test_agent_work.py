"""The agent's work on one job with real podman and the real results worker.

Slurm alone is played: what it is asked to do for each fault is what is tried here, and so is its silence.
"""

import asyncio
import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from slurmk8s.agent.daemon import Agent
from slurmk8s.agent.debts import Debts
from slurmk8s.agent.meter import Meter
from slurmk8s.agent.record import Record, Store
from slurmk8s.agent.work import Work
from slurmk8s.config import Config
from slurmk8s.errors import SlurmUnreachable
from slurmk8s.labels import PodName
from slurmk8s.pod.podman import Podman
from slurmk8s.rendezvous import Rendezvous
from slurmk8s.run import handover
from slurmk8s.slurm import stamp
from slurmk8s.slurm.client import Job

IMAGE = "nas-hub.local:5407/work:1"
END = ("failed", "requeueing", "refused", "gone")
NOBODY = pwd.getpwnam("nobody")


@pytest.fixture(autouse=True)
def _readable(everyones_python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker runs as the job's user, wherever the checkout lies."""
    monkeypatch.setattr(sys, "executable", str(everyones_python))


@dataclass
class Slurm:
    """Remembers what it was asked to do."""

    job_: Job
    silent: bool = False
    asked: int = 0
    requeued: list[str] = field(default_factory=list)
    drained: list[str] = field(default_factory=list)

    def job(self, _job_id: int) -> Job | None:
        """The one job."""
        self.asked += 1
        if self.silent:
            raise SlurmUnreachable("slurmctld does not answer.")
        return self.job_

    def requeue(
        self, _job_id: int, reason: str, _delay_seconds: float = 0, *, attempt: int, waited: bool = False
    ) -> None:
        """Remember."""
        assert attempt == self.job_.restarts
        assert not waited
        self.requeued.append(reason)

    def takes_usage(self) -> bool:
        """There is no slurmdbd."""
        return False

    def drain(self, _node: str, reason: str) -> None:
        """Remember."""
        self.drained.append(reason)


@dataclass
class Site:
    """A node with one job of nobody's on it."""

    folder: Path
    config: Config
    slurm: Slurm
    backend: Podman
    store: Store
    go: int | None = None

    def work(self) -> Work:
        """What the Prolog's hint begins; within a running loop."""
        meter = Meter("node1", self.config, self.backend, self.store)
        return Work(7, "node1", self.config, self.slurm, self.backend, self.store, meter)  # type: ignore[arg-type]

    @property
    def meeting(self) -> Rendezvous:
        """The job's folder."""
        return Rendezvous(self.folder / "run" / "jobs" / "7")

    @property
    def results(self) -> Path:
        """The job's results."""
        return self.folder / "nas" / "results" / "7"

    def job(self, **changes: Any) -> None:
        """Slurm says this of the job from now on."""
        self.slurm.job_ = replace(self.slurm.job_, **changes)

    def hand_over(self, script: str) -> None:
        """As slurmk8s-run does, but that we are root."""
        self.meeting.script.write_text(script)
        words = ["/bin/sh", "/slurmk8s/handover/slurm_script"]
        self.meeting.command.write_bytes(handover.command_file({}, 0o022, words))
        for path in (self.meeting.script, self.meeting.command):
            shutil.chown(path, NOBODY.pw_uid, NOBODY.pw_gid)
        # Held open, so that it waits there until the launcher comes.
        self.go = os.open(self.meeting.go, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        os.write(self.go, b"go\n")


@pytest.fixture(scope="session")
def image(podman: Any) -> str:
    podman.run("tag", podman.image, IMAGE)
    return IMAGE


@pytest.fixture
def site(podman: Any, image: str) -> Iterator[Site]:
    folder = Path(tempfile.mkdtemp(prefix="slurmk8s-work-", dir="/var/tmp"))
    folder.chmod(0o755)
    (folder / "nas" / "results").mkdir(parents=True)
    (folder / "nas" / "results").chmod(0o1777)
    data: dict[str, Any] = {
        "cluster": "lab",
        "nas": {"root": str(folder / "nas"), "require_mountpoint": False},
        "agent": {
            "run_folder": str(folder / "run"),
            "state_folder": str(folder / "state"),
            "attempts": 3,
            "kill_grace_seconds": 1,
        },
        "images": {"pull_retry_seconds": 0.1},
        "log_folder": str(folder / "log"),
    }
    config = Config.model_validate(data)
    job = Job(
        job_id=7,
        name="train",
        user="nobody",
        uid=NOBODY.pw_uid,
        gid=NOBODY.pw_gid,
        partition="main",
        account="",
        state="RUNNING",
        reason="None",
        exit_code="0:0",
        comment="slurmk8s",
        admin_comment=stamp.encode(f"#K8S_IMAGE={image}\n#K8S_WORKDIR=/workspace"),
        restarts=0,
        requeue=True,
        batch_host="node1",
        nodes=("node1",),
        work_folder="/",
        stdout="",
        stderr="",
        time_limit="01:00:00",
        submitted=1.0,
        started=2.0,
        ended=None,
        array_job_id=None,
        array_task_id=None,
        cpus={"node1": 1},
        memory_mb={"node1": 64},
    )
    backend = Podman(podman.config, config.images, "lab", "node1", folder)
    site = Site(folder, config, Slurm(job), backend, Store(folder / "state"))
    yield site
    if site.go is not None:
        os.close(site.go)
    podman.run("pod", "rm", "--all", "--force", "--time=0", check=False)
    for name in ("shm", "outputs", "handover", "results"):
        subprocess.run(["umount", "-l", folder / "run/jobs/7" / name], stderr=subprocess.DEVNULL, check=False)
    shutil.rmtree(folder)


async def news(queue: "asyncio.Queue[dict[str, Any]]", *stages: str) -> dict[str, Any]:
    """The first message of one of these stages; all others in between are heard and passed."""
    async with asyncio.timeout(30):
        while True:
            message = await queue.get()
            if message["stage"] in stages:
                return message
            assert message["stage"] not in END, message


def play(work: Awaitable[Any]) -> Any:
    async def limited() -> Any:
        async with asyncio.timeout(60):
            return await work

    return asyncio.run(limited())


async def until(condition: Callable[[], Any], _what: str) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - files tell, not events
            await asyncio.sleep(0.03)


async def fail(site: Site) -> tuple[dict[str, Any], Record | None]:
    """Begin, and hear how it cannot be done."""
    work = site.work()
    message = await news(work.board.listen(), *END)
    await asyncio.wait({work._task})
    record = site.store.load(7)
    await work.close()
    return message, record


def test_a_body_runs_to_its_end_and_leaves_its_bundle(site: Site) -> None:
    async def story() -> None:
        work = site.work()
        queue = work.board.listen()
        await news(queue, "planned")
        site.hand_over("echo out; echo err >&2; id -un; exit 4")
        assert (await news(queue, "gone"))["exit_code"] == 4
        await work.finish()
        assert await site.backend.find(PodName(7, NOBODY.pw_uid)) is None
        assert site.store.load(7) is None
        assert not site.meeting.folder.exists()
        owed = next(iter(site.store.owed()))
        assert (owed.exit_code, owed.reported, owed.cut_short) == (4, True, False)
        site.job(state="FAILED", exit_code="4:0")
        debts = Debts("node1", site.config, site.slurm, site.store)  # type: ignore[arg-type]
        paying = asyncio.create_task(debts.pay())
        await until(lambda: not list(site.store.owed()), "the bundle")
        paying.cancel()

    play(story())
    summary = json.loads((site.results / "summary.json").read_text())
    assert (summary["state"], summary["exit_code"], summary["complete"]) == ("failed", 4, True)
    assert (site.results / "stdout.log").read_text() == "out\nnobody\n"
    assert (site.results / "stderr.log").read_text() == "err\n"
    assert (site.slurm.requeued, site.slurm.drained) == ([], [])


def test_a_second_agent_goes_on_with_the_same_pod(site: Site) -> None:
    async def story() -> None:
        first = site.work()
        await news(first.board.listen(), "running")
        pid = (await site.backend.find(PodName(7, NOBODY.pw_uid))).pid  # type: ignore[union-attr]
        await first.close()
        second = site.work()
        queue = second.board.listen()
        await news(queue, "running")
        assert (await site.backend.find(PodName(7, NOBODY.pw_uid))).pid == pid  # type: ignore[union-attr]
        site.hand_over("exit 3")
        assert (await news(queue, "gone"))["exit_code"] == 3
        await second.finish()

    play(story())


def test_finishing_twice_is_fine_and_without_a_record_too(site: Site) -> None:
    async def story() -> None:
        work = site.work()
        await news(work.board.listen(), "running")
        await asyncio.gather(work.finish(), work.finish())
        await work.finish()
        assert len(list(site.store.owed())) == 1
        site.job(state="COMPLETED")
        again = site.work()
        await again.finish()
        assert await site.backend.find(PodName(7, NOBODY.pw_uid)) is None

    play(story())


def test_a_job_that_was_over_before_slurm_told_of_it_is_owed_its_bundle_once(site: Site) -> None:
    """Slurm could not open its output file, or it was cancelled, in the moment between the Prolog and our question."""

    async def story() -> None:
        hint = site.store.folder / "hints" / "7"
        for ended, bundles in ((None, 0), (time.time(), 1)):  # the first goes back to the queue
            site.job(state="COMPLETING", ended=ended, completing=True)
            hint.touch()
            await site.work().finish()
            assert not hint.exists()
            assert [record.job_id for record in site.store.owed()] == [7] * bundles
        site.store.paid(next(iter(site.store.owed())))
        await site.work().finish()  # an Epilog may run twice
        assert not list(site.store.owed())

    play(story())


def test_a_body_that_nobody_told_to_end_gets_its_grace(site: Site) -> None:
    """slurmk8s-run was killed: the agent sends SIGTERM itself and says so in the record."""

    async def story() -> None:
        work = site.work()
        await news(work.board.listen(), "running")
        site.hand_over("trap 'echo grace; exit 5' TERM; echo up; while :; do sleep 0.05; done")
        await until(lambda: "up" in (site.results / "stdout.log").read_text(), "the body")
        await work.finish()
        owed = next(iter(site.store.owed()))
        assert (owed.exit_code, owed.cut_short) == (5, True)

    play(story())
    assert (site.results / "stdout.log").read_text() == "up\ngrace\n"


HOSTILE = {
    "a folder in the place of the exit code": "rm -f exit; mkdir exit",
    "a fifo that is held open": "rm -f exit; mkfifo exit; exec 3<>exit",
    "links that lead nowhere a file could be": (
        "long=$(printf '%0300d' 0); for name in exit problem terminated out_of_memory; do ln -sf $long $name; done"
    ),
    "an exit code in other digits": "printf '²\\n' > exit",
    "folders in folders": "i=0; while [ $i -lt 1200 ]; do mkdir d; cd d; i=$((i+1)); done",
    "a folder that its owner cannot enter": "mkdir -p a/b; chmod 0 a",
}


@pytest.mark.parametrize("script", HOSTILE.values(), ids=HOSTILE)
def test_whatever_a_body_leaves_in_its_hand_over_folder_it_goes(site: Site, script: str) -> None:
    """Else the Epilog would fail, and a person's mistake would drain the node."""

    async def story() -> None:
        work = site.work()
        await news(work.board.listen(), "running")
        site.hand_over(f"cd /slurmk8s/handover; {script}; echo up; while :; do sleep 0.05; done")
        await until(lambda: "up" in (site.results / "stdout.log").read_text(), "the body")
        await work.finish()
        assert await site.backend.find(PodName(7, NOBODY.pw_uid)) is None

    play(story())
    assert not site.meeting.folder.exists()
    assert len(list(site.store.owed())) == 1


def test_an_image_that_cannot_run_ends_the_job(site: Site, podman: Any, tmp_path: Path) -> None:
    image = "nas-hub.local:5407/empty:1"
    podman.run("import", "--quiet", "-", image, data=b"\0" * 10240)
    site.job(admin_comment=stamp.encode(f"#K8S_IMAGE={image}"))
    message, record = play(fail(site))
    assert (message["stage"], message["exit_code"], message["noted"]) == ("failed", 1, True)
    assert "has no /bin/sh" in message["sentence"]
    assert record is not None
    assert (record.fault, record.requeueing) == ("person", False)
    assert message["sentence"] in (site.results / "stderr.log").read_text()
    assert (site.slurm.requeued, site.slurm.drained) == ([], [])


def unreachable(site: Site) -> None:
    site.job(admin_comment=stamp.encode("#K8S_IMAGE=nas-hub.local:5407/not-here:1"))


def test_a_registry_that_is_down_puts_the_job_back(site: Site) -> None:
    unreachable(site)
    message, record = play(fail(site))
    assert message["stage"] == "requeueing"
    assert len(site.slurm.requeued) == 1
    assert "does not answer" in site.slurm.requeued[0]
    assert record is not None
    assert (record.fault, record.requeueing) == ("cluster", True)
    assert site.slurm.drained == []
    assert "The job goes back to the queue." in (site.results / "stderr.log").read_text()


def test_after_as_many_attempts_as_are_configured_it_ends(site: Site) -> None:
    unreachable(site)
    site.job(restarts=2)
    message, _ = play(fail(site))
    assert message["stage"] == "failed"
    assert message["sentence"].endswith("It was tried 3 times.")
    assert site.slurm.requeued == []


def test_a_job_that_must_not_be_requeued_ends(site: Site) -> None:
    unreachable(site)
    site.job(requeue=False)
    message, record = play(fail(site))
    assert message["stage"] == "failed"
    assert record is not None
    assert record.fault == "cluster"
    assert site.slurm.requeued == []


def test_a_nas_that_is_not_mounted_drains_the_node_and_puts_the_job_back(site: Site) -> None:
    nas = site.config.nas.model_copy(update={"require_mountpoint": True})
    site.config = site.config.model_copy(update={"nas": nas})
    message, record = play(fail(site))
    assert message["stage"] == "requeueing"
    assert site.slurm.drained == [f"slurmk8s: The NAS is not mounted at {nas.root} on node1."]
    assert len(site.slurm.requeued) == 1
    assert record is not None
    assert record.fault == "node"
    assert not site.results.exists()


def test_a_bug_of_ours_ends_the_job_and_names_the_log(site: Site) -> None:
    """A runtime that breaks in a way nobody thought of: it cannot be had for real."""

    class Broken(Podman):
        async def pull(self, _image: str, _tell: Callable[[str], None]) -> str:
            raise ZeroDivisionError("division by zero")

    site.backend = Broken(site.config.podman, site.config.images, "lab", "node1", site.folder)
    message, record = play(fail(site))
    assert message["stage"] == "failed"
    assert "ZeroDivisionError" in message["sentence"]
    assert f"{site.folder}/log/agent_node1.log on node1" in message["sentence"]
    assert record is not None
    assert record.fault == "ours"
    assert (site.slurm.requeued, site.slurm.drained) == ([], [])


@pytest.mark.parametrize(
    "changes",
    [
        {"state": "CANCELLED"},
        {"state": "PENDING"},
        {"nodes": ("node2",)},
        {"admin_comment": ""},
        {"admin_comment": "x"},
    ],
)
def test_a_job_that_is_not_ours_or_not_here_is_refused_and_nothing_is_made(site: Site, changes: dict[str, Any]) -> None:
    site.job(**changes)
    message, record = play(fail(site))
    assert (message["stage"], message["exit_code"]) == ("refused", 1)
    assert record is None
    assert not site.results.exists()
    assert not site.meeting.folder.exists()


def test_while_slurm_is_silent_nothing_is_made_and_nothing_deleted(site: Site) -> None:
    site.slurm.silent = True

    async def story() -> None:
        work = site.work()
        queue = work.board.listen()
        note = await news(queue, "note", *END)
        assert (note["stage"], note["sentence"]) == ("note", "slurmctld does not answer. Waiting for it.")
        assert site.store.load(7) is None
        assert not site.meeting.folder.exists()
        site.slurm.silent = False
        await news(queue, "running")
        await work.close()
        site.slurm.silent = True
        again = site.work()
        await news(again.board.listen(), "running")  # what is recorded as made goes on without Slurm
        assert (await site.backend.find(PodName(7, NOBODY.pw_uid))).running  # type: ignore[union-attr]
        assert site.store.load(7) is not None
        await again.finish()

    play(story())


def test_the_next_attempt_does_not_meet_what_is_left_of_the_last(site: Site) -> None:
    """An agent comes back when Slurm has requeued the job, and Slurm chooses this node again before it has cleared."""

    async def story() -> None:
        first = site.work()
        await news(first.board.listen(), "running")
        await first.close()  # with its agent
        here = site.slurm.job_.nodes
        site.job(state="PENDING", restarts=1, nodes=())
        agent = Agent("node1", site.config, site.slurm, site.backend)  # type: ignore[arg-type]
        left = agent.ensure(7)
        await until(lambda: left.over, "it is over in Slurm")
        site.job(state="RUNNING", nodes=here)
        again = agent.ensure(7)
        await until(lambda: list(site.store.owed()), "the first attempt's bundle is owed")
        paying = asyncio.create_task(agent._debts.pay())
        await news(again.board.listen(), "running")
        record = site.store.load(7)
        assert record
        assert record.attempt == 1
        paying.cancel()
        await agent.finish(7)

    play(story())


def test_a_restarted_jobs_earlier_bundle_comes_first(site: Site) -> None:
    """Its summary must move aside together with its logs."""

    async def story() -> None:
        work = site.work()
        await news(work.board.listen(), "running")
        await work.finish()
        site.job(restarts=1)
        again = site.work()
        queue = again.board.listen()
        debts = Debts("node1", site.config, site.slurm, site.store)  # type: ignore[arg-type]
        paying = asyncio.create_task(debts.pay())
        await news(queue, "running")
        assert not list((site.results / "attempt-0").glob("*.tmp"))
        paying.cancel()
        await again.finish()

    play(story())
    assert json.loads((site.results / "attempt-0" / "summary.json").read_text())["state"] == "requeued"
