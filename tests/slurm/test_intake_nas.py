"""The watcher on a network file system with its odd answers: nothing lost, nothing twice, and every drop answered."""

import contextlib
import errno
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import nas
import pytest
from intake_bed import BAD, GOOD, Intake
from intake_share import (
    answered,
    assert_one_answer_each,
    complaints,
    log_of,
    names,
    on_share,
    on_squashed_share,
    unfinished,
)

OPEN, SUBMIT, PROCESSED, FAILED = ".intake/open/*", "submit/*", "processed/*", "failed/*"
LONG = 90
"""Seconds: what met trouble of its own is tried again after half a minute."""
YEAR = 365 * 86_400


@pytest.fixture
def share(intake: Intake) -> Iterator[nas.Share]:
    with on_share(intake) as share:
        yield share


@pytest.mark.parametrize(
    ("operation", "path", "number"),
    [
        ("readdir", "submit", errno.ESTALE),
        ("readdir", "submit", errno.EIO),
        ("lookup", SUBMIT, errno.ESTALE),
        ("lookup", SUBMIT, errno.EIO),
        ("open", SUBMIT, errno.ESTALE),
        ("mkdir", OPEN, errno.EIO),
        ("rename", SUBMIT, errno.ESTALE),
        ("rename", SUBMIT, errno.EIO),
        ("open", OPEN, errno.ESTALE),
        ("read", OPEN, errno.EIO),
        ("create", ".intake/open/*/.submission*", errno.EIO),
        ("write", ".intake/open/*/.submission*", errno.ESTALE),
        ("fsync", ".intake/open/*/.submission*", errno.EIO),
        ("link", ".intake/open/*/.submission", errno.ESTALE),
        ("fsync", ".intake/open/*/.answer*", errno.ESTALE),
        ("link", ".intake/open/*/.answer", errno.EIO),
        ("unlink", ".intake/open/*.tmp", errno.ESTALE),
        ("fsyncdir", OPEN, errno.EIO),
        ("create", PROCESSED, errno.ESTALE),
        ("write", PROCESSED, errno.EIO),
        ("setattr", PROCESSED, errno.ESTALE),
        ("link", PROCESSED, errno.EIO),
        ("link", FAILED, errno.ESTALE),
        ("rename", OPEN, errno.EIO),
        ("unlink", ".intake/*.sh", errno.EIO),
    ],
)
def test_trouble_at_any_operation_is_met_with_patience(
    intake: Intake, share: nas.Share, name: str, operation: str, path: str, number: int, wait_for: Callable[..., Any]
) -> None:
    """What cannot be done now is left as it is. Another watcher finishes it when all is well."""
    fault = share.fault(operation, f"slurm-jobs/{path}", number)
    intake.start()
    intake.drop(name, into=share.back / "slurm-jobs" / "submit")
    intake.drop(f"bad-{name}", BAD, into=share.back / "slurm-jobs" / "submit")
    wait_for(
        lambda: fault.met() and (complaints(intake) or fault.met() > 5 or answered(intake, 1, 1)), "the fault to be met"
    )
    intake.stop()
    share.clear()
    assert intake.once().returncode == 0
    assert_one_answer_each(intake, [name], [f"bad-{name}"])


def test_one_watcher_outlives_a_storm(
    intake: Intake, share: nas.Share, name: str, wait_for: Callable[..., Any]
) -> None:
    """Every operation fails now and then, for a while, under a burst of drops; nobody restarts anything."""
    good, bad = [f"{number}-{name}" for number in range(15)], [f"bad-{number}-{name}" for number in range(5)]
    for operation in ("lookup", "open", "create", "write", "fsync", "link", "rename", "unlink", "readdir", "mkdir"):
        for number in (errno.EIO, errno.ESTALE):
            share.fault(operation, "slurm-jobs/*", number, count=2)
    share.fault("fsync", "slurm-jobs/*", delay=2, count=3)
    process = intake.start()
    for each in good:
        intake.drop(each, into=share.back / "slurm-jobs" / "submit")
    for each in bad:
        intake.drop(each, BAD, into=share.back / "slurm-jobs" / "submit")
    wait_for(lambda: answered(intake, len(good), len(bad)), "all answers", seconds=2 * LONG)
    assert process.poll() is None
    wait_for(lambda: not unfinished(intake), "the claims to be finished", seconds=LONG)
    assert_one_answer_each(intake, good, bad)


