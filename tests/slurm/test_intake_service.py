"""The watcher as a service: reloading, signs of life, figures, a look at it, and what it waits for."""

import contextlib
import json
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from intake_bed import ALICE, BAD, BOB, GOOD, Intake, as_person

WaitFor = Callable[..., Any]


def log(intake: Intake) -> str:
    return (intake.folder / "log" / "job_watcher.log").read_text()


def test_a_hangup_signal_reads_the_configuration_again_and_a_broken_one_changes_nothing(
    ready: Intake, name: str, wait_for: WaitFor
) -> None:
    watcher = ready.start()
    wait_for(lambda: "Watching" in log(ready), "the watcher to begin")
    config = ready.folder / "config.toml"
    good = config.read_text()
    config.write_text(good + '\n[nonsense]\nx = "y"\n')
    watcher.send_signal(signal.SIGHUP)
    wait_for(lambda: "was not read again" in log(ready), "the watcher to refuse it")
    ready.drop(f"first-{name}", BAD)
    wait_for(lambda: len(ready.names("failed")) == 2, "an answer all the same")

    config.write_text(good.replace('language = "en"', 'language = "ko"'))
    watcher.send_signal(signal.SIGHUP)
    wait_for(lambda: "was read again" in log(ready).rpartition("not read again")[2], "the watcher to take it")
    ready.drop(f"second-{name}", BAD)
    error = ready.jobs / "failed" / f"second-{name}.error.txt"
    wait_for(error.exists, "an answer")
    assert "제출되지 않았습니다" in error.read_bytes().decode("utf-8-sig")
    assert watcher.poll() is None


@pytest.fixture
def manager(ready: Intake) -> Iterator[Callable[[], list[str]]]:
    """systemd's end of sd_notify: everything it has been told so far."""
    told: list[str] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        path = ready.folder / "notify"
        ear.bind(str(path))
        ear.setblocking(False)
        ready.variables |= {"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": "900000"}

        def heard() -> list[str]:
            with contextlib.suppress(BlockingIOError):
                while True:
                    told.append(ear.recv(1000).decode())
            return told

        yield heard


def test_the_service_manager_hears_the_watcher_live_and_hears_nothing_when_it_hangs(
    ready: Intake, manager: Callable[[], list[str]], wait_for: WaitFor
) -> None:
    watcher = ready.start()
    wait_for(lambda: "READY=1" in manager(), "READY=1")
    wait_for(lambda: manager().count("WATCHDOG=1") >= 3, "signs of life while nothing happens")
    watcher.send_signal(signal.SIGSTOP)
    before = len(manager())
    time.sleep(1.5)  # silence cannot be waited for otherwise
    assert len(manager()) <= before + 1
    watcher.send_signal(signal.SIGCONT)
    wait_for(lambda: len(manager()) > before + 1, "signs of life again")
    watcher.terminate()
    assert watcher.wait(30) == 0
    assert "STOPPING=1" in manager()


def test_signs_of_life_go_on_while_slurm_hangs(
    ready: Intake, name: str, manager: Callable[[], list[str]], wait_for: WaitFor
) -> None:
    """Else systemd would kill a watcher that only waits for sbatch."""
    daemon = ready.slurm.daemons["slurmctld"]
    ready.start()
    wait_for(lambda: "READY=1" in manager(), "READY=1")
    daemon.send_signal(signal.SIGSTOP)
    try:
        ready.drop(name)
        wait_for(lambda: not (ready.jobs / "submit" / name).exists(), "the drop to be claimed")
        before = manager().count("WATCHDOG=1")
        wait_for(lambda: manager().count("WATCHDOG=1") >= before + 5, "signs of life")
        assert ready.names("processed") == []
    finally:
        daemon.send_signal(signal.SIGCONT)
    wait_for(lambda: len(ready.names("processed")) == 2, "the receipt", seconds=90)
    assert len(ready.job_ids(name)) == 1


def test_figures_tell_drops_refusals_and_how_things_stand(ready: Intake, name: str, wait_for: WaitFor) -> None:
    figures = ready.folder / "slurmk8s_watcher.prom"
    ready.settings["more"] = f'[metrics]\ntextfile_folder = "{ready.folder}"\nseconds = 0.2\n'
    ready.start()
    ready.drop(name)
    ready.drop(f"bad-{name}", BAD)
    ready.drop("x.csv")
    wait_for(lambda: len(ready.names("failed")) == 4 and len(ready.names("processed")) == 2, "three answers")
    wanted = (
        'slurmk8s_drops_total{outcome="job"} 1.0',
        'slurmk8s_drops_total{outcome="refused"} 2.0',
        'slurmk8s_refusals_total{reason="check"} 1.0',
        'slurmk8s_refusals_total{reason="wrong-name"} 1.0',
        "slurmk8s_claims_open 0.0",
        "slurmk8s_oldest_drop_seconds 0.0",
        "slurmk8s_slurm_answers 1.0",
    )
    wait_for(lambda: figures.exists() and all(line in figures.read_text() for line in wanted), "the figures")


def status(intake: Intake, *options: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "slurmk8s", "intake", "status", *options]
    return subprocess.run(command, env=intake.environment(), capture_output=True, text=True, check=False)


