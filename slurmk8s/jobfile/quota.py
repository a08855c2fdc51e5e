"""A job that alone asks for more than its person may hold could never start: it is told at once, with the numbers.

One that does not fit only because of the person's other jobs is another matter: it waits.
"""

from slurmk8s.jobfile.asked import Asked
from slurmk8s.jobfile.facts import Limits
from slurmk8s.jobfile.finding import Finding, problem
from slurmk8s.jobfile.phrase import Phrase, phrase

_GPU_OPTIONS = ("gres", "gpus", "gpus-per-node", "gpus-per-task")


def exceeds(cpus: int, memory_mb: int, gpus: int, limits: Limits) -> str | None:
    """One English sentence with the numbers if this is more than one person may hold; None if it fits."""
    over = [
        (_amount(kind, asked), _amount(kind, most))
        for kind, asked, most in (
            ("CPU", cpus, limits.cpus),
            ("memory", memory_mb, limits.memory_mb),
            ("GPU", gpus, limits.gpus),
        )
        if most is not None and asked > most
    ]
    if not over:
        return None
    asked_for, allowed = (" and ".join(map(str, amounts)) for amounts in zip(*over, strict=True))
    return f"The job asks for {asked_for}, and one person may hold {allowed} at the same time."


def quota_findings(asked: Asked, limits: Limits) -> list[Finding]:
    """The same from a job file: a finding at each line that asks for too much."""
    tasks, task_options = _tasks(asked)
    gpus, gpu_option = _gpus(asked, tasks)
    cpus, cpu_option = _cpus(asked, tasks, task_options, gpus)
    memory, memory_option = _memory(asked, cpus, gpus)
    findings = []
    for kind, number, option, most in (
        ("CPU", cpus, cpu_option, limits.cpus),
        ("memory", memory, memory_option, limits.memory_mb),
        ("GPU", gpus, gpu_option, limits.gpus),
    ):
        if most is None or number <= most or option not in asked.given:
            continue
        spot, code = asked.given[option].spot, f"over-quota-{kind.lower()}"
        findings.append(problem(spot, "over-quota", code=code, asked=_amount(kind, number), most=_amount(kind, most)))
    return findings


def amounts(asked: Asked) -> tuple[int, int, int]:
    """CPUs, megabytes of memory (0: the file does not say) and GPUs that the options ask for."""
    tasks, task_options = _tasks(asked)
    gpus, _ = _gpus(asked, tasks)
    cpus, _ = _cpus(asked, tasks, task_options, gpus)
    return cpus, _memory(asked, cpus, gpus)[0], gpus


def _amount(kind: str, number: int) -> Phrase:
    if kind == "memory":
        whole = number and number % 1024 == 0
        return phrase("memory", amount=f"{number // 1024}G" if whole else f"{number}M")
    if number == 1:
        return phrase("one-cpu" if kind == "CPU" else "one-gpu")
    return phrase("cpus" if kind == "CPU" else "gpus", number=number)


def _tasks(asked: Asked) -> tuple[int, list[str]]:
    """How many tasks there are in all, and the options that say so."""
    if (tasks := asked.number("ntasks")) is not None:
        return tasks, ["ntasks"]
    names = [name for name in ("ntasks-per-node", "tasks-per-node") if asked.number(name)]
    nodes, _ = asked.nodes()
    return (asked.number(names[0]) or 1) * nodes if names else 1, names


def _cpus(asked: Asked, tasks: int, task_options: list[str], gpus: int) -> tuple[int, str]:
    nodes, _ = asked.nodes()
    options = [name for name in ("cpus-per-task", *task_options) if asked.number(name)]
    # The largest factor is what one would change.
    largest = max(options, key=lambda name: asked.number(name) or 0, default="")
    return max(
        ((asked.number("cpus-per-task") or 1) * tasks, largest),
        ((asked.number("mincpus") or 0) * nodes, "mincpus"),
        ((asked.number("cpus-per-gpu") or 0) * gpus, "cpus-per-gpu"),
    )


def _memory(asked: Asked, cpus: int, gpus: int) -> tuple[int, str]:
    """Slurm's own default, and the whole node that `--mem=0` means, are not known here: the agent counts them."""
    nodes, _ = asked.nodes()
    return max(
        ((asked.number("mem") or 0) * nodes, "mem"),
        ((asked.number("mem-per-cpu") or 0) * cpus, "mem-per-cpu"),
        ((asked.number("mem-per-gpu") or 0) * gpus, "mem-per-gpu"),
    )


def _gpus(asked: Asked, tasks: int) -> tuple[int, str]:
    nodes, _ = asked.nodes()
    times = {"gres": nodes, "gpus": 1, "gpus-per-node": nodes, "gpus-per-task": tasks}
    return max((sum(gpu.number for gpu in asked.gpus(name)) * times[name], name) for name in _GPU_OPTIONS)
