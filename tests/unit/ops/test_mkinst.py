"""`mkinst`: what a pod by hand holds, and how a site's own program is called. Needs nothing but an ordinary account."""

import asyncio
import os
import pwd
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from slurmk8s import labels
from slurmk8s.config import Config, parse
from slurmk8s.errors import ClusterFault, NodeFault, PersonFault, SetupError, SlurmK8sError
from slurmk8s.ops.instance import WAIT, Wanted, pod_of
from slurmk8s.pod import mkinst
from slurmk8s.pod.manifest import Pod, files, manifest
from slurmk8s.slurm import conf

ROOT = Path(__file__).parents[3]
IMAGE = "nas-hub.local:5407/pytorch:latest"
NOBODY = pwd.getpwnam("nobody")
STUDENT = pwd.struct_passwd(("2019123456", "x", NOBODY.pw_uid, NOBODY.pw_gid, "", "/home/2019123456", "/bin/sh"))
WANTED = Wanted("gpu1", "std", STUDENT, 12345, IMAGE, 4, "8G")


def settings(**data: Any) -> Config:
    return parse({"backend": "kubernetes", **data}, "test")


def made(config: Config | None = None, **changes: Any) -> dict[str, Any]:
    return manifest(pod_of(replace(WANTED, **changes), config or settings()))


