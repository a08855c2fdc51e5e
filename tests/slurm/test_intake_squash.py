"""The watcher on a share where root is nobody: our own work is done as the account that owns the folders."""

import contextlib
import os
import pwd
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nas
import pytest
from intake_bed import ALICE, BAD, BOB, GOOD, Intake, as_person
from intake_share import SERVICE, answered, assert_one_answer_each, log_of, on_share, on_squashed_share

from slurmk8s.intake.steps import STEPS


@pytest.fixture
def share(intake: Intake) -> Iterator[nas.Share]:
    with on_squashed_share(intake) as share:
        yield share


def test_two_peoples_private_drops_run_as_those_two(
    intake: Intake, share: nas.Share, name: str, wait_for: Callable[..., Any]
) -> None:
    submit = intake.jobs / "submit"
    for user in (ALICE, BOB):
        as_person(user, ["mkdir", "-m", "700", submit / user])
        intake.drop(f"own-{user}-{name}", user=user, folder=user)
        intake.drop(f"{user}-{name}", user=user)
        as_person(user, ["chmod", "600", submit / f"{user}-{name}", submit / user / f"own-{user}-{name}"])
    done = intake.once()
    assert done.returncode == 0, done.stderr.decode()
    names = [f"{prefix}{user}-{name}" for user in (ALICE, BOB) for prefix in ("", "own-")]
    for each in names:
        (job_id,) = intake.job_ids(each)
        user = ALICE if ALICE in each else BOB
        output = share.back / "results" / f"slurm-{job_id}.out"
        assert wait_for(lambda path=output: path.exists() and path.read_text(), "output") == f"{user}\n"
        receipt = share.back / "slurm-jobs" / "processed" / f"{each}.{job_id}.receipt.txt"
        assert receipt.owner() == user
        assert receipt.stat().st_mode & 0o077 == 0
        assert receipt.with_name(f"{each}.{job_id}").read_bytes() == GOOD
    assert intake.names("submit") == [ALICE, BOB]
    assert os.listdir(share.back / "slurm-jobs" / "submit" / ALICE) == []
    assert (share.back / "slurm-jobs" / ".intake").owner() == SERVICE
    assert share.changes_by_root() == []


@pytest.mark.parametrize(
    ("user", "command", "reason"),
    [
        ("root", 'echo x >"$1"', "system account"),
        ("nobody", 'echo x >"$1"', "system account"),
        ("root", 'echo x >"$1"; chown 54321:54321 "$1"', "user number 54321"),
        (ALICE, 'ln -s /etc/shadow "$1"', "symbolic link"),
        (ALICE, 'mkfifo "$1"', "pipe"),
        (ALICE, 'echo x >"$1"; chmod 0 "$1"', "may not read"),
        (ALICE, 'echo x >"$1"; ln "$1" "$1.tmp"', "hard links"),
        (ALICE, 'echo x >"$1"; chmod 666 "$1"', "Everybody can write"),
        (ALICE, 'mkdir -m 700 "$1"', "folder"),
        (ALICE, 'umask 077; printf "#!/bin/sh\\n#SBATCH --tme=3\\nid\\n" >"$1"', "Did you mean --time?"),
    ],
    ids=["root's", "nobody's", "unknown", "symlink", "fifo", "unreadable", "hard link", "open", "folder", "mistake"],
)
def test_what_is_refused_gets_its_reason(
    intake: Intake, share: nas.Share, name: str, user: str, command: str, reason: str
) -> None:
    """Made by another client, of which root may be one that is not squashed."""
    as_person(user, ["sh", "-c", command, "sh", share.back / "slurm-jobs" / "submit" / name])
    owner = (share.back / "slurm-jobs" / "submit" / name).lstat().st_uid
    assert intake.once().returncode == 0
    failed = share.back / "slurm-jobs" / "failed"
    assert reason in (failed / f"{name}.error.txt").read_bytes().decode("utf-8-sig")
    assert os.path.lexists(failed / name)
    assert intake.job_ids(name) == []
    assert [name for name in intake.names("submit") if not name.endswith(".tmp")] == []
    # On this side Linux lets nobody but root link what is root's.
    assert share.changes_by_root() == ([f"link slurm-jobs/failed/{name}"] if owner == 0 else [])


