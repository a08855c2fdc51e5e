"""Needs root and nothing else: the agent's debts with the real worker, killed after each step, and its worker too."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from slurmk8s.agent.debts import STEPS
from slurmk8s.agent.record import Record, Store
from slurmk8s.results.verify import verify
from slurmk8s.slurm.client import Job

PERSON = 54321
# Only Slurm is played. It ends when nothing is owed any more.
AGENT = """
import asyncio, json, os, signal, sys
from pathlib import Path
from slurmk8s.agent import debts
from slurmk8s.agent.record import Store
from slurmk8s.config import Config
from slurmk8s.slurm.client import Job
config, job, step = json.loads(sys.argv[1])
debts.SECONDS_BETWEEN_ROUNDS = 0.2
store = Store(Path(config["agent"]["state_folder"]))
class Slurm:
    def job(self, _job_id):
        return Job(**job)
    def takes_usage(self):
        return False
def at(reached):
    if reached == step:
        os.kill(os.getpid(), signal.SIGKILL)
async def go():
    paying = asyncio.create_task(debts.Debts("node1", Config.model_validate(config), Slurm(), store, at=at).pay())
    while list(store.owed()):
        await asyncio.sleep(0.02)
    paying.cancel()
asyncio.run(go())
"""


class Site:
    """A NAS and a node's state, with one debt."""

    def __init__(self, python: Path, record: Record, job: Job) -> None:
        self.python = python
        self.record = replace(record, uid=PERSON, gid=PERSON, groups=(PERSON,), exit_code=0, reported=True, ended=5.0)
        self.job = asdict(job)
        self.folder = Path(tempfile.mkdtemp(prefix="slurmk8s-debts-", dir="/var/tmp"))
        self.folder.chmod(0o755)
        self.results = self.folder / "nas" / "results"

    def begin(self, megabytes: int = 1) -> None:
        """A bundle whose job has just ended."""
        shutil.rmtree(self.folder)
        outputs = self.results / "7" / "outputs"
        outputs.mkdir(parents=True)
        (self.folder).chmod(0o755)
        (outputs / "weights").write_bytes(bytes(megabytes << 20))
        (self.results / "7" / "stdout.log").write_text("out\n")
        (self.results / "7" / "stderr.log").touch()
        marker = {"schema": 1, "attempt": 0, "submitted": self.record.submitted, "name": "train", "array": None}
        (self.results / "7" / ".slurmk8s.json").write_text(json.dumps(marker))
        for path in [self.results / "7", *(self.results / "7").rglob("*")]:
            os.chown(path, PERSON, PERSON)
        self.results.chmod(0o1777)
        Store(self.folder / "state").owe(self.record)

    def agent(self, step: str | None = None, rate: int | None = None) -> subprocess.Popen[bytes]:
        """Start one; it dies after this step."""
        config = {
            "nas": {"root": str(self.folder / "nas"), "require_mountpoint": False},
            "agent": {"state_folder": str(self.folder / "state")},
            "results": {"checksum_mib_per_second": rate},
        }
        command = [str(self.python), "-I", "-c", AGENT, json.dumps([config, self.job, step])]
        return subprocess.Popen(command, stderr=subprocess.DEVNULL)

    def bundle(self) -> dict[str, bytes]:
        """Every file of it."""
        return {str(path): path.read_bytes() for path in sorted(self.results.rglob("*")) if path.is_file()}

    def owed(self) -> list[Path]:
        """What is left to pay."""
        return list((self.folder / "state" / "owed").iterdir())


@pytest.fixture
def site(everyones_python: Path, record: Callable[..., Record], job: Callable[..., Job]) -> Iterator[Site]:
    if os.geteuid() != 0:
        pytest.fail("run the tests as root: the worker runs as another person")
    site = Site(everyones_python, record(), job())
    yield site
    shutil.rmtree(site.folder)


def test_killed_after_any_step_the_next_agent_pays_what_is_owed_and_the_bundle_is_the_same(site: Any) -> None:
    site.begin()
    assert site.agent().wait(30) == 0
    whole = site.bundle()
    assert verify(site.results / "7").ok
    for step in STEPS:
        site.begin()
        assert site.agent(step).wait(30) == -signal.SIGKILL, step
        assert bool(site.owed()) == (step != "debt paid")
        assert site.agent().wait(30) == 0
        assert site.bundle() == whole, f"killed after: {step}"
        assert site.owed() == []


@pytest.mark.parametrize("whom", ["the worker", "one that it started", "the agent"])
def test_killed_while_it_hashes_the_bundle_is_completed_all_the_same(site: Any, whom: str) -> None:
    site.begin(megabytes=8 if whom == "the agent" else 3)  # long enough for the worker to tell nobody how far it is
    agent = site.agent(rate=1)  # so slow that it is met at work
    try:
        hashing = wait_for(lambda: [inner for worker in children(agent.pid) for inner in children(worker)])
        worker = parent(hashing[0])
        os.kill({"the worker": worker, "one that it started": hashing[0], "the agent": agent.pid}[whom], signal.SIGKILL)
        if whom == "the agent":
            agent.wait(10)
            wait_for(lambda: not Path(f"/proc/{worker}").exists())  # it ends its work without an agent
            agent = site.agent()
        assert agent.wait(60) == 0
    finally:
        agent.kill()
        agent.wait()
    assert site.owed() == []
    assert verify(site.results / "7").ok
    assert json.loads((site.results / "7" / "summary.json").read_bytes())["complete"]
    assert not list((site.results / "7").glob(".checksums.*"))


def children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def wait_for(look: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 30
    while not (seen := look()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return seen
