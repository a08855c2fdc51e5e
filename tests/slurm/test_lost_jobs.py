"""Jobs whose node is lost: slurmd is killed and does not come back, and the head node tells what Slurm knew."""

import asyncio
import contextlib
import json
import os
import pwd
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import nas
import pytest
from intake_bed import ALICE, Intake, as_person, person_options
from intake_share import on_squashed_share
from mail_server import MailServer, serving

from slurmk8s.after.runner import Runner
from slurmk8s.after.spool import Spool
from slurmk8s.agent.debts import Debts
from slurmk8s.agent.person import Bundles
from slurmk8s.agent.record import Record, Store
from slurmk8s.agent.request import full_record, plain_record, stamped_lines
from slurmk8s.config import Config, load
from slurmk8s.errors import SlurmUnreachable
from slurmk8s.ops import last_seen
from slurmk8s.ops.lost_jobs import LostJobs
from slurmk8s.results import summary as summaries

SCHEMA = json.loads((Path(summaries.__file__).parent / "summary.schema.json").read_text())
LOST = "lost_node_seconds = 2"


class Site:
    """A NAS where root is nobody, a Slurm of two nodes of which one will be lost, and a mail server."""

    def __init__(self, intake: Intake, share: nas.Share, python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.intake = intake
        self.slurm = intake.slurm
        self.share = share
        self.python = python
        self.monkeypatch = monkeypatch
        self.bodies: list[int] = []
        self.services: list[subprocess.Popen[bytes]] = []

    def config(self) -> Config:
        """As the services read it."""
        self.monkeypatch.setenv("SLURMK8S_CONFIG", self.intake.environment()["SLURMK8S_CONFIG"])
        return load()

    def submit(self, *options: str, body: str = "sleep 600") -> int:
        """A container job of alice's on node2, as it runs now; its agent has made the results folder."""
        pids = self.slurm.outputs / f"body-{uuid.uuid4().hex}"
        script = "\n".join(
            [
                "#!/bin/bash",
                "#SBATCH --mem=70M --cpus-per-task=2 --gres=gpu:1 --time=10 --mail-type=FAIL,REQUEUE",
                "#SBATCH --nodelist=node2 --output=/dev/null --job-name=train",
                "#K8S_IMAGE=pytorch:2.0",
                f"echo $$ $PPID >{pids}.new; mv {pids}.new {pids}",
                body,
                "",
            ]
        )
        command = ["sbatch", "--parsable", *options]
        done = subprocess.run(
            command,
            input=script.encode(),
            env=self.slurm.environment,
            cwd="/",
            check=True,
            capture_output=True,
            **person_options(ALICE),
        )
        job_id = int(done.stdout)
        self.slurm.until(pids.exists, f"the body of {job_id}")
        self.bodies += map(int, pids.read_text().split())
        return job_id

    def begin(self, *options: str, body: str = "sleep 600") -> Record:
        """Such a job, and what its node's agent has done for it: the record and a begun results folder."""
        job_id, config = self.submit(*options, body=body), self.config()
        job = self.slurm.commands.job(job_id)
        assert job is not None
        record = full_record(plain_record(job, "node2"), job, stamped_lines(job), config)
        asyncio.run(Bundles(config).prepare(record))
        folder = self.intake.nas / "results" / str(job_id)
        as_person(ALICE, ["sh", "-c", 'cat >>"$1"', "sh", folder / "stdout.log"], b"epoch 1\n")
        as_person(ALICE, ["sh", "-c", 'cat >"$1"', "sh", folder / "outputs" / "weights"], bytes(3 << 20))
        return record

    def lose_node(self) -> None:
        """As when its power fails."""
        self.slurm.daemons["node2"].kill()
        for pid in self.bodies:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.slurm.daemons["node2"].wait()

    def node_back(self) -> None:
        """It boots again."""
        self.slurm.start("node2", "slurmd", "-D", "-N", "node2")
        self.slurm.until(lambda: "idle" in self.slurm.run("sinfo", "-h", "-n", "node2", "-o", "%T"), "node2 back", 60)

    def serve(self) -> "subprocess.Popen[bytes]":
        """`slurmk8s watch` on the head node."""
        with (self.intake.folder / "service.log").open("ab") as log:
            environment = self.intake.environment() | {"PYTHONPATH": ""}
            command = [self.python, "-I", "-m", "slurmk8s", "watch"]
            self.services.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
        return self.services[-1]

    def bundle(self, job_id: int) -> Path:
        """As it lies on the NAS, seen from behind, where root is root."""
        return self.share.back / "results" / str(job_id)

    def summary(self, job_id: int, attempt: int | None = None) -> dict[str, Any]:
        """summary.json, as it is now."""
        folder = self.bundle(job_id) if attempt is None else self.bundle(job_id) / f"attempt-{attempt}"
        try:
            found: dict[str, Any] = json.loads((folder / "summary.json").read_text())
        except FileNotFoundError:
            return {}
        return found

    def book(self) -> last_seen.Book:
        """What the head node remembers."""
        return last_seen.load(self.intake.folder / "state" / "head" / "last_seen.json")

    def say(self, *command: str) -> str:
        """What a command of ours says to alice."""
        environment = self.intake.environment() | {"PYTHONPATH": ""}
        done = subprocess.run(
            [self.python, "-I", "-m", "slurmk8s", *command],
            env=environment,
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
            **person_options(ALICE),
        )
        return done.stdout + done.stderr

    def pay(self, record: Record) -> None:
        """What the agent of node2 does when it is back: pay the debt that is on its disk."""
        config = self.config()
        store = Store(self.intake.folder / "node2")
        store.owe(record)

        async def go() -> None:
            spool = Spool(store.folder / "after").prepare()
            after = Runner(config, "node2", spool, self.slurm.commands, store.is_owed, first_pause=0.2)
            debts = Debts("node2", config, self.slurm.commands, store, after)
            tasks = [asyncio.create_task(debts.pay()), asyncio.create_task(after.run())]
            deadline = time.monotonic() + 60
            while list(store.owed()) or [*spool.ready(), *spool.names()]:
                assert time.monotonic() < deadline
                await asyncio.sleep(0.05)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        asyncio.run(go())

    def stop(self) -> None:
        """Nothing that was started stays."""
        for service in self.services:
            service.kill()
            service.wait()
        self.lose_node()


@pytest.fixture
def mails() -> Iterator[MailServer]:
    with serving() as server:
        yield server


@pytest.fixture
def site(
    lossy_slurm: Any, everyones_python: Path, mails: MailServer, alice: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Site]:
    folder = Path("/var/tmp") / f"slurmk8s-lost-{uuid.uuid4().hex[:8]}"  # pytest's own folders are closed to others
    folder.mkdir()
    intake = Intake(lossy_slurm, folder)
    mail = f'[after.mail]\nhost = "127.0.0.1"\nport = {mails.port}\nsecurity = "none"\ndomain = "example.org"\n'
    intake.settings["more"] = f"[results]\n{LOST}\nchecksum_mib_per_second = 1\n{mail}"
    try:
        with on_squashed_share(intake) as share:
            site = Site(intake, share, everyones_python, monkeypatch)
            try:
                yield site
            finally:
                site.stop()
                lossy_slurm.cancel_all()
                site.node_back()
    finally:
        shutil.rmtree(folder)


def test_the_head_node_tells_of_a_job_whose_node_is_lost_and_the_node_tells_better_when_it_is_back(
    site: Site, mails: MailServer, wait_for: Callable[..., Any]
) -> None:
    """Killed in the middle, the head node's service goes on; nothing on the NAS is done as root."""
    record = site.begin("--no-requeue")
    job_id = record.job_id
    service = site.serve()
    wait_for(lambda: (job_id, 0) in site.book().attempts, "the job remembered", 60)
    site.lose_node()
    wait_for(lambda: site.summary(job_id), "a summary", 90)
    assert not site.summary(job_id)["complete"]
    service.kill()
    service.wait()
    site.serve()
    found = wait_for(lambda: (now := site.summary(job_id)).get("complete") and now, "a complete bundle", 90)
    jsonschema.validate(found, SCHEMA)
    assert found["cause"].startswith("Node node2 was lost at ")
    assert found["cause"].endswith(
        " later, so how the body ended is not known; the head node wrote this from what Slurm knows."
    )
    assert (found["state"], found["fault"], found["exit_code"]) == ("node_fail", "node", None)
    assert (found["written_by"], found["node"], found["nodes"]) == ("head node", "node2", ["node2"])
    assert (found["cpus"], found["memory_mb"], len(found["gpus"])) == (2, 70, 1)
    assert (found["name"], found["user"], found["image"]) == ("train", ALICE, "nas-hub.local:5407/pytorch:2.0")
    assert found["times"]["submitted"] <= found["times"]["started"] <= found["times"]["ended"] <= time.time()
    assert (found["outputs"]["files"], found["outputs"]["bytes"]) == (1, 3 << 20)
    assert found["usage"] is found["image_digest"] is None  # what only the node knew
    bundle = site.bundle(job_id)
    assert (bundle / "stdout.log").read_text() == "epoch 1\n"
    assert {path.owner() for path in bundle.rglob("*")} == {ALICE}
    text = (bundle / "job_summary.txt").read_text()
    assert text.startswith("Node node2 was lost at ")
    assert "Written by  the head node" in text
    assert "failed with its node" in (why := site.say("why", str(job_id))), why
    assert "the head node wrote this" in why
    assert "node fail" in (listed := site.say("results")), listed
    assert "changed" not in site.say("verify", str(job_id))
    wait_for(lambda: mails.got, "the person told", 30)
    assert [f"{job_id} train" in subject for subject in mails.subjects] == [True]

    site.node_back()
    site.pay(replace(record, exit_code=0, reported=True, body_started=record.started, ended=time.time(), digest="d"))
    better = site.summary(job_id)
    jsonschema.validate(better, SCHEMA)
    assert (better["complete"], better["written_by"]) == (True, "node after head node")
    assert (better["exit_code"], better["image_digest"]) == (0, "d")
    assert "head node wrote" not in (bundle / "job_summary.txt").read_text()
    assert len(mails.got) == 1  # nobody is told twice
    assert site.share.changes_by_root() == []


def test_a_requeued_attempt_gets_its_summary_while_the_job_waits(site: Site, wait_for: Callable[..., Any]) -> None:
    record = site.begin("--requeue")
    job_id = record.job_id
    site.serve()
    wait_for(lambda: (job_id, 0) in site.book().attempts, "the job remembered", 60)
    site.lose_node()
    found = wait_for(lambda: (now := site.summary(job_id)).get("complete") and now, "a complete bundle", 90)
    assert (found["state"], found["attempt"], found["written_by"]) == ("requeued", 0, "head node")
    assert found["cause"].endswith("; the head node wrote this from what Slurm knows. The next attempt follows.")
    assert site.slurm.state(job_id) == "PENDING"
    asyncio.run(Bundles(site.config()).prepare(replace(record, attempt=1)))
    assert site.summary(job_id, 0) == found
    assert site.summary(job_id) == {}


def test_a_job_that_never_had_a_folder_gets_one(site: Site, wait_for: Callable[..., Any]) -> None:
    """Lost before its agent had begun; and the end that Slurm knows is told."""
    job_id = site.submit("--no-requeue")
    site.serve()
    wait_for(lambda: (job_id, 0) in site.book().attempts, "the job remembered", 60)
    site.lose_node()
    site.slurm.run("scancel", str(job_id))
    found = wait_for(lambda: (now := site.summary(job_id)).get("complete") and now, "a complete bundle", 90)
    assert (found["state"], found["fault"]) == ("cancelled", "none")
    assert found["cause"].startswith("Cancelled before it had ended (scancel). Node node2 was lost at ")
    assert site.bundle(job_id).owner() == ALICE


def test_what_is_not_known_to_be_lost_gets_nothing(site: Site) -> None:
    """A node that answers, or a Slurm that does not: no summary, no debt, whatever the time."""
    record = site.begin("--no-requeue")
    config = site.config()
    head = LostJobs(config, site.slurm.commands)
    store = Store(site.intake.folder / "state" / "head")
    debts = Debts("head", config, site.slurm.commands, store)
    after = Runner(config, "head", Spool(store.folder / "after").prepare(), site.slurm.commands, store.is_owed)

    def look() -> last_seen.Book:
        asyncio.run(head.look(config, store, debts, after))
        return site.book()

    assert look().attempts[record.job_id, 0].over is None
    site.slurm.run("scancel", str(record.job_id))
    site.slurm.until(lambda: site.slurm.state(record.job_id) in ("CANCELLED", ""), "its end")
    book = look()
    assert book.attempts[record.job_id, 0].over is not None
    assert book.away == {}
    assert book.due(0.001, time.time() + 10**6) == []
    site.slurm.daemons["slurmctld"].send_signal(signal.SIGSTOP)
    try:
        site.lose_node()
        with pytest.raises(SlurmUnreachable):
            look()
    finally:
        site.slurm.daemons["slurmctld"].send_signal(signal.SIGCONT)
    assert site.book() == book
    assert list(store.owed()) == []
    assert not (site.bundle(record.job_id) / "summary.json").exists()
    assert pwd.getpwnam(ALICE).pw_uid == site.bundle(record.job_id).stat().st_uid
