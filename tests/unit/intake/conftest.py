import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurmk8s.config import Intake, Nas
from slurmk8s.intake import folders
from slurmk8s.intake.folders import Folders


@pytest.fixture
def nas(tmp_path: Path) -> Nas:
    return Nas(root=tmp_path, require_mountpoint=False)


@pytest.fixture
def submit(nas: Nas, opened: Folders) -> Path:
    return nas.jobs_folder / "submit"


@pytest.fixture
def opened(nas: Nas) -> Iterator[Folders]:
    with folders.opened(nas, people_add=True) as opened:
        yield opened


@pytest.fixture
def intake() -> Intake:
    return Intake(minimum_uid=os.geteuid())
