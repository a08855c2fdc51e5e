"""What the tests of the backend share: an agent's backend on one node of the cluster, and small pods for it."""

import asyncio
import contextlib
import functools
import os
import secrets
import signal
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from slurmk8s import labels
from slurmk8s.config import Config, parse
from slurmk8s.errors import ClusterFault
from slurmk8s.kube.client import Kube
from slurmk8s.labels import PodName
from slurmk8s.pod.kubernetes import Kubernetes
from slurmk8s.pod.manifest import Pod
from slurmk8s.pod.processes import pids_of

UID = 12345
ENDLESS = "sleep 1000 & wait"
DEAF = "trap '' TERM; echo deaf; sleep 1000; sleep 1000"


def run(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """The test in an event loop of its own."""

    @functools.wraps(test)
    def running(*arguments: Any, **named: Any) -> None:
        asyncio.run(test(*arguments, **named))

    return running


@dataclass
class Bed:
    """One Slurm cluster's agents on a Kubernetes cluster, in a namespace of their own."""

    kube: Kube
    kubeconfig: Path
    image: str
    nodes: tuple[str, ...]
    token: str = field(default_factory=lambda: secrets.token_hex(3))
    told: list[str] = field(default_factory=list)

    @property
    def namespace(self) -> str:
        """Of the one person."""
        return f"t{self.token}-{UID}"

    def config(self, **kubernetes: object) -> Config:
        """The site's, with other words in [kubernetes]."""
        settings: dict[str, object] = {"kubeconfig": str(self.kubeconfig), "namespace": f"t{self.token}-%u"}
        return parse(
            {
                "cluster": f"c{self.token}",
                "backend": "kubernetes",
                "agent": {"kill_grace_seconds": 1},
                "images": {"pull_retry_seconds": 5},
                "kubernetes": settings | kubernetes,
            },
            "test",
        )

    def __enter__(self) -> Self:
        """Make the namespace; it takes pods when the controller-manager has given it its service account."""
        self.kube.create("/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        deadline = time.monotonic() + 180  # it listens late after an API server's restart
        while not self.kube.find(f"/api/v1/namespaces/{self.namespace}/serviceaccounts/default"):
            assert time.monotonic() < deadline, "the controller-manager does not work"
            time.sleep(0.05)
        return self

    def __exit__(self, *_: object) -> None:
        """Remove it with all that is in it."""
        self.kube.delete(f"/api/v1/namespaces/{self.namespace}")

    @contextlib.asynccontextmanager
    async def agent(self, node: str | None = None, config: Config | None = None) -> AsyncIterator[Kubernetes]:
        """A backend that serves on the first node, or on another."""
        backend = Kubernetes(config or self.config(), node or self.nodes[0])
        serving = asyncio.create_task(backend.serve())
        try:
            yield backend
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    def pod(self, job_id: int, body: str, *, node: str | None = None, attempt: int = 0, **other: Any) -> Pod:
        """A pod that runs one line of sh."""
        node = node or self.nodes[0]
        made = Pod(
            name=f"slurm-job-{job_id}",
            namespace=self.namespace,
            hostname=f"slurm-job-{job_id}",
            labels={
                labels.APP: labels.APP_VALUE,
                labels.JOB_ID: str(job_id),
                labels.CLUSTER: f"c{self.token}",
                labels.NODE: node,
                labels.ATTEMPT: str(attempt),
                labels.USER_ID: str(UID),
            },
            image=self.image,
            container=labels.CONTAINER,
            uid=UID,
            gid=UID,
            groups=(),
            resources={"cpu": "500m", "memory": "64Mi"},  # with less CPU the start alone takes ten seconds
            environment={},
            volumes=(),
            priority=None,
            grace_seconds=2,
            pull_policy="IfNotPresent",
            command=("/bin/sh", "-c", body),
            node=node,
        )
        return replace(made, **other)

    def json(self, job_id: int) -> dict[str, Any] | None:
        """The pod as the server has it."""
        return self.kube.find(f"/api/v1/namespaces/{self.namespace}/pods/slurm-job-{job_id}")

    def pids(self, pod: dict[str, Any]) -> list[int]:
        """The living processes of its container."""
        return pids_of(Path("/proc"), {pod["status"]["containerStatuses"][0]["containerID"].partition("://")[2]})

    def kill(self, pod: dict[str, Any]) -> None:
        """SIGKILL to all of them, past every daemon."""
        for pid in self.pids(pod):
            with contextlib.suppress(ProcessLookupError):  # gone with the one before
                os.kill(pid, signal.SIGKILL)

    def tell(self, sentence: str) -> None:
        """What a person would hear."""
        if sentence not in self.told:
            self.told.append(sentence)


def name(job_id: int, rank: int = 0) -> PodName:
    """Of the bed's one person."""
    return PodName(job_id, UID, rank)


async def removed(backend: Kubernetes, which: PodName) -> None:
    """Delete as the agent does it: again, as long as the cluster is at fault.

    After an API server's restart a kubelet takes up to two minutes to listen to it again.
    """
    async with asyncio.timeout(180):
        while True:
            try:
                await backend.delete(which)
                return
            except ClusterFault:
                await asyncio.sleep(0.5)


async def until(condition: Callable[[], Any], what: str, seconds: float = 30) -> Any:
    """Poll a condition; a blocking one, since these ask the server."""
    deadline = time.monotonic() + seconds
    while not (seen := await asyncio.to_thread(condition)):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what}")
        await asyncio.sleep(0.05)
    return seen


def timed(label: str, begun: float) -> None:
    """Keep a figure where SLURMK8S_TIMES names a file."""
    path = os.environ.get("SLURMK8S_TIMES")
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{label} {time.monotonic() - begun:.3f}\n")
