"""A person's quota in Kubernetes: too much for one job is told at the door, too much together waits."""

from collections.abc import Callable
from typing import Any

import pytest
from test_journey import ALPINE, body
from test_many import HOLD, go, read

RUNTIMES = ("kubernetes",)


@pytest.fixture
def narrow(new_cluster: Callable[..., Any]) -> Any:
    """One CPU and half a gigabyte for each person, on nodes that have more."""
    settings = {"kubernetes.quota.cpu": 1, "kubernetes.quota.memory": "512Mi", "kubernetes.quota.gpus": 1}
    return new_cluster(nodes=2, gpus=2, config_overrides={**settings, "kubernetes.quota_wait_seconds": 0})


def test_a_job_that_alone_exceeds_the_quota_is_refused_at_the_door_with_the_numbers(narrow: Any) -> None:
    for options, words in (
        (("--cpus-per-task=2",), ("2", "1", "CPU")),
        (("--mem=1G",), ("1024", "512")),
        (("--gres=gpu:2", "--mem=100M"), ("2", "1", "GPU")),
    ):
        refused = narrow.run("sbatch", *options, input=body("true", image=ALPINE), check=False)
        assert refused.returncode != 0, options
        for word in ("quota", *words):
            assert word in refused.stderr, (options, refused.stderr)
    narrow.drop("wide.sh", body("true", image=ALPINE, directives="#SBATCH --cpus-per-task=2"))
    reason = narrow.failed / "wide.sh.error.txt"
    told = narrow.wait_for(lambda: reason.exists() and reason.read_text(encoding="utf-8-sig"), "a reason")
    assert "quota" in told
    assert narrow.run("squeue", "--noheader", "--states=all").stdout == ""


def test_a_job_that_exceeds_it_only_together_with_others_waits_and_then_runs(narrow: Any) -> None:
    script = body(f"echo up\n{HOLD}\necho done", image=ALPINE)
    first = narrow.sbatch(script)
    narrow.wait_for(lambda: "up" in read(narrow, first), "the first", 60)
    second = narrow.sbatch(script)
    # Back in the queue, with the reason where people look.
    narrow.wait_for(lambda: narrow.job(second).get("Restarts", "0") != "0", "the second back in the queue", 90)
    narrow.wait_for(lambda: narrow.state(second) == "PENDING", "it pending", 60)
    assert "quota" in narrow.run("slurmk8s", "why", str(second), check=False).stdout.lower()
    assert narrow.pods() == [f"slurm-job-{first}"]
    assert narrow.state(first) == "RUNNING", "nothing is killed for it"
    go(narrow, first)
    assert narrow.wait(first)["JobState"] == "COMPLETED"
    go(narrow, second)
    narrow.run("scontrol", "update", f"JobId={second}", "StartTime=now", user="root")  # Slurm waits two minutes
    assert narrow.wait(second, 180)["JobState"] == "COMPLETED"
    assert narrow.stdout(second) == "up\ndone\n"
    assert narrow.run("sinfo", "--noheader", "--list-reasons").stdout == ""


def test_another_persons_quota_is_their_own(narrow: Any) -> None:
    script = body(f"echo up\n{HOLD}", image=ALPINE)
    jobs = [narrow.sbatch(script), narrow.sbatch(script, user=narrow.other_user)]
    for job_id in jobs:
        narrow.wait_for(lambda job_id=job_id: "up" in read(narrow, job_id), f"job {job_id}", 60)
        go(narrow, job_id)
    for job_id in jobs:
        assert narrow.wait(job_id)["JobState"] == "COMPLETED"
