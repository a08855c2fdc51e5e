"""The watcher against real Slurm: every drop is one job or one reason, whatever happens in between."""

import os
import pwd
import re
import signal
import subprocess
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from intake_bed import ALICE, BAD, BOB, GOOD, Intake, as_person

from slurmk8s.intake.steps import A_CANCELLATION, A_JOB, A_REFUSAL

KOREAN = "한글"


def test_a_drop_runs_as_its_owner_and_leaves_a_receipt(ready: Intake, name: str, wait_for: Callable[..., Any]) -> None:
    ready.drop(name)
    ready.start()
    receipt = wait_for(lambda: list((ready.jobs / "processed").glob("*.receipt.txt")), "a receipt")[0]
    (job_id,) = ready.job_ids(name)
    output = ready.nas / "results" / f"slurm-{job_id}.out"
    wait_for(lambda: output.exists() and output.read_text(), "the job's output")

    assert output.read_text() == f"{ALICE}\n"
    assert output.owner() == receipt.owner() == ALICE
    assert receipt.name == f"{name}.{job_id}.receipt.txt"
    assert (ready.jobs / "processed" / f"{name}.{job_id}").read_bytes() == GOOD
    text = receipt.read_bytes().decode("utf-8-sig")
    assert str(output) in text
    assert "\r\n" in text
    assert ready.names("submit") == []
    assert re.search(r" Comment=slurmk8s-key=[0-9a-f]{32} ?", ready.show(job_id))


def test_a_bad_file_is_answered_with_line_caret_and_fix(ready: Intake, name: str) -> None:
    ready.drop(name, BAD)
    assert ready.once().returncode == 0
    assert ready.names("failed") == [name, f"{name}.error.txt"]
    text = (ready.jobs / "failed" / f"{name}.error.txt").read_bytes().decode("utf-8-sig")
    assert f"{name}:2:15" in text
    assert "^^^" in text
    assert "Did you mean --time?" in text
    assert (ready.jobs / "failed" / name).read_bytes() == BAD
    assert (ready.jobs / "failed" / f"{name}.error.txt").owner() == ALICE
    assert ready.job_ids(name) == []


def test_what_slurm_refuses_is_answered_in_slurms_own_words(ready: Intake, name: str) -> None:
    ready.drop(name, b"#!/bin/bash\n#SBATCH --mem=50M --begin=nonsense\nid\n")
    assert ready.once().returncode == 0
    text = (ready.jobs / "failed" / f"{name}.error.txt").read_bytes().decode("utf-8-sig")
    assert "Slurm refused" in text
    assert "nonsense" in text


def test_receipts_come_in_korean_where_the_site_says_so(ready: Intake, name: str) -> None:
    ready.settings["language"] = "ko"
    ready.drop(name)
    ready.drop("x.csv")
    ready.drop("bad.sh", b"#!/bin/sh\n#SBATCH --mem=8\n:\n")
    ready.drop("bobs.sh", b"#!/bin/sh\n#SBATCH --mem=8\n:\n", user=BOB)
    ready.settings["languages"] = f'{BOB} = "en"'
    assert ready.once().returncode == 0
    korean, english = (
        (ready.jobs / "failed" / f"{file}.error.txt").read_bytes().decode("utf-8-sig") for file in ("bad.sh", "bobs.sh")
    )
    assert "제출되지 않았습니다" in korean
    assert "문제: --mem=8: 메모리를 8메가바이트만 요청하고 있습니다 [memory-unit]" in korean
    assert "Not submitted" in english
    assert "problem: --mem=8 asks for 8 megabytes [memory-unit]" in english
    (receipt,) = (ready.jobs / "processed").glob("*.receipt.txt")
    assert "제출되었습니다" in receipt.read_bytes().decode("utf-8-sig")
    assert "제출되지 않았습니다" in (ready.jobs / "failed" / "x.csv.error.txt").read_bytes().decode("utf-8-sig")


