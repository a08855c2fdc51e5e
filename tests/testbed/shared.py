"""The cluster that tests run on: one for each pytest run, or the one that the environment names.

`KUBECONFIG` names any cluster; then nothing of it is started, stopped or killed here. `SLURMK8S_TESTBED` names the
folder of a test cluster that `make kube-up` has started; it is used and left running. Without either, the first of a
run's workers brings a cluster up and the last one takes it down; those that ask for one by name have it to themselves.
"""

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from . import lifecycle
from .cluster import Cluster
from .layout import DEFAULT

OWN, GIVEN = "SLURMK8S_TESTBED", "KUBECONFIG"
IMAGE = "SLURMK8S_TEST_IMAGE"
OURS_ONLY = "needs the project's own test cluster (a plug is pulled, or an image pushed): unset KUBECONFIG to run it"


@dataclass(frozen=True)
class Shared:
    """What a test may use: a cluster's API, and, if it is the project's own, its machine room."""

    kubeconfig: Path
    nodes: tuple[str, ...]
    image: str
    """Has sh and the usual small programs."""
    own: Cluster | None

    def kubectl(self, *arguments: str, text: str | None = None, check: bool = True, seconds: float = 60) -> str:
        """The output of kubectl as admin."""
        if self.own:
            return self.own.kubectl(*arguments, text=text, check=check, seconds=seconds)
        return kubectl(self.kubeconfig, *arguments, text=text, check=check, seconds=seconds)

    def evidence(self) -> Iterator[tuple[str, str]]:
        """What a person would look at first when a test failed."""
        for words in (
            "get nodes -o wide",
            "get pods -A -o wide",
            "get events -A --sort-by=.lastTimestamp",
            "get resourcequotas -A",
        ):
            lines = self.kubectl(*words.split(), check=False).splitlines()
            yield f"kubectl {words}", "\n".join([*lines[:1], *lines[1:][-60:]])
        if self.own:
            yield from self.own.logs()


def kubectl(config: Path, *arguments: str, text: str | None = None, check: bool = True, seconds: float = 60) -> str:
    """On a cluster that is not ours, with the kubectl on PATH."""
    command = ["kubectl", f"--kubeconfig={config}", *arguments]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=seconds)
    if check and done.returncode:
        raise AssertionError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout if check else done.stdout + done.stderr


def where() -> str:
    """Which cluster a run uses, for its first lines."""
    if os.environ.get(OWN):
        return f"the test cluster in {os.environ[OWN]} ({OWN})"
    if os.environ.get(GIVEN):
        return f"the cluster of {os.environ[GIVEN]} ({GIVEN})"
    return "a test cluster for this run"


@contextlib.contextmanager
def cluster(name: str = "") -> Iterator[Shared]:
    """The cluster of this run, or the one of that name in it, for as long as this process needs it."""
    if os.environ.get(OWN):
        yield _ours(lifecycle.up(_folder(), _say))
    elif os.environ.get(GIVEN):
        yield _given(Path(os.environ[GIVEN]).absolute())
    else:
        _sweep()
        folder = _folder(name)
        try:
            with _users(folder) as users:
                users.append(os.getpid())
                found = lifecycle.up(folder, _say)
            yield _ours(found)
        finally:
            with _users(folder) as users:
                users[:] = [pid for pid in users if pid != os.getpid()]
                if not users:
                    lifecycle.down(folder)
                    _turns(folder).unlink(missing_ok=True)


@contextlib.contextmanager
def turn(*, alone: bool) -> Iterator[None]:
    """A test's turn: workers share a cluster, but while one pulls plugs the others wait."""
    if os.environ.get(GIVEN) and not os.environ.get(OWN):
        yield  # no plug is pulled there
        return
    with _turns(_folder()).open("w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield


def _folder(name: str = "") -> Path:
    """Where this run's cluster is or will be."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))[:12]
    return Path(os.environ.get(OWN) or f"{DEFAULT}-run-{run}{name}").absolute()


def _turns(folder: Path) -> Path:
    return folder / "turn" if os.environ.get(OWN) else folder.with_name(f"{folder.name}.turn")


def _ours(found: Cluster) -> Shared:
    return Shared(found.kubeconfig, found.nodes, found.sample_image, found)


def _given(config: Path) -> Shared:
    names = kubectl(config, "get", "nodes", "-o", "jsonpath={.items[*].metadata.name}").split()
    return Shared(config, tuple(names), os.environ.get(IMAGE, "docker.io/library/alpine:latest"), None)


@contextlib.contextmanager
def _users(folder: Path) -> Iterator[list[int]]:
    """The living processes that use a cluster, in a file beside its folder, under a lock."""
    path = folder.with_name(f"{folder.name}.users")
    while True:
        with path.open("a+", encoding="ascii") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if not path.exists() or not os.path.samestat(os.fstat(file.fileno()), path.stat()):
                continue  # the last user before us took the file away
            file.seek(0)
            users = [pid for pid in json.loads(file.read() or "[]") if Path(f"/proc/{pid}").exists()]
            try:
                yield users
            finally:
                if users:
                    file.truncate(0)
                    file.write(json.dumps(users))
                else:
                    path.unlink()
            return


def _sweep() -> None:
    """Take down the clusters of runs that were killed."""
    for path in DEFAULT.parent.glob(f"{DEFAULT.name}-run-*.users"):
        folder = path.with_suffix("")
        with contextlib.suppress(FileNotFoundError), _users(folder) as users:
            if not users:
                _say(f"taking down {folder}, which a killed run left")
                lifecycle.down(folder)
                shutil.rmtree(folder, ignore_errors=True)


def _say(text: str) -> None:
    """To the terminal, past pytest's capture: a build takes minutes."""
    print(f"testbed: {text}", file=sys.__stderr__, flush=True)
