"""From a record to the pod, as data: what it sees, what it is told, and nothing else."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slurmk8s.agent import blueprint
from slurmk8s.agent.meeting import Places
from slurmk8s.agent.record import Record
from slurmk8s.config import Config
from slurmk8s.pod.manifest import manifest
from slurmk8s.rendezvous import Rendezvous

RESULTS = Path("/mnt/nas/results/7")
PLACES = Places(Rendezvous(Path("/run/slurmk8s/jobs/7")), Path("/var/lib/slurmk8s/homes/7"))


def pod(record: Record, config: Config | None = None, node: str = "node1", home: str = "/home/alice") -> dict[str, Any]:
    return manifest(blueprint.pod(config or Config(cluster="lab"), node, record, PLACES, home, RESULTS))


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
    assert blueprint.shm_bytes(Config(), record(shm_bytes=asked, memory_mb=memory_mb)) == expected


def test_the_plan_tells_where_logs_are_and_what_passes(record: Callable[..., Record]) -> None:
    config = Config(environment={"pass_through": ["HF_*"]})  # type: ignore[arg-type]
    assert blueprint.plan(config, record(script="/mnt/nas/train.py"), RESULTS) == {
        "stdout": "/mnt/nas/results/7/stdout.log",
        "stderr": "/mnt/nas/results/7/stderr.log",
        "script": "/mnt/nas/train.py",
        "pass_through": ["HF_*"],
    }