@pytest.mark.parametrize("step", A_JOB)
def test_after_a_crash_at_any_step_a_good_drop_is_one_job(
    ready: Intake, name: str, step: str, wait_for: Callable[..., Any]
) -> None:
    ready.drop(name)
    assert ready.once(crash_after=step).returncode == -signal.SIGKILL
    if A_JOB.index(step) < A_JOB.index("released"):
        assert not list((ready.nas / "results").glob("slurm-*")), "a job ran before it was recorded"

    assert ready.once().returncode == 0

    (job_id,) = ready.job_ids(name)
    wait_for((ready.nas / "results" / f"slurm-{job_id}.out").exists, "the job's output")
    assert ready.names("processed") == [f"{name}.{job_id}", f"{name}.{job_id}.receipt.txt"]
    assert ready.names("submit") == ready.names("failed") == []


@pytest.mark.parametrize("step", A_REFUSAL)
def test_after_a_crash_at_any_step_a_bad_drop_has_one_answer(ready: Intake, name: str, step: str) -> None:
    ready.drop(name, BAD)
    assert ready.once(crash_after=step).returncode == -signal.SIGKILL
    assert ready.once().returncode == 0
    assert ready.names("failed") == [name, f"{name}.error.txt"]
    assert ready.names("submit") == ready.names("processed") == []
    assert ready.job_ids(name) == []


@pytest.mark.parametrize("step", A_CANCELLATION)
def test_after_a_crash_at_any_step_a_request_to_cancel_has_one_answer(ready: Intake, name: str, step: str) -> None:
    job_id = ready.submit_as(ALICE, name)
    ready.drop(f"cancel-{job_id}", b"")
    assert ready.once(crash_after=step).returncode == -signal.SIGKILL
    assert ready.once().returncode == 0
    assert ready.state(job_id) == "CANCELLED"
    assert ready.names("processed") == [f"cancel-{job_id}.receipt.txt"]
    assert ready.names("submit") == ready.names("failed") == []


def test_people_cancel_their_own_jobs_by_a_file_and_nobody_elses(ready: Intake, name: str) -> None:
    mine, other, again = ready.submit_as(ALICE, name), ready.submit_as(BOB, name), ready.submit_as(ALICE, name)
    ready.drop(f"cancel-{mine}", b"")
    ready.drop(f"cancel-{again}.txt", b"made by a file manager")
    ready.drop(f"cancel-{other}", b"")
    ready.drop("cancel-4000000", b"")
    assert ready.once().returncode == 0
    assert [ready.state(job) for job in (mine, again, other)] == ["CANCELLED", "CANCELLED", "PENDING"]
    assert ready.names("processed") == sorted([f"cancel-{mine}.receipt.txt", f"cancel-{again}.txt.receipt.txt"])
    receipt = ready.jobs / "processed" / f"cancel-{mine}.receipt.txt"
    assert f"Job {mine} has been cancelled" in receipt.read_bytes().decode("utf-8-sig")
    assert receipt.owner() == ALICE
    for refused in (f"cancel-{other}", "cancel-4000000"):
        text = (ready.jobs / "failed" / f"{refused}.error.txt").read_bytes().decode("utf-8-sig")
        assert "no job" in text
        assert "of yours" in text


def test_one_task_of_an_array_is_cancelled_by_its_name(ready: Intake, name: str) -> None:
    job_id = ready.submit_as(ALICE, name, "--array=1-3")
    ready.drop(f"cancel-{job_id}_2", b"")
    assert ready.once().returncode == 0
    left = ready.query("squeue", "-h", "-r", f"--name={name}", "-o", "%i").split()
    assert left == [f"{job_id}_1", f"{job_id}_3"]


def test_while_slurm_is_away_a_drop_waits_with_a_note(ready: Intake, name: str, wait_for: Callable[..., Any]) -> None:
    ready.slurm.stop("slurmctld")
    try:
        ready.start()
        ready.drop(name)
        wait_for(lambda: ready.names("submit") == [f"{name}.waiting.txt"], "a note that it waits", seconds=60)
        note = ready.jobs / "submit" / f"{name}.waiting.txt"
        assert note.owner() == ALICE
        assert "nothing is lost" in note.read_bytes().decode("utf-8-sig")
    finally:
        ready.slurm.start_slurmctld()
    wait_for(lambda: len(ready.names("processed")) == 2, "the receipt", seconds=90)
    wait_for(lambda: ready.names("submit") == [], "the note to go away")
    assert len(ready.job_ids(name)) == 1


