"""One local cluster per runtime for all tests of the journey: two nodes with two fake GPUs each.

A test that asks for `cluster` or `new_cluster` runs once on podman and once on Kubernetes, unless its file says
otherwise (`RUNTIMES = ("podman",)`) or it does itself (`@pytest.mark.runtimes("kubernetes")`).
"""

import contextlib
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from slurmk8s.local import images, lifecycle, machine
from slurmk8s.local.plan import Plan

# Tests are not a package, so that the installed program is what they import.
sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent))
import nas
from cluster import Cluster  # found only now
from runtimes import BOTH, KUBERNETES, Kubernetes, Podman
from testbed import shared
from testbed.cluster import Cluster as Testbed

pytest.register_assert_rewrite("bundles")

FAILED = pytest.StashKey[bool]()
MADE = pytest.StashKey[list[Cluster]]()
"""The clusters that a test has made for itself."""
PERSON, OTHER = "slurmk8s-kim", "slurmk8s-lee"
SERVICE = "slurmk8s-service"
"""Whose account owns slurm-jobs/ on a NAS where root is nobody."""
# What Slurm and we wait for by default is right for nights of training, not for tests.
PATIENCE = {"KillWait": "10"}
# Jobs of a partition with a higher tier may take the nodes of others; a node that is silent for so long is lost.
LOSSES = {
    "PreemptType": "preempt/partition_prio",
    "PreemptMode": "REQUEUE",
    "SlurmdTimeout": "10",
    "MessageTimeout": "5",
}
SETTINGS = {"agent.kill_grace_seconds": 3, "agent.reap_seconds": 3}


def pytest_configure(config: pytest.Config) -> None:
    """Our own mark."""
    config.addinivalue_line("markers", "runtimes(name, …): what the test runs on, where that is not both")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say at once what is missing, instead of one failure per test."""
    if os.geteuid() != 0 and any("e2e" in item.path.parts for item in items):
        pytest.exit("The tests of the journey need root: namespaces and mounts. Run `make test`.", returncode=1)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Once per runtime."""
    if "runtime" in metafunc.fixturenames:
        mark = metafunc.definition.get_closest_marker("runtimes")
        names = mark.args if mark else getattr(metafunc.module, "RUNTIMES", BOTH)
        metafunc.parametrize("runtime", names, indirect=True, scope="session")


class FileByRuntime(LoadScopeScheduling):
    """A piece of work is a file's tests on one runtime: with both, each worker would change between them all the time.

    xdist's own groups need marks that it reads from a test's id, which newer pytests do not show it.
    """

    def _split_scope(self, nodeid: str) -> str:
        on_kubernetes = re.search(rf"[\[-]{KUBERNETES}[-\]]", nodeid.rpartition("::")[2])
        return nodeid.partition("::")[0] + (f" on {KUBERNETES}" if on_kubernetes else "")


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Whatever --dist says."""
    return FileByRuntime(config, log)


def account(name: str, *options: str) -> str:
    """Make sure an account exists. It is left for the next run."""
    try:
        pwd.getpwnam(name)
    except KeyError:
        subprocess.run(["useradd", *(options or ("--create-home", "--shell", "/bin/bash")), name], check=False)
    return pwd.getpwnam(name).pw_name  # another worker may have been faster


@contextlib.contextmanager
def running(runtime: Podman | Kubernetes, share: nas.Share | None = None, **plan: Any) -> Iterator[Cluster]:
    """A cluster in a folder of its own that is gone afterwards, or in that of a share mounted at `nas` in it."""
    folder = share.path.parent if share else Path(tempfile.mkdtemp(prefix="slurmk8s-", dir="/var/tmp"))
    wanted = Plan(**runtime.plan({"folder": folder, "user": account(PERSON), **plan}))
    machine.require_programs(wanted)
    try:
        decided, _ = lifecycle.up(wanted, lambda _: None)
        work = (share.back if share else decided.plan.layout.nas) / "work"  # where people submit from
        work.mkdir(mode=0o777, exist_ok=True)
        work.chmod(0o1777)
        yield Cluster(decided, runtime, account(OTHER), share=share)
    finally:
        # A namespace goes only when every extension of the API server answers: after a restart that takes a while.
        deadline = time.monotonic() + 180
        while (left := lifecycle.down(wanted.layout, purge=share is None).left) and time.monotonic() < deadline:
            time.sleep(1)
        if share is None:
            shutil.rmtree(folder, ignore_errors=True)
    assert not left, left


@pytest.fixture(scope="session")
def kubernetes() -> Iterator[Kubernetes]:
    """This worker's own test cluster, with the image that most tests use: tests take whole nodes, and pull plugs."""
    with shared.cluster(os.environ.get("PYTEST_XDIST_WORKER", "")) as found:
        if not found.own:
            pytest.skip(shared.OURS_ONLY)
        found.own.push(images.debian_tar(), images.TEST.partition("/")[2])
        yield Kubernetes(found)


