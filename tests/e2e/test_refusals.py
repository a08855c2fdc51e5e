"""Plain sbatch passes no check of ours at the door; what is wrong is told by the job's own end."""

from typing import Any

import pytest
from test_journey import ALPINE, body


@pytest.mark.parametrize(
    ("directives", "word"),
    [
        ("#K8S_SHM=-1", "#K8S_SHM"),
        ("#K8S_MOUNT=secrets", "secrets"),
        ("#K8S_PRIORITY=root", "root"),
        ("#K8S_WORKDIR=workspace", "#K8S_WORKDIR"),
    ],
)
def test_a_wrong_line_ends_the_job_with_a_bundle_that_says_so(cluster: Any, directives: str, word: str) -> None:
    job_id = cluster.sbatch(body("echo never", image=ALPINE, directives=directives))
    fields = cluster.wait(job_id)
    summary = cluster.summary(job_id)
    assert fields["JobState"] == "FAILED"
    assert summary["fault"] == "person"
    slurms = (cluster.layout.nas / "work" / f"slurm-{job_id}.out").read_text()
    for place in (summary["cause"], cluster.stderr(job_id), slurms):
        assert word in place
    assert cluster.stdout(job_id) == ""
    assert cluster.run("sinfo", "--noheader", "--list-reasons").stdout == ""


def test_a_job_on_two_nodes_is_told_to_ask_for_one(cluster: Any) -> None:
    job_id = cluster.sbatch(body("echo never", image=ALPINE), "--nodes=2")
    fields = cluster.wait(job_id)
    summary = cluster.summary(job_id)
    assert fields["JobState"] == "FAILED"
    assert "--nodes=1" in summary["cause"]
    assert cluster.pods() == []


def test_a_folder_that_somebody_put_in_the_way_is_never_written_through(cluster: Any) -> None:
    """Job ids can be guessed: another person makes results/<next id> before the job does."""
    last = cluster.sbatch("#!/bin/sh\ntrue\n", "--output=/dev/null")
    cluster.wait(last)
    trap = cluster.results(last + 1)
    cluster.run("mkdir", "-m", "0777", trap, user=cluster.other_user)
    job_id = cluster.sbatch(body("echo never", image=ALPINE))
    assert job_id == last + 1
    fields = cluster.wait(job_id)
    assert fields["JobState"] == "FAILED"
    assert list(trap.iterdir()) == []
    slurms = (cluster.layout.nas / "work" / f"slurm-{job_id}.out").read_text()
    assert str(job_id) in slurms
    assert "slurmk8s:" in slurms
    assert cluster.run("sinfo", "--noheader", "--list-reasons").stdout == ""


def test_another_persons_process_is_told_nothing_about_a_job(cluster: Any) -> None:
    job_id = cluster.sbatch(body("sleep 60", image=ALPINE), "--nodelist=node1")
    cluster.wait_for((cluster.results(job_id) / "stdout.log").exists, "the pod")
    ask = (
        "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]);"
        "s.sendall(sys.argv[2].encode() + b'\\n'); print(s.makefile().readline())"
    )
    path = cluster.layout.folder / "run" / "node1" / "agent.sock"
    for user in (cluster.user, cluster.other_user):
        for word in ("pod", "finish", "hint"):
            question = f'{{"ask": "{word}", "job_id": {job_id}}}'
            told = cluster.run("/usr/bin/python3", "-c", ask, path, question, user=user, inside=True).stdout
            assert '"refused"' in told, (user, word)
    assert cluster.state(job_id) == "RUNNING"
    cluster.run("scancel", str(job_id))
    cluster.wait(job_id)


def test_an_output_file_that_cannot_be_opened_is_named(cluster: Any) -> None:
    job_id = cluster.sbatch(body("echo never", image=ALPINE), "--output=/etc/nobody-may-write-here.out")
    cluster.wait(job_id)
    summary = cluster.summary(job_id)
    assert summary["fault"] == "person"
    assert "/etc/nobody-may-write-here.out" in summary["cause"]
    assert cluster.pods() == []


def test_the_hooks_of_an_installation_name_its_own_paths(cluster: Any, tmp_path: Any) -> None:
    written = cluster.run("slurmk8s", "slurm-conf", "hooks", tmp_path, user="root").stdout.split()
    assert [path.rpartition("/")[2] for path in written] == [
        "slurm_k8s_prolog.sh",
        "slurm_k8s_epilog.sh",
        "slurmk8s-run",
    ]
    prolog = (tmp_path / "slurm_k8s_prolog.sh").read_text()
    assert f"run_folder='{cluster.layout.folder}/run/%n'" in prolog
    epilog = {"SLURM_JOB_ID": "4000000", "SLURMD_NODENAME": "node1"}
    assert cluster.run("sh", tmp_path / "slurm_k8s_epilog.sh", user="root", env=epilog).returncode == 0
