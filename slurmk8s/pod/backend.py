"""What a runtime must be able to do. Errors are faults: whose they are decides what happens to the job."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from slurmk8s.errors import ClusterFault, SlurmK8sError
from slurmk8s.labels import PodName
from slurmk8s.pod.manifest import Pod


@dataclass(frozen=True)
class PodState:
    """A pod as its runtime knows it."""

    name: str
    labels: dict[str, str] = field(default_factory=dict)
    running: bool = False
    pid: int | None = None
    """The launcher's pid on this host, where the runtime tells it."""
    exit_code: int | None = None
    out_of_memory: bool = False
    fault: SlurmK8sError | None = None
    """Why it ended, where the runtime knows better than an exit code: evicted, deleted by somebody, node lost."""


@dataclass(frozen=True)
class Started:
    """What is known once a container runs. None: not known, or told by `pull` already."""

    digest: str | None = None
    pull_started: float | None = None
    pulled: float | None = None
    marks: tuple[str, ...] = ()
    """What its processes are known by on the node, besides what the runtime says."""


class DeadButListed(ClusterFault):
    """Nothing of the job runs on the node; only the pod's object is left, and goes when it is deleted again later.

    Either the API server is away, or the kubelet is in the middle of a pull: it never gives one up, be it for an hour.
    It then starts the container and ends it at once, but nobody hands a script to that.
    """


class Backend(Protocol):
    """A runtime. All methods are coroutines; unknown is an error, never an empty answer."""

    async def serve(self) -> None:
        """Whatever must go on as long as the agent lives; until cancelled."""

    async def pull(self, image: str, tell: Callable[[str], None]) -> str | None:
        """Have the image on this node; its digest, None where creating the pod pulls it.

        `tell` hears what a person should know while it lasts.
        """

    async def create(self, pod: Pod) -> None:
        """Make and start the pod; nothing to do when a pod of that name and attempt is there."""

    async def started(self, name: PodName, image: str, tell: Callable[[str], None]) -> Started:
        """Return when the container runs, or has run; raises what keeps it from that."""

    async def find(self, name: PodName) -> PodState | None:
        """The pod, or None when the runtime says that there is none."""

    async def pods(self) -> list[PodState]:
        """All pods of this cluster and node."""

    async def start_fault(self, name: PodName, image: str) -> SlurmK8sError:
        """Why a pod ended before its launcher could do anything."""

    async def wait(self, name: PodName) -> PodState | None:
        """Return when the pod has ended (its last state), or is gone (None)."""

    async def processes(self, name: PodName) -> list[int]:
        """The container's processes, as pids of this node; none if it has none."""

    async def delete(self, name: PodName, marks: tuple[str, ...] = ()) -> None:
        """Kill and remove the pod; returns when its containers are dead. What is not there is deleted.

        Raises DeadButListed when nothing of it runs but it could not be removed, NodeFault when it cannot be killed.
        """
