"""`slurmk8s local --backend kubernetes`: what it makes here and in Kubernetes, and that nothing of it stays."""

import os
import shutil
import signal
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_journey import ALPINE, body
from test_local import traces_of
from test_many import HOLD, go, read

from slurmk8s.errors import SetupError
from slurmk8s.local import lifecycle
from slurmk8s.local.plan import Plan

RUNTIMES = ("kubernetes",)
KINDS = "namespaces,clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings"


def in_kubernetes(cluster: Any) -> list[str]:
    """Everything there that carries this cluster's name."""
    kubectl = cluster.kubernetes.shared.kubectl
    objects = kubectl("get", KINDS, "-o", "name").split()
    pods = kubectl("get", "pods", "-A", "-o", "name", f"--selector=slurmk8s/cluster={cluster.layout.cluster}").split()
    return [name for name in objects if cluster.layout.cluster in name] + pods


def mount_points() -> list[Path]:
    """Of this machine, as everybody outside sees it."""
    return [Path(line.split()[4]) for line in Path("/proc/self/mountinfo").read_text().splitlines()]


def start(cluster: Any) -> int:
    """A job whose body waits for a word."""
    job_id = int(cluster.sbatch(body(f"echo up\n{HOLD}", image=ALPINE)))
    cluster.wait_for(lambda: "up" in read(cluster, job_id), "the body", 60)
    return job_id


@pytest.mark.parametrize("how", ["orderly", "killed"])
def test_down_leaves_nothing_here_nor_in_kubernetes(new_cluster: Callable[..., Any], how: str) -> None:
    """With a job running; also after the supervisor was killed by kill -9. What others have there stays."""
    own = new_cluster(nodes=2, gpus=1)
    layout = own.layout
    first = start(own)
    pods = own.kubernetes.pods(own)
    assert pods == [f"slurm-job-{first}"]
    assert {name.partition("/")[0].partition(".")[0] for name in in_kubernetes(own)} >= {"namespace", "clusterrole"}
    if how == "killed":
        os.kill(own.pid, signal.SIGKILL)
    assert lifecycle.down(layout, purge=False).left == ()
    assert in_kubernetes(own) == []
    own.wait_for(lambda: not traces_of(layout), "no trace on the machine")
    assert layout.results.is_dir(), "data stays"
    assert Path("/mnt/nas") not in mount_points()

    lifecycle.up(own.decided.plan, lambda _: None)
    next_job = start(own)
    assert next_job > first, "job ids go on counting, or results would mix"
    go(own, next_job)
    assert own.wait(next_job)["JobState"] == "COMPLETED"


def test_the_host_sees_the_jobs_folders_and_no_other_mount_of_the_cluster(cluster: Any) -> None:
    job_id = start(cluster)
    folder = cluster.layout.folder
    seen = mount_points()
    ours = {str(path.relative_to(folder)) for path in seen if path.is_relative_to(folder)}
    job = f"run/node1/jobs/{job_id}"
    assert ours == {"run", f"{job}/results", f"{job}/outputs", f"{job}/handover"}
    assert Path("/mnt/nas") not in seen
    inside = cluster.run("cat", "/proc/self/mountinfo", user="root", inside=True).stdout
    assert {" /mnt/nas ", f" {folder}/host/proc "} <= {f" {line.split()[4]} " for line in inside.splitlines()}
    go(cluster, job_id)
    cluster.wait(job_id)
    assert [path for path in mount_points() if path.is_relative_to(folder)] == [folder / "run"]


