"""One real cluster for all tests here: the project's own, or whatever KUBECONFIG names."""

import contextlib
import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

# Tests are not a package, so that the installed program is what they import.
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))
from testbed import shared  # found only now
from testbed.cluster import Cluster
from testbed.shared import Shared


def pytest_report_header() -> str:
    """Nobody wants to learn afterwards that it was the production cluster."""
    return f"kubernetes: {shared.where()}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say at once what is missing, instead of one failure per test."""
    foreign = os.environ.get(shared.GIVEN) and not os.environ.get(shared.OWN)
    if os.geteuid() != 0 and not foreign and any("kube" in item.path.parts for item in items):
        pytest.exit("The tests on Kubernetes need root, or a KUBECONFIG. Run `make test`.", returncode=1)


@pytest.fixture(scope="session")
def _testbed() -> Iterator[Shared]:
    with shared.cluster() as found:
        yield found


@pytest.fixture
def testbed(_testbed: Shared) -> Shared:
    """The cluster. A test leaves nothing in it that another would stumble over."""
    if _testbed.own:
        _testbed.own.mark_logs()
    return _testbed


@pytest.fixture
def own_cluster(testbed: Shared) -> Cluster:
    """The project's own cluster, for its GPUs and its registry. A test that stops something asks for machine_room."""
    if not testbed.own:
        pytest.skip(shared.OURS_ONLY)
    return testbed.own


@pytest.fixture
def machine_room(own_cluster: Cluster) -> Iterator[Cluster]:
    """The processes behind the cluster, to kill and to stop, while no other test runs on it.

    What is down after the test is started again.
    """
    yield own_cluster
    own_cluster.mend()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Workers share one cluster: nobody else's test runs while one pulls plugs."""
    names = getattr(item, "fixturenames", ())
    with shared.turn(alone="machine_room" in names) if "_testbed" in names else contextlib.nullcontext():
        return (yield)


@pytest.fixture(scope="session")
def kube(_testbed: Shared) -> Any:
    """The API as the admin, through the program's own client."""
    from slurmk8s.kube.connection import connect

    return connect(_testbed.kubeconfig)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """On failure show what a person would look at: nodes, pods, events, and what the logs said meanwhile."""
    report = yield
    testbed = getattr(item, "funcargs", {}).get("testbed")
    if report.when == "call" and report.failed and testbed:
        try:
            report.sections.extend(testbed.evidence())
        except Exception as error:  # noqa: BLE001 - the test's own failure matters more
            report.sections.append(("evidence", f"could not be gathered: {error}"))
    return report
