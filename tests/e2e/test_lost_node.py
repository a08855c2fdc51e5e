"""A node is lost in the middle of a job: the head node tells of it, and the node itself when it is back."""

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest
from runtimes import KUBERNETES
from test_journey import ALPINE, body
from test_many import HOLD, read


@pytest.mark.timeout(420)
def test_the_head_node_tells_of_a_lost_nodes_job_until_the_node_is_back(new_cluster: Callable[..., Any]) -> None:
    """Neither its slurmd nor its agent answers any more; the body runs on, as when only its network is gone."""
    cluster = new_cluster(
        nodes=2,
        slurm_overrides={"SlurmdTimeout": "10", "MessageTimeout": "5", "KillWait": "10"},
        config_overrides={"results.lost_node_seconds": 5, "agent.kill_grace_seconds": 3, "agent.reap_seconds": 3},
    )
    script = body(f"echo start; echo data > /workspace/out\n{HOLD}", image=ALPINE)
    job_id = cluster.sbatch(script, "--nodelist=node2", "--no-requeue")
    cluster.wait_for(lambda: "start" in read(cluster, job_id), "the body", 60)
    remembered = cluster.layout.agent_state.replace("%n", "head") + "/head/last_seen.json"
    cluster.wait_for(lambda: f'"job_id": {job_id}' in text_of(remembered), "the job remembered", 60)
    frozen = [cluster.kill(name, signal.SIGSTOP) for name in ("slurmd-node2", "agent-node2")]
    try:
        cluster.wait_state(job_id, "NODE_FAIL", 90)
        told = cluster.summary(job_id, 120)
        assert (told["state"], told["written_by"], told["node"]) == ("node_fail", "head node", "node2")
        assert told["cause"].startswith("Node node2 was lost at ")
        on_kubernetes = cluster.runtime.name == KUBERNETES
        assert ("Kubernetes last said: its container runs since " in told["cause"]) == on_kubernetes
        assert told["outputs"]["files"] == 1
        assert cluster.run("slurmk8s", "verify", str(job_id)).returncode == 0
        why = cluster.run("slurmk8s", "why", str(job_id)).stdout
        assert f"Job {job_id}" in why
        assert "the head node wrote this from what Slurm knows" in why
    finally:
        for pid in frozen:
            os.kill(pid, signal.SIGCONT)
    better = cluster.wait_for(lambda: by_node(cluster, job_id), "the node's own account", 120)
    assert better["exit_code"] is not None  # of the body that the node has ended by now
    assert better["image_digest"] is not None
    assert cluster.run("slurmk8s", "verify", str(job_id)).returncode == 0
    assert cluster.stdout(job_id) == "start\n"
    cluster.wait_for(lambda: cluster.pods() == [], "the pod gone", 120)


def by_node(cluster: Any, job_id: int) -> dict[str, Any] | None:
    found: dict[str, Any] = cluster.summary(job_id)
    return found if found["written_by"] == "node after head node" else None


def text_of(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""
