"""A real mail server, a real web server, a folder as on a NAS, and jobs that ended."""

import asyncio
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from slurmk8s.after import child
from slurmk8s.after.figures import Figures
from slurmk8s.after.item import Item, Owner
from slurmk8s.after.runner import Runner
from slurmk8s.after.spool import Spool
from slurmk8s.config import Config, parse
from slurmk8s.metrics import Metrics
from slurmk8s.slurm.client import Job

sys.path.insert(0, str(Path(__file__).parents[2]))
from mail_server import MailServer, serving  # found only now

PERSON = 54321
SUMMARY: dict[str, Any] = {
    "schema": 1,
    "cluster": "lab",
    "job_id": 7,
    "array": None,
    "name": "train",
    "user": "alice",
    "uid": PERSON,
    "partition": "gpu",
    "attempt": 0,
    "node": "node1",
    "nodes": ["node1"],
    "gpus": ["0", "1"],
    "cpus": 4,
    "times": {"submitted": 1700000000.0},
    "durations": {"queued": 12.0, "pulling": 1.0, "running": 3600.0},
    "state": "completed",
    "exit_code": 0,
    "cause": "Completed: the body ended with exit code 0.",
    "fault": "none",
    "outputs": {"files": 1, "bytes": 10},
    "checksums": "complete",
    "complete": True,
}
OWNER = Owner("alice", PERSON, PERSON, (), "alice", ("END", "FAIL"))


def job_item(job_id: int = 7, action: str = "mail", owner: Owner = OWNER, **summary: Any) -> Item:
    """A job that ended, with what a test says differently."""
    return Item(action, job_id, 0, owner, {**SUMMARY, "job_id": job_id, **summary}, 0.0)


@pytest.fixture(name="job_item")
def _job_item() -> Callable[..., Item]:
    return job_item


@pytest.fixture
def owner() -> Owner:
    return OWNER


@pytest.fixture
def nas(everyones_python: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that others can enter, with results/ as the guide makes it."""
    if os.geteuid() != 0:
        pytest.fail("What happens after a job runs as other accounts: run `make test-unit`, which uses sudo.")
    monkeypatch.setattr(child, "PYTHON", str(everyones_python))
    folder = Path(tempfile.mkdtemp(prefix="slurmk8s-after-", dir="/var/tmp"))
    folder.chmod(0o755)
    (folder / "results").mkdir()
    (folder / "results").chmod(0o1777)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def mail_server() -> Iterator[MailServer]:
    with serving() as server:
        yield server


@dataclass
class WebServer:
    """What was posted; it answers with `status`, or not at all."""

    port: int = 0
    got: list[tuple[str, bytes]] = field(default_factory=list)
    status: int = 200
    silent: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)


@pytest.fixture
def web_server() -> Iterator[WebServer]:
    told = WebServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if told.silent.is_set():
                told.released.wait(60)
                return
            told.got.append((self.path, body))
            self.send_response(told.status)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield told
    told.released.set()
    server.shutdown()
    thread.join()
    server.server_close()


class PlayedSlurm:
    """Knows arrays."""

    def __init__(self) -> None:
        self.arrays: dict[int, list[Job]] = {}

    def parts(self, name: str) -> list[Job]:
        """What is left of it."""
        return self.arrays.get(int(name), [])


@dataclass
class Bench:
    """A runner with everything around it."""

    config: Config
    spool: Spool
    slurm: PlayedSlurm = field(default_factory=PlayedSlurm)
    owed: set[tuple[int, int]] = field(default_factory=set)
    metrics: Metrics = field(default_factory=lambda: Metrics("agent"))
    first_pause: float = 0.2

    def hand_over(self, *items: Item) -> None:
        """As the agent does."""
        for item in items:
            self.spool.expect(item.owner, item.summary)
            self.spool.complete(item.job_id, item.attempt, {})

    def run(self, until: Callable[[], object], node: str = "node1", seconds: float = 30) -> None:
        """Let it work until a condition holds."""

        async def go() -> None:
            is_owed = lambda job, attempt: (job, attempt) in self.owed  # noqa: E731 - short
            figures = Figures(self.metrics, users=False)
            runner = Runner(self.config, node, self.spool, self.slurm, is_owed, figures, self.first_pause)  # type: ignore[arg-type]
            task = asyncio.create_task(runner.run())
            try:
                async with asyncio.timeout(seconds):
                    while not until():  # noqa: ASYNC110 - a condition of the outside world
                        await asyncio.sleep(0.02)
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

        self.metrics = Metrics("agent")
        asyncio.run(go())

    def is_idle(self) -> bool:
        """Nothing is left to do."""
        return not self.spool.names() and not list(self.spool.ready())

    def figures(self) -> dict[str, float]:
        """What Prometheus would read, by name and labels."""
        from prometheus_client import generate_latest

        families = text_string_to_metric_families(generate_latest(self.metrics.registry).decode())
        samples = (sample for family in families for sample in family.samples)
        return {" ".join([sample.name, *sample.labels.values()]): sample.value for sample in samples}


@pytest.fixture
def bench(nas: Path) -> Callable[..., Bench]:
    """`bench(mail={…}, commands={…})`: a runner with this `[after]`."""

    def make(**after: Any) -> Bench:
        data = {"cluster": "lab", "nas": {"root": str(nas), "require_mountpoint": False}, "after": after}
        data["intake"] = {"languages": {"bob": "ko"}}
        return Bench(parse(data, "test"), Spool(nas / "after").prepare())

    return make


@pytest.fixture
def mail_settings(mail_server: MailServer) -> dict[str, Any]:
    return {"host": mail_server.host, "port": mail_server.port, "security": "none", "domain": "example.org"}
