"""A site of its own on the shared cluster, and a pod as the agent makes it: what the tests of rights begin with."""

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from slurmk8s.agent.blueprint import Surroundings, pod
from slurmk8s.agent.meeting import Places
from slurmk8s.agent.record import Record
from slurmk8s.config import Config, parse
from slurmk8s.kube import credentials, namespaces, policy
from slurmk8s.kube.client import Kube
from slurmk8s.kube.connection import connect
from slurmk8s.kube.faults import Refused
from slurmk8s.kube.policy import Names
from slurmk8s.pod.manifest import manifest

RECORD = Record(
    job_id=7,
    attempt=0,
    name="train",
    user="kim",
    uid=4711,
    gid=4711,
    groups=(4711, 5000),
    account="",
    partition="gpu",
    nodes=("slurm1",),
    array=None,
    may_requeue=True,
    time_limit="01:00:00",
    cpus=1,
    memory_mb=64,
    gpus=(0,),
    submitted=None,
    started=None,
    image="nas-hub.local:5407/pytorch:2.0",
    workdir="/workspace",
    priority="high-priority",
    mounts=("datasets", "models"),
)


@dataclass(frozen=True)
class Site:
    """A cluster of ours, set up in Kubernetes, and the credentials of its parts."""

    config: Config
    admin: Kube
    folder: Path
    nodes: tuple[str, ...]

    def agent(self, node: str | None = None) -> Kube:
        """A node's agent, with its real credential."""
        node = node or self.nodes[0]
        return self._connected(f"agent-{node}", credentials.agent_kubeconfig(self.admin, self.config, node, 1))

    def head(self) -> Kube:
        """The head node's watcher."""
        return self._connected("head", credentials.head_kubeconfig(self.admin, self.config, 1))

    def namespace(self, uid: int = RECORD.uid) -> str:
        """A person's namespace."""
        return self.config.kubernetes.namespace_of(uid)

    def pods(self, uid: int = RECORD.uid) -> str:
        """Where a person's pods are."""
        return f"/api/v1/namespaces/{self.namespace(uid)}/pods"

    def manifest(self, record: Record = RECORD) -> dict[str, Any]:
        """The pod of a job on the first node, as the agent's own code makes it."""
        places = Places.of(self.config, "slurm1", record.job_id)
        results = self.config.nas.results_folder / str(record.job_id)
        told = {"launcher.sh": "exit 0\n", "passwd": "", "group": ""}
        around = Surroundings("slurm1", places, f"/home/{record.user}", results, told)
        return manifest(pod(self.config, record, around))

    def _connected(self, name: str, text: str) -> Kube:
        path = self.folder / f"{name}.kubeconfig"
        path.write_text(text)
        path.chmod(0o600)
        return connect(path)


def settings(nodes: tuple[str, ...], **more: Any) -> Config:
    """A site with every kind of mount; its own names, so that several share a cluster."""
    cluster = f"t{secrets.token_hex(4)}"
    data: dict[str, Any] = {
        "cluster": cluster,
        "backend": "kubernetes",
        "partitions": {"gpu": {"image": "docker.io/library/default:1"}},
        "mounts": {
            "datasets": {"source": "/srv/datasets", "target": "/mnt/datasets", "read_only": True},
            "models": {"source": "/srv/models", "target": "/mnt/models", "nfs": "nas.lab:/export/models"},
        },
        "kubernetes": {
            "namespace": f"{cluster}-user-%u",
            "system_namespace": f"{cluster}-system",
            "nodes": {"slurm1": nodes[0], "slurm2": nodes[-1]},
            "quota": {"cpu": 0, "memory": "", "gpus": 0},
        },
    }
    for key, value in more.items():
        data[key] = {**data[key], **value} if isinstance(data.get(key), dict) else value
    return parse(data, "test")


@contextmanager
def set_up(config: Config, kube: Kube, nodes: tuple[str, ...], folder: Path) -> Iterator[Site]:
    """Everything of the site in Kubernetes; removed afterwards."""
    try:
        policy.apply(kube, config, nodes)
        namespaces.keep(kube, config, RECORD.uid, RECORD.user)
        site = Site(config, kube, folder, nodes)
        until_enforced(site)
        yield site
    finally:
        remove(config, kube)


def until_enforced(site: Site) -> None:
    """A policy takes a moment from the API server's answer to its admission; the head node's is the last one."""
    head, deadline = site.head(), time.monotonic() + 30
    while True:
        try:
            head.create("/api/v1/namespaces", {"metadata": {"name": "not-ours"}}, dryRun="All")
        except Refused as refused:
            if "ValidatingAdmissionPolicy" in refused.message:
                return
        assert time.monotonic() < deadline, "the policies are not enforced"
        time.sleep(0.1)


def remove(config: Config, kube: Kube) -> None:
    """What a site has made, by its names."""
    base = Names.of(config).base
    for kind in ("ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy", "ClusterRoleBinding", "ClusterRole"):
        for found in kube.items(policy.PLACES[kind]):
            if found["metadata"]["name"].startswith(f"{base}-"):
                kube.delete(f"{policy.PLACES[kind]}/{found['metadata']['name']}")
    own = {config.kubernetes.system_namespace}
    prefix = config.kubernetes.namespace.removesuffix("%u")
    for found in kube.items("/api/v1/namespaces"):
        name = found["metadata"]["name"]
        if name in own or name.startswith(prefix):
            for each in kube.items(f"/api/v1/namespaces/{name}/pods"):
                path = f"/api/v1/namespaces/{name}/pods/{each['metadata']['name']}"
                kube.delete(path, gracePeriodSeconds=0)
            kube.delete(f"/api/v1/namespaces/{name}")


def job(number: int, **changes: Any) -> Record:
    """Another job."""
    return replace(RECORD, job_id=number, **changes)