@pytest.fixture
def machine_room(kubernetes: Kubernetes) -> Iterator[Testbed]:
    """The processes behind Kubernetes, to stop and to kill. What is down after the test is started again."""
    room = kubernetes.testbed
    yield room
    room.mend()
    room.kubectl("uncordon", *room.nodes)


@pytest.fixture(scope="session")
def runtime(request: pytest.FixtureRequest) -> Podman | Kubernetes:
    """What runs the pods, this time."""
    if request.param == KUBERNETES:
        found: Kubernetes = request.getfixturevalue("kubernetes")
        return found
    return Podman()


@pytest.fixture(scope="session")
def share(runtime: Podman | Kubernetes) -> Iterator[nas.Share]:
    """A NAS on which root is nobody, as an admin sets it up on the NAS itself, where root is root; one per runtime."""
    folder = Path(tempfile.mkdtemp(prefix="slurmk8s-squashed-", dir="/var/tmp"))
    folder.chmod(0o755)
    back, local = folder / "back", folder / "local"
    for path in (back, local, local / "nas", back / "results", back / "slurm-jobs"):
        path.mkdir()
    (back / "results").chmod(0o1777)
    service = pwd.getpwnam(account(SERVICE, "--system", "--no-create-home"))
    os.chown(back / "slurm-jobs", service.pw_uid, service.pw_gid)
    with nas.mounted(back, local / "nas", root_squash=True) as share:
        yield share
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def _squashed(runtime: Podman | Kubernetes, share: nas.Share) -> Iterator[Cluster]:
    wanted = {"nodes": 2, "test_image": True, "slurm_overrides": PATIENCE | LOSSES}
    with running(runtime, share, **wanted, config_overrides=SETTINGS | {"nas.service_user": SERVICE}) as cluster:
        yield cluster


@pytest.fixture
def squashed(_squashed: Cluster, share: nas.Share, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster whose NAS is that share; its faults end with the test."""
    _squashed.mark_logs()
    yield _squashed
    share.clear()
    if request.node.stash.get(FAILED, False):
        _squashed.cancel_all()


@pytest.fixture(scope="session")
def _cluster(runtime: Podman | Kubernetes) -> Iterator[Cluster]:
    wanted = {"nodes": 2, "gpus": 2, "test_image": True}
    with running(runtime, **wanted, slurm_overrides=PATIENCE, config_overrides=SETTINGS) as cluster:
        yield cluster


@pytest.fixture
def cluster(_cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """The shared cluster. A test leaves no job in it that another would wait for, nor does one that has failed."""
    _cluster.mark_logs()
    yield _cluster
    if request.node.stash.get(FAILED, False):
        _cluster.cancel_all()


@pytest.fixture(scope="module")
def plain() -> Iterator[Cluster]:
    """A cluster of one node on podman without agent and watcher, shared by the tests of one file."""
    with running(Podman(), services=False) as cluster:
        yield cluster


@pytest.fixture
def new_cluster(runtime: Podman | Kubernetes, request: pytest.FixtureRequest) -> Iterator[Callable[..., Cluster]]:
    """`new_cluster(nodes=1, config_overrides={…})`: one more, with settings of the test's own."""
    made = request.node.stash.setdefault(MADE, [])
    with contextlib.ExitStack() as stack:

        def make(**plan: Any) -> Cluster:
            made.append(stack.enter_context(running(runtime, **plan)))
            made[-1].mark_logs()
            return made[-1]

        yield make


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """On failure show what a person would look at: nodes, queue, pods, and what the logs said meanwhile."""
    report = yield
    if report.when == "call" and report.failed:
        item.stash[FAILED] = True
        used = [one for one in getattr(item, "funcargs", {}).values() if isinstance(one, Cluster)]
        for cluster in item.stash.get(MADE, []) or used:
            try:
                report.sections.extend(cluster.evidence())
            except Exception as error:  # noqa: BLE001 - the test's own failure matters more
                report.sections.append(("evidence", f"could not be gathered: {error}"))
    return report
