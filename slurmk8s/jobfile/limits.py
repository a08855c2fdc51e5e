"""What is asked for against what the cluster has, as far as Slurm told."""

import difflib
from collections.abc import Callable, Sequence

from slurmk8s.jobfile.asked import Asked
from slurmk8s.jobfile.facts import ClusterFacts, PartitionFacts
from slurmk8s.jobfile.finding import WHOLE_FILE, Finding, problem, shown, warning
from slurmk8s.jobfile.phrase import Phrase, phrase

_DAY = 86400


def limit_findings(asked: Asked, cluster: ClusterFacts) -> list[Finding]:
    """Everything that would keep the job waiting for ever or have it refused."""
    findings = _permission_findings(asked, cluster)
    partitions, wrong = _partitions(asked, cluster)
    findings += wrong
    if not partitions:
        return findings
    one = len(partitions) == 1
    where = phrase("in-partition", name=partitions[0].name) if one else phrase("in-any-partition")
    cpus, cpu_option = _cpus_on_a_node(asked)
    memory, memory_option = _memory_on_a_node(asked, cpus)
    gpus, gpu_option = _gpus_on_a_node(asked)
    least_nodes, _ = asked.nodes()
    for number, option, limit_of, name in (
        (cpus, cpu_option, lambda part: part.cpus_per_node, "cpus-on-one-node"),
        (memory, memory_option, lambda part: part.memory_mb_per_node, "memory-on-one-node"),
        (gpus, gpu_option, lambda part: part.gpus_per_node, "gpus-on-one-node"),
        (asked.number("gpus") or _total(asked, "gpus"), "gpus", _all_gpus, "gpus-in-all"),
        (least_nodes, "nodes", _most_nodes, "nodes-in-all"),
    ):
        most = _most(partitions, limit_of)
        if most is not None and option in asked.given and number > most:
            spot, code = asked.given[option].spot, f"too-many-{_KIND[option]}"
            much = phrase(name, number=number)
            if most:
                findings.append(problem(spot, "too-many", code=code, asked=much, where=where, most=most))
            else:
                findings.append(problem(spot, "too-many/none", code=code, asked=much, where=where))
    findings += _time_findings(asked, partitions, where)
    findings += _type_findings(asked, partitions, where)
    return findings


_KIND = {
    **dict.fromkeys(("cpus-per-task", "mincpus", "ntasks", "ntasks-per-node", "tasks-per-node"), "cpus"),
    **dict.fromkeys(("mem", "mem-per-cpu", "mem-per-gpu"), "megabytes"),
    **dict.fromkeys(("gres", "gpus", "gpus-per-node", "gpus-per-task"), "gpus"),
    "nodes": "nodes",
    "": "",
}


def partition_names(asked: Asked, cluster: ClusterFacts | None) -> tuple[str, ...]:
    """The partitions the job may run in; the cluster's default if it names none; empty if that is not known."""
    text = asked.value("partition")
    if text is not None:
        return tuple(name for name in text.split(",") if name)
    if cluster is not None:
        return tuple(name for name, partition in cluster.partitions.items() if partition.default)
    return ()


def _partitions(asked: Asked, cluster: ClusterFacts) -> tuple[list[PartitionFacts], list[Finding]]:
    findings: list[Finding] = []
    known = cluster.partitions
    if not known:
        return [], []
    names = ", ".join(sorted(known))
    wanted = partition_names(asked, cluster)
    option = asked.given.get("partition")
    if not wanted and option is None:
        return [], [problem(WHOLE_FILE, "no-partition", names=names)]
    for name in wanted:
        if name in known or "|" in name:
            continue
        assert option is not None
        close = difflib.get_close_matches(name[:60], known, n=1)
        fix = phrase("meant-partition", name=close[0], names=names) if close else phrase("take-one-of", names=names)
        findings.append(problem(option.value_spot, "unknown-partition", name=shown(name), fix=fix))
    found = [known[name] for name in wanted if name in known]
    if found and option is not None and not any(partition.up for partition in found):
        findings.append(warning(option.value_spot, "partition-down", name=shown(option.value)))
    return found, findings


