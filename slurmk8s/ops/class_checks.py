"""Whether the classes that the configuration names exist in Kubernetes and leave the counting to Slurm. Pure."""

from collections.abc import Mapping
from typing import Any

from slurmk8s.config import Config
from slurmk8s.ops.book_checks import Check
from slurmk8s.ops.waiting import listed

Json = dict[str, Any]


def priority_classes(config: Config, found: Mapping[str, Json | None]) -> list[Check]:
    """The PriorityClasses that jobs may have: Slurm has decided who goes first, so they must not pre-empt.

    `found` has None for one that does not exist, and nothing for one that may not be read.
    """
    checks = []
    for name in priorities(config):
        class_ = found.get(name)
        if name not in found:
            checks.append(Check(f"priority {name}", "unknown", "this credential may not read PriorityClasses"))
        elif class_ is None:
            step = f"Make it with preemptionPolicy: Never, or take {name!r} out of the configuration."
            checks.append(Check(f"priority {name}", "differs", "there is no such PriorityClass", step))
        elif class_.get("preemptionPolicy", "PreemptLowerPriority") != "Never":
            step = "Make it anew with preemptionPolicy: Never (it cannot be changed)."
            checks.append(Check(f"priority {name}", "differs", "its pods may pre-empt others", step))
        else:
            checks.append(Check(f"priority {name}", "ok", "its pods pre-empt nobody"))
    return checks


def priorities(config: Config) -> list[str]:
    """All names of PriorityClasses in the configuration."""
    partitions = {each.priority for each in config.partitions.values()}
    profiles = {each.priority for each in config.kubernetes.profiles.values()}
    return sorted({*config.priorities, *partitions, *profiles} - {None}, key=str)  # type: ignore[arg-type]


def runtime_classes(config: Config, found: Mapping[str, Json | None]) -> list[Check]:
    """RuntimeClasses that jobs have: there, and without an overhead that Slurm does not count. `found` as above."""
    checks = []
    for name in runtimes(config):
        class_ = found.get(name)
        overhead = ((class_ or {}).get("overhead") or {}).get("podFixed") or {}
        if name not in found:
            checks.append(Check(f"runtime {name}", "unknown", "this credential may not read RuntimeClasses"))
        elif class_ is None:
            step = f"Make it, or take {name!r} out of the configuration."
            checks.append(Check(f"runtime {name}", "differs", "there is no such RuntimeClass", step))
        elif overhead:
            extra = listed([f"{key} {value}" for key, value in sorted(overhead.items())])
            step = "Keep that much back for each job in slurm.conf, or use a runtime without overhead."
            checks.append(
                Check(f"runtime {name}", "differs", f"each pod costs {extra} that Slurm does not count", step)
            )
        else:
            checks.append(Check(f"runtime {name}", "ok", "it adds nothing that Slurm does not count"))
    return checks


def runtimes(config: Config) -> list[str]:
    """All names of RuntimeClasses in the configuration."""
    names = {config.kubernetes.runtime_class, *(each.runtime_class for each in config.partitions.values())}
    if config.gpu.mode == "pinned":
        names.add(config.gpu.runtime_class)
    return sorted(name for name in names if name)
