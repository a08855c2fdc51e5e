"""The head node's chores in Kubernetes, beside the watcher: people's namespaces and quotas, and pods on lost nodes.

It runs only where Kubernetes runs the pods. Trouble is told once when it begins and once when it ends; the watcher
goes on in any case.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from loguru import logger

from slurmk8s.config import Config
from slurmk8s.errors import ClusterFault, SlurmK8sError
from slurmk8s.kube import namespaces
from slurmk8s.kube.client import Kube
from slurmk8s.ops.lost import LostPods
from slurmk8s.slurm.commands import SlurmCommands
from slurmk8s.slurm.owners import stamped_owners, unreachable_nodes

LOOK_SECONDS = 3.0
"""Between two looks for people who have their first job: it waits for its namespace that long at most."""
DRIFT_SECONDS = 30.0
"""Between two looks at namespaces that were right before."""
LOST_SECONDS = 15.0
"""Between two looks for pods on lost nodes."""
LONGEST_PAUSE = 20.0
"""Between two tries while something does not answer."""


@dataclass
class Keeper:
    """Looks every few seconds. Only ever one thread is in it."""

    config: Config
    slurm: SlurmCommands
    connect: Callable[[], Kube]
    """Makes the connection; SetupError while there is no credential."""
    _kube: Kube | None = None
    _kept: dict[int, str] = field(default_factory=dict)
    """Whose namespace was settled at the last look."""
    _next_drift: float = 0.0
    _next_lost: float = 0.0
    _told: dict[str, str] = field(default_factory=dict)
    """Troubles that are told and not over, by what they are about."""
    _failures: int = 0

    def __post_init__(self) -> None:
        self._lost = LostPods(self.config)

    def run(self, stop: threading.Event) -> None:
        """Look until told to stop."""
        while not stop.is_set():
            stop.wait(self.look())

    def look(self) -> float:
        """One look at everything that is due; the seconds to wait before the next."""
        try:
            self._look(self._connected())
        except SlurmK8sError as error:
            self._tell("all", str(error))
            self._failures += 1
            return min(LONGEST_PAUSE, LOOK_SECONDS * 2.0 ** min(self._failures, 6))
        except Exception:  # noqa: BLE001 - a bug in a chore must not end the service; its traceback is for us
            logger.exception("The head node's chores in Kubernetes met a bug; they are tried again.")
            return LONGEST_PAUSE
        self._tell("all", "")
        self._failures = 0
        return LOOK_SECONDS

    def _connected(self) -> Kube:
        if self._kube is None:
            self._kube = self.connect()
        return self._kube

    def _look(self, kube: Kube) -> None:
        now = time.monotonic()
        people = stamped_owners(self.slurm.programs)
        if now >= self._next_drift or people.items() - self._kept.items():
            self._keep(kube, people)
            self._next_drift = now + DRIFT_SECONDS
        if now >= self._next_lost:
            self._lost.look(kube, unreachable_nodes(self.slurm.programs), self.slurm.job)
            self._next_lost = now + LOST_SECONDS

    def _keep(self, kube: Kube, people: dict[int, str]) -> None:
        outcome = namespaces.keep_all(kube, self.config, people) if people else {}
        for uid, user in people.items():
            error = outcome.get(uid)
            self._tell(str(uid), str(error or ""))
            if uid in outcome and error is None:
                logger.info(f"Made the namespace {self.config.kubernetes.namespace_of(uid)} of {user} as configured.")
        # What an admin must settle is looked at again with the rest; what is in motion, soon.
        moving = {uid for uid, error in outcome.items() if isinstance(error, ClusterFault)}
        self._kept = {uid: user for uid, user in people.items() if uid not in moving}

    def _tell(self, about: str, trouble: str) -> None:
        """Once when it begins or changes, once when it is over."""
        before = self._told.get(about, "")
        # The same trouble in other words: a broken connection first, then none at all.
        if trouble and trouble.partition(" (")[0] != before.partition(" (")[0]:
            logger.warning(f"Namespaces and quotas: {trouble}")
        elif before and not trouble:
            logger.info("Namespaces and quotas are kept again.")
        self._told[about] = trouble
        if not trouble:
            del self._told[about]
