"""Which results folder is a job's. Needs nothing (root for one case)."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from why_samples import NOW, SUMMARY, running, seen

from slurmk8s import config as configuration
from slurmk8s.errors import PersonFault
from slurmk8s.ops import evidence
from slurmk8s.results import files, marker
from slurmk8s.results.marker import Marker
from slurmk8s.results.summary import Summary
from slurmk8s.results.summary_file import write_summary
from slurmk8s.slurm.commands import SlurmCommands

UID = os.getuid()


def bundle(root: Path, attempt: int, submitted: float, summary: Summary | None = None, folder: str = "7") -> Path:
    path = root / folder
    path.mkdir(parents=True)
    with files.folder(str(path)) as opened:
        marker.write(opened, Marker(attempt, submitted, "train", None), 0o600, files.nothing)
        if summary is not None:
            write_summary(opened, summary, str(path), 0o600, files.nothing)
    return path


def test_the_summary_of_this_attempt_is_found(tmp_path: Path) -> None:
    path = bundle(tmp_path, 0, NOW - 600, SUMMARY)
    found = evidence._results(tmp_path, "7", running(job_uid=UID))
    assert (found.folder, found.note, found.summary) == (path, "", SUMMARY)


def test_an_earlier_attempt_is_told_apart_in_place_and_set_aside(tmp_path: Path) -> None:
    requeued = replace(SUMMARY, state="requeued")
    path = bundle(tmp_path, 0, NOW - 9000, requeued)
    waiting = seen("BeginTime", job_uid=UID, job_restarts=1)
    found = evidence._results(tmp_path, "7", waiting)
    assert (found.summary, found.earlier) == (None, requeued)
    (path / "attempt-0").mkdir()
    (path / "summary.json").rename(path / "attempt-0" / "summary.json")
    found = evidence._results(tmp_path, "7", waiting)
    assert (found.summary, found.earlier) == (None, requeued)


def test_an_earlier_job_of_the_same_number_is_not_taken_for_this_one(tmp_path: Path) -> None:
    bundle(tmp_path, 0, NOW - 90000, SUMMARY)
    found = evidence._results(tmp_path, "7", running(job_uid=UID))
    assert found.summary is None
    assert found.note == "is of an earlier job of the same number"
    # Once Slurm has forgotten the job, the number is all there is.
    assert evidence._results(tmp_path, "7", None).summary == SUMMARY


def test_a_squatted_folder_is_not_the_jobs(tmp_path: Path) -> None:
    bundle(tmp_path, 0, NOW - 600, SUMMARY)
    found = evidence._results(tmp_path, "7", running(job_uid=UID + 1))
    assert found.summary is None
    assert "not to the job's owner" in found.note


def test_a_waiting_job_has_no_results_yet(tmp_path: Path) -> None:
    bundle(tmp_path, 0, NOW - 600, SUMMARY)
    assert evidence._results(tmp_path, "7", seen(job_uid=UID)) == evidence.Results(tmp_path)


def test_a_results_root_that_is_away_is_said(tmp_path: Path) -> None:
    found = evidence._results(tmp_path / "away", "7", None)
    assert found.note.startswith(f"The results folder {tmp_path}/away cannot be read")


@pytest.mark.parametrize("asked", ["", "x", "7_", "7_x", "0", "-1", "7;id", "７"])
def test_what_is_no_job_is_refused(asked: str, tmp_path: Path) -> None:
    config = configuration.Config()
    with pytest.raises(PersonFault, match="not a job id"):
        evidence.gather(asked, config, SlurmCommands(config.slurm), tmp_path, None)


def test_of_an_array_the_part_that_runs_is_told() -> None:
    waiting, first, second = seen(), running(job_job_id=8), running(job_job_id=9)
    assert evidence._chosen([waiting, second, first]) is first
    assert evidence._chosen([waiting, replace(first, job=replace(first.job, state="COMPLETED"))]) is waiting
    assert evidence._chosen([]) is None
