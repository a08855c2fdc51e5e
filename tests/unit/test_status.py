"""Needs nothing. `slurmk8s status` on a terminal, and where slurmctld does not answer."""

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from slurmk8s.results.entry import Entry, encode


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    config = tmp_path / "config.toml"
    squeue = tmp_path / "squeue"
    squeue.write_text("#!/bin/sh\necho 'slurm_load_jobs error: Unable to contact slurm controller' >&2\nexit 1\n")
    squeue.chmod(0o755)
    config.write_text(f'[slurm]\nbin_folder = "{tmp_path}"\n')
    (tmp_path / "results").mkdir()
    return {
        "PATH": os.environ["PATH"],
        "SLURMK8S_CONFIG": str(config),
        "SLURMK8S_RESULTS_ROOT": str(tmp_path / "results"),
        "LANG": "C.UTF-8",
    }


COMMAND = [sys.executable, "-I", "-m", "slurmk8s", "status"]


def test_while_slurm_is_away_it_says_so_and_shows_what_there_is(environment: dict[str, str]) -> None:
    done = subprocess.run(COMMAND, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("0 running · waiting: not known · 0 ended")
    assert "Slurm does not answer" in done.stdout
    assert "\x1b" not in done.stdout


def test_without_a_nas_it_still_answers(environment: dict[str, str]) -> None:
    environment["SLURMK8S_RESULTS_ROOT"] = "/nowhere/at/all"
    done = subprocess.run(COMMAND, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert done.stderr == ""


def test_one_bundle_that_is_none_hides_no_other(environment: dict[str, str]) -> None:
    root = Path(environment["SLURMK8S_RESULTS_ROOT"])
    own = root / ".index" / str(os.getuid())
    own.mkdir(parents=True)
    now = time.time()
    told = [Entry(now - 9, 99, 0, "running", "", "odd"), Entry(now - 60, 12, 0, "failed", "", "train", cause="Why.")]
    month = time.strftime("%Y-%m", time.gmtime(now))
    (own / f"{month}.node1.jsonl").write_bytes(b"".join(map(encode, told)))
    (root / "99").write_text("no folder")
    done = subprocess.run([*COMMAND, "--all"], env=environment, capture_output=True, text=True, check=False)
    assert "1 ended" in done.stdout, done.stderr
    assert "Why." in done.stdout


def test_watching_draws_again_and_ends_with_ctrl_c(environment: dict[str, str]) -> None:
    ours, theirs = pty.openpty()
    watching: Any = subprocess.Popen([*COMMAND, "--watch"], env=environment, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen = b""
    try:
        deadline = time.monotonic() + 60
        while seen.count(b"\x1b[H") < 2:
            assert time.monotonic() < deadline, seen
            seen += os.read(ours, 65536)
        watching.send_signal(signal.SIGINT)
        assert watching.wait(30) == 130
    finally:
        watching.kill()
        watching.wait()
        os.close(ours)
    assert b"running" in seen
