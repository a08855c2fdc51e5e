"""A waiting job with what is known around it, and the parts of sentences about it. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from slurmk8s.results.summary_text import duration, printable, size, when
from slurmk8s.slurm import stamp
from slurmk8s.slurm.nodes import Node
from slurmk8s.slurm.queue import Place, Seen

ASK = "Ask your administrator"
SUBMIT_AGAIN = "Cancel it with `scancel {job}`, change that, and submit it again."
NODES_SHOWN = 3


@dataclass(frozen=True)
class Waiting:
    """A waiting job and what is known around it."""

    seen: Seen
    place: Place | None = None
    nodes: Mapping[str, Node] = field(default_factory=dict)
    """Those of its partitions, and those it requires."""
    now: float = 0


@dataclass(frozen=True)
class Told:
    """A clause after "because", and the next step."""

    clause: str
    step: str = ""


def requeue_reason(seen: Seen) -> str:
    """What the agent wrote when it put the job back; at the end of the job's comment."""
    return seen.job.comment.partition(f"{stamp.REQUEUED} ")[2].strip() if seen.job.restarts else ""


def asked(seen: Seen) -> str:
    """What the job asks for: `4 CPUs, 3.9 GiB of memory and 2 GPUs on one node`."""
    parts = [count(seen.cpus, "CPU")]
    if seen.memory_mb:
        parts.append(f"{size(seen.memory_mb * 2**20)} of memory")
    if seen.gpus:
        parts.append(count(seen.gpus, "GPU"))
    where = "one node" if seen.nodes == 1 else f"{seen.nodes} nodes"
    return f"{listed(parts)} on {where}"


def freest(nodes: Sequence[Node]) -> str:
    """What the partition has, for the evidence."""
    usable = [node for node in nodes if node.takes_jobs]
    if not usable:
        return "no node takes jobs"
    best = max(usable, key=lambda node: (node.gpus_free, node.cpus_free, node.memory_free_mb))
    parts = [f"{best.cpus_free} of {best.cpus_for_jobs} CPUs"]
    parts.append(f"{size(best.memory_free_mb * 2**20)} of {size(best.memory_for_jobs_mb * 2**20)} of memory")
    if any(node.gpus for node in usable):
        parts.append(f"{best.gpus_free} of {best.gpus} GPUs")
    which = f"{len(usable)} of {count(len(nodes), 'node')} take{'s' if len(usable) == 1 else ''} jobs"
    return f"{which}; the freest, {best.name}, has {listed(parts)} free"


def standing(waiting: Waiting) -> str:
    """Its place in the queue, where it has one."""
    place = waiting.place
    if place is None:
        return ""
    if place.waiting == 1:
        return f"; it is next in partition {printable(place.partition)}"
    return f"; it is {ordinal(place.position)} of {place.waiting} in partition {printable(place.partition)}"


def planned(waiting: Waiting) -> str:
    """When Slurm expects to start it, where it does."""
    start = waiting.seen.expected_start
    if start is None or start <= waiting.now:
        return ""
    on = f" on {names_of(waiting.seen.planned_nodes)}" if waiting.seen.planned_nodes else ""
    return f", and Slurm expects to start it at {when(start)}{on} (in {duration(start - waiting.now)}) or earlier"


def closed(nodes: Sequence[Node]) -> str:
    """`node1 is DRAIN (slurmk8s: …), node2 is DOWN`."""
    said = []
    for node in nodes[:NODES_SHOWN]:
        why = f" ({printable(node.reason).rstrip('.')})" if node.reason else ""
        said.append(f"{node.name} is {node.state}{why}")
    more = f" and {len(nodes) - NODES_SHOWN} more" if len(nodes) > NODES_SHOWN else ""
    return ", ".join(said) + more


def names_of(names: Sequence[str]) -> str:
    """The first of them."""
    return ", ".join(names[:NODES_SHOWN]) + (
        f" and {len(names) - NODES_SHOWN} more" if len(names) > NODES_SHOWN else ""
    )


def count(number: int, what: str) -> str:
    """`1 CPU`, `4 CPUs`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def listed(parts: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def ordinal(number: int) -> str:
    """`1st`, `2nd`, `3rd`, `11th`."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"
