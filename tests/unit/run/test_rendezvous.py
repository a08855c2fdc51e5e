"""The hand-over folder belongs to the job's user: whatever lies there, reading it neither hangs nor fails."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurmk8s.rendezvous import Rendezvous, read_users_file


@pytest.fixture
def meeting(tmp_path: Path) -> Rendezvous:
    meeting = Rendezvous.of(str(tmp_path / "%n"), "node1", 12)
    meeting.handover.mkdir(parents=True)
    meeting.told.mkdir()
    return meeting


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_text("0\n")
    return path


def test_the_nodes_name_stands_for_percent_n(tmp_path: Path) -> None:
    assert Rendezvous.of("/run/slurmk8s/%n", "node1", 12).folder == Path("/run/slurmk8s/node1/jobs/12")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0\n", 0), ("137\n", 137), ("256\n", 0), ("7", None), ("", None), ("-1\n", None), ("x\n", None), ("\n", None)],
)
def test_an_exit_code_counts_when_it_is_complete(meeting: Rendezvous, text: str, expected: int | None) -> None:
    meeting.exit.write_text(text)
    assert meeting.read_exit() == expected


def test_an_exit_code_in_other_digits_is_none(meeting: Rendezvous) -> None:
    """`str.isdigit` accepts what `int` refuses."""
    meeting.exit.write_text("²\n")
    assert meeting.read_exit() is None


def test_no_file_is_no_exit_code(meeting: Rendezvous) -> None:
    assert meeting.read_exit() is None
    assert meeting.read_problem() is None
    assert meeting.read_plan() is None


def test_a_problem_is_one_line(meeting: Rendezvous) -> None:
    meeting.problem.write_text("The image has no\npython3.\n")
    assert meeting.read_problem() == "The image has no python3."


def test_a_plan_is_what_the_agent_told(meeting: Rendezvous) -> None:
    meeting.plan.write_text(json.dumps({"stdout": "/nas/한글"}))
    assert meeting.read_plan() == {"stdout": "/nas/한글"}


def test_a_link_is_not_followed(meeting: Rendezvous, secret: Path) -> None:
    meeting.exit.symlink_to(secret)
    assert read_users_file(meeting.exit, 16) is None


def test_a_folder_is_no_file(meeting: Rendezvous) -> None:
    meeting.exit.mkdir()
    assert read_users_file(meeting.exit, 16) is None


def test_a_fifo_without_a_writer_is_no_file(meeting: Rendezvous) -> None:
    os.mkfifo(meeting.exit)
    assert read_users_file(meeting.exit, 16) is None


@pytest.fixture
def open_fifo(meeting: Rendezvous) -> Iterator[Path]:
    os.mkfifo(meeting.exit)
    descriptor = os.open(meeting.exit, os.O_RDWR)
    yield meeting.exit
    os.close(descriptor)


def test_a_fifo_that_somebody_holds_open_is_no_file(open_fifo: Path) -> None:
    assert read_users_file(open_fifo, 16) is None


def test_a_huge_file_is_read_as_far_as_the_limit(meeting: Rendezvous) -> None:
    with meeting.problem.open("wb") as file:
        file.truncate(1 << 40)
    assert read_users_file(meeting.problem, 1000) == "\0" * 1000


def test_bytes_that_are_no_text_are_read(meeting: Rendezvous) -> None:
    meeting.problem.write_bytes(b"bad \xff byte\n")
    assert meeting.read_problem() == "bad \ufffd byte"


def test_reading_leaves_no_descriptor_open(meeting: Rendezvous) -> None:
    meeting.exit.mkdir()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        read_users_file(meeting.exit, 16)
    assert len(os.listdir("/proc/self/fd")) == before


def test_signals_wait_in_the_fifo_until_the_launcher_reads(meeting: Rendezvous) -> None:
    os.mkfifo(meeting.signals)
    reader = os.open(meeting.signals, os.O_RDWR | os.O_NONBLOCK)
    try:
        assert meeting.send_signal("all", "USR1")
        assert meeting.send_signal("shell", "TERM")
        assert os.read(reader, 100) == b"all USR1\nshell TERM\n"
    finally:
        os.close(reader)


def test_a_signal_for_nobody_is_told_so(meeting: Rendezvous) -> None:
    assert not meeting.send_signal("all", "USR1")


def test_a_full_fifo_does_not_block_the_sender(meeting: Rendezvous) -> None:
    os.mkfifo(meeting.signals)
    holder = os.open(meeting.signals, os.O_RDWR | os.O_NONBLOCK)
    try:
        sent = 0
        while meeting.send_signal("all", "USR1"):
            sent += 1
            assert sent < 100_000
    finally:
        os.close(holder)


def test_signals_are_not_sent_through_a_link(meeting: Rendezvous, secret: Path) -> None:
    meeting.signals.symlink_to(secret)
    assert not meeting.send_signal("all", "USR1")
    assert secret.read_text() == "0\n"


@pytest.mark.parametrize(
    ("stopped", "code", "outside"),
    [(True, 143, True), (True, 137, True), (True, None, True), (True, 0, False), (True, 7, False), (False, 143, False)],
)
def test_an_end_by_signal_is_the_bodys_own_unless_kubernetes_ended_the_pod(
    tmp_path: Path, stopped: bool, code: int | None, outside: bool
) -> None:
    meeting = Rendezvous(tmp_path)
    meeting.handover.mkdir()
    if stopped:
        meeting.stopped.touch()
    assert meeting.was_ended_from_outside(code) is outside


@pytest.mark.parametrize(("text", "peak"), [("1048576\n", 1 << 20), ("12", None), ("-1\n", None), ("max\n", None)])
def test_the_peak_of_memory_is_a_number_or_unknown(tmp_path: Path, text: str, peak: int | None) -> None:
    meeting = Rendezvous(tmp_path)
    meeting.handover.mkdir()
    assert meeting.read_peak() is None
    meeting.peak.write_text(text)
    assert meeting.read_peak() == peak


def test_a_signal_goes_only_into_a_pipe(tmp_path: Path) -> None:
    """The agent sends one too, as root, and the folder is the user's: whatever lies there is not written to."""
    meeting = Rendezvous(tmp_path)
    meeting.handover.mkdir()
    meeting.signals.write_text("mine")
    assert meeting.send_signal("all", "TERM") is False
    assert meeting.signals.read_text() == "mine"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("2500000 us\n", 2.5), ("2500000000 ns\n", 2.5), ("0 ns\n", 0.0), ("1 h\n", None), ("", None), ("-1 us\n", None)],
)
def test_cpu_time_is_told_in_the_kernels_own_unit(meeting: Rendezvous, text: str, expected: float | None) -> None:
    assert meeting.read_cpu_seconds() is None
    meeting.cpu.write_text(text)
    assert meeting.read_cpu_seconds() == expected


@pytest.mark.parametrize(("text", "is_one"), [("ab" * 32 + "\n", True), ("AB" * 32 + "\n", False), ("ab\n", False)])
def test_a_digest_is_64_digits(meeting: Rendezvous, text: str, is_one: bool) -> None:
    assert meeting.read_sha256() is None
    meeting.sha256.write_text(text)
    assert meeting.read_sha256() == (text.strip() if is_one else None)
