import os
import pwd
import time
from pathlib import Path

import pytest

from slurmk8s.config import Intake
from slurmk8s.intake import scan
from slurmk8s.intake.drop import Drop
from slurmk8s.intake.folders import Folders


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

    found = scan.looks(opened.submit, intake)

    assert {drop.name for drop in found} == {"job.sh", "link.sh", "pipe.sh", "data"}
    assert found[Drop("", "data")].patience > found[Drop("", "job.sh")].patience


def test_a_persons_own_folder_is_looked_into(submit: Path, opened: Folders, intake: Intake) -> None:
    user = pwd.getpwuid(os.geteuid()).pw_name
    (submit / user).mkdir()
    (submit / user / "job.sh").write_text("x")

    assert list(scan.looks(opened.submit, intake)) == [Drop(user, "job.sh")]


def test_in_folder_mode_a_folder_that_anyone_can_write_to_proves_nobody(submit: Path, opened: Folders) -> None:
    intake = Intake(minimum_uid=os.geteuid(), identity="folder")
    user = pwd.getpwuid(os.geteuid()).pw_name
    (submit / user).mkdir()
    (submit / user / "job.sh").write_text("x")
    assert list(scan.looks(opened.submit, intake)) == [Drop(user, "job.sh", trusted=True)]

    (submit / user).chmod(0o777)
    assert list(scan.looks(opened.submit, intake)) == [Drop(user, "job.sh", trusted=False)]


def test_an_empty_file_gets_more_time(submit: Path, opened: Folders, intake: Intake) -> None:
    (submit / "empty.sh").touch()
    (submit / "full.sh").write_text("x")
    found = scan.looks(opened.submit, intake)
    assert found[Drop("", "empty.sh")].patience > found[Drop("", "full.sh")].patience


def test_ten_thousand_entries_that_are_no_drops_cost_little(submit: Path, opened: Folders, intake: Intake) -> None:
    for number in range(10_000):
        (submit / f".hidden{number}").touch()
    start = time.process_time()
    assert scan.looks(opened.submit, intake) == {}
    assert time.process_time() - start < 0.1
