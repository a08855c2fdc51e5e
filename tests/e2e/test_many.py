"""GPUs, arrays, bursts, and the jobs that are none of ours."""

import re
import time
from typing import Any

from test_journey import ALPINE, body

SHOW_GPUS = "echo $NVIDIA_VISIBLE_DEVICES $CUDA_VISIBLE_DEVICES; ls /dev | grep '^nvidia[0-9]'"
HOLD = 'while [ ! -e "/mnt/nas/work/go-$SLURM_JOB_ID" ]; do sleep 0.05; done'


def go(cluster: Any, job_id: int) -> None:
    (cluster.layout.nas / "work" / f"go-{job_id}").touch()


def test_jobs_with_one_gpu_each_see_different_devices(cluster: Any) -> None:
    script = body(f"{SHOW_GPUS}\n{HOLD}")
    jobs = [cluster.sbatch(script, "--gres=gpu:1", "--nodelist=node1", "--mem=200M") for _ in range(2)]
    for job_id in jobs:
        cluster.wait_for(lambda job_id=job_id: "nvidia" in read(cluster, job_id), f"job {job_id} running")
    seen = sorted(visible(cluster, job_id) for job_id in jobs)
    for job_id in jobs:
        go(cluster, job_id)
        cluster.wait(job_id)
    assert seen == [["0 0", "nvidia0"], ["1 0", "nvidia1"]]
    assert {tuple(cluster.summary(job_id)["gpus"]) for job_id in jobs} == {("0",), ("1",)}


def visible(cluster: Any, job_id: int) -> list[str]:
    """What SHOW_GPUS showed; a UUID (GPU-0000001N-… is number N of the first node) by its number."""
    return [re.sub(r"GPU-\d{7}(\d)-[-0-9a-f]+", r"\1", line) for line in cluster.stdout(job_id).splitlines()]


def test_a_job_with_two_gpus_sees_both_and_one_without_sees_none(cluster: Any) -> None:
    two = cluster.sbatch(body(SHOW_GPUS), "--gres=gpu:2")
    none = cluster.sbatch(body(f"{SHOW_GPUS} || true"))
    cluster.wait(two)
    cluster.wait(none)
    assert visible(cluster, two) == ["0,1 0,1", "nvidia0", "nvidia1"]
    assert cluster.stdout(none) == "void\n"


def read(cluster: Any, job_id: int) -> str:
    path = cluster.results(job_id) / "stdout.log"
    return path.read_text() if path.exists() else ""


def test_each_task_of_an_array_has_its_own_results(cluster: Any) -> None:
    array = cluster.sbatch(body("echo task $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_JOB_ID", image=ALPINE), "--array=1-3")
    jobs = cluster.wait_for(lambda: tasks(cluster, array), "three tasks")
    for number, job_id in jobs.items():
        cluster.wait(job_id)
        assert cluster.stdout(job_id) == f"task {number} of {array}\n"
        assert cluster.summary(job_id)["array"] == {"job_id": array, "task_id": number}
    assert len(set(jobs.values())) == 3
    assert "task 2" in cluster.run("slurmk8s", "logs", f"{array}_2").stdout


def tasks(cluster: Any, array: int) -> dict[int, int] | None:
    shown = cluster.run("squeue", "--noheader", "--states=all", "--array", "--format=%F %K %A").stdout.split("\n")
    rows = [line.split() for line in shown if line.strip()]
    found = {int(row[1]): int(row[2]) for row in rows if row[0] == str(array) and row[1].isdigit()}
    return found if len(set(found.values())) == 3 else None  # waiting tasks share one record


def test_thirty_jobs_at_once_all_arrive(cluster: Any) -> None:
    script = body('echo "job $SLURM_JOB_ID"; echo $SLURM_JOB_ID > /workspace/id', image=ALPINE, shebang="#!/bin/sh")
    jobs = [cluster.sbatch(script, "--mem=100M") for _ in range(30)]
    for job_id in jobs:
        assert cluster.wait(job_id, 180)["JobState"] == "COMPLETED"
    for job_id in jobs:
        assert cluster.stdout(job_id) == f"job {job_id}\n"
        summary = cluster.summary(job_id)
        assert summary["complete"]
        assert (cluster.results(job_id) / "outputs" / "id").read_text() == f"{job_id}\n"
    assert cluster.pods() == []


def test_a_plain_job_runs_as_without_us(cluster: Any) -> None:
    script = '#!/bin/bash\n#SBATCH --comment="my own words"\necho "$0"; echo $SLURM_JOB_ID; exit 4\n'
    job_id = cluster.sbatch(script, "--output=/mnt/nas/work/plain-%j.out")
    fields = cluster.wait(job_id)
    shown = (cluster.layout.nas / "work" / f"plain-{job_id}.out").read_text().splitlines()
    assert fields["ExitCode"] == "4:0"
    assert fields["Comment"].strip() == "my own words"  # scontrol ends it with a space
    assert "AdminComment" not in fields
    assert shown[0].endswith("slurm_script")
    assert shown[1] == str(job_id)
    assert not cluster.results(job_id).exists()
    ours = [path for path in cluster.layout.log.glob("*_node*.log") if f"job {job_id}:" in path.read_text()]
    assert ours == []


def test_a_plain_jobs_prolog_starts_no_python(cluster: Any) -> None:
    """The sh entry exits before it comes to Python: a python that cannot be run is never missed."""
    entry = next(cluster.layout.folder.rglob("slurm_k8s_prolog.sh")).read_text()
    broken = "\n".join("python=/nonexistent" if line.startswith("python=") else line for line in entry.split("\n"))
    done = cluster.run("sh", "-c", broken, user="root", env={"SLURM_JOB_COMMENT": "my own words", "SLURM_JOB_ID": "1"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    ours = cluster.run("sh", "-c", broken, user="root", env={"SLURM_JOB_COMMENT": "x slurmk8s", "SLURM_JOB_ID": "1"})
    assert ours.returncode == 0  # whatever happens: a failing Prolog drains the node
    assert "nonexistent" in ours.stderr


def test_a_partitions_default_image_makes_a_plain_script_a_container_job(new_cluster: Any) -> None:
    cluster = new_cluster(nodes=1, config_overrides={"partitions.gpu.image": ALPINE})
    inside = cluster.sbatch("#!/bin/sh\n#SBATCH --partition=gpu\nhostname\n", "--mem=100M")
    outside = cluster.sbatch("#!/bin/sh\nhostname\n", "--mem=100M", "--output=/mnt/nas/work/out")
    assert cluster.wait(inside)["JobState"] == "COMPLETED"
    assert cluster.wait(outside)["JobState"] == "COMPLETED"
    assert cluster.stdout(inside) == f"slurm-job-{inside}\n"
    assert not cluster.results(outside).exists()


def test_the_journey_ends_with_nothing_on_the_node(cluster: Any) -> None:
    job_id = cluster.sbatch(body("true"))
    cluster.wait(job_id)
    cluster.summary(job_id)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and list((cluster.layout.folder / "state").rglob(f"*{job_id}*")):
        time.sleep(0.1)
    assert list((cluster.layout.folder / "state").rglob(f"*{job_id}*")) == []
    mounts = cluster.run("cat", "/proc/mounts", user="root", inside=True).stdout
    assert "slurmk8s-shm" not in mounts
