"""A results folder as on a NAS, and an ordinary person whose worker works in it."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[3] / "slurmk8s"
# Numeric ids without accounts: nothing on the machine belongs to them.
PERSON, STRANGER = 54321, 54322

WORKER = "import sys; sys.path.insert(0, {package!r}); from slurmk8s.results.worker import main; sys.exit(main())"
# Dies by SIGKILL after a step, or never; says which steps it passed.
DYING = """
import json, os, signal, sys
sys.path.insert(0, {package!r})
from slurmk8s.results.request import parse
from slurmk8s.results.worker import answer
steps = []
def at(step):
    steps.append(step)
    if step == {step!r}:
        os.kill(os.getpid(), signal.SIGKILL)
reply = answer(parse(sys.stdin.buffer.read()), at)
print(json.dumps([reply, steps]))
"""


@dataclass(frozen=True)
class Person:
    """Somebody with a job. As root the tests use a foreign uid; otherwise they are that person themselves."""

    package: str
    root: Path
    uid: int

    def ask(self, **request: object) -> dict:
        """Run the worker as the agent does."""
        done = self.python(WORKER, json.dumps({"root": str(self.root), "job_id": 12, **request}).encode())
        assert done.returncode == 0, done.stderr.decode()
        *progress, answer = done.stdout.splitlines()
        assert all(line.startswith(b'{"progress":') for line in progress)  # on a slow machine hashing is told of
        return json.loads(answer)

    def ask_and_die(self, step: str | None, **request: object) -> tuple[dict, list[str]] | None:
        """Run the worker until it kills itself after this step; None if it did."""
        data = json.dumps({"root": str(self.root), "job_id": 12, **request}).encode()
        done = self.python(DYING.replace("{step!r}", repr(step)), data)
        if done.returncode == -9:
            return None
        assert done.returncode == 0, done.stderr.decode()
        reply, steps = json.loads(done.stdout)
        return reply, steps

    def python(self, code: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Run Python as this person: the system's, since a venv may be closed to them."""
        return self.run(
            [os.path.realpath(sys.executable), "-I", "-c", code.replace("{package!r}", repr(self.package))], data
        )

    def sh(self, script: str) -> None:
        """Run a shell line in the job's folder as this person."""
        done = self.run(["/bin/sh", "-c", f"cd {self.root}/12 && {script}"])
        assert done.returncode == 0, done.stderr.decode()

    def run(self, command: list[str], data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Run any program as this person."""
        as_person = {} if os.geteuid() == self.uid else {"user": self.uid, "group": self.uid, "extra_groups": []}
        return subprocess.run(
            command, input=data, capture_output=True, check=False, umask=0o077, cwd="/", timeout=120, **as_person
        )

    @property
    def folder(self) -> Path:
        """The bundle of job 12."""
        return self.root / "12"


@pytest.fixture(scope="session")
def package() -> Iterator[str]:
    """A copy of the worker's code that anybody can read, wherever the checkout is."""
    folder = Path(tempfile.mkdtemp(prefix="slurmk8s-code-"))
    folder.chmod(0o755)
    target = folder / "slurmk8s"
    target.mkdir(mode=0o755)
    for name in ("__init__.py", "durable.py", "errors.py"):
        shutil.copy(SOURCE / name, target)
    shutil.copytree(SOURCE / "results", target / "results")
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    yield str(folder)
    shutil.rmtree(folder)


@pytest.fixture
def root() -> Iterator[Path]:
    """`results/` as the setup makes it: anybody may make a folder there, nobody may touch another's."""
    folder = Path(tempfile.mkdtemp(prefix="slurmk8s-results-"))
    folder.chmod(0o1777)
    yield folder
    subprocess.run(["chmod", "-R", "u+rwx", str(folder)], check=True)
    shutil.rmtree(folder)


@pytest.fixture
def person(package: str, root: Path) -> Person:
    return Person(package, root, PERSON if os.geteuid() == 0 else os.geteuid())


def summary(**changes: object) -> dict:
    """A summary as the agent sends it."""
    return {
        "schema": 1,
        "cluster": "lab",
        "job_id": 12,
        "array": None,
        "name": "train",
        "user": "alice",
        "uid": PERSON,
        "account": "vision",
        "partition": "gpu",
        "attempt": 0,
        "node": "node1",
        "nodes": ["node1"],
        "image": "nas-hub.local:5407/pytorch:2.0",
        "image_digest": "sha256:" + "ab" * 32,
        "workdir": "/workspace",
        "command": "the job file's own body",
        "gpus": ["0"],
        "cpus": 4,
        "memory_mb": 8192,
        "times": {
            "submitted": 1700000000.0,
            "started": 1700000004.0,
            "pull_started": 1700000004.5,
            "pulled": 1700000045.5,
            "body_started": 1700000046.0,
            "ended": 1700000589.0,
            "dropped": None,
        },
        "durations": {"accepting": None, "queued": None, "pulling": None, "running": None},
        "gpu_hours": None,
        "state": "completed",
        "exit_code": 0,
        "signal": None,
        "cause": "The job completed.",
        "fault": "none",
        "script_sha256": None,
        "usage": None,
        "outputs": None,
        "checksums": "pending",
        "complete": False,
        **changes,
    }


@pytest.fixture
def course() -> dict:
    """What was used over time, as the agent sends it."""
    return {"seconds": [0, 5, 10], "cpu_cores": [1, 1, 2], "memory_bytes": [1e9, 2e9, 3e9], "gpus": []}


@pytest.fixture
def make_summary() -> Callable[..., dict]:
    return summary


@pytest.fixture
def snapshot() -> Callable[[Path], dict[str, tuple[int, bytes]]]:
    """Every file and folder of a bundle with its mode and content."""

    def take(folder: Path) -> dict[str, tuple[int, bytes]]:
        return {
            str(path.relative_to(folder)): (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
            for path in sorted(folder.rglob("*"))
        }

    return take