@pytest.mark.parametrize(
    ("operation", "path", "number"),
    [
        ("rename", SUBMIT, errno.ENOENT),
        ("rename", OPEN, errno.ENOENT),
        ("mkdir", OPEN, errno.EEXIST),
        ("link", ".intake/open/*/.submission", errno.EEXIST),
        ("link", ".intake/open/*/.answer", errno.EEXIST),
        ("create", ".intake/open/*/.told", errno.EEXIST),
        ("unlink", ".intake/open/*.tmp", errno.ENOENT),
        ("create", "processed/*.tmp", errno.EEXIST),
        ("link", "processed/*.receipt.txt", errno.EEXIST),
        ("link", PROCESSED, errno.EEXIST),
        ("unlink", "processed/*.tmp", errno.ENOENT),
        ("link", "failed/*.error.txt", errno.EEXIST),
        ("link", FAILED, errno.EEXIST),
        ("unlink", ".intake/*.sh", errno.ENOENT),
    ],
)
def test_what_was_done_although_the_answer_says_otherwise_is_not_done_twice(
    intake: Intake, share: nas.Share, name: str, operation: str, path: str, number: int, wait_for: Callable[..., Any]
) -> None:
    """As when the reply is lost: the client asks again, and the server judges by what it has done meanwhile."""
    fault = share.fault(operation, f"slurm-jobs/{path}", number, done=True, count=1)
    intake.start()
    intake.drop(name, into=share.back / "slurm-jobs" / "submit")
    intake.drop(f"bad-{name}", BAD, into=share.back / "slurm-jobs" / "submit")
    wait_for(lambda: answered(intake, 1, 1), "both answers", seconds=LONG)
    wait_for(lambda: not unfinished(intake), "the claims to be finished", seconds=LONG)
    assert fault.met() == 1
    assert_one_answer_each(intake, [name], [f"bad-{name}"])


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT], ids=["full", "quota"])
@pytest.mark.parametrize("operation", ["write", "fsync", "flush"])
def test_on_a_full_share_an_answer_waits_and_comes(
    intake: Intake, share: nas.Share, name: str, operation: str, number: int, wait_for: Callable[..., Any]
) -> None:
    full = share.fault(operation, "slurm-jobs/processed/*", number)
    intake.start()
    intake.drop(name, into=share.back / "slurm-jobs" / "submit")
    wait_for(full.met, "the share to be full")
    wait_for(lambda: "waits" in log_of(intake), "the watcher to say so")
    wait_for(lambda: names(intake, "processed") == [], "no half receipt")
    full.clear()
    intake.stop()
    assert intake.once().returncode == 0
    assert_one_answer_each(intake, [name], [])


def test_on_a_full_share_nothing_is_submitted_that_cannot_be_recorded(
    intake: Intake, share: nas.Share, name: str, wait_for: Callable[..., Any]
) -> None:
    full = share.fault("write", "slurm-jobs/*", errno.ENOSPC)
    process = intake.start()
    intake.drop(name, into=share.back / "slurm-jobs" / "submit")
    wait_for(full.met, "the share to be full")
    wait_for(lambda: "waits" in log_of(intake), "the watcher to say so")
    assert intake.job_ids(name) == []
    full.clear()
    wait_for(lambda: answered(intake, 1), "the receipt", seconds=LONG)
    assert process.poll() is None
    assert len(intake.job_ids(name)) == 1


def test_what_nfs_keeps_of_deleted_files_is_left_alone(
    intake: Intake, share: nas.Share, name: str, wait_for: Callable[..., Any]
) -> None:
    silly = ".nfs000000000046f2b200000001"
    intake.drop(silly, into=share.back / "slurm-jobs" / "submit")
    share.fault("unlink", "*/.nfs*", errno.EBUSY)  # what NFS answers while somebody has it open
    share.fault("rename", "slurm-jobs/.intake/open/*", delay=1)
    intake.start()
    intake.drop(name, into=share.back / "slurm-jobs" / "submit")
    claim = wait_for(lambda: list((share.back / "slurm-jobs" / ".intake" / "open").iterdir()), "the claim")[0]
    with contextlib.suppress(FileNotFoundError):
        (claim / silly).write_bytes(b"")
    wait_for(lambda: answered(intake, 1), "the receipt", seconds=LONG)
    wait_for(lambda: not unfinished(intake), "the claim to be finished", seconds=LONG)
    assert names(intake, "submit") == [silly]
    assert names(intake, "failed") == []
    assert len(intake.job_ids(name)) == 1


