"""Kill -9 of any part at any point: no result is lost, no pod is left, nothing is submitted twice."""

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest
from losses import down, processes
from test_journey import ALPINE, body
from test_many import HOLD, go, read


def test_an_agent_killed_while_the_body_runs_changes_nothing(cluster: Any) -> None:
    job_id = cluster.sbatch(body(f"echo start\n{HOLD}\necho end\nexit 5"), "--nodelist=node1")
    cluster.wait_for(lambda: "start" in read(cluster, job_id), "the body", 60)
    old = cluster.kill("agent-node1")
    cluster.restarted("agent-node1", old)
    go(cluster, job_id)
    fields = cluster.wait(job_id)
    summary = cluster.summary(job_id)
    assert fields["ExitCode"] == "5:0"
    assert (summary["exit_code"], cluster.stdout(job_id)) == (5, "start\nend\n")
    assert summary["cause"] == "The body ended with exit code 5."
    assert cluster.pods() == []


@pytest.mark.parametrize("moment", range(6))
def test_an_agent_killed_at_any_moment_of_the_start_makes_one_pod(cluster: Any, moment: int) -> None:
    """Killed a little later each time, from before the hint to after the pod is there."""
    text = "echo started >> /workspace/starts; echo $SLURM_JOB_ID"
    job_id = cluster.sbatch(
        body(text, image=ALPINE, directives="#K8S_WORKDIR=/workspace"), "--nodelist=node1", "--hold"
    )
    cluster.run("scontrol", "release", str(job_id))
    signs: list[Callable[[], bool]] = [
        lambda: True,
        (cluster.layout.folder / "state" / "node1" / "hints" / str(job_id)).exists,
        (cluster.layout.folder / "state" / "node1" / "jobs" / f"{job_id}.json").exists,
        cluster.results(job_id).exists,
        (cluster.results(job_id) / "outputs").exists,
        (cluster.results(job_id) / "outputs" / "starts").exists,
    ]
    cluster.wait_for(lambda: signs[moment]() or ended(cluster, job_id), "the moment to kill")
    old = cluster.kill("agent-node1")
    cluster.restarted("agent-node1", old)
    assert cluster.wait(job_id)["JobState"] == "COMPLETED"
    assert cluster.summary(job_id)["state"] == "completed"
    assert cluster.stdout(job_id) == f"{job_id}\n"
    assert (cluster.results(job_id) / "outputs" / "starts").read_text() == "started\n"
    assert cluster.pods() == []


def ended(cluster: Any, job_id: int) -> bool:
    return cluster.state(job_id) in ("COMPLETED", "FAILED")


def test_a_job_that_came_and_went_while_the_agent_was_away_has_its_bundle(cluster: Any) -> None:
    with down(cluster, "agent-node1"):
        job_id = cluster.sbatch(body("echo never"), "--nodelist=node1")
        cluster.wait_state(job_id, "RUNNING")
        cluster.run("scancel", str(job_id))
        assert cluster.wait(job_id)["JobState"] == "CANCELLED"
    summary = cluster.summary(job_id)
    assert (summary["state"], summary["complete"]) == ("cancelled", True)


def test_an_agent_killed_while_it_writes_the_bundle_finishes_it_later(cluster: Any) -> None:
    job_id = cluster.sbatch(
        body("for i in $(seq 400); do head -c 1000 /dev/zero > f$i; done", directives="#K8S_WORKDIR=/workspace"),
        "--nodelist=node1",
    )
    debts = cluster.layout.folder / "state" / "node1" / "owed"
    cluster.wait_for(lambda: list(debts.glob(f"{job_id}.*")), "the debt", 60)
    old = cluster.kill("agent-node1")
    cluster.restarted("agent-node1", old)
    summary = cluster.summary(job_id)
    assert summary["outputs"]["files"] == 400
    assert cluster.run("slurmk8s", "verify", str(job_id)).returncode == 0


@pytest.mark.parametrize("which", ["--step", "batch"])
def test_slurmk8s_run_killed_ends_the_job_and_leaves_no_pod(cluster: Any, which: str) -> None:
    job_id = cluster.sbatch(body("echo start; sleep 300"), "--no-requeue")
    cluster.wait_for(lambda: "start" in read(cluster, job_id), "the body", 60)
    steps = set(processes(cluster, rf"-m slurmk8s\.run .*--step .*job0*{job_id}/"))
    batch = set(processes(cluster, rf"-m slurmk8s\.run .*job0*{job_id}/")) - steps
    batch -= set(processes(cluster, r"^srun|/srun "))
    chosen = steps if which == "--step" else batch
    chosen -= set(processes(cluster, r"/srun "))
    assert chosen
    for pid in chosen:
        os.kill(pid, signal.SIGKILL)
    fields = cluster.wait(job_id)
    assert fields["JobState"] == "FAILED"
    assert cluster.pods() == []
    summary = cluster.summary(job_id)
    assert summary["state"] == "failed"
    assert "slurmk8s-run was killed" in summary["cause"]
    cluster.wait_for(lambda: set(cluster.nodes().values()) == {"idle"}, "idle nodes")


