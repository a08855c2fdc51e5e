"""A job is proven by its process's place below root's own slurmstepd, never by a name."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from slurmk8s.agent import peer

ROOT = os.geteuid() == 0
STRANGER = 54321


@pytest.fixture
def daemon() -> Iterator[Callable[..., int]]:
    """`daemon(title, program="slurmstepd", uid=None)`: a process of that name and title; the pid of its grandchild."""
    folder = Path(tempfile.mkdtemp(prefix="slurmk8s-peer-"))
    folder.chmod(0o755)
    processes = []

    def start(title: str, program: str = "slurmstepd", uid: int | None = None) -> int:
        copy = folder / program
        shutil.copy("/usr/bin/dash", copy)
        copy.chmod(0o755)
        script = "sh -c 'sleep 1000 & echo $!; wait' & wait"
        process = subprocess.Popen(
            [title, "-c", script], executable=copy, user=uid, stdout=subprocess.PIPE, start_new_session=True, cwd="/"
        )
        processes.append(process)
        assert process.stdout is not None
        return int(process.stdout.readline())

    yield start
    for process in processes:
        os.killpg(process.pid, 9)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    shutil.rmtree(folder)


def test_a_process_outside_every_job_has_none() -> None:
    assert peer.job_of(os.getpid()) is None


def test_a_process_below_slurmstepd_is_of_its_job(daemon: Callable[..., int]) -> None:
    """Where the tests do not run as root, the same process proves nothing."""
    assert peer.job_of(daemon("slurmstepd: [17.batch]")) == (17 if ROOT else None)


def test_a_strangers_process_named_slurmstepd_proves_nothing(daemon: Callable[..., int]) -> None:
    assert peer.job_of(daemon("slurmstepd: [17.0]", uid=STRANGER if ROOT else None)) is None


def test_a_title_alone_proves_nothing(daemon: Callable[..., int]) -> None:
    """A root process of another program may have any title."""
    assert peer.job_of(daemon("slurmstepd: [17.0]", program="program")) is None


@pytest.mark.parametrize("title", ["slurmstepd", "slurmstepd: [x.0]", "x slurmstepd: [17.0]", "slurmstepd: 17.0"])
def test_a_slurmstepd_that_names_no_job_proves_none(daemon: Callable[..., int], title: str) -> None:
    assert peer.job_of(daemon(title)) is None


def test_a_name_with_parentheses_does_not_confuse_the_search(daemon: Callable[..., int]) -> None:
    assert peer.job_of(daemon("x", program="a) S 1 (b")) is None


def test_the_kernel_says_who_calls() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        assert peer.of(ours) == peer.Peer(os.getpid(), os.geteuid(), None)


def test_a_caller_that_is_gone_proves_nothing(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        listener.listen()
        code = f"import socket; socket.socket(socket.AF_UNIX).connect({str(tmp_path / 'socket')!r})"
        subprocess.run(["python3", "-c", code], check=True)
        connection, _ = listener.accept()
        with connection:
            assert peer.of(connection).job_id is None
