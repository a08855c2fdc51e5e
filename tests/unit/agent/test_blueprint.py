"""From a record to the pod, as data: what it sees, what it is told, and nothing else."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slurmk8s.agent import blueprint, volumes
from slurmk8s.agent.meeting import Places
from slurmk8s.agent.record import Record
from slurmk8s.config import Config
from slurmk8s.pod.manifest import manifest
from slurmk8s.rendezvous import Rendezvous

RESULTS = Path("/mnt/nas/results/7")
PLACES = Places(Rendezvous(Path("/run/slurmk8s/jobs/7")), Path("/var/lib/slurmk8s/homes/7"))


TOLD = {"launcher.sh": "#!/bin/sh\n", "passwd": "root:x:0:0\n", "group": "root:x:0:\n"}


def pod(
    record: Record,
    config: Config | None = None,
    node: str = "node1",
    home: str = "/home/alice",
    uuids: tuple[str, ...] = (),
) -> dict[str, Any]:
    around = blueprint.Surroundings(node, PLACES, home, RESULTS, TOLD, uuids)
    return manifest(blueprint.pod(config or Config(cluster="lab"), record, around))


def mounts(shown: dict[str, Any]) -> dict[str, tuple[str, str, bool]]:
    """Target: source, kind, read only."""
    sources = {volume["name"]: volume["hostPath"] for volume in shown["spec"]["volumes"]}
    return {
        mount["mountPath"]: (sources[mount["name"]]["path"], sources[mount["name"]]["type"], mount["readOnly"])
        for mount in shown["spec"]["containers"][0]["volumeMounts"]
    }


def variables(shown: dict[str, Any]) -> dict[str, str]:
    return {entry["name"]: entry["value"] for entry in shown["spec"]["containers"][0]["env"]}


def test_the_whole_pod(record: Callable[..., Record]) -> None:
    shown = pod(record())
    container = shown["spec"]["containers"][0]
    assert shown["metadata"] == {
        "name": "slurm-job-7",
        "labels": {
            "app": "slurm-job",
            "job-id": "7",
            "slurmk8s/cluster": "lab",
            "slurmk8s/node": "node1",
            "slurmk8s/attempt": "0",
            "slurmk8s/uid": "1000",
        },
    }
    security = shown["spec"]["securityContext"]
    assert (security["runAsUser"], security["runAsGroup"], security["supplementalGroups"]) == (1000, 1001, [1001, 2000])
    assert container["image"] == "nas-hub.local:5407/pytorch:2.0"
    assert container["resources"]["limits"] == {"cpu": "4", "memory": "8192Mi"}
    assert shown["spec"]["terminationGracePeriodSeconds"] == 5
    assert variables(shown) == {
        "HOME": "/home/alice",
        "USER": "alice",
        "LOGNAME": "alice",
        "OMP_NUM_THREADS": "4",
        "NVIDIA_VISIBLE_DEVICES": "void",
        "SLURMK8S_RESULTS": "/mnt/nas/results/7",
        "SLURMK8S_OUTPUTS": "/mnt/nas/results/7/outputs",
        "SLURMK8S_WORKDIR": "/workspace",
        "SLURMK8S_HANDOVER": "/slurmk8s/handover",
    }
    assert mounts(shown) == {
        "/slurmk8s/told": ("/run/slurmk8s/jobs/7/told", "Directory", True),
        "/slurmk8s/handover": ("/run/slurmk8s/jobs/7/handover", "Directory", False),
        "/etc/passwd": ("/run/slurmk8s/jobs/7/told/passwd", "File", True),
        "/etc/group": ("/run/slurmk8s/jobs/7/told/group", "File", True),
        "/dev/shm": ("/run/slurmk8s/jobs/7/shm", "Directory", False),
        "/mnt/nas": ("/mnt/nas", "Directory", False),
        "/home/alice": ("/var/lib/slurmk8s/homes/7", "Directory", False),
        "/workspace": ("/run/slurmk8s/jobs/7/outputs", "Directory", False),
    }


def test_a_job_without_a_memory_limit_gets_none(record: Callable[..., Record]) -> None:
    assert pod(record(memory_mb=0))["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "4"}


def test_a_home_on_the_nas_is_the_persons_own(record: Callable[..., Record]) -> None:
    assert "/mnt/nas/home/alice" not in mounts(pod(record(), home="/mnt/nas/home/alice"))


def test_results_outside_every_mount_get_their_own(record: Callable[..., Record]) -> None:
    config = Config(mounts={"nas": {"source": "/mnt/nas", "target": "/nas"}})  # type: ignore[dict-item]
    seen = mounts(pod(record(), config))
    assert seen["/nas"][0] == "/mnt/nas"
    assert seen["/mnt/nas/results/7"] == ("/run/slurmk8s/jobs/7/results", "Directory", False)


def test_further_mounts_are_those_the_job_names(record: Callable[..., Record]) -> None:
    config = Config(
        mounts={
            "nas": {"source": "/mnt/nas", "target": "/mnt/nas"},
            "data": {"source": "/srv/data", "target": "/data", "read_only": True},
            "other": {"source": "/srv/other", "target": "/other"},
        }  # type: ignore[dict-item]
    )
    seen = mounts(pod(record(mounts=("data", "nas")), config))
    assert seen["/data"] == ("/srv/data", "Directory", True)
    assert "/other" not in seen
    assert list(seen).count("/mnt/nas") == 1


def test_gpus_are_the_jobs_own_devices(record: Callable[..., Record], tmp_path: Path) -> None:
    shared = tmp_path / "nvidiactl"
    shared.touch()
    gpu = {"devices": "/dev/fake%d", "shared_devices": (shared, tmp_path / "none")}
    shown = pod(record(gpus=(1, 3)), Config(gpu=gpu))  # type: ignore[arg-type]
    seen = mounts(shown)
    assert seen["/dev/fake1"] == ("/dev/fake1", "CharDevice", False)
    assert seen["/dev/fake3"] == ("/dev/fake3", "CharDevice", False)
    assert "/dev/fake0" not in seen
    assert str(shared) in seen
    assert str(tmp_path / "none") not in seen
    assert variables(shown)["NVIDIA_VISIBLE_DEVICES"] == "1,3"
    assert variables(shown)["CUDA_VISIBLE_DEVICES"] == "0,1"


@pytest.mark.parametrize(("node", "name"), [("node1", "slurm-job-7"), ("node2", "slurm-job-7-1")])
def test_each_node_of_a_job_names_its_pod(record: Callable[..., Record], node: str, name: str) -> None:
    assert pod(record(nodes=("node1", "node2")), node=node)["metadata"]["name"] == name


@pytest.mark.parametrize(
    ("asked", "memory_mb", "expected"),
    [(None, 8192, 4096 << 20), (1 << 30, 8192, 1 << 30), (None, 0, 64 << 20), (None, 100, 64 << 20)],
)
def test_shared_memory_is_half_the_jobs_unless_asked(
    record: Callable[..., Record], asked: int | None, memory_mb: int, expected: int
) -> None:
    assert volumes.shm_bytes(Config(), record(shm_bytes=asked, memory_mb=memory_mb)) == expected


def test_the_plan_tells_where_logs_are_and_what_passes(record: Callable[..., Record]) -> None:
    config = Config(environment={"pass_through": ["HF_*"]})  # type: ignore[arg-type]
    assert blueprint.plan(config, record(script="/mnt/nas/train.py"), RESULTS) == {
        "stdout": "/mnt/nas/results/7/stdout.log",
        "stderr": "/mnt/nas/results/7/stderr.log",
        "script": "/mnt/nas/train.py",
        "handover": "/slurmk8s/handover",
        "pass_through": ["HF_*"],
    }


def on_kubernetes(**settings: Any) -> Config:
    return Config.model_validate({"cluster": "lab", "backend": "kubernetes", **settings})


def sources(shown: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Target: source as Kubernetes has it."""
    volumes_by_name = {volume.pop("name"): volume for volume in shown["spec"]["volumes"]}
    return {
        mount["mountPath"]: volumes_by_name[mount["name"]] for mount in shown["spec"]["containers"][0]["volumeMounts"]
    }


