"""The head node's chores, with its real credential: first jobs find their namespace, lost pods go, outages pass."""

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from loguru import logger
from policy_site import RECORD, Site, job, set_up, settings

from slurmk8s.config import Slurm
from slurmk8s.errors import SetupError
from slurmk8s.kube.client import Kube
from slurmk8s.ops.keeper import LONGEST_PAUSE, LOOK_SECONDS, Keeper
from slurmk8s.ops.lost import LostPods
from slurmk8s.slurm.client import Job
from slurmk8s.slurm.commands import SlurmCommands
from slurmk8s.slurm.stamp import encode

pytestmark = pytest.mark.kube

# Prints the queue of a file, with the divider that it is asked for. Who is in a real queue is tried in tests/slurm.
SQUEUE = """#!/bin/sh
for argument; do case $argument in --Format=*) word=${argument##*:} ;; esac; done
[ -e "$0.down" ] && { echo "slurm_load_jobs error: Unable to contact slurm controller (connect failure)" >&2; exit 1; }
while read -r uid user comment; do
    printf '%s%s%s%s%s%s\\n' "$uid" "$word" "$user" "$word" "$comment" "$word"
done <"$0.queue"
"""


class Queue:
    """A Slurm whose queue a test writes."""

    def __init__(self, folder: Path) -> None:
        self.program = folder / "squeue"
        self.program.write_text(SQUEUE)
        self.program.chmod(0o755)
        (folder / "sinfo").write_text("#!/bin/sh\n")
        (folder / "sinfo").chmod(0o755)
        self.slurm = SlurmCommands(Slurm(bin_folder=folder))
        self.hold()

    def hold(self, *people: tuple[int, str]) -> None:
        """Have a container job of each in the queue."""
        lines = [f"{uid} {user} {encode('#K8S_IMAGE=alpine')}\n" for uid, user in people]
        self.program.with_name("squeue.queue").write_text("".join([*lines, "4790 plain \n"]))

    def answer(self, *, well: bool) -> None:
        """Be there, or not."""
        down = self.program.with_name("squeue.down")
        down.unlink(missing_ok=True) if well else down.touch()


@pytest.fixture
def queue(tmp_path: Path) -> Queue:
    return Queue(tmp_path)


