"""What one person must not be able to do to the node, to root, or to another person. Each was possible once."""

import contextlib
import os
import signal
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from losses import processes
from test_journey import ALPINE, body
from test_many import HOLD, go, read

SWAP = """
import os, sys, time
folder, target = sys.argv[1:]
deadline = time.monotonic() + 20
while time.monotonic() < deadline:
    try:
        os.rename(f"{folder}/outputs", f"{folder}/moved")
        os.symlink(target, f"{folder}/outputs")
        break
    except OSError:
        pass
"""


def nothing_drained(cluster: Any) -> None:
    assert cluster.run("sinfo", "--noheader", "--list-reasons").stdout == ""
    cluster.wait_for(lambda: cluster.pods() == [], "no pod", 60)  # a busy kubelet may be a moment late


def test_outputs_swapped_for_a_link_never_lead_into_anothers_results(cluster: Any) -> None:
    """The runtime mounts as root, so it must never follow a name that belongs to the user."""
    victim = cluster.sbatch(
        body("mkdir open; echo weights > open/secret", image=ALPINE, directives="#K8S_WORKDIR=/workspace"),
        user=cluster.other_user,
    )
    cluster.wait(victim)
    cluster.summary(victim)
    text = "cat /workspace/secret /workspace/open/secret; ls /workspace; sleep 0.1"
    job_id = cluster.sbatch(body(text, image=ALPINE), "--hold")
    target = f"/mnt/nas/results/{victim}/outputs/open"
    command = ["/usr/bin/python3", "-c", SWAP, str(cluster.results(job_id)), target]
    account = cluster.uid
    swapper = subprocess.Popen(command, user=account, group=account, extra_groups=[])
    cluster.run("scontrol", "release", str(job_id))
    cluster.wait(job_id, 60)
    swapper.wait()
    assert (cluster.results(job_id) / "moved").exists(), "the swap never happened"
    assert "weights" not in cluster.stdout(job_id)
    nothing_drained(cluster)


def test_what_a_container_says_cannot_drain_the_node(cluster: Any) -> None:
    """The hand-over is the user's: it may make the launcher say anything and end before the body."""
    job_id = cluster.sbatch(body("sleep 60"), "--nodelist=node1")
    command = cluster.layout.folder / "run" / "node1" / "jobs" / str(job_id) / "handover" / "command"
    write = 'while ! echo "echo no space left on device; exit 1" > "$1" 2>/dev/null; do :; done'
    cluster.run("timeout", "20", "sh", "-c", write, "sh", command, inside=True)
    cluster.run("scancel", str(job_id), check=False)
    cluster.wait(job_id)
    nothing_drained(cluster)


def test_folders_of_any_depth_are_cleared(cluster: Any) -> None:
    deep = "import os\nfor start in ('/slurmk8s/handover', os.environ['HOME'], '/workspace'):\n"
    deep += "    os.chdir(start)\n    for _ in range(2500):\n        os.mkdir('d'); os.chdir('d')\n"
    job_id = cluster.sbatch(body(deep, shebang="#!/usr/bin/env python3"), "--nodelist=node1")
    assert cluster.wait(job_id)["JobState"] == "COMPLETED"
    state = cluster.layout.folder / "state" / "node1"
    cluster.wait_for(lambda: not (state / "homes" / str(job_id)).exists(), "the home gone")
    nothing_drained(cluster)
    subprocess.run(["rm", "-rf", cluster.results(job_id) / "outputs"], check=True)