def lose_the_first_reply(intake: Intake, commands: str) -> None:
    """The first sbatch runs these commands and fails, as with a slow slurmctld."""
    intake.before_sbatch(
        f"""if mkdir {intake.programs}/called 2>/dev/null; then
    {commands}
    echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2
    exit 1
fi"""
    )


def test_a_job_whose_reply_was_lost_is_found_by_its_key(ready: Intake, name: str, wait_for: Callable[..., Any]) -> None:
    lose_the_first_reply(ready, '/usr/bin/sbatch "$@" >/dev/null')
    ready.drop(name)
    ready.start()
    wait_for(lambda: len(ready.names("processed")) == 2, "the receipt")
    assert len(ready.job_ids(name)) == 1
    assert len(ready.query("squeue", "-h", "--states=all", f"--name={name}", "-o", "%i").split()) == 1


def test_a_job_that_slurm_accepts_late_is_cancelled_before_it_runs(
    ready: Intake, name: str, wait_for: Callable[..., Any]
) -> None:
    late = 'script=$(cat); (sleep 6; printf "%s\\n" "$script" | /usr/bin/sbatch "$@") >/dev/null 2>&1 &'
    lose_the_first_reply(ready, late)
    ready.drop(name)
    ready.start()
    wait_for(lambda: len(ready.names("processed")) == 2, "the receipt")
    (job_id,) = ready.job_ids(name)

    def cancelled() -> bool:
        lines = ready.query("squeue", "-h", "--states=all", f"--name={name}", "-o", "%i %T").splitlines()
        return any(line.endswith("CANCELLED") for line in lines)

    wait_for(cancelled, "the second job to be cancelled")
    assert ready.job_ids(name) == [job_id]
    assert [path.name for path in (ready.nas / "results").glob("slurm-*")] == [f"slurm-{job_id}.out"]


def test_two_watchers_on_one_folder_make_one_job_of_each_drop(
    ready: Intake, name: str, wait_for: Callable[..., Any]
) -> None:
    names = [f"{number}-{name}" for number in range(20)]
    for each in names:
        ready.drop(each)
    ready.start()
    ready.start()
    wait_for(lambda: len(ready.names("processed")) == 2 * len(names), "all receipts", seconds=60)
    assert [len(ready.job_ids(each)) for each in names] == [1] * len(names)
    assert ready.names("submit") == ready.names("failed") == []


def test_a_watcher_that_is_killed_again_and_again_loses_and_doubles_nothing(
    ready: Intake, name: str, wait_for: Callable[..., Any]
) -> None:
    names = [f"{number}-{name}" for number in range(20)]
    for each in names:
        ready.drop(each)
    for round_ in range(1, 8):
        process = ready.start()
        wait_for(lambda done=round_: len(ready.names("processed")) >= 4 * done, "some receipts")
        process.kill()
        process.wait()
    assert ready.once().returncode == 0
    assert [len(ready.job_ids(each)) for each in names] == [1] * len(names)
    assert len(ready.names("processed")) == 2 * len(names)


def test_a_drop_that_causes_no_event_is_seen(
    intake: Intake, behind: Path, name: str, wait_for: Callable[..., Any]
) -> None:
    intake.start()
    intake.drop(name, into=behind / "slurm-jobs" / "submit")
    wait_for(lambda: len(intake.names("processed")) == 2, "the receipt")
    assert len(intake.job_ids(name)) == 1


