"""The tests of the tests' own NAS need root, for /dev/fuse and to act as several people, and nothing else."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

# Tests are not a package, so that the installed program is what they import.
sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def folder() -> Iterator[Path]:
    """A place that people can reach; pytest's own is closed to them."""
    path = Path(tempfile.mkdtemp(prefix="slurmk8s-nas-", dir="/var/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)
