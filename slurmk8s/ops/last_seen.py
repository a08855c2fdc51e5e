"""What the head node remembers of container jobs, in case a node does not come back. Pure, but for its file.

slurmctld forgets a job some minutes after its end, and where an attempt ran as soon as it is put back into the queue.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from loguru import logger

from slurmk8s import durable
from slurmk8s.agent import record as records
from slurmk8s.agent.record import Record
from slurmk8s.slurm.client import Job
from slurmk8s.slurm.nodes import Node
from slurmk8s.slurm.queue import WAITING
from slurmk8s.slurm.records import FINISHED

KEEP_SECONDS = 600.0
"""How long a job is remembered after its end: its node's agent writes the summary within seconds."""
REQUEUED = "REQUEUED"
"""The end of an attempt that Slurm puts back into the queue."""
_OFF = ("NOT_RESPONDING", "POWERED_DOWN", "POWERING_DOWN")

Key = tuple[int, int]
"""Job id and attempt."""


@dataclass(frozen=True)
class Attempt:
    """One attempt of a job on its node, as Slurm last told of it."""

    record: Record
    state: str
    exit_code: str
    ended: float | None
    over: float | None = None
    """When it was first seen to be over; None while it runs."""
    settled: bool = False
    """Whether nothing more is to be done about it; remembered as long as Slurm lists the job."""
    pod: str = ""
    """What Kubernetes said of its pod when the node was lost; there the pod is removed, and its name given on."""
    in_full: bool = False
    """Whether Slurm was asked for what its list of jobs does not have: which GPUs, who wants mail. Once, when the node
    is lost: two programs for every job that ever runs would be too many."""

    @property
    def key(self) -> Key:
        """Which one."""
        return self.record.job_id, self.record.attempt

    @property
    def node(self) -> str:
        """Where it ran."""
        return self.record.nodes[0]

    def told(self, job: Job | None, now: float) -> "Attempt":
        """With what Slurm says of the job now; None where it has forgotten it."""
        if job is None:
            return replace(self, over=self.over or now)
        if job.restarts > self.record.attempt or job.state in WAITING:
            return replace(self, state=REQUEUED, exit_code="", over=self.over or now)
        over = self.over or now if job.state in FINISHED and not job.completing else None
        return replace(self, state=job.state, exit_code=job.exit_code, ended=job.ended, over=over)


@dataclass(frozen=True)
class Book:
    """Everything that is remembered."""

    away: Mapping[str, float] = field(default_factory=dict)
    """Since when nodes have been lost."""
    attempts: Mapping[Key, Attempt] = field(default_factory=dict)

    def with_nodes(self, known: Mapping[str, Node], now: float) -> "Book":
        """With what Slurm says of the nodes now. One that it does not know any more is lost as well."""
        lost = {name for name, node in known.items() if any(state in _OFF for state in node.states)}
        lost |= {attempt.node for attempt in self.attempts.values()} - known.keys()
        return replace(self, away={name: self.away.get(name, now) for name in sorted(lost)})

    def with_attempts(self, attempts: Iterable[Attempt], now: float) -> "Book":
        """With these, without those whose node has had the time to tell of them itself."""
        kept = {
            attempt.key: attempt
            for attempt in attempts
            if attempt.node in self.away or attempt.over is None or now - attempt.over < KEEP_SECONDS
        }
        return replace(self, attempts=kept)

    def with_settled(self, key: Key) -> "Book":
        """With one about which nothing more is to be done."""
        return replace(self, attempts={**self.attempts, key: replace(self.attempts[key], settled=True)})

    def due(self, seconds: float, now: float) -> list[Attempt]:
        """Those that are over and whose node has been lost for so long."""
        return [
            attempt
            for attempt in self.attempts.values()
            if attempt.over is not None and not attempt.settled and now - self.away.get(attempt.node, now) >= seconds
        ]

    def save(self, path: Path) -> None:
        """Keep it, durably."""
        durable.write_json(path, {"away": self.away, "attempts": [asdict(each) for each in self.attempts.values()]})


def load(path: Path) -> Book:
    """What an earlier service remembered."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        found = [Attempt(**{**each, "record": records.from_json(each["record"])}) for each in data["attempts"]]
        return Book(data["away"], {attempt.key: attempt for attempt in found})
    except FileNotFoundError:
        return Book()
    except (ValueError, KeyError, TypeError) as error:  # of another version: it fills again while the jobs run
        logger.warning(f"{path} cannot be read, so it is begun anew: {error!r}")
        return Book()