def test_an_admin_sees_what_waits_and_what_arrives(ready: Intake, name: str, wait_for: WaitFor) -> None:
    assert status(ready).stdout.startswith("0 arriving, 0 claimed, 0 waiting, 0 in doubt")
    ready.slurm.stop("slurmctld")
    try:
        watcher = ready.start()
        ready.drop(name)
        wait_for(lambda: ready.names("submit") == [f"{name}.waiting.txt"], "a note that it waits", seconds=60)
        watcher.kill()
        watcher.wait()
        ready.drop(f"new-{name}", user=BOB)
        shown = status(ready)
        assert shown.returncode == 1
        assert "1 arriving, 0 claimed" in shown.stdout
        rows = {row["file"]: row for row in json.loads(status(ready, "--json").stdout)}
        assert (rows[name]["user"], rows[f"new-{name}"]["user"]) == (ALICE, BOB)
        assert rows[name]["state"] in ("waiting", "in doubt")
        assert rows[f"new-{name}"]["state"] == "arriving"
    finally:
        ready.slurm.start_slurmctld()


def test_drops_that_waited_go_in_the_order_they_came(ready: Intake, name: str, wait_for: WaitFor) -> None:
    ready.slurm.stop("slurmctld")
    try:
        ready.start()
        for number in range(5):
            ready.drop(f"{number}-{name}")
            wait_for(lambda done=number: len(ready.names("submit")) == done + 1, "the drop to be claimed", seconds=60)
            wait_for(lambda: all(each.endswith(".waiting.txt") for each in ready.names("submit")), "a note", seconds=60)
    finally:
        ready.slurm.start_slurmctld()
    wait_for(lambda: len(ready.names("processed")) == 10, "all receipts", seconds=120)
    ids = [ready.job_ids(f"{number}-{name}")[0] for number in range(5)]
    assert ids == sorted(ids)


def test_a_persons_killed_sbatch_holds_up_nobody_else(ready: Intake, name: str, wait_for: WaitFor) -> None:
    """People may kill what runs as them; their own drop then waits, is looked for, and becomes one job."""
    ready.before_sbatch(f'[ "$(id -un)" = {ALICE} ] && mkdir {ready.programs}/called 2>/dev/null && kill -9 $$')
    ready.start()
    ready.drop(f"a-{name}")
    wait_for(lambda: f"a-{name}.waiting.txt" in ready.names("submit"), "a note that it waits")
    ready.drop(f"b-{name}", user=BOB)
    wait_for(lambda: len(ready.job_ids(f"b-{name}")) == 1, "bob's job", seconds=20)
    assert ready.job_ids(f"a-{name}") == []
    wait_for(lambda: len(ready.job_ids(f"a-{name}")) == 1, "alice's job", seconds=90)


def test_reserved_room_is_waited_for_and_a_broken_copy_answered(ready: Intake, name: str, wait_for: WaitFor) -> None:
    ready.settings["broken_copy_seconds"] = 4
    ready.start()
    for each in ("filled", "broken"):
        ready.drop(f"{each}-{name}", bytes(len(GOOD)))
    time.sleep(1.5)  # many settle times: that nothing happens cannot be waited for otherwise
    assert len(ready.names("submit")) == 2
    path = ready.jobs / "submit" / f"filled-{name}"
    as_person(ALICE, ["dd", f"of={path}", "conv=notrunc", "status=none"], GOOD)
    wait_for(lambda: len(ready.job_ids(f"filled-{name}")) == 1, "the filled one's job")
    wait_for(lambda: f"broken-{name}.error.txt" in ready.names("failed"), "the broken one's answer")


def test_an_empty_file_is_answered_after_its_grace(ready: Intake, name: str, wait_for: WaitFor) -> None:
    ready.start()
    ready.drop(name, b"")
    wait_for(lambda: ready.names("failed") == [name, f"{name}.error.txt"], "the answer")


def test_a_dropped_folder_is_answered_and_comes_back_whole(ready: Intake, name: str) -> None:
    folder = ready.jobs / "submit" / f"{name}.d"
    as_person(ALICE, ["mkdir", str(folder)])
    ready.drop("train.sh", into=folder)
    assert ready.once().returncode == 0
    text = (ready.jobs / "failed" / f"{name}.d.error.txt").read_bytes().decode("utf-8-sig")
    assert "This is a folder" in text
    assert (ready.jobs / "failed" / f"{name}.d" / "train.sh").read_bytes() == GOOD
    assert ready.names("submit") == ready.names("processed") == []


@pytest.mark.parametrize("identity", ["owner", "folder"])
def test_a_persons_folder_that_all_can_write_to_is_refused(ready: Intake, name: str, identity: str) -> None:
    ready.settings["identity"] = identity
    folder = ready.jobs / "submit" / ALICE
    folder.mkdir()
    shutil.chown(folder, ALICE)
    folder.chmod(0o777)
    ready.drop(name, folder=ALICE)
    assert ready.once().returncode == 0
    text = (ready.jobs / "failed" / f"{name}.error.txt").read_bytes().decode("utf-8-sig")
    assert "chmod o-w" in text
    assert ready.job_ids(name) == []


def test_what_is_kept_and_submitted_is_what_was_checked(ready: Intake, name: str) -> None:
    """A person may write on through a descriptor that was opened before the claim: it changes nothing any more."""
    # Between the check and the submission the dropped file itself is overwritten, wherever it lies by now.
    overwritten = f"find {ready.jobs}/.intake -name {name} -exec cp {ready.programs}/other '{{}}' ';' 2>/dev/null"
    ready.before_sbatch(overwritten)
    (ready.programs / "other").write_bytes(GOOD.replace(b"id -un", b"echo somebody else was here"))
    (ready.jobs / ".intake").chmod(0o755)
    (ready.jobs / ".intake" / "open").chmod(0o755)
    ready.drop(name)
    assert ready.once().returncode == 0
    (job_id,) = ready.job_ids(name)
    assert (ready.jobs / "processed" / f"{name}.{job_id}").read_bytes() == GOOD
    assert "somebody else" not in ready.query("scontrol", "write", "batch_script", str(job_id), "-")