@pytest.fixture(scope="module")
def site(_testbed: Any, kube: Kube, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    nodes = tuple(_testbed.nodes)
    with set_up(settings(nodes), kube, nodes, tmp_path_factory.mktemp("keeper")) as found:
        yield found


@pytest.fixture
def told() -> Iterator[list[str]]:
    """What an admin reads in the log."""
    lines: list[str] = []
    handler = logger.add(lambda message: lines.append(str(message).strip()), format="{level} {message}")
    yield lines
    logger.remove(handler)


def test_the_owner_of_a_first_job_gets_a_namespace(site: Site, queue: Queue, kube: Kube, told: list[str]) -> None:
    keeper = Keeper(site.config, queue.slurm, site.head)
    queue.hold((4740, "park"), (4741, "choi"))
    assert keeper.look() == LOOK_SECONDS
    for uid in (4740, 4741):
        assert kube.get(f"/api/v1/namespaces/{site.namespace(uid)}")
    assert kube.find(f"/api/v1/namespaces/{site.namespace(4790)}") is None  # a plain Slurm job's owner
    assert len(told) == 2
    for _ in range(3):
        keeper.look()
    assert len(told) == 2  # nothing to tell


def test_slurm_away_and_back_is_told_once_each(site: Site, queue: Queue, kube: Kube, told: list[str]) -> None:
    keeper = Keeper(site.config, queue.slurm, site.head)
    queue.hold((4750, "jung"))
    queue.answer(well=False)
    assert [keeper.look() > LOOK_SECONDS for _ in range(4)] == [True] * 4
    assert keeper.look() == LONGEST_PAUSE
    queue.answer(well=True)
    assert keeper.look() == LOOK_SECONDS
    assert [line.split()[0] for line in told] == ["WARNING", "INFO", "INFO"]
    assert "Unable to contact slurm controller" in told[0]
    assert kube.get(f"/api/v1/namespaces/{site.namespace(4750)}")


def test_a_credential_that_comes_later_is_used(site: Site, queue: Queue, kube: Kube, told: list[str]) -> None:
    missing = [True]

    def connect() -> Kube:
        if missing:
            raise SetupError("There is no kubeconfig /etc/slurmk8s/head.kubeconfig.")
        return site.head()

    keeper = Keeper(site.config, queue.slurm, connect)
    queue.hold((4755, "kang"))
    assert keeper.look() > LOOK_SECONDS
    missing.clear()
    assert keeper.look() == LOOK_SECONDS
    assert kube.get(f"/api/v1/namespaces/{site.namespace(4755)}")


def test_the_api_server_away_and_back(site: Site, queue: Queue, kube: Kube, machine_room: Any, told: list[str]) -> None:
    keeper = Keeper(site.config, queue.slurm, site.head)
    queue.hold((4760, "yoon"))
    keeper.look()
    machine_room.kill("kube-apiserver")
    queue.hold((4760, "yoon"), (4761, "lim"))
    assert keeper.look() > LOOK_SECONDS
    assert keeper.look() > LOOK_SECONDS
    machine_room.start("kube-apiserver")
    assert keeper.look() == LOOK_SECONDS
    assert kube.get(f"/api/v1/namespaces/{site.namespace(4761)}")
    assert len([line for line in told if line.startswith("WARNING")]) == 1


@pytest.fixture
def lost_node(kube: Kube) -> Iterator[str]:
    """A node whose kubelet is not heard of: it never was."""
    name = f"lost-{secrets.token_hex(3)}"
    kube.create("/api/v1/nodes", {"metadata": {"name": name}})
    kube.patch(f"/api/v1/nodes/{name}/status", ready("Unknown"))
    yield name
    kube.delete(f"/api/v1/nodes/{name}")


def ready(status: str) -> dict[str, Any]:
    now = "2026-01-01T00:00:00Z"
    condition = {"type": "Ready", "status": status, "lastHeartbeatTime": now, "lastTransitionTime": now}
    return {"status": {"conditions": [condition]}}


def test_a_pod_on_a_lost_node_makes_room(
    site: Site, kube: Kube, lost_node: str, told: list[str], any_job: Callable[..., Job]
) -> None:
    """Kubernetes and Slurm must both have lost the node, and the job be elsewhere; twice in a row."""
    nodes = {"slurm9": lost_node}
    config = site.config.model_copy(update={"kubernetes": site.config.kubernetes.model_copy(update={"nodes": nodes})})
    body = site.manifest(job(41))
    body["spec"]["nodeName"] = lost_node
    body["metadata"]["labels"]["slurmk8s/node"] = "slurm9"
    files = {"metadata": {key: body["metadata"][key] for key in ("name", "labels")}, "data": {}}
    kube.create(site.pods(), body)
    kube.create(f"/api/v1/namespaces/{site.namespace()}/configmaps", files)
    path, head, pods = f"{site.pods()}/slurm-job-41", site.head(), LostPods(config)
    still = [
        ({"slurm9"}, any_job(state="RUNNING", nodes=("slurm9",))),
        ({"slurm9"}, any_job(state="PENDING", nodes=(), completing=True)),
        (set(), any_job(state="PENDING", nodes=())),
        ({"slurm1"}, any_job(state="PENDING", nodes=())),
    ]
    for unreachable, found in still:
        for _ in range(3):
            pods.look(head, unreachable, lambda _id, found=found: found)
        assert kube.find(path), (unreachable, found)
    again = any_job(state="RUNNING", nodes=("slurm1",))
    pods.look(head, {"slurm9"}, lambda _id: again)
    assert kube.find(path)
    pods.look(head, {"slurm9"}, lambda _id: again)
    assert kube.find(path) is None
    assert kube.find(f"/api/v1/namespaces/{site.namespace()}/configmaps/slurm-job-41") is None
    assert len(told) == 1
    assert "neither Kubernetes nor Slurm can reach slurm9" in told[0]


def test_a_kubelet_that_answers_keeps_its_pods(
    site: Site, kube: Kube, lost_node: str, any_job: Callable[..., Job]
) -> None:
    """Not ready by its own word is not lost: its containers may well be alive."""
    nodes = {"slurm9": lost_node}
    config = site.config.model_copy(update={"kubernetes": site.config.kubernetes.model_copy(update={"nodes": nodes})})
    body = site.manifest(job(42))
    body["spec"]["nodeName"] = lost_node
    body["metadata"]["labels"]["slurmk8s/node"] = "slurm9"
    kube.create(site.pods(), body)
    pods, head = LostPods(config), site.head()
    for status in ("False", "True"):
        kube.patch(f"/api/v1/nodes/{lost_node}/status", ready(status))
        for _ in range(3):
            pods.look(head, {"slurm9"}, lambda _id: None)
        assert kube.find(f"{site.pods()}/slurm-job-42"), status


@pytest.fixture
def any_job() -> Callable[..., Job]:
    def make(**changes: Any) -> Job:
        texts = dict.fromkeys(("name", "user", "partition", "account", "reason", "exit_code", "comment"), "")
        texts |= dict.fromkeys(("admin_comment", "batch_host", "work_folder", "stdout", "stderr", "time_limit"), "")
        numbers = {"job_id": 41, "uid": RECORD.uid, "gid": RECORD.gid, "restarts": 1, "requeue": True}
        times = dict.fromkeys(("submitted", "started", "ended", "array_job_id", "array_task_id"))
        return Job(**{**texts, **numbers, **times, **changes})

    return make