def mounts(shown: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Target: source."""
    sources = {volume.pop("name"): volume for volume in shown["spec"]["volumes"]}
    return {mount["mountPath"]: sources[mount["name"]] for mount in shown["spec"]["containers"][0]["volumeMounts"]}


def test_the_guides_command_gives_one_gpu_four_cpus_and_eight_gigabytes() -> None:
    shown = made()
    (container,) = shown["spec"]["containers"]
    limits = container["resources"]["limits"]
    assert (limits["nvidia.com/gpu"], limits["cpu"], limits["memory"]) == ("1", "4", "8192Mi")
    assert container["image"] == IMAGE
    assert shown["metadata"]["name"] == "instance-12345"
    assert shown["metadata"]["namespace"] == f"user-{STUDENT.pw_uid}"
    assert tuple(container["command"]) == WAIT


def test_its_label_keeps_every_reaper_away() -> None:
    kept = made()["metadata"]["labels"]
    assert kept["app"] == labels.INSTANCE_VALUE != labels.APP_VALUE
    assert kept["job-id"] == "12345"
    assert labels.NODE not in kept


def test_it_uses_nothing_that_an_agent_makes_on_the_node() -> None:
    seen = mounts(made())
    assert set(seen) == {"/etc/passwd", "/etc/group", "/mnt/nas", "/dev/shm", "/home/2019123456", "/workspace"}
    assert seen["/mnt/nas"] == {"hostPath": {"path": "/mnt/nas", "type": "Directory"}}
    assert seen["/dev/shm"]["emptyDir"]["medium"] == "Memory"
    assert seen["/etc/passwd"] == {"configMap": {"name": "instance-12345"}}
    texts = files(pod_of(WANTED, settings()))
    assert set(texts) == {"passwd", "group"}
    assert "2019123456:x:" in texts["passwd"]


def test_where_the_nas_is_a_claim_it_has_no_path_of_a_node() -> None:
    config = settings(mounts={"nas": {"source": "/mnt/nas", "target": "/mnt/nas", "claim": "nas"}})
    seen = mounts(made(config))
    assert seen["/mnt/nas"] == {"persistentVolumeClaim": {"claimName": "nas", "readOnly": False}}
    assert not [source for source in seen.values() if "hostPath" in source]


def test_it_has_a_jobs_rights_and_no_more() -> None:
    shown = made()
    assert shown["spec"]["securityContext"]["runAsUser"] == STUDENT.pw_uid
    assert shown["spec"]["securityContext"]["runAsNonRoot"] is True
    assert shown["spec"]["automountServiceAccountToken"] is False
    assert shown["spec"]["containers"][0]["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    names = {entry["name"] for entry in shown["spec"]["containers"][0]["env"]}
    assert "HOME" in names
    assert not [name for name in names if name.startswith("SLURMK8S_")]


def test_a_profile_gives_what_is_not_typed() -> None:
    config = settings(
        kubernetes={"profiles": {"big": {"image": "jax:1", "cpu": 16, "memory": "64Gi", "partition": "gpu"}}},
        partitions={"gpu": {"runtime_class": "nvidia", "priority": "high-priority"}},
    )
    shown = made(config, profile="big", image=None, cpu=None, memory=None)
    (container,) = shown["spec"]["containers"]
    assert container["image"] == "nas-hub.local:5407/jax:1"
    limits = container["resources"]["limits"]
    assert (limits["cpu"], limits["memory"]) == ("16", "65536Mi")
    assert (shown["spec"]["runtimeClassName"], shown["spec"]["priorityClassName"]) == ("nvidia", "high-priority")
    assert made(config, profile="std")["metadata"]["name"]  # the guide's word always means something


def test_kubernetes_chooses_the_node_unless_one_is_named() -> None:
    config = settings(kubernetes={"nodes": {"node1": "worker-1"}})
    assert "nodeName" not in made(config)["spec"]
    assert made(config, node="node1")["spec"]["nodeName"] == "worker-1"


@pytest.mark.parametrize(("login", "name"), [("kim", "instance-kim"), ("Kim_2", f"instance-{STUDENT.pw_uid}")])
def test_without_a_number_it_is_called_after_the_person(login: str, name: str) -> None:
    person = pwd.struct_passwd((login, *STUDENT[1:]))
    assert made(job_id=None, person=person)["metadata"]["name"] == name


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"size": "gpu"}, "'gpu' is no size"),
        ({"size": "gpu100"}, "is no size"),
        ({"profile": "stf"}, "no profile 'stf'"),
        ({"image": None}, "has no image"),
        ({"image": "quay.io/x:1"}, "not from an allowed registry"),
        ({"memory": "8"}, "--memory 8 is no amount"),
        ({"person": pwd.getpwuid(0)}, "no person's account"),
    ],
)
def test_what_cannot_be_is_told_in_a_sentence(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(PersonFault, match=words):
        made(**changes)


def test_no_gpu_is_no_gpu() -> None:
    shown = made(size="cpu")
    assert "nvidia.com/gpu" not in shown["spec"]["containers"][0]["resources"]["limits"]
    assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"} in shown["spec"]["containers"][0]["env"]


def test_pinned_gpus_are_slurms_to_give() -> None:
    with pytest.raises(PersonFault, match="only Slurm knows"):
        made(settings(gpu={"mode": "pinned"}))


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "slurmk8s", "mkinst", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **environment},
    )


def test_a_dry_run_needs_no_cluster(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('backend = "kubernetes"\n')
    done = run("gpu1", "std", "nobody", "--job-id", "5", "--image", "x:1", "--dry-run", SLURMK8S_CONFIG=str(path))
    assert done.returncode == 0, done.stderr
    assert yaml.safe_load(done.stdout)["metadata"]["name"] == "instance-5"


def test_without_kubernetes_it_says_so() -> None:
    done = run("gpu1", "std", "nobody", SLURMK8S_CONFIG="/dev/null")
    assert done.returncode == 2
    assert "the backend here is podman" in done.stderr


@pytest.mark.parametrize("name", ["mkinst", "mkyaml"])
def test_the_guides_names_are_shipped(name: str) -> None:
    script = (conf.files() / name).read_text()
    assert script.endswith(f'exec /opt/slurmk8s/bin/slurmk8s {name} "$@"\n')
    assert os.access(conf.files() / name, os.X_OK)


# A site's own program.


def job(**resources: str) -> Pod:
    """What the agent would make for job 7."""
    pod = pod_of(WANTED, settings())
    return replace(
        pod,
        name="slurm-job-7",
        labels={labels.JOB_ID: "7"},
        annotations={labels.USER: "alice", labels.PARTITION: "gpu"},
        resources={"cpu": "4", "memory": "8192Mi", **resources},
        node="worker-1",
    )


def test_the_program_is_called_as_in_the_guide() -> None:
    assert mkinst.arguments(Path("/site/mkinst"), job(), "std") == [
        *("/site/mkinst", "gpu1", "std", "alice", "--job-id", "7"),
        *("--image", IMAGE, "--cpu", "4", "--memory", "8G"),
    ]


def test_without_gpus_or_memory_their_words_change() -> None:
    without = replace(job(memory="1500Mi"), environment={"NVIDIA_VISIBLE_DEVICES": "void"})
    assert mkinst.arguments(Path("/m"), without, "std")[1] == "cpu"
    assert mkinst.arguments(Path("/m"), without, "std")[-1] == "1500M"
    assert "--memory" not in mkinst.arguments(Path("/m"), job(memory=""), "std")
    two = replace(job(), environment={"CUDA_VISIBLE_DEVICES": "0,1"})
    assert mkinst.arguments(Path("/m"), two, "std")[1] == "gpu2"


def test_the_profile_is_the_partitions() -> None:
    config = settings(kubernetes={"profiles": {"std": {}, "big": {"partition": "gpu"}}})
    assert mkinst.profile_of(config, "gpu") == "big"
    assert mkinst.profile_of(config, "cpu") == "std"
    assert mkinst.profile_of(config, "") == "std"


def call(tmp_path: Path, script: str, seconds: float = 20) -> None:
    program = tmp_path / "mkinst"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(stat.S_IRWXU)
    config = settings(kubernetes={"mkinst": str(program)})
    asyncio.run(mkinst.call(config, job(), Path("/etc/slurmk8s/kubeconfig"), seconds))


def test_the_program_gets_the_manifest_and_where_it_belongs(tmp_path: Path) -> None:
    call(
        tmp_path,
        f'cat >{tmp_path}/got; echo "$KUBECONFIG $SLURMK8S_POD $SLURMK8S_NAMESPACE $SLURMK8S_NODE" >{tmp_path}/env',
    )
    assert yaml.safe_load((tmp_path / "got").read_text())["metadata"]["name"] == "slurm-job-7"
    where = f"/etc/slurmk8s/kubeconfig slurm-job-7 user-{STUDENT.pw_uid} worker-1"
    assert (tmp_path / "env").read_text().split() == where.split()


@pytest.mark.parametrize(
    ("script", "kind", "words"),
    [
        ("echo first; echo 'no such room.' >&2; exit 3", SetupError, "failed with status 3: no such room."),
        ("echo 'the cluster is busy'; exit 75", ClusterFault, "status 75: the cluster is busy."),
        ("exec sleep 60", ClusterFault, "did not end within 0.3 s"),
        ("exit 1", SetupError, "it gave no reason"),
    ],
)
def test_its_failure_is_a_sentence_with_its_own_last_words(
    tmp_path: Path, script: str, kind: type[SlurmK8sError], words: str
) -> None:
    with pytest.raises(kind) as caught:
        call(tmp_path, script, 0.3 if "sleep" in script else 20)
    assert words in caught.value.sentence


def test_a_program_that_is_not_there_is_the_nodes_fault() -> None:
    config = settings(kubernetes={"mkinst": "/nowhere/mkinst"})
    with pytest.raises(NodeFault, match="cannot be run: No such file"):
        asyncio.run(mkinst.call(config, job(), Path("/k")))