def _permission_findings(asked: Asked, cluster: ClusterFacts) -> list[Finding]:
    findings = []
    for name, code, known in (("account", "unknown-account", cluster.accounts), ("qos", "unknown-qos", cluster.qos)):
        option = asked.given.get(name)
        if option is not None and known is not None and option.value not in known:
            fix = phrase("take-one-of", names=", ".join(known)) if known else phrase("ask-the-admins")
            findings.append(problem(option.value_spot, code, name=shown(option.value), fix=fix))
    return findings


def _most(partitions: Sequence[PartitionFacts], limit_of: Callable[[PartitionFacts], int | None]) -> int | None:
    """The most that any of the partitions has; None as soon as one is not known."""
    limits = [limit_of(partition) for partition in partitions]
    known = [limit for limit in limits if limit is not None]
    return max(known) if len(known) == len(limits) else None


def _most_nodes(partition: PartitionFacts) -> int | None:
    limits = [limit for limit in (partition.nodes, partition.max_nodes) if limit is not None]
    return min(limits) if limits else None


def _all_gpus(partition: PartitionFacts) -> int | None:
    nodes = _most_nodes(partition)
    return None if nodes is None or partition.gpus_per_node is None else nodes * partition.gpus_per_node


def _tasks_on_a_node(asked: Asked) -> int:
    """How many tasks surely share a node."""
    per_node = asked.number("ntasks-per-node") or asked.number("tasks-per-node") or 1
    tasks = asked.number("ntasks") or 1
    _, most_nodes = asked.nodes()
    return max(
        min(per_node, tasks) if "ntasks" in asked.given else per_node, -(-tasks // most_nodes) if most_nodes else 1
    )


def _cpus_on_a_node(asked: Asked) -> tuple[int, str]:
    cpus = (asked.number("cpus-per-task") or 1) * _tasks_on_a_node(asked)
    least = asked.number("mincpus") or 0
    if least > cpus:
        return least, "mincpus"
    names = ("cpus-per-task", "ntasks-per-node", "tasks-per-node", "ntasks")
    return cpus, next((name for name in names if name in asked.parsed), "")


def _memory_on_a_node(asked: Asked, cpus: int) -> tuple[int, str]:
    if (memory := asked.number("mem")) is not None:
        return memory, "mem"
    if (per_cpu := asked.number("mem-per-cpu")) is not None:
        return per_cpu * cpus, "mem-per-cpu"
    if (per_gpu := asked.number("mem-per-gpu")) is not None:
        return per_gpu * _gpus_on_a_node(asked)[0], "mem-per-gpu"
    return 0, ""


def _total(asked: Asked, option: str) -> int:
    return sum(each.number for each in asked.gpus(option))


def _gpus_on_a_node(asked: Asked) -> tuple[int, str]:
    per_task = _total(asked, "gpus-per-task") * _tasks_on_a_node(asked)
    found = [(_total(asked, name), name) for name in ("gres", "gpus-per-node")]
    return max(*found, (per_task, "gpus-per-task"))


def _type_findings(asked: Asked, partitions: Sequence[PartitionFacts], where: Phrase) -> list[Finding]:
    types = sorted({kind for partition in partitions for kind in partition.gpu_types})
    if not types or not all(partition.gpu_types for partition in partitions):
        return []
    findings = []
    for name in ("gres", "gpus", "gpus-per-node", "gpus-per-task"):
        for gres in asked.gpus(name):
            if gres.kind and gres.kind not in types:
                spot, kind = asked.given[name].value_spot, shown(gres.kind)
                findings.append(problem(spot, "unknown-gpu-type", kind=kind, where=where, types=", ".join(types)))
    return findings


def _time_findings(asked: Asked, partitions: Sequence[PartitionFacts], where: Phrase) -> list[Finding]:
    most = _most(partitions, lambda partition: partition.max_seconds)
    option = asked.given.get("time")
    if most is None or option is None or "time" not in asked.parsed:
        return []
    wanted = asked.number("time")
    if wanted is not None and wanted <= most:
        return []
    return [problem(option.value_spot, "too-long", value=shown(option.value), where=where, most=slurm_time(most))]


def slurm_time(seconds: int) -> str:
    """Seconds as Slurm writes a time limit."""
    days, rest = divmod(seconds, _DAY)
    clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days}-{clock}" if days else clock
