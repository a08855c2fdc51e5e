"""The hand-over folder inside a bundle: one per attempt, made again never, gone with the attempt."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurmk8s.results import handover


@pytest.fixture
def bundle(tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield descriptor
    os.close(descriptor)


def test_it_holds_two_pipes_that_only_the_user_can_reach(bundle: int, tmp_path: Path) -> None:
    handover.make(bundle, 2)
    folder = tmp_path / ".handover-2"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert sorted(path.name for path in folder.iterdir()) == ["go", "signals"]
    assert all(stat.S_ISFIFO(path.stat().st_mode) for path in folder.iterdir())


def test_made_again_it_is_the_running_pods(bundle: int, tmp_path: Path) -> None:
    handover.make(bundle, 0)
    (tmp_path / ".handover-0" / "exit").write_text("0\n")
    handover.make(bundle, 0)
    assert (tmp_path / ".handover-0" / "exit").exists()


def test_half_of_one_is_made_anew(bundle: int, tmp_path: Path) -> None:
    (tmp_path / ".handover-0.tmp").mkdir()
    (tmp_path / ".handover-0.tmp" / "go").touch()
    handover.make(bundle, 0)
    assert stat.S_ISFIFO((tmp_path / ".handover-0" / "go").stat().st_mode)


def test_removing_takes_whatever_is_in_it_and_follows_no_link(bundle: int, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").touch()
    handover.make(bundle, 1)
    (tmp_path / ".handover-1" / "link").symlink_to(kept)
    descriptor = os.open(tmp_path / ".handover-1", os.O_RDONLY)
    for _ in range(2000):  # deeper than Python's own rmtree goes
        os.mkdir("d", dir_fd=descriptor)
        below = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)
    handover.remove(bundle, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert (kept / "file").exists()
    handover.remove(bundle, 1)
