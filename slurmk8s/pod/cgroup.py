"""What a container uses, by its control group's own files: two small reads, and no work in the job.

Memory is what processes hold (anonymous and shared pages, /dev/shm among them). The page cache is the kernel's own use
of memory that nobody else wants: a job that only reads a large file would seem to need all it was given.
"""

from dataclasses import dataclass
from pathlib import Path

# Where distributions mount the controller that counts CPU time (version 1).
_CPU_NAMES = ("cpuacct", "cpu,cpuacct", "cpuacct,cpu")


@dataclass(frozen=True)
class Group:
    """The files of one container's control group."""

    cpu: Path
    """`cpu.stat` (version 2), or `cpuacct.usage` (version 1)."""
    memory: Path
    """`memory.stat`."""


@dataclass(frozen=True)
class Reading:
    """What a container has used so far, and holds now."""

    cpu_seconds: float
    memory: int
    """Bytes."""


def of_process(proc: Path, root: Path, pid: int) -> Group | None:
    """The control group of a process; `root` is where the hierarchy is mounted (/sys/fs/cgroup).

    None if it has none of its own, or not in this hierarchy: the whole machine's figures would be taken for the job's.
    """
    try:
        lines = (proc / str(pid) / "cgroup").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    folders: dict[str, str] = {}
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, folder = rest.partition(":")
        folders.update(dict.fromkeys(controllers.split(","), folder))
    if "memory" in folders:  # version 1, also where version 2 is mounted beside it
        mounts = [name for name in _CPU_NAMES if (root / name).is_dir()]
        cpu = _inside(root / mounts[0], folders.get("cpuacct")) if mounts else None
        memory = _inside(root / "memory", folders["memory"])
        return Group(cpu / "cpuacct.usage", memory / "memory.stat") if cpu and memory else None
    unified = _inside(root, folders.get(""))
    return Group(unified / "cpu.stat", unified / "memory.stat") if unified else None


def _inside(mount: Path, folder: str | None) -> Path | None:
    """A group below the root one.

    The kernel tells it as seen from our own: to an agent in a control group namespace of its own, one outside begins
    with `..`. The mount then is one that shows the whole machine; the name, a container's id, is the same there.
    """
    parts = [part for part in (folder or "").split("/") if part]
    while parts and parts[0] == "..":
        parts.pop(0)
    if not parts or ".." in parts:
        return None
    found = mount.joinpath(*parts)
    return found if found.is_dir() else None


def read(group: Group) -> Reading | None:
    """The figures now; None if the container is gone."""
    try:
        cpu = group.cpu.read_text(encoding="ascii")
        memory = _counters(group.memory.read_text(encoding="ascii"))
        if group.cpu.name == "cpu.stat":
            return Reading(_counters(cpu)["usage_usec"] / 1e6, memory["anon"] + memory["shmem"])
        return Reading(int(cpu) / 1e9, memory["total_rss"] + memory["total_shmem"])
    except (OSError, KeyError, ValueError):
        return None


def _counters(text: str) -> dict[str, int]:
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2}