def test_the_pod_on_kubernetes_is_on_slurms_node_in_the_persons_namespace(record: Callable[..., Record]) -> None:
    config = on_kubernetes(
        kubernetes={"nodes": {"node1": "kube1"}, "pull_secrets": ["hub"], "runtime_class": "plain"},
        partitions={"gpu": {"node_selector": {"pool": "gpu"}, "tolerations": [{"key": "gpu"}]}},
    )
    shown = pod(record(image="nas-hub.local:5407/a:latest"), config)
    spec = shown["spec"]
    assert shown["metadata"]["namespace"] == "user-1000"
    assert shown["metadata"]["annotations"] == {
        "slurmk8s/job-name": "train",
        "slurmk8s/user": "alice",
        "slurmk8s/partition": "gpu",
    }
    assert (spec["nodeName"], spec["nodeSelector"], spec["runtimeClassName"]) == ("kube1", {"pool": "gpu"}, "plain")
    assert spec["tolerations"] == [{"key": "slurmk8s", "operator": "Exists"}, {"key": "gpu", "operator": "Exists"}]
    assert spec["imagePullSecrets"] == [{"name": "hub"}]
    assert spec["containers"][0]["imagePullPolicy"] == "Always"
    assert "activeDeadlineSeconds" not in spec
    asked = {"cpu": "4", "memory": "8192Mi"}
    assert spec["containers"][0]["resources"] == {
        "requests": {**asked, "ephemeral-storage": "0"},  # not set aside: few jobs would fit on a disk
        "limits": {**asked, "ephemeral-storage": "50Gi"},
    }


