"""What every kind of test shares: which program is tested, and waiting for a condition instead of for a time."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

import slurmk8s

Result = TypeVar("Result")


def pytest_report_header() -> str:
    """`make test` tests the installed wheel; a checkout on sys.path would hide what was left out of it."""
    return f"slurmk8s: {Path(slurmk8s.__file__).parent}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test's folder says what it needs, and so its mark."""
    root = Path(__file__).parent
    for item in items:
        folder = item.path.relative_to(root).parts[0]
        if folder in ("slurm", "podman", "e2e"):
            item.add_marker(folder)


@pytest.fixture
def wait_for() -> Callable[..., object]:
    """`wait_for(condition, "what", seconds=30)`: poll until it is true and give what it returned."""
    return until


def until(condition: Callable[[], Result], what: str, seconds: float = 30) -> Result:
    """Poll a condition; fail with what was waited for, and with what was last seen."""
    deadline = time.monotonic() + seconds
    while not (seen := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what} (last seen: {seen!r})")
        time.sleep(0.03)
    return seen
