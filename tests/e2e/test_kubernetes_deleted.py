"""Somebody ends a job's pod behind Slurm's back: the job goes back into the queue, with the reason."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from test_journey import ALPINE, body
from test_many import HOLD, go, read

RUNTIMES = ("kubernetes",)


def start(cluster: Any, *options: str) -> int:
    text = f'echo "attempt ${{SLURM_RESTART_COUNT:-0}} on $SLURMD_NODENAME"\n{HOLD}\necho end'
    job_id = int(cluster.sbatch(body(text, image=ALPINE), *options))
    cluster.wait_for(lambda: "attempt" in read(cluster, job_id), "the body", 60)
    return job_id


def runs_again(cluster: Any, job_id: int, why: str) -> str:
    """The job is requeued with that reason and its next attempt completes; where it ran."""
    cluster.wait_for(lambda: cluster.job(job_id).get("Restarts") == "1", "the requeue", 60)
    cluster.wait_for(lambda: cluster.state(job_id) == "PENDING", "the job pending", 60)
    first = cluster.results(job_id) / "summary.json"
    cluster.wait_for(first.exists, "the first attempt's summary")
    told = json.loads(first.read_text())
    assert told["state"] == "requeued"
    assert why in told["cause"]
    go(cluster, job_id)
    cluster.run("scontrol", "update", f"JobId={job_id}", "StartTime=now", user="root")  # Slurm waits two minutes
    fields: dict[str, str] = cluster.wait(job_id, 90)
    assert fields["JobState"] == "COMPLETED"
    assert cluster.summary(job_id)["state"] == "completed"
    assert cluster.stdout(job_id).splitlines()[-1] == "end"
    assert cluster.pods() == []
    return fields["NodeList"]


def delete(cluster: Any, job_id: int, *options: str) -> None:
    namespace = cluster.kubernetes.namespace(cluster)
    cluster.kubernetes.shared.kubectl("delete", "pod", f"slurm-job-{job_id}", "-n", namespace, "--wait=false", *options)


def test_a_pod_that_somebody_deleted_is_made_again(cluster: Any) -> None:
    job_id = start(cluster)
    delete(cluster, job_id)
    runs_again(cluster, job_id, "Somebody deleted the pod")
    assert cluster.run("sinfo", "--noheader", "--list-reasons").stdout == ""


def test_a_pod_that_somebody_deleted_by_force_is_made_again_once_it_is_dead(cluster: Any) -> None:
    job_id = start(cluster)
    delete(cluster, job_id, "--force", "--grace-period=0")
    runs_again(cluster, job_id, "Somebody deleted the pod")
    assert cluster.run("sinfo", "--noheader", "--list-reasons").stdout == ""


def test_without_requeue_the_job_ends_with_that_sentence(cluster: Any) -> None:
    job_id = start(cluster, "--no-requeue")
    delete(cluster, job_id)
    fields = cluster.wait(job_id)
    summary = cluster.summary(job_id)
    assert fields["JobState"] == "FAILED"
    assert f"Somebody deleted the pod slurm-job-{job_id}" in summary["cause"]
    assert summary["fault"] == "cluster"
    slurms = (cluster.layout.nas / "work" / f"slurm-{job_id}.out").read_text()
    assert "Somebody deleted the pod" in slurms
    assert cluster.pods() == []


@pytest.fixture
def undrained(cluster: Any) -> Iterator[None]:
    """Both nodes take jobs again afterwards, in Kubernetes and in Slurm."""
    yield
    cluster.kubernetes.shared.kubectl("uncordon", "kube1", "kube2")
    cluster.run("scontrol", "update", "nodename=node1", "state=resume", user="root", check=False)
    cluster.wait_for(lambda: set(cluster.nodes().values()) == {"idle"}, "idle nodes", 60)


def test_kubectl_drain_moves_the_job_to_another_node(cluster: Any, undrained: None) -> None:
    job_id = start(cluster)
    drain = ["drain", "kube1", "--force", "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=60s"]
    cluster.kubernetes.shared.kubectl(*drain, seconds=90)
    where = runs_again(cluster, job_id, "evicted from kube1 by an admin (kubectl drain)")
    assert where == "node2"
    assert "kubectl drain" in cluster.run("sinfo", "--noheader", "--list-reasons", "--format=%100E").stdout