@pytest.mark.parametrize("how", ["unmounted", "dead"])
def test_the_share_goes_in_mid_work_and_comes_back(
    intake: Intake, share: nas.Share, name: str, how: str, wait_for: Callable[..., Any]
) -> None:
    dropped = [f"{number}-{name}" for number in range(60)]
    for each in dropped:
        intake.drop(each, into=share.back / "slurm-jobs" / "submit")
    process = intake.start()
    receipts = share.back / "slurm-jobs" / "processed"
    wait_for(lambda: len(list(receipts.glob("*.receipt.txt"))) >= 3, "some receipts")
    if how == "dead":
        share.break_down()
        wait_for(lambda: "Waiting for the NAS" in log_of(intake), "the watcher to say that it waits", seconds=60)
    share.unmount()
    wait_for(lambda: "Waiting for the NAS" in log_of(intake), "the watcher to say that it waits", seconds=60)
    assert list(intake.nas.iterdir()) == [], "folders on the empty mount point"
    share.mount()
    wait_for(lambda: "The NAS is back" in log_of(intake), "the watcher to say that it goes on", seconds=LONG)
    wait_for(lambda: answered(intake, len(dropped)), "all receipts", seconds=2 * LONG)
    wait_for(lambda: not unfinished(intake), "the claims to be finished", seconds=LONG)
    assert process.poll() is None
    assert_one_answer_each(intake, dropped, [])


@pytest.mark.parametrize("skew", [-2 * YEAR, 2 * YEAR], ids=["behind", "ahead"])
def test_a_wrong_clock_changes_nothing(intake: Intake, name: str, skew: float, wait_for: Callable[..., Any]) -> None:
    """Neither the NAS's own nor that of the machine from which a file comes with its times."""
    with on_share(intake, skew_seconds=skew) as share:
        intake.start()
        submit = share.back / "slurm-jobs" / "submit"
        times = {"now": time.time(), "old": 0, "future": 4_000_000_000, "before-1970": -86_400}
        for word, stamp in times.items():
            intake.drop(f"{word}-{name}.part", into=submit)
            os.utime(submit / f"{word}-{name}.part", (stamp, stamp))
            (submit / f"{word}-{name}.part").rename(submit / f"{word}-{name}")
        wait_for(lambda: answered(intake, len(times)), "all receipts", seconds=LONG)
        wait_for(lambda: not unfinished(intake), "the claims to be finished", seconds=LONG)
        assert_one_answer_each(intake, [f"{word}-{name}" for word in times], [])


@pytest.mark.parametrize("squashed", [False, True], ids=["root", "nobody"])
def test_cached_attributes_do_not_make_half_a_file_look_complete(
    intake: Intake, name: str, squashed: bool, wait_for: Callable[..., Any]
) -> None:
    """Another client writes for a while; this one's cache says all the time that the file has not changed."""
    with contextlib.ExitStack() as stack:
        share = stack.enter_context(
            on_squashed_share(intake, attribute_seconds=600) if squashed else on_share(intake, attribute_seconds=600)
        )
        file = share.back / "slurm-jobs" / "submit" / name
        intake.drop(name, GOOD, into=file.parent)
        file.chmod(0o600)
        intake.start()
        for number in range(15):
            with file.open("ab") as growing:
                growing.write(f"echo {number}\n".encode())
            # Well below the settle time of the tests: it never stands still for that long.
            time.sleep(0.1)
            assert file.exists(), "taken while it was growing"
        wait_for(lambda: answered(intake, 1), "the receipt", seconds=LONG)
        (copy,) = (share.back / "slurm-jobs" / "processed").glob(f"{name}.*[0-9]")
        assert copy.read_bytes().endswith(b"echo 14\n")
