"""Which pods belong to a lost node and to no living job: pure, by what Slurm and Kubernetes have said."""

from dataclasses import replace
from typing import Any

import pytest

from slurmk8s.kube.nodes import readiness
from slurmk8s.ops.lost import lost
from slurmk8s.slurm.client import Job

JOB = Job(
    job_id=7, name="x", user="kim", uid=1000, gid=1000, partition="", account="", state="RUNNING", reason="",
    exit_code="0:0", comment="", admin_comment="", restarts=1, requeue=True, batch_host="n2", nodes=("n2",),
    work_folder="", stdout="", stderr="", time_limit="", submitted=None, started=None, ended=None, array_job_id=None,
    array_task_id=None,
)  # fmt: skip


def pod(**labels: str) -> dict[str, Any]:
    return {"metadata": {"labels": {"job-id": "7", "slurmk8s/node": "n1", **labels}}}


@pytest.mark.parametrize(
    ("job", "is_lost"),
    [
        (None, True),
        (replace(JOB, state="PENDING", nodes=()), True),
        (replace(JOB, state="NODE_FAIL", nodes=("n1",)), True),
        (JOB, True),  # it runs elsewhere
        (replace(JOB, nodes=("n1",)), False),
        (replace(JOB, nodes=("n1", "n2")), False),
        (replace(JOB, state="SUSPENDED", nodes=("n1",)), False),
        (replace(JOB, state="PENDING", nodes=(), completing=True), False),
    ],
)
def test_only_a_job_that_is_not_there_any_more_frees_its_pod(job: Job | None, is_lost: bool) -> None:
    assert bool(lost([pod()], {"n1"}, lambda _id: job)) == is_lost


def test_slurm_is_asked_only_about_pods_on_lost_nodes() -> None:
    def never(_id: int) -> Job | None:
        raise AssertionError("asked")

    assert lost([pod()], set(), never) == []
    assert lost([pod(**{"slurmk8s/node": "n2"})], {"n1"}, never) == []
    assert lost([{"metadata": {}}, pod(**{"job-id": "x"})], {"n1"}, never) == []


@pytest.mark.parametrize(
    ("conditions", "word"),
    [
        (None, ""),
        ([{"type": "DiskPressure", "status": "Unknown"}], ""),
        ([{"type": "Ready", "status": "Unknown"}], "Unknown"),
        ([{"type": "Ready", "status": "False"}], "False"),
    ],
)
def test_a_node_is_silent_only_if_kubernetes_says_so(conditions: list[dict[str, str]] | None, word: str) -> None:
    assert readiness({"status": {"conditions": conditions}}) == word