def test_on_kubernetes_the_kubelet_makes_shared_memory_and_home(record: Callable[..., Record]) -> None:
    seen = sources(pod(record(), on_kubernetes()))
    assert seen["/dev/shm"] == {"emptyDir": {"medium": "Memory", "sizeLimit": str(4096 << 20)}}
    assert seen["/home/alice"] == {"emptyDir": {}}
    assert seen["/workspace"] == {"hostPath": {"path": "/run/slurmk8s/jobs/7/outputs", "type": "Directory"}}
    assert seen["/mnt/nas"] == {"hostPath": {"path": "/mnt/nas", "type": "Directory"}}


def test_counted_gpus_are_asked_of_the_device_plugin(record: Callable[..., Record]) -> None:
    shown = pod(record(gpus=(1, 3)), on_kubernetes())
    assert shown["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "2"
    assert "NVIDIA_VISIBLE_DEVICES" not in variables(shown)
    assert not any("nvidia" in target for target in sources(shown))


def test_pinned_gpus_are_the_very_ones(record: Callable[..., Record]) -> None:
    shown = pod(record(gpus=(1, 3)), on_kubernetes(gpu={"mode": "pinned"}), uuids=("GPU-b", "GPU-d"))
    assert variables(shown)["NVIDIA_VISIBLE_DEVICES"] == "GPU-b,GPU-d"
    assert shown["spec"]["runtimeClassName"] == "nvidia"
    assert "nvidia.com/gpu" not in shown["spec"]["containers"][0]["resources"]["limits"]


@pytest.mark.parametrize("mode", ["count", "pinned"])
def test_a_job_without_gpus_sees_none(record: Callable[..., Record], mode: str) -> None:
    shown = pod(record(), on_kubernetes(gpu={"mode": mode}))
    assert variables(shown)["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert "runtimeClassName" not in shown["spec"]


def test_with_a_claim_nothing_is_a_path_of_the_node(record: Callable[..., Record]) -> None:
    config = on_kubernetes(mounts={"nas": {"source": "/mnt/nas", "target": "/mnt/nas", "claim": "nas"}})
    shown = pod(record(attempt=2, workdir="/workspace/deep"), config)
    assert not any("hostPath" in volume for volume in shown["spec"]["volumes"])
    told = variables(shown)
    assert told["SLURMK8S_HANDOVER"] == "/mnt/nas/results/7/.handover-2"
    assert told["SLURMK8S_WORKDIR"] == "/mnt/nas/results/7/outputs/deep"
    assert sources(shown)["/mnt/nas"] == {"persistentVolumeClaim": {"claimName": "nas", "readOnly": False}}
    assert sources(pod(record(), config))["/etc/passwd"] == {"configMap": {"name": "slurm-job-7"}}


def test_an_nfs_volume_names_its_server(record: Callable[..., Record]) -> None:
    config = on_kubernetes(mounts={"nas": {"source": "/mnt/nas", "target": "/mnt/nas", "nfs": "nas.lab:/export/a"}})
    assert sources(pod(record(), config))["/mnt/nas"] == {
        "nfs": {"server": "nas.lab", "path": "/export/a", "readOnly": False}
    }