def test_without_the_nas_the_watcher_waits_and_makes_no_folders(
    intake: Intake, behind: Path, name: str, wait_for: Callable[..., Any]
) -> None:
    subprocess.run(["umount", str(intake.nas)], check=True)
    process = intake.start()
    log = intake.folder / "log" / "job_watcher.log"
    wait_for(lambda: "Waiting for the NAS" in log.read_text(), "the watcher to say that it waits")
    assert list(intake.nas.iterdir()) == []
    intake.drop(name, into=behind / "slurm-jobs" / "submit")
    subprocess.run(["bindfs", str(behind), str(intake.nas)], check=True)
    wait_for(lambda: len(intake.names("processed")) == 2, "the receipt")
    assert process.poll() is None
    assert "The NAS is back" in log.read_text()


def test_two_peoples_drops_run_as_those_two(ready: Intake, name: str, wait_for: Callable[..., Any]) -> None:
    for user in (ALICE, BOB):
        as_person(user, ["mkdir", str(ready.jobs / "submit" / user)])
        ready.drop(f"{user}-{name}", user=user, folder=user)
    assert ready.once().returncode == 0
    for user in (ALICE, BOB):
        (job_id,) = ready.job_ids(f"{user}-{name}")
        output = ready.nas / "results" / f"slurm-{job_id}.out"
        assert wait_for(lambda path=output: path.exists() and path.read_text(), "output") == f"{user}\n"


def test_in_folder_mode_the_folder_says_whose_job_it_is(
    intake: Intake, name: str, wait_for: Callable[..., Any]
) -> None:
    intake.settings["identity"] = "folder"
    assert intake.once().returncode == 0
    submit = intake.jobs / "submit"
    assert submit.stat().st_mode & 0o022 == 0
    (submit / BOB).mkdir()
    (submit / BOB / name).write_bytes(GOOD)  # by root, as on a NAS that gives every file one owner
    (submit / f"2-{name}").write_bytes(GOOD)
    assert intake.once().returncode == 0
    (job_id,) = intake.job_ids(name)
    output = intake.nas / "results" / f"slurm-{job_id}.out"
    assert wait_for(lambda: output.exists() and output.read_text(), "output") == f"{BOB}\n"
    assert "submit/<your user name>/" in (intake.jobs / "failed" / f"2-{name}.error.txt").read_text("utf-8-sig")


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: path.write_bytes(GOOD), "system account"),
        (lambda path: (path.write_bytes(GOOD), os.chown(path, 54321, 54321)), "user number 54321"),
        (lambda path: as_person(ALICE, ["ln", "-s", "/etc/shadow", str(path)]), "symbolic link"),
        (lambda path: as_person(ALICE, ["mkfifo", str(path)]), "pipe"),
        (lambda path: as_person(ALICE, ["sh", "-c", 'echo x >"$1"; chmod 0 "$1"', "sh", str(path)]), "may not read"),
        (lambda path: as_person(ALICE, ["sh", "-c", 'echo x >"$1"; ln "$1" "$1.tmp"', "sh", str(path)]), "hard links"),
        (lambda path: as_person(ALICE, ["truncate", "-s", "1G", str(path)]), "1,073,741,824 bytes"),
    ],
    ids=["root's", "nobody's", "symlink", "fifo", "unreadable", "hard link", "huge"],
)
def test_what_is_refused_unread_gets_its_reason(
    ready: Intake, name: str, make: Callable[[Path], Any], reason: str
) -> None:
    make(ready.jobs / "submit" / name)
    assert ready.once().returncode == 0
    error = ready.jobs / "failed" / f"{name}.error.txt"
    assert reason in error.read_bytes().decode("utf-8-sig")
    assert (ready.jobs / "failed" / name).is_symlink() or (ready.jobs / "failed" / name).exists()
    assert ready.job_ids(name) == []


