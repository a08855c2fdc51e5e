"""Needs nothing. What is told while a bundle is hashed, and how its processes behave."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from slurmk8s.errors import ClusterFault
from slurmk8s.results import files, hashers, progress
from slurmk8s.results.hashers import Batch, Way, hash_all
from slurmk8s.results.names import Names
from slurmk8s.results.paths import Bundle
from slurmk8s.results.progress import Progress
from slurmk8s.results.status import status
from slurmk8s.results.walk import walk

HALF = Progress(
    done_bytes=41 << 28, total_bytes=100 << 28, files=3, total_files=9, seconds=20.0, bytes_before=0, time=1000.0
)


def test_progress_is_told_in_one_line_with_speed_and_time_left() -> None:
    assert progress.text(HALF, now=1001.0) == "41 % (10.2 GiB of 25.0 GiB, 524.8 MiB/s, about 29 s left)"


def test_a_worker_that_says_nothing_any_more_is_told() -> None:
    told = progress.text(HALF, now=1000.0 + 7200)
    assert told.startswith("41 % (10.2 GiB of 25.0 GiB; nothing new for 2 h 0 min")


@pytest.mark.parametrize("seconds", [1.7e308, 10**400])
def test_a_progress_that_somebody_wrote_with_impossible_numbers_is_none(seconds: float) -> None:
    told = {**json.loads(HALF.encode()), "seconds": seconds}
    assert progress.decode(json.dumps(told).encode()) is None


def test_the_slowest_progress_that_is_taken_is_told_in_one_line() -> None:
    slow = Progress(1, 2**63 - 1, 1, 2, float(2**62 - 2**10), 0, 1000.0)
    assert progress.decode(slow.encode()) == slow
    assert progress.text(slow, now=1001.0).endswith(" left)")


def test_only_the_summary_ever_says_that_all_is_done() -> None:
    all_read = Progress(10, 10, 1, 1, 30.0, 0, 1000.0)
    assert all_read.percent == 99
    assert progress.decode(all_read.encode()) == all_read
    assert progress.decode(b'{"done_bytes": -1}') is None


def test_while_a_bundle_is_hashed_its_progress_is_in_it_and_told_to_whoever_asked(
    person: Any, make_summary: Any
) -> None:
    """Held back to 2 MiB/s, 16 MiB take long enough to look; then it is killed and hashed at full speed."""
    person.ask(op="prepare", attempt=0)
    person.sh("head -c 16777216 /dev/zero > outputs/weights")
    person.ask(op="finish", attempt=0, summary=make_summary())
    request = {"op": "checksums", "root": str(person.root), "job_id": 12, "attempt": 0, "bytes_per_second": 2 << 20}
    code = f"import sys; sys.path.insert(0, {person.package!r}); from slurmk8s.results.worker import main; main()"
    as_person = {} if os.geteuid() == person.uid else {"user": person.uid, "group": person.uid, "extra_groups": []}
    worker = subprocess.Popen(
        [os.path.realpath(sys.executable), "-I", "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd="/",
        **as_person,
    )
    try:
        assert worker.stdin
        assert worker.stdout
        worker.stdin.write(json.dumps(request).encode())
        worker.stdin.close()
        line = json.loads(worker.stdout.readline())
        seen = status(Bundle(person.folder)).hashing
        assert seen is not None
        assert line["progress"] == vars(seen)
        assert 0 < seen.done_bytes < 16 << 20
        assert (seen.total_bytes, seen.total_files) == (16 << 20, 3)
        niceness = os.getpriority(os.PRIO_PROCESS, worker.pid)
        assert niceness >= os.getpriority(os.PRIO_PROCESS, 0) + 10 or niceness == 19
        hashing = _children(worker.pid)
        assert hashing
    finally:
        worker.kill()
        worker.wait()
        worker.stdout.close()
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in hashing):
        assert time.monotonic() < deadline, "its processes outlive a killed worker"
        time.sleep(0.02)
    assert person.ask(op="checksums", attempt=0)["complete"]
    assert not (person.folder / ".checksums.progress").exists()
    assert status(Bundle(person.folder)).hashing is None


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_process_that_is_killed_while_it_hashes_is_no_result_but_a_fault(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 4096)

    def work() -> Any:
        yield Batch(b"", (b"a",))
        for child in _children(os.getpid()):
            os.kill(child, signal.SIGKILL)
        yield Batch(b"", (b"a",))

    slow = Way(processes=1, bytes_per_second=1)  # so that it is at work when it is killed
    with files.folder(str(tmp_path)) as folder, pytest.raises(ClusterFault, match="ended from outside"):
        list(hash_all(folder, work(), slow))


def test_results_come_in_order_and_what_is_known_passes_through(tmp_path: Path) -> None:
    names = [f"{number:04}".encode() for number in range(500)]
    for name in names:
        (tmp_path / name.decode()).write_bytes(name)
    known = [hashers.Hashed(b"known", "missing")]
    work = [*(Batch(b"", (name,)) for name in names[:250]), known, *(Batch(b"", (name,)) for name in names[250:])]
    with files.folder(str(tmp_path)) as folder:
        told = [hashed.path for batch in hash_all(folder, work, Way(processes=3)) for hashed in batch]
    assert told == [*names[:250], b"known", *names[250:]]


def test_a_folder_larger_than_the_window_is_walked_in_the_same_order(tmp_path: Path) -> None:
    (tmp_path / "top").mkdir()
    for number in range(50):
        (tmp_path / "top" / f"f{number}").touch()
        (tmp_path / "top" / f"d{number}").mkdir()
        (tmp_path / "top" / f"d{number}" / "inner").touch()
        (tmp_path / "top" / f"l{number}").symlink_to("/")

    def order(window: int) -> tuple[list[bytes], list[bytes]]:
        with files.folder(str(tmp_path)) as folder:
            parts = [(part.path, part.names, part.skipped) for part in walk(folder, b"top", window)]
        return (
            [path + b"/" + name for path, names, _ in parts for name in names],
            [path + b"/" + name for path, _, names in parts for name in names],
        )

    whole = order(1 << 16)
    assert len(whole[0]) == 100
    assert len(whole[1]) == 50
    for window in (1, 7, 75, 150):
        assert order(window) == whole


def test_a_set_of_names_finds_all_of_them_and_no_other() -> None:
    names = Names()
    assert b"0" not in names
    for number in range(5000):
        names.add(b"%d" % number)
    assert all(b"%d" % number in names for number in range(5000))
    assert not any(b"%d" % number in names for number in range(5000, 10000))
