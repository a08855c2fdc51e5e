import os
import pwd
import time
from pathlib import Path

import pytest

from slurmk8s.config import Intake
from slurmk8s.intake import scan
from slurmk8s.intake.drop import Drop, job_to_cancel
from slurmk8s.intake.folders import Folders
from slurmk8s.intake.scan import Scanner


@pytest.mark.parametrize(
    "name",
    [
        ".DS_Store",
        "._train.sh",
        ".~lock.train.sh#",
        ".nfs000000000123",
        "Thumbs.db",
        "thumbs.DB",
        "desktop.ini",
        "~$train.sh",
        "train.sh~",
        ".train.sh.swp",
        "train.sh.swp",
        "train.sh.part",
        "train.sh.filepart",
        "train.sh.tmp",
        "train.sh:Zone.Identifier",
        "README.txt",
        "train.sh.waiting.txt",
        ".hidden\nwith newline",
    ],
)
def test_what_editors_and_copiers_leave_is_passed_over(name: str) -> None:
    assert scan.passed_over(name)


@pytest.mark.parametrize(
    "name", ["train.sh", "a b.sh", "작업.sh", "-rf.sh", "part.sh", "x\ny.sh", "\udcff.sh", "data.csv"]
)
def test_everything_else_is_a_drop(name: str) -> None:
    assert not scan.passed_over(name)


def test_a_scan_sees_files_links_fifos_and_folders_without_opening_what_could_block(
    submit: Path, opened: Folders, intake: Intake
) -> None:
    (submit / "job.sh").write_text("x")
    (submit / "link.sh").symlink_to("/etc/passwd")
    os.mkfifo(submit / "pipe.sh")
    (submit / "data").mkdir()

    found = Scanner(intake).looks(opened.submit)

    assert {drop.name for drop in found} == {"job.sh", "link.sh", "pipe.sh", "data"}
    assert found[Drop("", "data")].patience > found[Drop("", "job.sh")].patience


def test_a_persons_own_folder_is_looked_into(submit: Path, opened: Folders, intake: Intake) -> None:
    user = pwd.getpwuid(os.geteuid()).pw_name
    (submit / user).mkdir()
    (submit / user / "job.sh").write_text("x")

    assert list(Scanner(intake).looks(opened.submit)) == [Drop(user, "job.sh")]


@pytest.mark.parametrize("identity", ["owner", "folder"])
def test_a_folder_that_anyone_can_write_to_proves_nobody(submit: Path, opened: Folders, identity: str) -> None:
    intake = Intake.model_validate({"minimum_uid": os.geteuid(), "identity": identity})
    user = pwd.getpwuid(os.geteuid()).pw_name
    (submit / user).mkdir()
    (submit / user / "job.sh").write_text("x")
    assert list(Scanner(intake).looks(opened.submit)) == [Drop(user, "job.sh", trusted=True)]

    (submit / user).chmod(0o777)
    assert list(Scanner(intake).looks(opened.submit)) == [Drop(user, "job.sh", trusted=False)]


def test_an_empty_file_gets_more_time(submit: Path, opened: Folders, intake: Intake) -> None:
    (submit / "empty.sh").touch()
    (submit / "full.sh").write_text("x")
    found = Scanner(intake).looks(opened.submit)
    assert found[Drop("", "empty.sh")].patience > found[Drop("", "full.sh")].patience


def test_a_name_that_came_back_is_seen_again(submit: Path, opened: Folders, intake: Intake) -> None:
    scanner = Scanner(intake)
    for name in (".hidden", "a.part", "b.swp"):
        (submit / name).touch()
    assert scanner.looks(opened.submit) == {}
    (submit / "a.part").rename(submit / "a.sh")
    (submit / "b.swp").unlink()
    assert [drop.name for drop in scanner.looks(opened.submit)] == ["a.sh"]
    assert scanner._passed[""] == {".hidden"}


@pytest.mark.parametrize(
    ("data", "hole"),
    [
        (b"#!/bin/sh\n" + bytes(100), True),
        (b"#!/bin/sh\n" + bytes(40) + b"echo\n", True),
        (bytes(3), True),
        ("#!/bin/sh\necho 한글\n".encode("utf-16"), False),
        ("#!/bin/sh\n".encode("utf-32"), False),
        (b"#!/bin/sh\n", False),
    ],
)
def test_room_that_is_reserved_and_not_filled_is_seen(submit: Path, opened: Folders, data: bytes, hole: bool) -> None:
    (submit / "a.sh").write_bytes(data)
    assert scan.has_hole(opened.submit, Drop("", "a.sh"), 1000) is hole


def test_looking_for_holes_opens_nothing_that_blocks_and_follows_no_link(submit: Path, opened: Folders) -> None:
    os.mkfifo(submit / "pipe.sh")
    (submit / "zeros").write_bytes(bytes(100))
    (submit / "link.sh").symlink_to("zeros")
    assert not scan.has_hole(opened.submit, Drop("", "pipe.sh"), 1000)
    assert not scan.has_hole(opened.submit, Drop("", "link.sh"), 1000)


@pytest.mark.parametrize(
    ("name", "job"),
    [
        ("cancel-12", "12"),
        ("CANCEL-12.txt", "12"),
        ("cancel-12_3", "12_3"),
        ("cancel-0", None),
        ("cancel-12.sh", None),
        ("cancel-12;id", None),
        ("cancel-", None),
    ],
)
def test_a_request_to_cancel_is_told_by_its_name(name: str, job: str | None) -> None:
    assert job_to_cancel(name) == job


def test_ten_thousand_entries_that_are_no_drops_cost_little(submit: Path, opened: Folders, intake: Intake) -> None:
    for number in range(10_000):
        (submit / f".hidden{number}").touch()
    scanner = Scanner(intake)
    assert scanner.looks(opened.submit) == {}
    start = time.process_time()
    assert scanner.looks(opened.submit) == {}
    assert time.process_time() - start < 0.1
