"""`slurmk8s mkyaml`: the manifest of an imagined job, from a file and the configuration alone."""

import os
import pwd
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from slurmk8s.config import parse
from slurmk8s.errors import PersonFault
from slurmk8s.jobfile import Facts, check
from slurmk8s.ops import whom
from slurmk8s.ops.imagined import imagined, stamped
from slurmk8s.pod.manifest import manifest
from slurmk8s.site import site_of

ROOT = Path(__file__).parents[3]
JOB = """\
#!/bin/bash
#SBATCH --job-name=train
#SBATCH --partition=gpu
#SBATCH --cpus-per-task=4
#SBATCH --mem=8G
#SBATCH --gres=gpu:2
#K8S_IMAGE=pytorch:2.0   # ours
#K8S_SHM=2G
python /mnt/nas/scripts/train.py
"""
ME = pwd.getpwuid(os.getuid())
CLUSTER = {
    "backend": "kubernetes",
    "cluster": "lab",
    "kubernetes": {"nodes": {"node1": "worker-1"}},
    "partitions": {"gpu": {"runtime_class": "nvidia", "tolerations": [{"key": "gpu"}]}},
}


def pod(text: str = JOB, **data: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    config = parse(data or CLUSTER, "test")
    checked = check(text.encode(), Facts(site=site_of(config)))
    assert checked.job, checked.findings
    made = imagined(checked.job, checked.text, config, "node1", ME, 7)
    return manifest(made.pod), made.notes


def run(*arguments: str, stdin: str = JOB, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "slurmk8s", "mkyaml", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={"PATH": "/nowhere", "LANG": "C.UTF-8", **environment},  # neither Slurm nor a cluster is asked
    )


def test_what_the_file_asks_for_is_in_the_pod() -> None:
    made, _ = pod()
    (container,) = made["spec"]["containers"]
    assert made["metadata"]["name"] == "slurm-job-7"
    assert made["metadata"]["namespace"] == f"user-{ME.pw_uid}"
    assert container["image"] == "nas-hub.local:5407/pytorch:2.0"
    limits = container["resources"]["limits"]
    assert (limits["cpu"], limits["memory"], limits["nvidia.com/gpu"]) == ("4", "8192Mi", "2")
    assert made["spec"]["nodeName"] == "worker-1"
    assert made["spec"]["runtimeClassName"] == "nvidia"
    assert {"key": "gpu", "operator": "Exists"} in made["spec"]["tolerations"]
    (shm,) = (volume for volume in made["spec"]["volumes"] if volume["name"] == "shm")
    assert shm["emptyDir"]["sizeLimit"] == str(2 << 30)


def test_it_runs_as_the_person_without_roots_group() -> None:
    made, _ = pod()
    security = made["spec"]["securityContext"]
    assert (security["runAsUser"], security["runAsGroup"]) == (ME.pw_uid, ME.pw_gid)
    assert 0 not in security["supplementalGroups"]


def test_podmans_has_the_folders_of_its_node() -> None:
    made, notes = pod(cluster="lab")
    paths = {volume["hostPath"]["path"] for volume in made["spec"]["volumes"]}
    assert {"/mnt/nas", "/run/slurmk8s/jobs/7/handover", "/dev/nvidia0", "/dev/nvidia1"} <= paths
    assert any("made up" in note for note in notes)


def test_what_only_slurm_can_say_is_told_as_made_up() -> None:
    text = "#!/bin/sh\n#K8S_IMAGE=pytorch:2.0\ntrue\n"
    _, notes = pod(text)
    assert any("no partition" in note for note in notes)
    assert any("no memory" in note for note in notes)


def test_a_partitions_default_image_is_stamped_as_lua_does_it() -> None:
    config = parse({"partitions": {"gpu": {"image": "pytorch:1"}}}, "test")
    text = "#!/bin/sh\n#SBATCH -p gpu\n#K8S_WORKDIR=/workspace\ntrue\n"
    job = check(text.encode(), Facts(site=site_of(config))).job
    assert job
    assert stamped(job, text) == "#K8S_WORKDIR=/workspace\n#K8S_IMAGE=nas-hub.local:5407/pytorch:1"


def test_a_plain_job_has_no_pod() -> None:
    with pytest.raises(PersonFault, match="plain Slurm job"):
        pod("#!/bin/sh\ntrue\n")


def test_the_command_prints_yaml_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('backend = "kubernetes"\n')
    done = run("-", "--node", "node1", "--job-id", "12", SLURMK8S_CONFIG=str(path))
    assert done.returncode == 0, done.stderr
    assert yaml.safe_load(done.stdout)["metadata"]["labels"]["job-id"] == "12"


def test_problems_are_told_as_check_tells_them() -> None:
    done = run("-", stdin=JOB.replace("--mem=8G", "--mem=8"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "-:5:15: problem: --mem=8 asks for 8 megabytes" in done.stderr


def test_a_file_that_is_not_there_is_a_problem_too(tmp_path: Path) -> None:
    done = run(str(tmp_path / "gone.sh"))
    assert done.returncode == 1
    assert "the file cannot be read" in done.stderr


def test_a_person_is_a_login_name_and_else_a_uid() -> None:
    assert whom.account(ME.pw_name).pw_uid == ME.pw_uid
    assert whom.account(str(ME.pw_uid)).pw_name == ME.pw_name
    for word in ("nobody-of-that-name", "4294967200", "99999999999999", "１２", "a\0b"):
        with pytest.raises(PersonFault, match="There is no account"):
            whom.account(word)


def test_only_root_asks_for_somebody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    with pytest.raises(PersonFault, match="Only root"):
        whom.whose("nobody")
    assert whom.whose(None).pw_uid == os.getuid()
