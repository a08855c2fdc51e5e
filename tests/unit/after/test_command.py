"""`slurmk8s after`: an administrator sees what waits, and tries a target."""

import json
import os
import pwd
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from slurmk8s.after.spool import Spool
from slurmk8s.results.summary import Summary, Times

Make = Callable[..., Any]
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(nas: Path, mail_settings: dict[str, Any], everyones_python: Path) -> Run:
    """The command, with a mail server and two programs configured."""
    mail = "".join(f"{key} = {json.dumps(value)}\n" for key, value in mail_settings.items())
    (nas / "config.toml").write_text(
        f'cluster = "lab"\n[nas]\nroot = "{nas}"\nrequire_mountpoint = false\n'
        f'[agent]\nstate_folder = "{nas}/state/%n"\n'
        f"[after.mail]\n{mail}[after.commands.good]\nrun = ['/bin/cat']\n[after.commands.bad]\nrun = ['/bin/false']\n"
        f"[after.commands.own]\nrun_as = 'person'\nrun = ['/bin/sh', '-c', 'id -u >{nas}/who; cat >{nas}/summary']\n"
    )
    for name in ("who", "summary"):
        (nas / name).touch()
        (nas / name).chmod(0o666)
    environment = {**os.environ, "SLURMK8S_CONFIG": str(nas / "config.toml")}
    environment.pop("SUDO_USER", None)

    def call(*words: str) -> "subprocess.CompletedProcess[str]":
        command = [str(everyones_python), "-I", "-m", "slurmk8s", "after", *words]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)

    return call


def test_status_shows_what_waits_and_what_was_given_up(run: Run, nas: Path, job_item: Make) -> None:
    spool = Spool(nas / "state" / "node1" / "after").prepare()
    nothing = run("status", "--node", "node1")
    assert (nothing.returncode, nothing.stdout.splitlines()[1:]) == (0, ["waiting: 0", "given up: 0"])
    spool.put(replace(job_item(), tries=2, problem="The server is down."))
    spool.give_up(job_item(8, action="command.bad"))
    shown = run("status", "--node", "node1")
    assert shown.returncode == 1
    assert "2 tries: The server is down." in shown.stdout
    told = json.loads(run("status", "--node", "node1", "--json").stdout)
    assert told["actions"] == ["mail", "command.good", "command.bad", "command.own"]
    assert [(item["job_id"], item["action"]) for item in told["given_up"]] == [(8, "command.bad")]


def test_status_of_a_node_that_is_not_here_is_not_called_nothing(run: Run, nas: Path, job_item: Make) -> None:
    for _ in range(2):
        other = run("status", "--node", "node2")
        assert (other.returncode, other.stdout) == (2, "")
        assert "No agent with the name node2 has run on this machine" in other.stderr
        assert not (nas / "state" / "node2").exists()
        Spool(nas / "state" / "head" / "head" / "after").prepare().put(job_item())
    assert "waiting: 1" in run("status", "--node", "head").stdout


def test_a_target_can_be_tried(run: Run, mail_server: Any) -> None:
    done = run("try", "mail", "--to", "admin@example.org")
    assert (done.returncode, done.stdout) == (0, "mail: done\n"), done.stderr
    assert mail_server.to == [["admin@example.org"]]
    assert run("try", "good").returncode == 0
    bad = run("try", "bad")
    assert (bad.returncode, "ended with status 1" in bad.stderr) == (2, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["try", "nowhere"], "There are: mail, command.good, command.bad, command.own."),
        (["try", "good", "--job", "77"], "Leave --job out"),
        (["try", "archive"], "There is no action archive"),
    ],
)
def test_a_mistake_is_told_with_the_next_step(run: Run, words: list[str], said: str) -> None:
    done = run(*words)
    assert done.returncode == 2
    assert said in done.stderr


ALICE, BOB = pwd.getpwnam("daemon"), pwd.getpwnam("bin")


