"""Sections 4.2 to 4.4 of the guide, typed as they stand, by an admin and by a person with a read-only kubeconfig."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from test_journey import ALPINE, body
from test_many import HOLD, go, read

RUNTIMES = ("kubernetes",)
Typed = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def person(cluster: Any, tmp_path: Path) -> Iterator[Typed]:
    """Types commands as the person, with the kubeconfig that an admin has made for them."""
    admin = {"KUBECONFIG": str(cluster.kubernetes.shared.kubeconfig)}
    text = cluster.run("slurmk8s", "kubeconfig", cluster.user, user="root", env=admin).stdout
    path = Path(f"/tmp/slurmk8s-test-{os.getpid()}.kubeconfig")
    path.write_text(text)
    os.chown(path, cluster.uid, cluster.uid)
    path.chmod(0o600)

    def typed(line: str, *, check: bool = True) -> subprocess.CompletedProcess[str]:
        return _typed(cluster, line, path, cluster.user, check)

    yield typed
    path.unlink()


@pytest.fixture
def admin(cluster: Any) -> Typed:
    """Types commands as root with the cluster's own kubeconfig."""

    def typed(line: str, *, check: bool = True) -> subprocess.CompletedProcess[str]:
        return _typed(cluster, line, cluster.kubernetes.shared.kubeconfig, "root", check)

    return typed


def _typed(cluster: Any, line: str, kubeconfig: Path, user: str, check: bool) -> subprocess.CompletedProcess[str]:
    programs = f"{cluster.layout.bin}:{cluster.kubernetes.testbed.layout.bin}:/usr/bin:/bin"
    done: subprocess.CompletedProcess[str] = cluster.run(
        "sh", "-c", line, user=user, env={"KUBECONFIG": str(kubeconfig), "PATH": programs}, check=check
    )
    return done


@pytest.fixture
def running(cluster: Any) -> Iterator[int]:
    """A job that runs until it is told to go, or cancelled."""
    text = f"echo hello; echo trouble >&2\n{HOLD}\necho bye"
    job_id = cluster.sbatch(body(text, image=ALPINE, shebang="#!/bin/sh"))
    cluster.wait_for(lambda: "hello" in read(cluster, job_id), "the body", 60)
    yield job_id
    cluster.run("scancel", str(job_id), check=False)
    cluster.wait(job_id)


def test_a_persons_view_of_a_job(cluster: Any, person: Typed, running: int) -> None:
    pod = f"slurm-job-{running}"
    assert str(running) in person("squeue").stdout
    assert str(running) in person("squeue -u $USER").stdout
    assert "RUNNING" in person(f"scontrol show job {running}").stdout
    pods = "kubectl get pods -l app=slurm-job"
    cluster.wait_for(lambda: "Running" in person(pods).stdout, "Running")  # the kubelet tells it a moment later
    assert [line.split()[0] for line in person(pods).stdout.splitlines()[1:]] == [pod]
    said = {"hello", "trouble"}  # by tail in the pod, which looks once a second
    cluster.wait_for(lambda: set(person(f"kubectl logs {pod}").stdout.split()) == said, "both outputs by kubectl logs")
    assert "sinfo" not in person("sinfo").stderr


def test_a_person_sees_only_their_own_and_changes_nothing(cluster: Any, person: Typed, running: int) -> None:
    for line in (
        "kubectl get pods -A",
        "kubectl get secrets",
        "kubectl get pods -n kube-system",
        f"kubectl delete pod slurm-job-{running}",
        f"kubectl exec slurm-job-{running} -- id",
        "kubectl run x --image=nas-hub.local:5407/alpine:latest",
        "kubectl create token reader",
        f"kubectl label pod slurm-job-{running} app=mine --overwrite",
    ):
        refused = person(line, check=False)
        assert refused.returncode != 0, line
        assert "orbidden" in refused.stderr, (line, refused.stderr)


def test_an_admins_view_of_all_jobs(cluster: Any, admin: Typed, running: int) -> None:
    shown = admin("kubectl get pods -l app=slurm-job -A").stdout
    assert f"slurm-job-{running}" in shown
    assert cluster.kubernetes.namespace(cluster) in shown
    described = json.loads(admin(f"kubectl get pods -A -l job-id={running} -o json").stdout)["items"]
    assert [pod["spec"]["nodeName"] for pod in described] == ["kube1"]


def test_usage_of_nodes_and_pods_is_shown_to_both(cluster: Any, admin: Typed, person: Typed, running: int) -> None:
    namespace = cluster.kubernetes.namespace(cluster)

    def shows(typed: Typed, line: str, word: str) -> bool:
        return word in typed(line, check=False).stdout

    # The metrics server measures every few seconds.
    pod = f"slurm-job-{running}"
    cluster.wait_for(lambda: shows(person, f"kubectl top pod {pod}", pod), "the pod's usage, for the person", 90)
    cluster.wait_for(lambda: shows(admin, f"kubectl top pod {pod} -n {namespace}", pod), "the same, for the admin", 30)
    for typed in (admin, person):
        cluster.wait_for(lambda typed=typed: shows(typed, "kubectl top nodes", "kube2"), "the nodes' usage", 30)


def test_scancel_removes_the_pod(cluster: Any, person: Typed, running: int) -> None:
    person(f"scancel {running}")
    assert cluster.wait(running)["JobState"] == "CANCELLED"
    assert person("kubectl get pods -l app=slurm-job").stdout == ""
    assert cluster.summary(running)["state"] == "cancelled"


def test_logs_after_a_requeue_are_the_new_attempts(cluster: Any, person: Typed) -> None:
    text = f"echo attempt ${{SLURM_RESTART_COUNT:-0}}\n{HOLD}"
    job_id = cluster.sbatch(body(text, image=ALPINE, shebang="#!/bin/sh"))
    cluster.wait_for(lambda: "attempt 0" in read(cluster, job_id), "the first attempt", 60)
    cluster.run("scontrol", "requeue", str(job_id))
    cluster.wait_for(lambda: cluster.job(job_id).get("Restarts") == "1", "the requeue", 60)
    cluster.wait_for(lambda: cluster.state(job_id) == "PENDING", "the job pending", 60)
    cluster.run("scontrol", "update", f"JobId={job_id}", "StartTime=now", user="root")  # Slurm waits two minutes
    cluster.wait_for(lambda: "attempt 1" in read(cluster, job_id), "the second attempt", 90)
    shown = cluster.wait_for(lambda: person(f"kubectl logs slurm-job-{job_id}", check=False).stdout, "its log")
    go(cluster, job_id)
    assert cluster.wait(job_id)["JobState"] == "COMPLETED"
    assert shown == "attempt 1\n"