def test_credentials_are_roots_alone_and_say_no_more_than_they_must(cluster: Any) -> None:
    files = sorted(cluster.layout.etc.glob("*.kubeconfig"))
    assert [path.name for path in files] == ["agent-node1.kubeconfig", "agent-node2.kubeconfig", "head.kubeconfig"]
    assert {(path.stat().st_uid, stat.S_IMODE(path.stat().st_mode)) for path in files} == {(0, 0o600)}
    kubectl = [str(cluster.kubernetes.testbed.layout.bin / "kubectl"), "auth", "can-i"]
    for right in (
        "get secrets",
        "create deployments",
        "update nodes",
        "create pods --subresource=exec",
        "delete namespaces",
    ):
        for path in files:
            asked = [*kubectl, *right.split(), "-A", f"--kubeconfig={path}"]
            assert subprocess.run(asked, capture_output=True, text=True, check=False).stdout == "no\n", (right, path)


def test_status_env_and_shell_work_as_with_podman(cluster: Any) -> None:
    shown = cluster.run("slurmk8s", "local", "status").stdout
    assert "node2            is Kubernetes' kube2" in shown
    assert "registry" not in shown
    assert cluster.run("slurmk8s", "local", "env").stdout == cluster.layout.env.read_text()
    command = [cluster.layout.bin / "slurmk8s", "local", "shell", "--dir", cluster.layout.folder]
    asked = ["--", "sh", "-c", "id -un; mountpoint /mnt/nas; exit 7"]
    done = subprocess.run([*command, *asked], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (7, f"{cluster.user}\n/mnt/nas is a mountpoint\n"), done.stderr


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"nodes": 3}, r"3 nodes were asked for, but Kubernetes has 2.*--nodes"),
        ({"kube_nodes": ("kube7",)}, r"no node 'kube7'.*kube1, kube2"),
        ({"gpus": 3}, r"node kube1 offers 2 nvidia.com/gpu.*--gpus"),
        ({"kubeconfig": Path("/nonexistent")}, r"no kubeconfig /nonexistent"),
    ],
)
def test_what_kubernetes_does_not_have_is_told_before_anything_starts(
    cluster: Any, tmp_path: Path, fields: dict[str, Any], why: str
) -> None:
    folder = Path(f"/var/tmp/slurmk8s-refused-{os.getpid()}")
    wanted = Plan(**{**cluster.runtime.plan({"folder": folder, "user": cluster.user}), **fields})
    with pytest.raises(SetupError, match=why):
        lifecycle.up(wanted, lambda _: None)
    lifecycle.down(wanted.layout, purge=True)
    names = cluster.kubernetes.shared.kubectl("get", KINDS, "-o", "name")
    assert wanted.layout.cluster not in names
    shutil.rmtree(folder, ignore_errors=True)


def test_two_share_one_kubernetes_and_each_removes_only_its_own(cluster: Any, new_cluster: Callable[..., Any]) -> None:
    other = new_cluster(nodes=1)
    theirs, ours = start(other), start(cluster)
    assert cluster.pods() == [f"slurm-job-{ours}"]
    assert other.pods() == [f"slurm-job-{theirs}"]
    lifecycle.down(other.layout, purge=False)
    assert in_kubernetes(other) == []
    assert cluster.pods() == [f"slurm-job-{ours}"]
    go(cluster, ours)
    assert cluster.wait(ours)["JobState"] == "COMPLETED"


def test_down_while_the_api_server_is_away_stops_the_rest_and_says_what_stays(
    new_cluster: Callable[..., Any], machine_room: Any
) -> None:
    own = new_cluster(nodes=1)
    start(own)
    machine_room.kill("kube-apiserver")
    command = [own.layout.bin / "slurmk8s", "local", "down", "--purge", "--dir", own.layout.folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Stopped" in done.stdout
    assert "does not answer" in done.stderr
    assert f"slurmk8s/cluster={own.layout.cluster}" in done.stderr
    assert "again once it answers" in done.stderr
    own.wait_for(lambda: not traces_of(own.layout), "no trace on the machine")
    assert own.layout.plan.exists(), "the next `down` must know what to remove"
    machine_room.start("kube-apiserver")
    assert in_kubernetes(own) != []
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert in_kubernetes(own) == []
    assert not own.layout.folder.exists()