@pytest.mark.parametrize("step", [step for step in STEPS if step != "cancelled"])
def test_after_a_crash_at_any_step_each_drop_has_one_answer(
    intake: Intake, share: nas.Share, name: str, step: str
) -> None:
    as_person(ALICE, ["mkdir", "-m", "700", intake.jobs / "submit" / ALICE])
    intake.drop(name, folder=ALICE)
    assert intake.once(crash_after=step).returncode == -signal.SIGKILL
    intake.drop(f"bad-{name}", BAD)
    assert intake.once().returncode == 0
    os.rmdir(share.back / "slurm-jobs" / "submit" / ALICE)
    assert_one_answer_each(intake, [name], [f"bad-{name}"])


def test_while_slurm_is_away_a_note_lies_in_the_persons_own_folder(
    intake: Intake, share: nas.Share, name: str, wait_for: Callable[..., Any]
) -> None:
    as_person(ALICE, ["mkdir", "-m", "700", intake.jobs / "submit" / ALICE])
    own = share.back / "slurm-jobs" / "submit" / ALICE
    intake.slurm.stop("slurmctld")
    try:
        intake.start()
        intake.drop(name, folder=ALICE)
        wait_for(lambda: os.listdir(own) == [f"{name}.waiting.txt"], "a note that it waits", seconds=60)
        assert (own / f"{name}.waiting.txt").owner() == ALICE
    finally:
        intake.slurm.start_slurmctld()
    wait_for(lambda: answered(intake, 1), "the receipt", seconds=90)
    wait_for(lambda: os.listdir(own) == [], "the note to go away")
    assert len(intake.job_ids(name)) == 1


def test_in_folder_mode_the_services_own_folders_say_whose_job_it_is(
    intake: Intake, share: nas.Share, name: str, wait_for: Callable[..., Any]
) -> None:
    intake.settings["identity"] = "folder"
    as_person(SERVICE, ["mkdir", intake.jobs / "submit" / BOB])
    as_person(SERVICE, ["sh", "-c", 'cat >"$1"', "sh", intake.jobs / "submit" / BOB / name], GOOD)
    assert intake.once().returncode == 0
    (job_id,) = intake.job_ids(name)
    output = share.back / "results" / f"slurm-{job_id}.out"
    assert wait_for(lambda: output.exists() and output.read_text(), "output") == f"{BOB}\n"


def test_the_units_capabilities_are_enough(intake: Intake, share: nas.Share, name: str) -> None:
    unit = (Path(__file__).parents[2] / "systemd" / "slurm-job-watcher.service").read_text()
    (line,) = re.findall(r"^CapabilityBoundingSet=(.*)$", unit, re.MULTILINE)
    bounds = ",".join(["-all", *(f"+{word.removeprefix('CAP_').lower()}" for word in line.split())])
    as_person(ALICE, ["mkdir", "-m", "700", intake.jobs / "submit" / ALICE])
    intake.drop(name, folder=ALICE)
    intake.drop("bad.sh", BAD)
    as_person(BOB, ["mkdir", intake.jobs / "submit" / "data"])
    done = intake.once(prefix=["setpriv", f"--bounding-set={bounds}", "--inh-caps=-all"])
    assert done.returncode == 0, done.stderr
    assert len(intake.job_ids(name)) == 1
    assert intake.names("failed") == ["bad.sh", "bad.sh.error.txt", "data", "data.error.txt"]


def test_without_the_account_the_watcher_waits_and_says_which_setting_is_missing(
    intake: Intake, name: str, wait_for: Callable[..., Any]
) -> None:
    with contextlib.ExitStack() as stack:
        share = stack.enter_context(on_squashed_share(intake))
        service = intake.settings.pop("service_user")
        process = intake.start()
        wait_for(lambda: "set nas.service_user" in log_of(intake), "the hint")
        intake.settings["service_user"] = "skt-nobody-of-that-name"
        intake.stop()
        intake.start()
        wait_for(lambda: "no account skt-nobody-of-that-name" in log_of(intake), "the wrong name")
        intake.stop()
        assert process.poll() is not None
        intake.settings["service_user"] = service
        intake.drop(name)
        assert intake.once().returncode == 0
        assert len(intake.job_ids(name)) == 1
        assert share.changes_by_root() == []


def test_the_service_account_does_no_harm_where_root_is_root(intake: Intake, name: str) -> None:
    """An admin may set it before the export's options are changed."""
    intake.settings["service_user"] = SERVICE
    pwd.getpwnam(SERVICE)
    back = intake.folder / "back"
    (back / "slurm-jobs").mkdir(parents=True)
    os.chown(back / "slurm-jobs", pwd.getpwnam(SERVICE).pw_uid, -1)
    with on_share(intake):
        intake.drop(name)
        intake.drop(f"bad-{name}", BAD, user=BOB)
        assert intake.once().returncode == 0
        assert_one_answer_each(intake, [name], [f"bad-{name}"])
