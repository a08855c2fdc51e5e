"""What the cluster can give, as Slurm says it: for the check of a job file before anything is submitted."""

import re

from slurmk8s.errors import PersonFault, SlurmUnreachable
from slurmk8s.jobfile.facts import ClusterFacts, PartitionFacts
from slurmk8s.slurm.client import Identity
from slurmk8s.slurm.programs import Programs, text

PAIR = re.compile(r"(?:^| )([A-Za-z]+)=(\S*)")
GPU = re.compile(r"(?:^|,)gpu(?::(?P<type>[^:(),]+))?(?::(?P<count>\d+))?(?=[(,]|$)")


def gather(programs: Programs, identity: Identity | None) -> ClusterFacts:
    """Ask slurmctld for partitions and nodes, and slurmdbd, where there is one, for the person's accounts."""
    partitions = programs.ask("scontrol", "--all", "--oneliner", "show", "partition")
    nodes = programs.ask("scontrol", "--all", "--oneliner", "show", "node")
    accounts, qos = _associations(programs, identity)
    return ClusterFacts(parse(partitions, nodes), accounts, qos)


def parse(partitions: str, nodes: str) -> dict[str, PartitionFacts]:
    """The most that one job can get, by partition: the largest node decides, whatever its state is now."""
    by_partition: dict[str, list[dict[str, str]]] = {}
    for line in nodes.splitlines():
        node = dict(PAIR.findall(line))
        for name in filter(None, node.get("Partitions", "").split(",")):
            by_partition.setdefault(name, []).append(node)
    facts = [
        _partition(dict(PAIR.findall(line)), by_partition)
        for line in partitions.splitlines()
        if "PartitionName=" in line
    ]
    return {partition.name: partition for partition in facts}


def _partition(fields: dict[str, str], by_partition: dict[str, list[dict[str, str]]]) -> PartitionFacts:
    name = fields["PartitionName"]
    nodes = by_partition.get(name, [])
    gpus = [gpu for node in nodes for gpu in GPU.finditer(node.get("Gres", ""))]
    return PartitionFacts(
        name=name,
        default=fields.get("Default") == "YES",
        up=fields.get("State", "UP") == "UP",
        max_seconds=seconds(fields.get("MaxTime", "")),
        nodes=_limit(fields.get("TotalNodes", "")),
        max_nodes=_limit(fields.get("MaxNodes", "")),
        # A partition without nodes is one that grows on demand: nothing is known about the nodes it will get.
        cpus_per_node=_least(_most(nodes, "CPUTot"), _limit(fields.get("MaxCPUsPerNode", ""))),
        memory_mb_per_node=_least(_most(nodes, "RealMemory"), _limit(fields.get("MaxMemPerNode", ""))),
        gpus_per_node=max((gpu_count(node.get("Gres", "")) for node in nodes), default=None),
        gpu_types=tuple(sorted({gpu["type"] for gpu in gpus if gpu["type"] and not gpu["type"].isdecimal()})),
    )


def gpu_count(gres: str) -> int:
    """`gpu:a100:4(S:0-1),gpu:t4:2` → 6; `gpu:2` → 2."""
    total = 0
    for gpu in GPU.finditer(gres):
        kind, count = gpu["type"], gpu["count"]
        total += int(count or (kind if kind and kind.isdecimal() else 1))
    return total


def _most(nodes: list[dict[str, str]], key: str) -> int | None:
    return max((int(node.get(key, "0")) for node in nodes), default=None)


def _limit(value: str) -> int | None:
    """A number; None for UNLIMITED and for what this release does not print."""
    return int(value) if value.isdecimal() else None


def _least(*values: int | None) -> int | None:
    return min((value for value in values if value is not None), default=None)


def seconds(limit: str) -> int | None:
    """`1-00:30:00` → 88200; None for UNLIMITED. Slurm prints [days-]hours:minutes:seconds."""
    match = re.fullmatch(r"(?:(\d+)-)?(\d+):(\d+):(\d+)", limit)
    if match is None:
        return None
    days, hours, minutes, rest = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + rest


def _associations(
    programs: Programs, identity: Identity | None
) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """The accounts and QOS a person may use; None without slurmdbd, or while it does not answer: sbatch will say."""
    if identity is None:
        return None, None
    question = ["sacctmgr", "--noheader", "--parsable2", "--readonly", "show", "association", f"user={identity.name}"]
    try:
        done = programs.run([*question, "format=account,qos"])
    except (SlurmUnreachable, PersonFault):
        return None, None
    if done.returncode != 0:
        return None, None
    lines = [line.partition("|") for line in text(done.stdout).splitlines() if line.strip()]
    if not lines:  # accounting is on but does not know the person: AccountingStorageEnforce decides what that means
        return None, None
    qos = {name for _, _, names in lines for name in names.split(",") if name}
    return tuple(sorted({account for account, _, _ in lines})), tuple(sorted(qos)) or None
