"""What a runtime must be able to do. Errors are faults: whose they are decides what happens to the job."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from slurmk8s.errors import SlurmK8sError
from slurmk8s.pod.manifest import Pod


@dataclass(frozen=True)
class PodState:
    """A pod as its runtime knows it."""

    name: str
    labels: dict[str, str] = field(default_factory=dict)
    running: bool = False
    pid: int | None = None
    """The launcher's pid on this host, where the runtime is local."""
    exit_code: int | None = None
    out_of_memory: bool = False


class Backend(Protocol):
    """A runtime. All methods are coroutines; unknown is an error, never an empty answer."""

    async def pull(self, image: str, tell: Callable[[str], None]) -> str:
        """Have the image on this node; its digest. `tell` hears what a person should know while it lasts."""

    async def create(self, pod: Pod) -> None:
        """Make and start the pod; nothing to do when a pod of that name and attempt is there."""

    async def find(self, name: str) -> PodState | None:
        """The pod, or None when the runtime says that there is none."""

    async def pods(self) -> list[PodState]:
        """All pods of this cluster and node."""

    async def start_fault(self, name: str, image: str) -> SlurmK8sError:
        """Why a pod ended before its launcher could do anything."""

    async def wait(self, name: str) -> PodState | None:
        """Return when the pod has ended (its last state), or is gone (None)."""

    async def terminate(self, name: str) -> None:
        """Send SIGTERM to every process of the pod."""

    async def delete(self, name: str) -> None:
        """Kill and remove the pod; returns when its containers are dead. What is not there is deleted."""
