"""The index of results on a NAS that maps root to nobody: made by the watcher, written by people, read by a group."""

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nas_bed import KIM, LAB, LEE, Person

import nas
from slurmk8s.config import Nas
from slurmk8s.intake import folders

NOBODY = 65534
ADMIN = Person(41003, 41003, (LAB,))
ROOT = Person(0, 0)


@pytest.fixture
def squashed(folder: Path) -> Iterator[nas.Share]:
    """A share where root is nobody, with the folders that an admin makes on the NAS itself."""
    back = folder / "back"
    back.mkdir()
    for name, mode in (("results", 0o1777), ("slurm-jobs", 0o777)):
        (back / name).mkdir()
        (back / name).chmod(mode)
    (folder / "mount").mkdir()
    with nas.mounted(back, folder / "mount", root_squash=True) as share:
        yield share


@pytest.fixture
def run(squashed: nas.Share, everyones_python: Path) -> Any:
    """Run one of our modules as somebody."""

    def run(who: Person, *arguments: str, given: object = None) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [str(everyones_python), "-I", "-m", *arguments],
            input=json.dumps(given),
            env={"PATH": "/usr/bin:/bin", "SLURMK8S_RESULTS_ROOT": str(squashed.path / "results"), "LANG": "C.UTF-8"},
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            user=who.uid,
            group=who.gid,
            extra_groups=who.groups,
        )

    return run


def end_a_job(run: Any, share: nas.Share, who: Person, job_id: int) -> dict[str, Any]:
    """What the agent asks of the worker when a job has ended."""
    now = time.time()
    times = dict.fromkeys(("pull_started", "pulled", "body_started"))
    summary = {
        "schema": 1,
        "cluster": "lab",
        "job_id": job_id,
        "array": None,
        "name": f"of-{who.uid}",
        "attempt": 0,
        "user": f"u{who.uid}",
        "uid": who.uid,
        "account": "",
        "partition": "gpu",
        "node": "node1",
        "nodes": ["node1"],
        "image": "x:1",
        "image_digest": None,
        "workdir": "/workspace",
        "command": "body",
        "gpus": ["0"],
        "cpus": 1,
        "memory_mb": 100,
        "times": {**times, "submitted": now - 90, "started": now - 60, "ended": now},
        "durations": {},
        "state": "failed",
        "exit_code": 1,
        "signal": None,
        "fault": "person",
        "outputs": None,
        "cause": "The body ended with exit code 1.",
        "checksums": "pending",
        "complete": False,
    }
    request = {"op": "finish", "root": str(share.path / "results"), "job_id": job_id, "attempt": 0, "summary": summary}
    done = run(who, "slurmk8s.results.worker", given=request)
    assert done.returncode == 0, done.stderr
    reply: dict[str, Any] = json.loads(done.stdout)
    assert reply["ok"], reply
    return reply


def names(run: Any, who: Person, *arguments: str) -> list[str]:
    done = run(who, "slurmk8s", "results", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return [one["name"] for one in json.loads(done.stdout)]


def test_the_watcher_makes_the_folder_as_nobody_and_each_person_finds_their_own(squashed: nas.Share, run: Any) -> None:
    folders.keep_index(Nas(root=squashed.path, require_mountpoint=False))
    made = (squashed.path / "results" / ".index").stat()
    assert (made.st_uid, made.st_mode & 0o7777) == (NOBODY, 0o1733)
    for who, job_id in ((KIM, 1), (LEE, 2)):
        assert "unlisted" not in end_a_job(run, squashed, who, job_id)
        assert names(run, who) == [f"of-{who.uid}"]
    told = run(KIM, "slurmk8s", "report", "--json")
    assert json.loads(told.stdout)["total"]["jobs"] == 1


def test_a_group_of_admins_reads_everybodys_and_root_reads_nothing(squashed: nas.Share, run: Any, folder: Path) -> None:
    index = folder / "back" / "results" / ".index"
    index.mkdir()
    os.chown(index, 0, LAB)
    index.chmod(0o3773)
    for who, job_id in ((KIM, 1), (LEE, 2)):
        end_a_job(run, squashed, who, job_id)
    assert names(run, ADMIN, "--all") == [f"of-{LEE.uid}", f"of-{KIM.uid}"]
    told = run(ADMIN, "slurmk8s", "report", "--all", "--json")
    assert [line["group"] for line in json.loads(told.stdout)["lines"]] == [f"u{KIM.uid}", f"u{LEE.uid}"]
    for who in (ROOT, Person(41009, 41009)):
        refused = run(who, "slurmk8s", "report", "--all", "--json")
        assert refused.returncode == 2
        assert "You may read none of these results" in refused.stderr
