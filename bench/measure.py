"""What the benches share: a local cluster that goes away again, waiting, and the middle of several measurements."""

import contextlib
import os
import pwd
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from slurmk8s.local import lifecycle, namespace, state
from slurmk8s.local.plan import Decided, Plan

Result = TypeVar("Result")
LINES = 15
"""Of each log, where a measurement failed."""


@dataclass(frozen=True)
class Local:
    """A local cluster that is up, with a folder `work` on its NAS that everybody may write to."""

    decided: Decided

    @property
    def nas(self) -> Path:
        """As seen from outside; /mnt/nas inside."""
        return self.decided.plan.layout.nas

    @property
    def work(self) -> Path:
        """/mnt/nas/work inside."""
        return self.nas / "work"

    @property
    def person(self) -> pwd.struct_passwd:
        """Whom it serves."""
        return pwd.getpwnam(self.decided.user)

    def inside(self, *command: str, root: bool = False) -> tuple[list[str], Mapping[str, str]]:
        """The command line and environment with which a command runs inside the cluster's namespaces."""
        layout, who = self.decided.plan.layout, None if root else self.person
        running = state.running(layout)
        assert running, "the cluster is down"
        return namespace.enter(running.pid, command, who, "/mnt/nas"), namespace.environment(layout, who)

    def run_inside(self, *command: str, root: bool = False) -> None:
        """Run it there to its end."""
        entered, environment = self.inside(*command, root=root)
        subprocess.run(entered, env=environment, check=True, stdout=subprocess.DEVNULL)

    def slurm(self, *command: str) -> str:
        """The output of a Slurm command of the person's, from outside, where no namespace must be entered first."""
        person = self.person
        return subprocess.run(
            command,
            env=namespace.environment(self.decided.plan.layout, person),
            user=person.pw_uid,
            group=person.pw_gid,
            extra_groups=[],
            cwd=self.work,
            check=True,
            capture_output=True,
            text=True,
        ).stdout


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A folder that everybody can enter, removed at the end."""
    path = Path(tempfile.mkdtemp(prefix="slurmk8s-bench-", dir="/var/tmp"))
    path.chmod(0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path)


@contextlib.contextmanager
def local(plan: Plan) -> Iterator[Local]:
    """A local cluster, gone at the end, however that comes."""
    try:
        decided, _ = lifecycle.up(plan, lambda _: None)
        work = decided.plan.layout.nas / "work"
        work.mkdir()
        work.chmod(0o1777)
        yield Local(decided)
    except Exception:
        for log in sorted(plan.layout.log.glob("*.log")):
            print(f"-- {log}", *log.read_text(errors="replace").splitlines()[-LINES:], sep="\n", file=sys.stderr)
        raise
    finally:
        stopped = lifecycle.down(plan.layout, purge=True)
        for sentence in stopped.left:
            print(f"problem: {sentence}")


def until(look: Callable[[], Result], what: str, seconds: float = 60, every: float = 0.01) -> Result:
    """Poll until there is something to see."""
    deadline = time.monotonic() + seconds
    while not (seen := look()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what}")
        time.sleep(every)
    return seen


def written(path: Path, seconds: float = 60) -> float:
    """When a file was written, once it is there; it is removed, so that it can be waited for again."""
    until(path.exists, str(path), seconds)
    changed = path.stat().st_mtime
    os.unlink(path)
    return changed


middle = statistics.median


def spread(values: Sequence[float], unit: str = "s") -> str:
    """p50 and how far the rest lies."""
    scale, digits = (1000, 1) if unit == "ms" else (1, 2)
    p50, low, high = (f"{scale * value:8.{digits}f}" for value in (middle(values), min(values), max(values)))
    return f"p50 {p50} {unit}   min {low}   max {high}"