@pytest.fixture
def bundle(nas: Path) -> Make:
    """`bundle({"user": "root"})`: alice's results of job 60, with a summary of her own making."""

    def make(changes: dict[str, Any]) -> Path:
        folder = nas / "results" / "60"
        folder.mkdir()
        times = Times()
        summary = Summary(
            *("lab", 60, None, "train", ALICE.pw_name, ALICE.pw_uid, "", "gpu", 0, "node1", ("node1",), "image", None),
            *("/workspace", "body", (), 1, 1, times, "completed", 0, None, "", "none"),
        )
        (folder / "summary.json").write_text(json.dumps({**summary.to_json(), **changes}))
        os.chown(folder, ALICE.pw_uid, ALICE.pw_gid)
        return folder

    return make


def test_a_jobs_own_summary_goes_to_a_program_of_its_owners(run: Run, nas: Path, bundle: Make) -> None:
    bundle({})
    done = run("try", "own", "--job", "60")
    assert done.returncode == 0, done.stderr
    assert (nas / "who").read_text() == f"{ALICE.pw_uid}\n"
    assert json.loads((nas / "summary").read_text())["job_id"] == 60


@pytest.mark.parametrize(
    "changes",
    [
        {"user": "root"},
        {"user": "root", "uid": 0},
        {"user": BOB.pw_name, "uid": BOB.pw_uid, "job_id": 6},
        {"uid": BOB.pw_uid},
        {"job_id": 6},
    ],
)
def test_a_summary_cannot_make_its_writer_somebody_else(
    run: Run, nas: Path, bundle: Make, changes: dict[str, Any]
) -> None:
    bundle(changes)
    done = run("try", "own", "--job", "60")
    assert done.returncode == 2
    assert "tells of another job or of somebody else's" in done.stderr
    assert "slurmk8s why 60" in done.stderr
    assert (nas / "who").read_text() == ""


def test_results_that_are_roots_are_not_acted_on(run: Run, nas: Path, bundle: Make) -> None:
    os.chown(bundle({"user": "root", "uid": 0}), 0, 0)
    done = run("try", "own", "--job", "60")
    assert (done.returncode, "nothing is done for root" in done.stderr) == (2, True)
    assert (nas / "who").read_text() == ""


@pytest.mark.parametrize("kind", ["link", "pipe", "list", "folder link"])
def test_what_stands_in_a_summarys_place_is_neither_followed_nor_waited_for(
    run: Run, nas: Path, bundle: Make, kind: str
) -> None:
    folder = bundle({})
    path = folder / "summary.json"
    secret = nas / "secret"
    path.rename(secret)
    match kind:
        case "link":
            path.symlink_to(secret)
        case "pipe":
            os.mkfifo(path)
        case "list":
            path.write_text("[1]")
        case _:
            secret.rename(path)
            folder.rename(nas / "elsewhere")
            folder.symlink_to(nas / "elsewhere")
    done = run("try", "own", "--job", "60")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "Leave --job out" in done.stderr
    assert (nas / "summary").read_text() == ""


def test_status_shows_no_control_characters(run: Run, nas: Path, job_item: Make) -> None:
    spool = Spool(nas / "state" / "node1" / "after").prepare()
    spool.put(replace(job_item(), tries=1, problem="\x1b]0;owned\x07 \udcff"))
    shown = run("status", "--node", "node1")
    assert shown.returncode == 1, shown.stderr
    assert "1 tries: \\x1b]0;owned\\x07 \\udcff" in shown.stdout
    told = json.loads(run("status", "--node", "node1", "--json").stdout)
    assert told["waiting"][0]["problem"].isprintable()


def test_no_command_pays_for_what_only_some_need() -> None:
    code = (
        "import sys; from slurmk8s.cli import group\n"
        "try: group.main(['--help'], standalone_mode=False)\nexcept SystemExit: pass\n"
        "assert not {'apprise', 'prometheus_client', 'smtplib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
