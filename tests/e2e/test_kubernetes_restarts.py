"""A part of Kubernetes or of ours ends in the middle of a job: the job goes on, and its result is right."""

import contextlib
import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest
from losses import processes_of
from test_journey import ALPINE, body
from test_many import HOLD, go, read

RUNTIMES = ("kubernetes",)


def start(cluster: Any, *options: str) -> int:
    script = body(f"echo start\n{HOLD}\necho end; echo data > /workspace/out; exit 5", image=ALPINE)
    job_id = int(cluster.sbatch(script, *(options or ("--nodelist=node1",))))
    cluster.wait_for(lambda: "start" in read(cluster, job_id), "the body", 60)
    return job_id


def ends_right(cluster: Any, job_id: int, seconds: float = 90) -> None:
    go(cluster, job_id)
    assert cluster.wait(job_id, seconds)["ExitCode"] == "5:0"
    summary = cluster.summary(job_id, seconds)
    assert (summary["exit_code"], summary["attempt"]) == (5, 0)
    assert summary["cause"] == "The body ended with exit code 5."
    assert cluster.stdout(job_id) == "start\nend\n"
    assert cluster.run("slurmk8s", "verify", str(job_id)).returncode == 0
    # After an API server's outage a kubelet takes up to two minutes to listen again.
    cluster.wait_for(lambda: cluster.pods() == [], "the pod gone", 180)
    assert cluster.run("sinfo", "--noheader", "--list-reasons").stdout == ""


@pytest.mark.parametrize("name", ["kube-apiserver", "etcd", "kubelet-kube1", "kube-controller-manager"])
def test_a_restarted_component_does_not_disturb_a_running_job(cluster: Any, machine_room: Any, name: str) -> None:
    job_id = start(cluster)
    machine_room.kill(name)
    machine_room.start(name)
    machine_room.wait_nodes()
    assert cluster.state(job_id) == "RUNNING"
    ends_right(cluster, job_id)


def test_several_of_ours_and_theirs_restarted_one_after_the_other_disturb_nothing(
    cluster: Any, machine_room: Any
) -> None:
    job_id = start(cluster)
    old = cluster.kill("agent-node1")
    machine_room.restart("kube-apiserver")
    cluster.restarted("agent-node1", old)
    old = cluster.kill("slurmctld", signal.SIGTERM)
    cluster.restarted("slurmctld", old)
    machine_room.restart("kubelet-kube1")
    old = cluster.kill("watch")
    cluster.restarted("watch", old)
    cluster.wait_for(lambda: cluster.state(job_id) == "RUNNING", "Slurm's answer", 60)
    ends_right(cluster, job_id)


def test_a_watch_whose_version_is_compacted_away_goes_on(cluster: Any, machine_room: Any) -> None:
    """410 Gone: the agent must list again, or it would never hear of this pod's end."""
    job_id = start(cluster)
    machine_room.pause("kube-apiserver")
    machine_room.resume("kube-apiserver")
    machine_room.restart("etcd")
    machine_room.restart("kube-apiserver")  # its watch cache begins anew
    ends_right(cluster, job_id)


def test_nothing_is_deleted_and_the_epilog_is_right_while_the_api_server_is_away(
    cluster: Any, machine_room: Any
) -> None:
    """A job runs on, another one ends: neither is lost, nothing is reaped, and no node drains."""
    stays, ends = start(cluster), start(cluster, "--nodelist=node2")
    machine_room.kill("kube-apiserver")
    go(cluster, ends)
    cluster.wait_for(lambda: read(cluster, ends) == "start\nend\n", "the body's end")
    cluster.wait_for(lambda: cluster.state(ends) in ("COMPLETING", "FAILED"), "Slurm told", 60)
    deadline = time.monotonic() + 3 * 3  # three rounds of the reaper
    while time.monotonic() < deadline:
        assert cluster.state(stays) == "RUNNING"
        time.sleep(0.5)
    machine_room.start("kube-apiserver")
    assert cluster.wait(ends, 90)["ExitCode"] == "5:0"
    assert cluster.summary(ends, 90)["cause"] == "The body ended with exit code 5."
    assert cluster.kubernetes.pod(cluster, stays)["status"]["phase"] == "Running"
    ends_right(cluster, stays)
    cluster.wait_for(lambda: set(cluster.nodes().values()) == {"idle"}, "idle nodes", 60)


def test_a_job_submitted_while_the_api_server_is_away_waits_for_it(cluster: Any, machine_room: Any) -> None:
    machine_room.kill("kube-apiserver")
    job_id = cluster.sbatch(body("echo ran", image=ALPINE), "--output=/mnt/nas/work/away-%j.out")
    slurms = cluster.layout.nas / "work" / f"away-{job_id}.out"
    cluster.wait_for(lambda: slurms.exists() and "does not answer" in slurms.read_text(), "a word about it", 60)
    machine_room.start("kube-apiserver")
    assert cluster.wait(job_id, 90)["JobState"] == "COMPLETED"
    assert cluster.stdout(job_id) == "ran\n"
    assert cluster.summary(job_id)["attempt"] == 0


@pytest.mark.timeout(420)
def test_a_lost_nodes_job_is_requeued_by_slurm_and_runs_elsewhere(
    new_cluster: Callable[..., Any], machine_room: Any
) -> None:
    """As when its power fails: slurmd, agent, kubelet, runtime and the pod's processes all stop at once."""
    own = new_cluster(nodes=2, slurm_overrides={"SlurmdTimeout": "10", "MessageTimeout": "5"})
    text = f'echo "attempt ${{SLURM_RESTART_COUNT:-0}}"\n{HOLD}\necho end'
    job_id = own.sbatch(body(text, image=ALPINE), "--nodelist=node2")
    own.wait_for(lambda: "attempt 0" in read(own, job_id), "the body", 60)
    uid = own.kubernetes.pod(own, job_id)["metadata"]["uid"]
    frozen = [own.kill(name, signal.SIGSTOP) for name in ("slurmd-node2", "agent-node2")]
    try:
        for name in ("kubelet-kube2", "containerd-kube2"):
            machine_room.kill(name)
        for pid in processes_of(uid):
            with contextlib.suppress(ProcessLookupError):  # its namespace's first has gone, and all others with it
                os.kill(pid, signal.SIGKILL)
        own.wait_for(lambda: own.job(job_id).get("Restarts") == "1", "Slurm's requeue", 90)
        go(own, job_id)
        own.run("scontrol", "update", f"JobId={job_id}", "ReqNodeList=node1", "StartTime=now", user="root")
        fields = own.wait(job_id, 180)
        assert (fields["JobState"], fields["NodeList"]) == ("COMPLETED", "node1")
        assert own.stdout(job_id) == "attempt 1\nend\n"
    finally:
        for pid in frozen:
            os.kill(pid, signal.SIGCONT)
