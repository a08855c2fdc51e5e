"""Nodes as slurmctld knows them: what they have, what of it is taken, and why one takes no jobs."""

import re
from dataclasses import dataclass

from slurmk8s.slurm.facts import PAIR, gpu_count
from slurmk8s.slurm.programs import Programs

# What scontrol may put behind a state, besides the words after `+`.
_SIGNS = {
    "*": "NOT_RESPONDING",
    "$": "MAINTENANCE",
    "@": "REBOOT_REQUESTED",
    "^": "REBOOT_ISSUED",
    "~": "POWERED_DOWN",
    "#": "POWERING_UP",
    "!": "POWER_DOWN",
    "%": "POWERING_DOWN",
    "-": "PLANNED",
}
# A node that is switched off or on is not among them: Slurm wakes it for a job.
_CLOSED = (
    *("DOWN", "DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING", "ERROR", "FUTURE", "UNKNOWN", "NOT_RESPONDING"),
    *("MAINT", "MAINTENANCE", "REBOOT_ISSUED", "INVAL", "INVALID_REG", "BLOCKED"),
)
_REASON = re.compile(r"(?P<text>.*?)(?: \[(?P<who>[^@\[\]]*)@(?P<time>[^\[\]]*)\].*)?\s*", re.DOTALL)


@dataclass(frozen=True)
class Node:
    """A node (`scontrol show node -d`)."""

    name: str
    states: tuple[str, ...]
    """The base state first, such as IDLE, MIXED or DOWN; then what is said of it, such as DRAIN."""
    reason: str
    """Why it takes no jobs, in the words of whoever drained it."""
    reason_by: str
    reason_since: float | None
    cpus: int
    cpus_for_jobs: int
    """Without those that CoreSpecCount or CpuSpecList keeps for the system."""
    cpus_used: int
    cores: int
    core_spec: int
    """CoreSpecCount as configured."""
    memory_mb: int
    memory_reserved_mb: int
    """MemSpecLimit."""
    memory_used_mb: int
    gpus: int
    gpus_used: int
    gres: str
    partitions: tuple[str, ...]

    @property
    def takes_jobs(self) -> bool:
        """Whether a job could start there as soon as there is room."""
        return not any(state in _CLOSED for state in self.states)

    @property
    def responds(self) -> bool:
        """Whether its slurmd answers."""
        return "NOT_RESPONDING" not in self.states

    @property
    def state(self) -> str:
        """As Slurm writes it."""
        return "+".join(self.states)

    @property
    def memory_for_jobs_mb(self) -> int:
        """What `--mem=0` gets."""
        return max(0, self.memory_mb - self.memory_reserved_mb)

    @property
    def cpus_free(self) -> int:
        """CPUs that no job has."""
        return max(0, self.cpus_for_jobs - self.cpus_used)

    @property
    def memory_free_mb(self) -> int:
        """Memory that no job has."""
        return max(0, self.memory_for_jobs_mb - self.memory_used_mb)

    @property
    def gpus_free(self) -> int:
        """GPUs that no job has."""
        return max(0, self.gpus - self.gpus_used)


def nodes(programs: Programs) -> dict[str, Node]:
    """All nodes by name."""
    return parse(programs.ask("scontrol", "--all", "--details", "--oneliner", "show", "node"))


def parse(shown: str) -> dict[str, Node]:
    """Read `scontrol show node -d -o`. Only administrators write text there, and the reason comes last."""
    found = [_node(line) for line in shown.splitlines() if line.startswith("NodeName=")]
    return {node.name: node for node in found}


def _node(line: str) -> Node:
    head, _, reason = line.partition(" Reason=")
    fields: dict[str, str] = {}
    for key, value in PAIR.findall(head):
        fields.setdefault(key, value)  # the first: an administrator's comment comes later
    said = _REASON.fullmatch(reason)
    assert said is not None  # it matches anything
    cpus = _number(fields, "CPUTot")
    return Node(
        name=fields["NodeName"],
        states=_states(fields.get("State", "UNKNOWN")),
        reason=said["text"].strip(),
        reason_by=said["who"] or "",
        reason_since=float(said["time"]) if (said["time"] or "").isdecimal() else None,
        cpus=cpus,
        cpus_for_jobs=_number(fields, "CPUEfctv", cpus),
        cpus_used=_number(fields, "CPUAlloc"),
        cores=_number(fields, "Sockets", 1) * _number(fields, "CoresPerSocket", 1),  # Sockets are those of all boards
        core_spec=_number(fields, "CoreSpecCount"),
        memory_mb=_number(fields, "RealMemory"),
        memory_reserved_mb=_number(fields, "MemSpecLimit"),
        memory_used_mb=_number(fields, "AllocMem"),
        gpus=gpu_count(fields.get("Gres", "")),
        gpus_used=gpu_count(fields.get("GresUsed", "")),
        gres=fields.get("Gres", "").replace("(null)", ""),
        partitions=tuple(filter(None, fields.get("Partitions", "").split(","))),
    )


def _states(written: str) -> tuple[str, ...]:
    """`DOWN*+DRAIN` → DOWN, NOT_RESPONDING, DRAIN."""
    found: list[str] = []
    for word in written.split("+"):
        name = word.rstrip("".join(_SIGNS))
        found += [name, *(_SIGNS[sign] for sign in word[len(name) :])]
    return tuple(dict.fromkeys(filter(None, found)))


def _number(fields: dict[str, str], key: str, default: int = 0) -> int:
    value = fields.get(key, "")
    return int(value) if value.isascii() and value.isdecimal() else default
