"""Needs nothing. `slurmk8s results`, `logs` and `verify` as people call them."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from slurmk8s.cli import main
from slurmk8s.cli import results as _loaded_before_rights_are_dropped  # noqa: F401
from slurmk8s.results.entry import Entry, encode
from slurmk8s.results.progress import Progress

PROJECT = Path(__file__).parents[3]
STRANGER = 54322


@pytest.fixture
def slurmk8s(
    root: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Callable[..., tuple[int, str, str]]:
    """Run a command in this process; status, stdout and stderr."""
    monkeypatch.setenv("SLURMK8S_RESULTS_ROOT", str(root))

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        out, err = capfdbinary.readouterr()
        return ended.value.code, out.decode(), err.decode()

    return run


@pytest.fixture
def own(person: Any, make_summary: Any) -> Any:
    """Bundles of whoever runs the tests: 12 complete, 13 failed, 14 running."""
    person.ask(op="prepare", attempt=0)
    person.sh(
        "printf 'out\\n' > stdout.log; printf 'err\\n' > stderr.log; mkdir outputs/d; printf 123 > outputs/d/model"
    )
    person.ask(op="finish", attempt=0, summary=make_summary(name="학습"))
    person.ask(op="checksums", attempt=0)
    bad = make_summary(job_id=13, state="failed", exit_code=7, cause="The body ended with exit code 7.\x1b[2J")
    person.ask(op="finish", job_id=13, attempt=0, summary=bad)
    person.ask(op="prepare", job_id=14, attempt=0, name="next")
    for path in [*person.root.glob("1?"), *person.root.glob("1?/**/*")]:
        os.chown(path, os.getuid(), os.getgid())
    return person


@contextlib.contextmanager
def as_stranger() -> Iterator[None]:
    if os.geteuid() != 0:
        pytest.fail("run the tests as root: another person is needed")
    os.setresuid(STRANGER, STRANGER, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


def test_the_table_of_ones_own_results(own: Any, slurmk8s: Any) -> None:
    status, out, _ = slurmk8s("results")
    lines = out.splitlines()
    assert status == 0
    assert lines[0].split() == ["JOB", "NAME", "STATE", "EXIT", "ENDED", "SIZE", "CAUSE"]
    assert lines[1].split() == ["14", "next", "running"]
    assert lines[2].startswith("13   train  failed     7")
    assert lines[3].startswith("12   학습   completed  0")
    assert lines[3].endswith("3 bytes  The job completed.")
    assert "\x1b" not in out


def test_the_table_of_everybody_names_the_owners(own: Any, slurmk8s: Any, root: Path) -> None:
    (root / "15").mkdir(mode=0o711)
    os.chown(root / "15", STRANGER, STRANGER)
    assert "15" not in slurmk8s("results")[1]
    _, out, _ = slurmk8s("results", "--all")
    assert out.splitlines()[1].split() == ["15", str(STRANGER), "running"]


def test_no_results_yet(root: Path, slurmk8s: Any) -> None:
    status, out, err = slurmk8s("results")
    assert (status, out) == (0, "")
    assert "You have no results" in err


def test_one_job_shows_its_files_and_its_summary(own: Any, slurmk8s: Any) -> None:
    status, out, _ = slurmk8s("results", "12")
    assert status == 0
    assert "4 bytes  stdout.log" in out
    assert "3 bytes  outputs/d/model" in out
    assert ".slurmk8s.json" not in out
    assert "The job completed.\n\nJob         12 학습" in out


@pytest.mark.parametrize("kind", ["files", "folders"])
def test_of_a_large_bundle_the_beginning_is_shown(kind: str, own: Any, slurmk8s: Any, root: Path) -> None:
    for number in range(100):
        path = root / "12" / "outputs" / f"new-{number:03}"
        path.mkdir() if kind == "folders" else path.touch()
    _, out, _ = slurmk8s("results", "12")
    listed = out.split("\n\n")[0].splitlines()[1:]
    assert len(listed) == 41
    assert listed[-1].strip() == "…"


def test_numbers_without_bounds_in_one_bundle_spoil_nobodys_table(own: Any, slurmk8s: Any, root: Path) -> None:
    for job, ended in (("12", "1" + "0" * 400), ("13", "1.7e308")):
        path = root / job / "summary.json"
        path.write_text(path.read_text().replace("1700000589.0", ended))
    for words in (["results", "--all"], ["results", "12"], ["results", "13"], ["report", "--all", "--by", "day"]):
        status, _, err = slurmk8s(*words)
        assert (status, "Traceback" in err) == (0, False), err


def test_a_job_without_results_is_told_what_to_do(own: Any, slurmk8s: Any) -> None:
    status, _, err = slurmk8s("results", "99")
    assert status == 2
    assert "There are no results of job 99" in err
    assert "slurmk8s logs -f 99" in err


def test_somebody_elses_results_are_theirs(own: Any, slurmk8s: Any) -> None:
    for command in (["results", "12"], ["logs", "12"], ["verify", "12"]):
        with as_stranger():
            status, out, err = slurmk8s(*command)
        assert (status, out) == (2, "")
        assert "who alone may read" in err or "You may not read" in err
    with as_stranger():
        status, out, _ = slurmk8s("results", "--all")
    assert status == 0
    assert out.count("(readable by its owner only)") == 3


def test_logs_go_to_their_own_streams(own: Any, slurmk8s: Any) -> None:
    assert slurmk8s("logs", "12") == (0, "out\n", "err\n")
    assert slurmk8s("logs", "--stderr", "12") == (0, "err\n", "")


def test_a_damaged_archive_is_told_with_what_is_wrong_with_it(own: Any, slurmk8s: Any, root: Path) -> None:
    (root / "12.tar.zst").write_bytes(b"no zstd")
    (root / "12" / "archived.txt").write_text(f"The files of this job are in {root}/12.tar.zst\n")
    status, out, _ = slurmk8s("verify", "12")
    assert status == 1
    assert out.startswith(f"unreadable  {root}/12.tar.zst: The archive cannot be read (")


@pytest.mark.parametrize("words", [["logs", "12"], ["logs", "-f", "12"]])
def test_logs_that_were_archived_are_said_to_be(own: Any, slurmk8s: Any, root: Path, words: list[str]) -> None:
    for name in ("stdout.log", "stderr.log"):
        (root / "12" / name).unlink()
    (root / "12" / "archived.txt").write_text("The files of this job are in /mnt/nas/archive/12.tar.zst\n")
    status, out, err = slurmk8s(*words)
    assert (status, out) == (2, "")
    assert "`tar --zstd -xOf /mnt/nas/archive/12.tar.zst 12/stdout.log`" in err


def put_a_pipe(path: Path) -> None:
    os.mkfifo(path)


def put_a_folder(path: Path) -> None:
    path.mkdir()


def put_a_link(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def put_a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


@pytest.mark.parametrize("words", [["logs", "12"], ["logs", "-f", "12"]])
@pytest.mark.parametrize("put", [put_a_pipe, put_a_folder, put_a_link, put_a_socket])
def test_what_is_no_log_is_said_to_be_none(put: Any, words: list[str], own: Any, slurmk8s: Any, root: Path) -> None:
    log = root / "12" / "stdout.log"
    log.unlink()
    put(log)
    status, out, err = slurmk8s(*words)
    assert (status, out) == (2, "")
    assert f"{log} is not a plain file, so it cannot be shown as a log." in err


def test_logs_are_shown_byte_for_byte(own: Any, root: Path) -> None:
    data = bytes(range(256)) * 5000 + b"no newline"
    (root / "12/stdout.log").write_bytes(data)
    environment = {**os.environ, "SLURMK8S_RESULTS_ROOT": str(root)}
    command = [sys.executable, "-m", "slurmk8s", "logs", "12"]
    done = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (data, b"err\n")


@pytest.mark.parametrize("command", [["logs", "12"], ["results"]])
def test_a_reader_that_goes_away_gets_no_traceback(own: Any, root: Path, command: list[str]) -> None:
    (root / "12/stdout.log").write_bytes(b"x" * 1000000)
    environment = {**os.environ, "SLURMK8S_RESULTS_ROOT": str(root)}
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "slurmk8s", *command]
    done = subprocess.run(command, cwd=PROJECT, env=environment, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert done.stderr == b""


def test_following_waits_for_the_job_and_goes_through_a_requeue_to_its_end(
    person: Any, root: Path, make_summary: Any
) -> None:
    environment = {**os.environ, "SLURMK8S_RESULTS_ROOT": str(root)}
    command = [sys.executable, "-u", "-m", "slurmk8s", "logs", "-f", "12"]
    follower = subprocess.Popen(command, cwd=PROJECT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    seen = {"out": b"", "err": b""}

    def read(name: Any, stream: Any) -> None:
        while chunk := os.read(stream.fileno(), 65536):
            seen[name] += chunk

    readers = [
        threading.Thread(target=read, args=("out", follower.stdout)),
        threading.Thread(target=read, args=("err", follower.stderr)),
    ]
    for reader in readers:
        reader.start()

    def wait_for(name: Any, words: Any) -> None:
        deadline = time.monotonic() + 30
        while words not in seen[name]:
            assert time.monotonic() < deadline, seen
            assert follower.poll() is None, seen
            time.sleep(0.02)

    try:
        wait_for("err", b"has not started yet")
        person.ask(op="prepare", attempt=0)
        person.sh("echo one >> stdout.log; echo problem >> stderr.log")
        wait_for("out", b"one\n")
        wait_for("err", b"problem\n")
        person.sh("printf two >> stdout.log")  # and its end is never seen in place
        person.ask(op="finish", attempt=0, summary=make_summary(state="requeued"))
        person.ask(op="prepare", attempt=1)
        person.sh("echo again >> stdout.log")
        wait_for("out", b"twoagain\n")
        person.sh("echo last >> stdout.log")
        person.ask(op="finish", attempt=1, summary=make_summary(attempt=1))
        assert follower.wait(30) == 0
    finally:
        follower.kill()
        follower.wait()
        for reader in readers:
            reader.join()
        follower.stdout.close()
        follower.stderr.close()
    assert seen["out"] == b"one\ntwoagain\nlast\n"
    assert seen["err"].endswith(b"problem\n")


def test_verify_exits_0_or_1_and_speaks_json(own: Any, slurmk8s: Any, root: Path) -> None:
    assert slurmk8s("verify", "12")[:2] == (0, f"{root}/12: ok, 3 files are as the job left them.\n")
    assert slurmk8s("verify", f"{root}/12")[0] == 0
    status, out, _ = slurmk8s("verify", "13")
    assert status == 1
    assert "not there yet" in out
    (root / "12/outputs/d/model").write_text("forged")
    status, out, _ = slurmk8s("verify", "12")
    assert status == 1
    assert out.splitlines()[0] == "changed     outputs/d/model: changed since the job ended"
    status, out, _ = slurmk8s("verify", "--json", "12")
    verdict = json.loads(out)
    assert (status, verdict["ok"], verdict["changed"]) == (1, False, ["outputs/d/model"])


def test_while_files_are_hashed_results_and_verify_tell_how_far_it_is(own: Any, slurmk8s: Any) -> None:
    """Job 13 has its summary and no checksums yet."""
    now = Progress(41 << 20, 100 << 20, 2, 5, 20.0, 0, time.time())
    (own.root / "13" / ".checksums.progress").write_bytes(now.encode())
    assert "\nHashed      41 % (41.0 MiB of 100.0 MiB, 2.0 MiB/s, about 29 s left)\n" in slurmk8s("results", "13")[1]
    status, out, _ = slurmk8s("verify", "13")
    assert status == 1
    assert "hashed so far: 41 %" in out
    assert "Hashed" not in slurmk8s("results", "12")[1]


def test_verify_shows_its_progress_on_a_terminal_and_only_there(
    own: Any, slurmk8s: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert slurmk8s("verify", "12")[2] == ""
    monkeypatch.setattr("slurmk8s.results.hashers.TICK_SECONDS", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    status, _, err = slurmk8s("verify", "12")
    assert status == 0
    assert "checking: " in err
    assert err.endswith("\r\x1b[K")


def test_people_prune_their_own_results_by_their_own_rule(
    person: Any, make_summary: Any, everyones_python: Path
) -> None:
    """The summary says that the job ended in 2023."""
    person.ask(op="finish", attempt=0, summary=make_summary())
    person.ask(op="checksums", attempt=0)
    command = ["env", f"SLURMK8S_RESULTS_ROOT={person.root}", str(everyones_python), "-I", "-m", "slurmk8s", "prune"]

    def prune(*arguments: str) -> str:
        done = person.run([*command, *arguments])
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    assert "There is no rule" in prune()
    assert "train: ended" in prune("--older-than", "90", "--dry-run")
    assert person.run([*command, "--older-than", "90"], b"n\n").returncode == 130
    assert person.folder.exists()
    assert "Removed 1." in prune("--older-than", "90", "--yes")
    assert list(person.root.iterdir()) == []
    assert json.loads(prune("--older-than", "90", "--json"))["removed"] == []


@pytest.fixture
def indexed(person: Any, make_summary: Any, root: Path) -> Any:
    """The index of whoever runs the tests: jobs of three days, one of whose results were removed."""
    (root / ".index").mkdir(mode=0o1733)
    (root / ".index").chmod(0o1733)
    for number, (name, state, code) in enumerate(
        (("prepare", "completed", 0), ("train-학습", "failed", 7), ("train-big", "out_of_memory", 137))
    ):
        job_id, ended = 20 + number, time.time() - (3 - number) * 86400 + 60
        times = {**make_summary()["times"], "submitted": ended - 3700, "started": ended - 3600, "ended": ended}
        cause = f"It ended with {code}."
        told = make_summary(job_id=job_id, name=name, state=state, exit_code=code, cause=cause, times=times)
        person.ask(op="finish", job_id=job_id, attempt=0, summary=told)
    os.rename(root / ".index" / str(person.uid), root / ".index" / str(os.getuid()))
    own = root / ".index" / str(os.getuid())
    (own / "whole").touch()
    for path in (*own.iterdir(), own, *root.glob("2?"), *root.glob("2?/*")):
        os.chown(path, os.getuid(), os.getgid())
    return person


def jobs(out: str) -> list[str]:
    return [line.split()[0] for line in out.splitlines()[1:]]


def test_a_job_is_found_by_name_day_and_state(indexed: Any, slurmk8s: Any) -> None:
    assert jobs(slurmk8s("results")[1]) == ["22", "21", "20"]
    assert jobs(slurmk8s("results", "--name", "TRAIN")[1]) == ["22", "21"]
    assert jobs(slurmk8s("results", "--name", "*학습")[1]) == ["21"]
    assert jobs(slurmk8s("results", "--since", "2d")[1]) == ["22", "21"]
    assert jobs(slurmk8s("results", "--since", "3d", "--until", "2d")[1]) == ["20"]
    assert jobs(slurmk8s("results", "--state", "failed,completed")[1]) == ["21", "20"]
    assert jobs(slurmk8s("results", "--state", "bad", "-n", "1")[1]) == ["22"]
    assert "You have no results" in slurmk8s("results", "--name", "nothing")[2]
    status, _, err = slurmk8s("results", "--state", "sad")
    assert status == 2
    assert "'sad' is no state." in err


def test_more_than_are_shown_are_said_to_be_there(indexed: Any, slurmk8s: Any) -> None:
    assert "and older ones; `-n 20` shows more" in slurmk8s("results", "-n", "2")[2]
    assert slurmk8s("results", "-n", "3")[2] == ""


def test_results_that_were_removed_are_said_to_be(indexed: Any, slurmk8s: Any, root: Path) -> None:
    (root / "21").rename(root / "elsewhere")
    row = slurmk8s("results")[1].splitlines()[2]
    assert row.endswith("It ended with 7. (Its results have been removed.)")
    found = json.loads(slurmk8s("results", "--json")[1])
    assert [(one["job_id"], one["folder"]) for one in found] == [(22, f"{root}/22"), (21, None), (20, f"{root}/20")]


def test_a_job_that_began_is_shown_as_its_bundle_tells_it_now(
    indexed: Any, slurmk8s: Any, root: Path, make_summary: Any
) -> None:
    own = root / ".index" / str(os.getuid())
    month = time.strftime("%Y-%m", time.gmtime())
    line = json.dumps([time.time(), 30, 0, "running", "", "next"])
    (own / f"{month}.elsewhere.jsonl").write_text(f"\n{line}\n")
    indexed.ask(op="prepare", job_id=30, attempt=0, name="next")
    for path in (root / "30", *(root / "30").iterdir()):
        os.chown(path, os.getuid(), os.getgid())
    assert slurmk8s("results")[1].splitlines()[1].split() == ["30", "next", "running"]
    for path in (root / "30", *(root / "30").iterdir()):
        os.chown(path, indexed.uid, indexed.uid)
    told = make_summary(job_id=30, name="next", state="cancelled", exit_code=None)
    indexed.ask(op="finish", job_id=30, attempt=0, summary=told)
    for path in (root / "30", *(root / "30").iterdir()):
        os.chown(path, os.getuid(), os.getgid())
    assert slurmk8s("results")[1].splitlines()[1].split()[:3] == ["30", "next", "cancelled"]


def test_a_report_in_every_form(indexed: Any, slurmk8s: Any) -> None:
    status, out, _ = slurmk8s("report", "--by", "name")
    lines = out.splitlines()
    assert status == 0
    assert lines[2].split() == ["NAME", "JOBS", "FAILED", "GPU-H", "LOST", "CPU-H", "QUEUED", "P90"]
    assert lines[5].split()[:7] == ["train-학습", "1", "1", "(100%)", "1.0", "1.0", "4.0"]
    assert lines[6].split()[:4] == ["total", "3", "2", "(67%)"]
    assert "out of memory" in out
    rows = slurmk8s("report", "--csv")[1].splitlines()
    assert rows[0].startswith("partition,jobs,failed,gpu_hours")
    assert rows[1].startswith("gpu,3,2,3.0,12.0,2.0,,,,,100.0,100.0")
    told = json.loads(slurmk8s("report", "--json", "--since", "2d")[1])
    assert (told["total"]["jobs"], told["by"], len(told["causes"])) == (2, "partition", 2)
    assert "No job ended in that time." in slurmk8s("report", "--until", "30d", "--since", "60d")[1]


@pytest.mark.parametrize("words", [["results", "--json"], ["report", "--by", "name", "--json"]])
def test_a_name_that_is_no_utf_8_is_told_to_programs(words: list[str], indexed: Any, slurmk8s: Any, root: Path) -> None:
    month = time.strftime("%Y-%m", time.gmtime())
    line = encode(Entry(time.time() - 9, 30, 0, "failed", name="half \ud800 학"))
    (root / ".index" / str(os.getuid()) / f"{month}.elsewhere.jsonl").write_bytes(line)
    status, out, _ = slurmk8s(*words)
    assert (status, "half \\ud800 학" in out) == (0, True)
    assert json.loads(out)


def test_whoever_may_read_nothing_is_told_so_instead_of_an_empty_report(own: Any, slurmk8s: Any) -> None:
    with as_stranger():
        status, out, err = slurmk8s("report", "--all", "--since", "10y")
    assert (status, out) == (2, "")
    assert "You may read none of these results" in err


def test_a_report_of_everybody_says_whose_results_are_not_in_it(own: Any, slurmk8s: Any, root: Path) -> None:
    theirs = root / "13"
    for path in (theirs, *theirs.rglob("*")):
        os.chown(path, STRANGER, STRANGER)
    (theirs / "summary.json").chmod(0o600)
    with as_stranger():
        status, out, _ = slurmk8s("report", "--all", "--since", "10y")
        told = json.loads(slurmk8s("report", "--all", "--since", "10y", "--json")[1])
    assert (status, told["total"]["jobs"]) == (0, 1)
    assert told["hidden"] > 0
    assert f"Not counted: {told['hidden']} of other people's results, which only their owners may read." in out


def test_a_person_of_before_the_index_gets_one_when_they_ask(
    root: Path, person: Any, make_summary: Any, everyones_python: Path
) -> None:
    person.ask(op="finish", attempt=0, summary=make_summary())
    (root / ".index").mkdir()
    (root / ".index").chmod(0o1733)
    environment = {**os.environ, "SLURMK8S_RESULTS_ROOT": str(root)}
    first = subprocess.run(
        [str(everyones_python), "-I", "-m", "slurmk8s", "results"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        user=person.uid if os.geteuid() == 0 else None,
        cwd="/",
    )
    assert first.returncode == 0, first.stderr
    assert "train" in first.stdout
    assert (root / ".index" / str(person.uid) / "whole").exists()


def test_colours_are_for_terminals_that_want_them(indexed: Any, root: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "SLURMK8S_RESULTS_ROOT": str(root), "TERM": "xterm", "LANG": "C.UTF-8"}
    command = f"{sys.executable} -I -m slurmk8s results"

    def shown(line: str, **more: str) -> str:
        script = ["script", "-qec", f"stty cols 100; {line}", "/dev/null"]
        done = subprocess.run(
            script, env={**environment, **more}, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
        )
        return done.stdout

    assert "\x1b[31mfailed" in shown(command)
    assert "\x1b" not in shown(command, NO_COLOR="1")
    assert "\x1b" not in shown(f"{command} | cat")
