"""What every kind of test shares: which program is tested, and waiting for a condition instead of for a time."""

import contextlib
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import slurmk8s
from slurmk8s.local import program
from slurmk8s.local.layout import Layout

# Tests are not a package, so that the installed program is what they import.
sys.path.insert(0, str(Path(__file__).parent))
from waiting import until  # found only now

# Started in the background of a script, we and every program we start would ignore these for ever.
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def pytest_report_header() -> str:
    """`make test` tests the installed wheel; a checkout on sys.path would hide what was left out of it."""
    return f"slurmk8s: {Path(slurmk8s.__file__).parent}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test's folder says what it needs, and so its mark."""
    root = Path(__file__).parent
    for item in items:
        folder = item.path.relative_to(root).parts[0]
        if folder in ("nas", "slurm", "podman", "kube", "e2e"):
            item.add_marker(folder)


@pytest.fixture
def wait_for() -> Callable[..., object]:
    """`wait_for(condition, "what", seconds=30)`: poll until it is true and give what it returned."""
    return until


@pytest.fixture(scope="session")
def everyones_python() -> Iterator[Path]:
    """A Python with slurmk8s that any user can run: ours, or a copy where the checkout lies in root's own home."""
    nobody: dict[str, Any] = {"user": 65534, "group": 65534, "extra_groups": []}
    with contextlib.suppress(OSError):
        tried = [sys.executable, "-I", "-c", "import slurmk8s"]
        if subprocess.run(tried, check=False, capture_output=True, cwd="/", **nobody).returncode == 0:
            yield Path(sys.executable)
            return
    folder = Path(tempfile.mkdtemp(prefix="slurmk8s-program-", dir="/var/tmp"))
    folder.chmod(0o755)
    layout = Layout(folder)
    layout.bin.mkdir()
    try:
        yield program.install(layout, pwd.getpwnam("nobody"))
    finally:
        shutil.rmtree(folder)