def test_a_watcher_killed_again_and_again_submits_each_drop_once(cluster: Any) -> None:
    names = [f"drop-{number}.sh" for number in range(5)]
    for name in names:
        cluster.drop(name, body(f"echo {name}", image=ALPINE, directives=f"#SBATCH --job-name={name}"))
        old = cluster.kill("watch")
        cluster.restarted("watch", old)
    jobs = [cluster.dropped_job(name, 90) for name in names]
    for name, job_id in zip(names, jobs, strict=True):
        assert cluster.wait(job_id)["JobState"] == "COMPLETED"
        assert cluster.stdout(job_id) == f"{name}\n"
    shown = cluster.run("squeue", "--noheader", "--states=all", "--format=%j").stdout.split()
    assert {name: shown.count(name) for name in names} == dict.fromkeys(names, 1)


def test_a_restarted_slurmctld_does_not_disturb_a_running_job(cluster: Any) -> None:
    job_id = cluster.sbatch(body(f"echo start\n{HOLD}\necho end"))
    cluster.wait_for(lambda: "start" in read(cluster, job_id), "the body", 60)
    # SIGTERM: killed hard, slurmctld itself forgets the jobs of the last seconds.
    old = cluster.kill("slurmctld", signal.SIGTERM)
    cluster.restarted("slurmctld", old)
    cluster.wait_for(lambda: cluster.state(job_id) == "RUNNING", "Slurm's answer", 60)
    go(cluster, job_id)
    assert cluster.wait(job_id, 90)["JobState"] == "COMPLETED"
    assert cluster.stdout(job_id) == "start\nend\n"


def test_a_pod_without_a_job_is_reaped_and_a_stranger_is_not(cluster: Any) -> None:
    """slurmd is killed hard, so that no Epilog runs before the job is given up; the reaper is the net."""
    manifest = """
apiVersion: v1
kind: Pod
metadata:
  name: NAME
  labels:
    {app: slurm-job, job-id: "999999", slurmk8s/cluster: CLUSTER, slurmk8s/node: node1, slurmk8s/uid: "UID"}
spec:
  restartPolicy: Never
  containers:
  - {name: job, image: IMAGE, command: ["sleep", "1000"], resources: {limits: {cpu: 100m, memory: 64Mi}}}
"""
    manifest = manifest.replace("UID", str(cluster.uid))
    ours = manifest.replace("NAME", "slurm-job-999999").replace("CLUSTER", cluster.layout.cluster)
    strange = manifest.replace("NAME", "stranger").replace("CLUSTER", "another-cluster")
    cluster.wait(cluster.sbatch(body("true", image=ALPINE)))  # the person has a namespace
    for text in (ours, strange):
        cluster.runtime.play(cluster, text.replace("IMAGE", ALPINE))
    cluster.wait_for(lambda: "slurm-job-999999" not in cluster.runtime.all_pods(cluster), "the reaper", 120)
    assert cluster.runtime.all_pods(cluster) == ["stranger"]
    cluster.runtime.remove(cluster, "stranger")


def test_an_agent_that_hangs_is_noticed_and_waited_for(cluster: Any) -> None:
    pid = cluster.kill("agent-node1", signal.SIGSTOP)
    try:
        job_id = cluster.sbatch(
            body("echo ran", image=ALPINE), "--nodelist=node1", "--output=/mnt/nas/work/hung-%j.out"
        )
        slurms = cluster.layout.nas / "work" / f"hung-{job_id}.out"
        cluster.wait_for(lambda: slurms.exists() and "it is silent" in slurms.read_text(), "a word about it", 60)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert cluster.wait(job_id)["JobState"] == "COMPLETED"
    assert cluster.stdout(job_id) == "ran\n"
    assert slurms.read_text().count("does not answer") == 1


def test_a_job_cancelled_at_any_moment_of_its_start_leaves_nothing(cluster: Any) -> None:
    """Cancelled a little later each time, from before the Prolog to after the body has begun."""
    script = body("echo up; sleep 300", image=ALPINE)
    for moment in range(12):
        job_id = cluster.sbatch(script, "--nodelist=node1")
        folder = cluster.layout.folder / "state" / "node1" / "jobs"
        if moment:
            cluster.wait_for((folder / f"{job_id}.json").exists, "the record")
        time.sleep(moment * 0.06)  # a moment, not a hope: each of them must end the same way
        cluster.run("scancel", str(job_id))
        assert cluster.wait(job_id)["JobState"] == "CANCELLED"
        assert cluster.pods() == []
        assert not (cluster.layout.folder / "run" / "node1" / "jobs" / str(job_id)).exists()
        assert list(folder.iterdir()) == []
    assert cluster.run("sinfo", "--noheader", "--list-reasons").stdout == ""
