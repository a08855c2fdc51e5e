"""The tests' own NAS: who may do what on it."""

import errno
import os
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from nas_bed import KIM, LAB, LEE, Person, act_as

import nas

NOBODY = 65534


@pytest.fixture
def squashed(folder: Path) -> Iterator[nas.Share]:
    """A share where root is nobody, with a sticky folder for everybody."""
    back = folder / "back"
    back.mkdir()
    (back / "all").mkdir()
    (back / "all").chmod(0o1777)
    (folder / "mount").mkdir()
    with nas.mounted(back, folder / "mount", root_squash=True) as share:
        yield share


@pytest.fixture
def plain(folder: Path) -> Iterator[nas.Share]:
    """The same for a root who is root."""
    back = folder / "back"
    back.mkdir()
    (back / "all").mkdir()
    (back / "all").chmod(0o1777)
    (folder / "mount").mkdir()
    with nas.mounted(back, folder / "mount") as share:
        yield share


def test_what_root_makes_is_nobodys(squashed: nas.Share) -> None:
    everybodys = squashed.path / "all"
    (everybodys / "file").write_text("x")
    (everybodys / "folder").mkdir()
    os.mkfifo(everybodys / "pipe")
    for name in ("file", "folder", "pipe"):
        found = (everybodys / name).lstat()
        assert (found.st_uid, found.st_gid) == (NOBODY, NOBODY)


@pytest.mark.parametrize(
    "attempt",
    [
        lambda share: (share / "all" / "private").read_bytes(),
        lambda share: (share / "all" / "private").write_bytes(b""),
        lambda share: list((share / "all" / "closed").iterdir()),
        lambda share: (share / "all" / "closed" / "inner").lstat(),
        lambda share: (share / "new").mkdir(),
        lambda share: os.chown(share / "all" / "roots", KIM.uid, KIM.gid),
        lambda share: os.chown(share / "all" / "private", NOBODY, NOBODY),
        lambda share: os.chmod(share / "all" / "private", 0o644),
        lambda share: os.utime(share / "all" / "private", (1, 1)),
        lambda share: os.truncate(share / "all" / "private", 0),
        lambda share: os.unlink(share / "all" / "private"),
        lambda share: os.rename(share / "all" / "private", share / "all" / "mine"),
    ],
)
def test_a_squashed_root_has_no_more_rights_than_anybody(
    squashed: nas.Share, attempt: Callable[[Path], object]
) -> None:
    act_as(KIM, "echo secret >all/private; chmod 600 all/private; mkdir all/closed; touch all/closed/inner", squashed)
    act_as(KIM, "chmod 700 all/closed", squashed)
    (squashed.path / "all" / "roots").write_text("x")
    with pytest.raises(PermissionError):
        attempt(squashed.path)


def test_a_root_who_is_not_squashed_is_root(plain: nas.Share) -> None:
    act_as(KIM, "echo secret >all/private; chmod 600 all/private", plain)
    assert (plain.path / "all" / "private").read_text() == "secret\n"
    os.chown(plain.path / "all" / "private", LEE.uid, LEE.gid)
    assert act_as(LEE, "cat all/private", plain) == "secret\n"


def test_people_have_their_own_rights(squashed: nas.Share) -> None:
    act_as(KIM, "echo secret >all/private; chmod 600 all/private", squashed)
    assert act_as(KIM, "cat all/private", squashed) == "secret\n"
    for command in ("cat all/private", "rm -f all/private", "mv all/private all/x", "chmod 644 all/private"):
        with pytest.raises(subprocess.CalledProcessError):
            act_as(LEE, command, squashed)
    assert (squashed.back / "all" / "private").stat().st_uid == KIM.uid


def test_supplementary_groups_count(squashed: nas.Share) -> None:
    shared = squashed.back / "lab"
    shared.mkdir()
    os.chown(shared, 0, LAB)
    shared.chmod(0o2770)
    member = Person(KIM.uid, KIM.gid, (LAB, 41999))
    act_as(member, "umask 007; echo x >lab/file; chgrp 41999 lab/file; mkdir lab/inner", squashed)
    assert (shared / "file").stat().st_gid == 41999
    inner = (shared / "inner").stat()
    assert inner.st_gid == LAB
    assert inner.st_mode & stat.S_ISGID
    for outsider in (KIM, LEE):
        with pytest.raises(subprocess.CalledProcessError):
            act_as(outsider, "ls lab", squashed)


def test_a_folder_opened_before_can_be_worked_in_whoever_may_not_pass_to_it(plain: nas.Share) -> None:
    """The watcher acts as a person inside folders whose parents are closed to that person."""
    (plain.path / "private").mkdir(mode=0o700)
    (plain.path / "private" / "inner").mkdir()
    (plain.path / "private" / "inner").chmod(0o777)
    inner = os.open(plain.path / "private" / "inner", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        os.seteuid(KIM.uid)
        try:
            descriptor = os.open("file", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=inner)
            os.write(descriptor, b"x")
            os.fsync(descriptor)
            os.close(descriptor)
            os.link("file", "second", src_dir_fd=inner, dst_dir_fd=inner)
            os.fsync(inner)
            assert os.stat("second", dir_fd=inner).st_nlink == 2
            with pytest.raises(PermissionError):
                (plain.path / "private" / "inner" / "file").lstat()
        finally:
            os.seteuid(0)
    finally:
        os.close(inner)
    assert (plain.back / "private" / "inner" / "file").stat().st_uid == KIM.uid


def test_root_can_pass_through_where_everybody_can(squashed: nas.Share) -> None:
    """A container runtime mounts a person's own folder as root."""
    act_as(KIM, "mkdir all/17 all/17/outputs; chmod 711 all/17; chmod 700 all/17/outputs", squashed)
    where = squashed.path.parent / "container"
    where.mkdir()
    subprocess.run(["mount", "--bind", squashed.path / "all" / "17" / "outputs", where], check=True)
    try:
        with pytest.raises(PermissionError) as refused:
            list(where.iterdir())
        assert refused.value.errno == errno.EACCES
    finally:
        subprocess.run(["umount", where], check=True)


def test_it_tells_what_root_tried_to_change(squashed: nas.Share) -> None:
    with pytest.raises(PermissionError):
        (squashed.path / "results").mkdir()
    act_as(KIM, "mkdir all/kims", squashed)
    assert squashed.changes_by_root() == ["mkdir results"]
