"""The hooks as slurmd runs them: single files, no PATH, and an agent's socket that answers what a test wants."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import pytest

import slurmk8s

HOOKS = Path(slurmk8s.__file__).parent / "hooks"


@dataclass
class Node:
    """A node's folders; `%n` stands in them as in a configuration."""

    folder: Path
    name: str = "node1"
    job_id: int = 7

    @property
    def arguments(self) -> list[str]:
        """Run, state and log folder."""
        return [str(self.folder / "%n" / "run"), str(self.folder / "%n" / "state"), str(self.folder)]

    @property
    def state(self) -> Path:
        """The agent's records."""
        return self.folder / self.name / "state"

    @property
    def socket(self) -> Path:
        """The agent's."""
        return self.folder / self.name / "run" / "agent.sock"

    @property
    def hint(self) -> Path:
        """What the Prolog leaves."""
        return self.state / "hints" / str(self.job_id)

    @property
    def record(self) -> Path:
        """What the agent keeps."""
        return self.state / "jobs" / f"{self.job_id}.json"

    @property
    def environment(self) -> dict[str, str]:
        """As slurmd sets it: no PATH."""
        return {"SLURM_JOB_ID": str(self.job_id), "SLURMD_NODENAME": self.name, "SLURM_JOB_COMMENT": "mine slurmk8s"}

    def start(self, hook: str, prefix: str = "") -> subprocess.Popen[str]:
        """Start a hook; `prefix` is Python that runs before it, to shorten a constant."""
        command = [sys.executable, "-I", "-S", str(HOOKS / f"{hook}.py"), *self.arguments]
        if prefix:
            code = f"import runpy, sys\nhook = runpy.run_path({str(HOOKS / hook)!r} + '.py')\n{prefix}\n"
            code += "sys.exit(hook['main'](*sys.argv[1:4]))"
            command = [sys.executable, "-I", "-S", "-c", code, *self.arguments]
        return subprocess.Popen(
            command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd="/"
        )

    def run(self, hook: str, prefix: str = "") -> tuple[int, str, float]:
        """Exit code, output and seconds."""
        begun = time.monotonic()
        process = self.start(hook, prefix)
        said, _ = process.communicate(timeout=20)
        return process.returncode, said, time.monotonic() - begun

    def log(self, hook: str) -> str:
        """What the hook has logged."""
        path = self.folder / f"{hook}_{self.name}.log"
        return path.read_text() if path.exists() else ""


@dataclass
class Agent:
    """Answers each caller with the next of its replies, as a line; None closes without one."""

    path: Path
    replies: list[dict | None]
    questions: list[dict] = field(default_factory=list)

    def __enter__(self) -> Self:
        self.path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.path))
        self._listener.listen(8)
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        return self

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as lines:
                if line := lines.readline():
                    self.questions.append(json.loads(line))
                    if self.replies and (reply := self.replies.pop(0)) is not None:
                        connection.sendall(json.dumps(reply).encode() + b"\n")

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


@pytest.fixture
def node(tmp_path: Path) -> Node:
    node = Node(tmp_path)
    for folder in (node.socket.parent, node.hint.parent, node.record.parent):
        folder.mkdir(parents=True)
    return node


@pytest.fixture
def agent(node: Node) -> Callable[..., Agent]:
    """An agent that gives these replies, one to each caller, for a `with`."""
    return lambda *replies: Agent(node.socket, list(replies))


@pytest.fixture
def full_socket(node: Node) -> Iterator[None]:
    """An agent that has hung: it listens, never accepts, and its backlog is full."""
    callers: list[socket.socket] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(node.socket))
        listener.listen(0)
        while True:
            callers.append(socket.socket(socket.AF_UNIX))
            callers[-1].setblocking(False)
            try:
                callers[-1].connect(str(node.socket))
            except BlockingIOError:
                break
        yield
        for caller in callers:
            caller.close()
    os.unlink(node.socket)
