"""The sh files that Slurm calls: their paths, and what they cost a job that is none of ours."""

import os
import subprocess
from pathlib import Path

import pytest

import slurmk8s
from slurmk8s.hooks import entry, epilog

PACKAGE = Path(slurmk8s.__file__).parent
# A program in the place of Python that tells how it was called.
TELLING = '#!/bin/sh\nprintf "%s\\n" "$0" "$@" >>"${0%/*}/called"\nexit 3\n'


@pytest.fixture
def entries(tmp_path: Path) -> Path:
    """Written into a folder whose name is as bad as it gets."""
    folder = tmp_path / "it's a $HOME \\1 `x` folder"
    folder.mkdir()
    python = folder / "python"
    python.write_text(TELLING)
    python.chmod(0o755)
    entry.write(
        folder,
        templates=templates(),
        python=python,
        package=folder / "slurmk8s",
        run_folder=f"{folder}/%n/run",
        state_folder=f"{folder}/%n/state",
        log_folder=f"{folder}/log",
    )
    return folder


def templates() -> Path:
    """Beside the package in a checkout, inside it in a wheel."""
    return next(place for place in (PACKAGE / "slurm" / "conf", PACKAGE.parent / "slurm-conf") if place.is_dir())


def run(program: Path, *arguments: str, **environment: str) -> int:
    done = subprocess.run([program, *arguments], env=environment, capture_output=True, timeout=10, check=False)
    assert (done.stdout, done.stderr) == (b"", b"")
    return done.returncode


def called(folder: Path) -> list[str]:
    path = folder / "called"
    return path.read_text().splitlines() if path.exists() else []


def test_the_prolog_of_our_job_calls_python_with_all_paths(entries: Path) -> None:
    """And exits 0 whatever Python does: here it fails."""
    assert run(entries / entry.PROLOG, SLURM_JOB_ID="7", SLURM_JOB_COMMENT="mine slurmk8s") == 0
    assert called(entries) == [
        f"{entries}/python",
        "-I",
        "-S",
        f"{entries}/slurmk8s/hooks/prolog.py",
        f"{entries}/%n/run",
        f"{entries}/%n/state",
        f"{entries}/log",
    ]


@pytest.mark.parametrize("comment", ["slurmk8s", "a slurmk8s", "slurmk8s b", "a slurmk8s-key=0f slurmk8s"])
def test_the_marker_is_found_as_a_word(entries: Path, comment: str) -> None:
    run(entries / entry.PROLOG, SLURM_JOB_ID="7", SLURM_JOB_COMMENT=comment)
    assert called(entries)


@pytest.mark.parametrize("comment", [None, "", "my slurmk8sjob", "slurmk8s-key=0f", "*", "$(touch x)"])
def test_the_prolog_of_a_plain_job_starts_no_python(entries: Path, comment: str | None) -> None:
    environment = {} if comment is None else {"SLURM_JOB_COMMENT": comment}
    assert run(entries / entry.PROLOG, SLURM_JOB_ID="7", **environment) == 0
    assert called(entries) == []


def test_the_epilog_of_a_plain_job_starts_no_python(entries: Path) -> None:
    assert run(entries / entry.EPILOG, SLURM_JOB_ID="7", SLURMD_NODENAME="node1") == 0
    assert called(entries) == []


@pytest.mark.parametrize("trace", ["hints/7", "jobs/7.json"])
def test_the_epilog_of_our_job_ends_as_python_does(entries: Path, trace: str) -> None:
    path = entries / "node1" / "state" / trace
    path.parent.mkdir(parents=True)
    path.touch()
    assert run(entries / entry.EPILOG, SLURM_JOB_ID="7", SLURMD_NODENAME="node1") == 3
    assert called(entries)[3:] == [
        f"{entries}/slurmk8s/hooks/epilog.py",
        f"{entries}/%n/run",
        f"{entries}/node1/state",
        f"{entries}/log",
    ]


def test_slurmk8s_run_passes_every_word(entries: Path) -> None:
    assert run(entries / entry.RUN, "/bin/bash -l", "script", "it's") == 3
    assert called(entries) == [
        f"{entries}/python",
        "-I",
        "-m",
        "slurmk8s.run",
        f"{entries}/%n/run",
        "/bin/bash -l",
        "script",
        "it's",
    ]


def test_they_are_executable_and_nothing_is_left_beside_them(entries: Path) -> None:
    for name in (entry.PROLOG, entry.EPILOG, entry.RUN):
        assert os.stat(entries / name).st_mode & 0o777 == 0o755
    assert list(entries.glob("*.tmp")) == []


def test_the_packaged_budget_is_above_the_epilogs() -> None:
    """Slurm's own limit for hooks must not come first."""
    text = (templates() / "slurmk8s.conf").read_text()
    seconds = next(line.split("=")[1].split()[0] for line in text.splitlines() if "PrologEpilogTimeout=" in line)
    assert int(seconds) > epilog.SECONDS_FOR_THE_AGENT
