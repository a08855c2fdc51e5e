"""What the pod knows of people, and that a job's folder goes whatever is left in it."""

import grp
import os
import pwd
from pathlib import Path

import pytest

from slurmk8s.agent import meeting
from slurmk8s.agent.meeting import Places
from slurmk8s.rendezvous import Rendezvous

ALICE = pwd.struct_passwd(("alice", "x", 1000, 1001, "Alice", "/home/alice", "/bin/zsh"))


@pytest.fixture
def places(tmp_path: Path) -> Places:
    places = Places(Rendezvous(tmp_path / "jobs" / "7"), tmp_path / "homes" / "7")
    places.meeting.handover.mkdir(parents=True)
    places.home.mkdir(parents=True)
    return places


def test_passwd_has_the_person_with_a_shell_that_every_image_has() -> None:
    lines = meeting.passwd(ALICE).splitlines()
    assert "alice:x:1000:1001::/home/alice:/bin/sh" in lines
    assert [line.split(":")[0] for line in lines] == ["root", "alice", "nobody"]


def test_group_has_the_persons_groups_by_this_nodes_names() -> None:
    known = grp.getgrgid(1)
    lines = meeting.group(ALICE, (1001, 1, 987654)).splitlines()
    assert f"{known.gr_name}:x:1:alice" in lines
    assert "group987654:x:987654:alice" in lines
    assert lines[0] == "root:x:0:"
    assert len({line.split(":")[2] for line in lines}) == len(lines)


def test_nobody_is_a_member_of_roots_group() -> None:
    """Not even somebody whose groups on the node have it."""
    assert "root:x:0:" in meeting.group(ALICE, (0, 1001)).splitlines()


def test_clearing_removes_everything_and_twice_is_fine(places: Places, tmp_path: Path) -> None:
    (places.home / "file").write_text("x")
    os.mkfifo(places.meeting.go)
    meeting.clear(places)
    meeting.clear(places)
    assert list((tmp_path / "jobs").iterdir()) == []
    assert list((tmp_path / "homes").iterdir()) == []


def test_clearing_follows_no_link(places: Places, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "kept").touch()
    (places.meeting.handover / "link").symlink_to(other)
    places.home.rmdir()
    places.home.symlink_to(other)
    meeting.clear(places)
    assert (other / "kept").exists()


def test_clearing_knows_no_depth(places: Places) -> None:
    """A person may leave folders in folders beyond what Python can descend, or an open file each."""
    descriptor = os.open(places.meeting.handover, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=descriptor)
        below = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)
    meeting.clear(places)
    assert not places.meeting.folder.exists()


def test_clearing_removes_what_its_owner_made_unwritable(places: Places) -> None:
    locked = places.home / "locked"
    locked.mkdir()
    (locked / "file").touch()
    if os.geteuid() == 0:  # root, as the agent is
        locked.chmod(0o000)
    meeting.clear(places)
    assert not places.home.exists()
