"""One local cluster for all tests of the journey: two nodes with two fake GPUs each."""

import contextlib
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from slurmk8s.local import lifecycle, machine
from slurmk8s.local.plan import Plan

# Tests are not a package, so that the installed program is what they import.
sys.path.insert(0, str(Path(__file__).parent))
from cluster import Cluster  # found only now

PERSON, OTHER = "slurmk8s-kim", "slurmk8s-lee"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say at once what is missing, instead of one failure per test."""
    if os.geteuid() != 0 and any("e2e" in item.path.parts for item in items):
        pytest.exit("The tests of the journey need root: namespaces and mounts. Run `make test`.", returncode=1)


def account(name: str) -> str:
    """Make sure an account exists."""
    try:
        pwd.getpwnam(name)
    except KeyError:
        subprocess.run(["useradd", "--create-home", "--shell", "/bin/bash", name], check=True)
    return name


@contextlib.contextmanager
def running(**plan: Any) -> Iterator[Cluster]:
    """A cluster in a folder of its own that is gone afterwards."""
    machine.require_programs()
    folder = Path(tempfile.mkdtemp(prefix="slurmk8s-", dir="/var/tmp"))
    try:
        wanted = Plan(**{"folder": folder, "user": account(PERSON), **plan})
        decided, _ = lifecycle.up(wanted, lambda _: None)
        work = decided.plan.layout.nas / "work"  # where people submit from
        work.mkdir(mode=0o777, exist_ok=True)
        work.chmod(0o1777)
        yield Cluster(decided, account(OTHER))
    finally:
        lifecycle.down(Plan(folder=folder).layout, purge=True)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def _cluster() -> Iterator[Cluster]:
    # What Slurm and we wait for by default is right for nights of training, not for tests.
    patience = {"KillWait": "10"}
    ours = {"agent.kill_grace_seconds": 3, "agent.reap_seconds": 3}
    with running(nodes=2, gpus=2, test_image=True, slurm_overrides=patience, config_overrides=ours) as cluster:
        yield cluster


@pytest.fixture
def cluster(_cluster: Cluster) -> Cluster:
    """The shared cluster. A test leaves no job in it that another would wait for."""
    _cluster.mark_logs()
    return _cluster


@pytest.fixture(scope="module")
def plain() -> Iterator[Cluster]:
    """A cluster of one node without agent and watcher, shared by the tests of one file."""
    with running(services=False) as cluster:
        yield cluster


@pytest.fixture
def new_cluster() -> Iterator[Callable[..., Cluster]]:
    """`new_cluster(nodes=1, config_overrides={…})`: one more, with settings of the test's own."""
    with contextlib.ExitStack() as stack:
        yield lambda **plan: stack.enter_context(running(**plan))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """On failure show what a person would look at: nodes, queue, pods, and what the logs said meanwhile."""
    report = yield
    cluster = getattr(item, "funcargs", {}).get("cluster")
    if report.when == "call" and report.failed and cluster:
        try:
            report.sections.extend(cluster.evidence())
        except Exception as error:  # noqa: BLE001 - the test's own failure matters more
            report.sections.append(("evidence", f"could not be gathered: {error}"))
    return report