@pytest.mark.runtimes("podman")  # Kubernetes' is below the kubelet's own folder, which nobody else may enter
def test_shared_memory_is_the_jobs_own(cluster: Any) -> None:
    job_id = cluster.sbatch(body(f"echo secret > /dev/shm/torch; echo up\n{HOLD}"), "--nodelist=node1")
    cluster.wait_for(lambda: "up" in read(cluster, job_id), "the body", 60)
    path = cluster.layout.folder / "run" / "node1" / "jobs" / str(job_id) / "shm"
    for command in (["cat", path / "torch"], ["touch", path / "filled"]):
        denied = cluster.run(*command, user=cluster.other_user, inside=True, check=False)
        assert "Permission denied" in denied.stderr
    go(cluster, job_id)
    assert cluster.wait(job_id)["JobState"] == "COMPLETED"


def test_a_dropped_container_jobs_output_is_nobody_elses(cluster: Any) -> None:
    cluster.drop("private.sh", body("echo private", image=ALPINE))
    job_id = cluster.dropped_job("private.sh")
    cluster.wait(job_id)
    assert cluster.stdout(job_id) == "private\n"
    assert not (cluster.layout.results / f"slurm-{job_id}.out").exists()


def test_one_persons_huge_output_does_not_hold_up_anothers_bundle(cluster: Any) -> None:
    huge = cluster.sbatch(body("truncate -s 4T /workspace/huge"), "--nodelist=node1")
    cluster.wait(huge)
    cluster.wait_for(lambda: processes(cluster, r"slurmk8s\.results\.worker"), "the hashing", 60)
    small = cluster.sbatch(body("echo small", image=ALPINE), "--nodelist=node1", user=cluster.other_user)
    cluster.wait(small)
    assert cluster.summary(small)["complete"]
    (cluster.results(huge) / "outputs" / "huge").unlink()
    for pid in processes(cluster, r"slurmk8s\.results\.worker"):
        with contextlib.suppress(ProcessLookupError):  # another bundle's, done meanwhile
            os.kill(pid, signal.SIGKILL)


@pytest.mark.timeout(120)
def test_half_sent_questions_do_not_use_up_the_agent(cluster: Any) -> None:
    flood = (
        "import socket, sys, time\nheld = []\n"
        "for _ in range(900):\n"
        "    s = socket.socket(socket.AF_UNIX)\n"
        "    try:\n        s.settimeout(1); s.connect(sys.argv[1]); s.send(b'{'); held.append(s)\n"
        "    except OSError:\n        pass\n"
        "print(len(held), flush=True)\ntime.sleep(8)\n"
    )
    path = cluster.layout.folder / "run" / "node1" / "agent.sock"
    pid = cluster.daemon("agent-node1")
    before = len(os.listdir(f"/proc/{pid}/fd"))
    cluster.run("/usr/bin/python3", "-c", flood, path, user=cluster.other_user, inside=True)
    cluster.wait_for(lambda: len(os.listdir(f"/proc/{pid}/fd")) <= before + 20, "the descriptors back", 20)
    job_id = cluster.sbatch(body("echo fine", image=ALPINE), "--nodelist=node1")
    assert cluster.wait(job_id)["JobState"] == "COMPLETED"


def test_nothing_of_ours_that_root_runs_can_be_written_by_a_user(cluster: Any) -> None:
    for folder in (cluster.layout.venv, cluster.layout.bin, cluster.layout.etc):
        for path in (folder, *Path(folder).rglob("*")):
            found = path.lstat()
            assert found.st_uid == 0 or stat.S_ISLNK(found.st_mode), path
            assert stat.S_ISLNK(found.st_mode) or not found.st_mode & 0o022, path


def test_a_bundle_that_somebody_else_put_there_is_named_as_theirs(cluster: Any) -> None:
    folder = cluster.layout.results / "7654321"
    cluster.run("sh", "-c", 'mkdir -p "$1/outputs" && : > "$1/checksums.txt"', "sh", folder, user=cluster.other_user)
    cluster.run("chmod", "-R", "a+rX", folder, user=cluster.other_user)
    for command in ("results", "verify", "logs"):
        shown = cluster.run("slurmk8s", command, "7654321", check=False)
        assert f"belongs to {cluster.other_user}, not to you" in shown.stderr
