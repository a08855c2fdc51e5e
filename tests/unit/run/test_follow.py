"""The logs on the NAS reach Slurm's own files byte for byte, whatever happens to those."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurmk8s.run.follow import CHUNK, Follower


@pytest.fixture
def target(tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path / "target", os.O_RDWR | os.O_CREAT)
    yield descriptor
    os.close(descriptor)


def test_a_log_that_appears_late_is_copied_from_its_start(tmp_path: Path, target: int) -> None:
    log = tmp_path / "stdout.log"
    follower = Follower(log, target)
    assert not follower.pump()
    log.write_bytes(b"first")
    assert follower.pump()
    assert not follower.pump()
    with log.open("ab") as file:
        file.write(b" and \xff\0 second")
    assert follower.pump()
    assert (tmp_path / "target").read_bytes() == b"first and \xff\0 second"


def test_a_log_of_many_chunks_arrives_whole(tmp_path: Path, target: int) -> None:
    data = os.urandom(5 * CHUNK + 7)
    (tmp_path / "stdout.log").write_bytes(data)
    assert Follower(tmp_path / "stdout.log", target).pump()
    assert (tmp_path / "target").read_bytes() == data


def test_a_reader_that_is_slow_gets_everything(tmp_path: Path) -> None:
    """Slurm may hand us a pipe that somebody has made non-blocking."""
    data = os.urandom(CHUNK)
    (tmp_path / "stdout.log").write_bytes(data)
    source, sink = os.pipe2(os.O_NONBLOCK)
    got = bytearray()

    def read() -> None:
        os.set_blocking(source, True)
        while part := os.read(source, 1000):
            got.extend(part)

    follower = Follower(tmp_path / "stdout.log", sink)
    pumping = threading.Thread(target=follower.pump)
    pumping.start()
    reading = threading.Thread(target=read)
    reading.start()
    pumping.join()
    os.close(sink)
    reading.join()
    os.close(source)
    assert bytes(got) == data


def test_a_full_disk_below_slurms_log_is_told_once_and_ends_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "stdout.log"
    log.write_bytes(b"line\n")
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        follower = Follower(log, full)
        follower.pump()
        with log.open("ab") as file:
            file.write(b"more\n")
        assert not follower.pump()
    finally:
        os.close(full)
    assert capfd.readouterr().err == f"slurmk8s: no more output here (No space left on device); see {log}\n"


def test_a_link_in_the_place_of_a_log_is_not_followed(tmp_path: Path, target: int) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "stdout.log").symlink_to(tmp_path / "secret")
    with pytest.raises(OSError, match="symbolic link"):
        Follower(tmp_path / "stdout.log", target).pump()
    assert (tmp_path / "target").read_bytes() == b""
