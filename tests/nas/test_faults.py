"""The tests' own NAS: trouble that was asked for comes, and only that."""

import errno
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import nas


@pytest.fixture
def share(folder: Path) -> Iterator[nas.Share]:
    (folder / "back").mkdir()
    (folder / "mount").mkdir()
    with nas.mounted(folder / "back", folder / "mount") as share:
        (share.path / "submit").mkdir()
        (share.path / "submit" / "one.sh").write_text("x")
        yield share


@pytest.mark.parametrize("number", [errno.ESTALE, errno.EIO])
def test_errors_come_where_they_were_asked_for_and_until_they_are_cleared(share: nas.Share, number: int) -> None:
    fault = share.fault("open", "submit/*", number)
    for _ in range(3):
        with pytest.raises(OSError, match=os.strerror(number)):
            (share.path / "submit" / "one.sh").read_text()
    (share.path / "elsewhere").write_text("x")
    assert fault.met() >= 3
    fault.clear()
    assert (share.path / "submit" / "one.sh").read_text() == "x"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_share_takes_no_bytes_so_many_times(share: nas.Share, number: int) -> None:
    share.fault("write", "submit/*", number, count=2)
    for _ in range(2):
        told = pytest.raises(OSError, match=os.strerror(number))
        with (share.path / "submit" / "two.sh").open("wb", buffering=0) as file, told:
            file.write(b"x")
    (share.path / "submit" / "two.sh").write_text("x")
    assert (share.back / "submit" / "two.sh").read_text() == "x"


def test_a_fault_can_end_by_itself(share: nas.Share) -> None:
    share.fault("readdir", "submit", errno.EIO, seconds=0.3)
    with pytest.raises(OSError, match="Input/output"):
        os.listdir(share.path / "submit")
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            assert os.listdir(share.path / "submit") == ["one.sh"]
        except OSError:
            time.sleep(0.02)
        else:
            return
    pytest.fail("the fault never ended")


def test_a_rename_that_succeeded_can_answer_that_there_is_no_such_file(share: nas.Share) -> None:
    fault = share.fault("rename", "submit/one.sh", errno.ENOENT, done=True, count=1)
    with pytest.raises(FileNotFoundError):
        os.rename(share.path / "submit" / "one.sh", share.path / "taken")
    assert (share.path / "taken").read_text() == "x"
    assert os.listdir(share.path / "submit") == []
    assert fault.met() == 1


def test_a_link_that_succeeded_can_answer_that_it_exists(share: nas.Share) -> None:
    share.fault("link", "answer", errno.EEXIST, done=True, count=1)
    with pytest.raises(FileExistsError):
        os.link(share.path / "submit" / "one.sh", share.path / "answer")
    assert (share.path / "answer").read_text() == "x"
    assert (share.path / "answer").stat().st_nlink == 2


def test_a_file_made_but_answered_with_an_error_is_there(share: nas.Share) -> None:
    share.fault("create", "new", errno.EIO, done=True, count=1)
    with pytest.raises(OSError, match="Input/output"):
        (share.path / "new").write_text("x")
    assert (share.path / "new").read_bytes() == b""


def test_what_hangs_goes_on_when_the_fault_is_cleared(share: nas.Share) -> None:
    fault = share.fault("open", "submit/one.sh", delay=3600)
    reading = subprocess.Popen(["cat", share.path / "submit" / "one.sh"], stdout=subprocess.PIPE)
    _until_met(fault)
    assert os.listdir(share.path / "submit") == ["one.sh"]  # others are not held up
    assert reading.poll() is None
    share.clear()
    assert reading.communicate(timeout=30)[0] == b"x"


def test_who_hangs_can_be_killed(share: nas.Share) -> None:
    fault = share.fault("open", "submit/one.sh", delay=3600)
    reading = subprocess.Popen(["cat", share.path / "submit" / "one.sh"])
    _until_met(fault)
    reading.kill()
    assert reading.wait(30) == -signal.SIGKILL


def test_the_share_goes_and_comes_back(share: nas.Share) -> None:
    kept = os.open(share.path / "submit", os.O_RDONLY | os.O_DIRECTORY)
    try:
        share.unmount()
        assert os.listdir(share.path) == []
        with pytest.raises(OSError, match="not connected"):
            os.listdir(kept)
        share.mount()
        assert os.listdir(share.path) == ["submit"]
        share.break_down()
        with pytest.raises(OSError, match="not connected"):
            os.listdir(share.path)
        share.unmount()
        assert os.listdir(share.path) == []
        share.mount()
        assert (share.path / "submit" / "one.sh").read_text() == "x"
    finally:
        os.close(kept)


def _until_met(fault: nas.Planned) -> None:
    deadline = time.monotonic() + 30
    while not fault.met() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert fault.met()