def test_a_persons_own_hold_comment_name_and_folder_are_kept(ready: Intake, name: str) -> None:
    own = f"#!/bin/bash\n#SBATCH -H --comment='my own words' -J own-{name} -D /tmp --mem=50M\nid\n"
    ready.drop(name, own.encode())
    assert ready.once().returncode == 0
    (job_id,) = ready.job_ids(f"own-{name}")
    shown = ready.show(job_id)
    try:
        assert "JobState=PENDING" in shown
        assert "Priority=0" in shown
        assert re.search(r" Comment=my own words slurmk8s-key=[0-9a-f]{32}", shown)
        assert " WorkDir=/tmp " in shown
        (receipt,) = (ready.jobs / "processed").glob("*.receipt.txt")
        assert f"scontrol release {job_id}" in receipt.read_bytes().decode("utf-8-sig")
    finally:
        ready.query("scancel", str(job_id))


def test_no_file_name_is_too_odd(ready: Intake, name: str) -> None:
    odd = [
        "a b",
        "-rf",
        "quote'\"",
        "new\nline",
        "$(id)",
        KOREAN,
        unicodedata.normalize("NFD", KOREAN),
        "😀",
        "\udcff\udcfe",
        "x" * 230,
    ]
    for each in odd:
        ready.drop(f"{each}{name}")
    assert ready.once().returncode == 0
    assert len(ready.names("processed")) == 2 * len(odd)
    assert ready.names("failed") == ready.names("submit") == []
    assert len(ready.job_ids(f"a b{name}")) == len(ready.job_ids(f"-rf{name}")) == 1


def test_a_slow_copy_is_taken_when_it_is_complete(ready: Intake, name: str, wait_for: Callable[..., Any]) -> None:
    ready.start()
    script = 'exec >"$1"; echo "#!/bin/bash"; for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.1; echo "echo $i"; done'
    as_person(ALICE, ["sh", "-c", script, "sh", str(ready.jobs / "submit" / name)])
    wait_for(lambda: len(ready.names("processed")) == 2, "the receipt")
    (copy,) = (each for each in ready.names("processed") if not each.endswith(".txt"))
    assert (ready.jobs / "processed" / copy).read_text().endswith("echo 10\n")


def test_a_term_signal_ends_the_watcher_in_good_order(ready: Intake, name: str, wait_for: Callable[..., Any]) -> None:
    process = ready.start()
    ready.drop(name)
    wait_for(lambda: len(ready.names("processed")) == 2, "the receipt")
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=10) == 0
    assert "Stopped" in (ready.folder / "log" / "job_watcher.log").read_text()


def test_without_root_the_watcher_serves_its_own_account(intake: Intake, name: str, everyones_python: Path) -> None:
    for path in (intake.folder, intake.nas):
        os.chown(path, pwd.getpwnam(ALICE).pw_uid, pwd.getpwnam(ALICE).pw_gid)
    kim = pwd.getpwnam(ALICE)
    own: dict[str, Any] = {"user": kim.pw_uid, "group": kim.pw_gid, "extra_groups": [], "python": everyones_python}
    assert intake.once(**own).returncode == 0
    intake.drop(name)
    assert intake.once(**own).returncode == 0
    assert len(intake.job_ids(name)) == 1
    assert len(intake.names("processed")) == 2


def test_the_units_capabilities_are_enough(ready: Intake, name: str) -> None:
    unit = (Path(__file__).parents[2] / "systemd" / "slurm-job-watcher.service").read_text()
    (line,) = re.findall(r"^CapabilityBoundingSet=(.*)$", unit, re.MULTILINE)
    bounds = ",".join(["-all", *(f"+{word.removeprefix('CAP_').lower()}" for word in line.split())])
    as_person(ALICE, ["mkdir", "-m", "700", str(ready.jobs / "submit" / ALICE)])
    ready.drop(name, folder=ALICE)
    ready.drop(f"2-{name}")
    ready.drop("bad.sh", BAD)
    as_person(BOB, ["mkdir", str(ready.jobs / "submit" / "data")])
    done = ready.once(prefix=["setpriv", f"--bounding-set={bounds}", "--inh-caps=-all"])
    assert done.returncode == 0, done.stderr
    assert len(ready.job_ids(name)) == len(ready.job_ids(f"2-{name}")) == 1
    assert ready.names("failed") == ["bad.sh", "bad.sh.error.txt", "data", "data.error.txt"]
