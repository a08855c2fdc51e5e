"""Needs nothing. Finding bundles among many."""

import time
from pathlib import Path
from typing import Any

import pytest

from slurmk8s.errors import ClusterFault, PersonFault
from slurmk8s.results.find import bundles, find
from slurmk8s.results.status import status


def test_bundles_are_listed_newest_first_and_of_one_person(person: Any, root: Path) -> None:
    for job_id in (9, 10, 100):
        person.ask(op="prepare", job_id=job_id, attempt=0)
    person.ask(op="prepare", job_id=10, attempt=0, submitted=1.0)
    (root / "50").mkdir()
    (root / "11.out").write_text("Slurm's own output file")
    (root / "notes").mkdir()
    (root / "007").mkdir()
    (root / "60").symlink_to(root / "50")
    everyone = [found.shown_id for found in bundles(root, None)]
    assert everyone == ["100", "50", "10", "9"]
    assert [found.shown_id for found in bundles(root, person.uid)] == ["100", "10", "9"]


def test_a_bundle_that_was_set_aside_follows_the_one_that_has_its_number(person: Any, root: Path) -> None:
    person.ask(op="prepare", attempt=0, submitted=1.0)
    person.ask(op="prepare", attempt=0, submitted=2.0)
    assert [found.shown_id for found in bundles(root, None)] == ["12", "12.earlier-1"]


def test_an_array_task_is_found_while_it_runs_and_after(person: Any, root: Path, make_summary: Any) -> None:
    person.ask(op="prepare", job_id=20, attempt=0, array={"job_id": 20, "task_id": 2}, name="sweep")
    person.ask(op="prepare", job_id=22, attempt=0, array={"job_id": 20, "task_id": 0})
    task = make_summary(job_id=22, array={"job_id": 20, "task_id": 0})
    person.ask(op="finish", job_id=22, attempt=0, summary=task)
    assert find(root, "20_0").job_id == 22
    assert find(root, "20_2").job_id == 20
    assert status(find(root, "20_2").bundle).marker.name == "sweep"
    assert find(root, "20_1") is None
    assert find(root, "22").job_id == 22
    assert find(root, "23") is None


@pytest.mark.parametrize("job", ["", "x", "../1", "1/2", "1_", "-1", "0", "١٢"])
def test_what_is_no_job_is_told(root: Path, job: str) -> None:
    with pytest.raises(PersonFault, match="is not a job id"):
        find(root, job)


def test_a_missing_root_is_the_clusters_fault(root: Path) -> None:
    with pytest.raises(ClusterFault, match="cannot be read"):
        bundles(root / "unmounted", None)
    with pytest.raises(ClusterFault, match="cannot be read"):
        find(root / "unmounted", "12")


def test_ten_thousand_bundles_are_listed_at_once(root: Path) -> None:
    for number in range(1, 10001):
        (root / str(number)).mkdir()
    begin = time.monotonic()
    assert len(bundles(root, None)) == 10000
    assert time.monotonic() - begin < 1
