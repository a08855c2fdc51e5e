"""The namespaces of a local cluster: made once by the supervisor's start, entered by whoever must see inside.

PID namespace: its PID 1 is the supervisor, so its end is the end of every process. Mount namespace: the NAS at the
guide's path, private places for what podman and the CNI plugins keep outside their own folders (a kubelet's pods live
outside, so for them the run folder is shared with the host: sharing.py). Cgroup namespace: all
cgroups of its pods are below one of the cluster's own, so that they can be found and removed. The network stays the
host's: Slurm's clients and the registry must be reachable.
"""

import contextlib
import ctypes
import os
import pwd
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from slurmk8s.local.layout import LOG_MOUNT, NAS_MOUNT, Layout
from slurmk8s.local.machine import search_path
from slurmk8s.local.plan import Plan
from slurmk8s.local.sharing import keep_the_rest_inside

CLONE_NEWCGROUP = 0x02000000
LEAF = "supervisor"
"""cgroup v2 lets no cgroup hold both processes and children: ours live in this one."""


@dataclass(frozen=True)
class Hierarchy:
    """One mounted cgroup hierarchy: v1 has one per controller, v2 has one."""

    mount: Path
    kind: str
    options: str


def hierarchies() -> list[Hierarchy]:
    """As mounted here, the outermost first."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        left, _, right = line.partition(" - ")
        kind, _, options = right.split(" ", 2)
        if kind in ("cgroup", "cgroup2"):
            kept = [word for word in options.split(",") if word not in ("rw", "ro") and "release_agent" not in word]
            found.append(Hierarchy(Path(left.split()[4]), kind, ",".join(kept)))
    return found


def start(plan: Plan) -> None:
    """Become the cluster's outermost process: join a cgroup of its own, then exec into fresh namespaces."""
    layout = plan.layout
    for hierarchy in hierarchies():
        own = hierarchy.mount / layout.cluster
        own.mkdir(exist_ok=True)
        for name in ("cpuset.cpus", "cpuset.mems"):  # v1: a new cpuset is empty, and nothing can run in it
            with contextlib.suppress(OSError):
                (own / name).write_text((hierarchy.mount / name).read_text())
        (own / "cgroup.procs").write_text(str(os.getpid()))
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWCGROUP):
        raise OSError(ctypes.get_errno(), "unshare(CLONE_NEWCGROUP)")
    for hierarchy in hierarchies():
        if hierarchy.kind == "cgroup2":
            leaf = hierarchy.mount / layout.cluster / LEAF
            leaf.mkdir(exist_ok=True)
            (leaf / "cgroup.procs").write_text(str(os.getpid()))
    command = [sys.executable, "-I", "-m", "slurmk8s.local.supervisor", str(layout.folder)]
    propagation = "unchanged" if plan.on_kubernetes else "private"
    flags = ["--mount", "--pid", "--fork", "--kill-child", "--propagation", propagation]
    os.execvp("unshare", ["unshare", *flags, *command])  # noqa: S606 - arguments are ours


def furnish(plan: Plan) -> int:
    """As PID 1 of the new namespaces: mount what is private; our process id as the host counts it."""
    layout = plan.layout
    outer = int(Path("/proc/self").readlink().name)  # this /proc is still the host's
    before = hierarchies()
    if plan.on_kubernetes:
        keep_the_rest_inside(layout)
        layout.host_proc.parent.mkdir(mode=0o700, exist_ok=True)
        for way, outside, inside in (
            ("--bind", "/proc", layout.host_proc),
            ("--rbind", "/sys/fs/cgroup", layout.host_cgroups),
        ):
            inside.mkdir(exist_ok=True)
            _mount(way, outside, str(inside))
    _mount("-t", "proc", "proc", "/proc")
    _remount_cgroups(before)
    if not plan.on_kubernetes:
        _furnish_for_podman(layout)
    for source, target in ((layout.nas, NAS_MOUNT), (layout.log, LOG_MOUNT)):
        target.mkdir(parents=True, exist_ok=True)
        _mount("--bind", str(source), str(target))
    return outer


def _furnish_for_podman(layout: Layout) -> None:
    _tmpfs(layout.run, "0755")
    # podman's locks, network namespaces and runc's state have fixed places, which a second cluster (or the
    # machine's own podman) must not share, and which must be gone after a crash.
    _tmpfs(Path("/dev/shm"), "1777")  # noqa: S108 - the kernel's own place
    for place in (Path("/run/netns"), Path("/run/runc")):
        place.mkdir(exist_ok=True)
        _tmpfs(place, "0755")
    Path("/var/lib/cni").mkdir(parents=True, exist_ok=True)
    _tmpfs(Path("/var/lib/cni"), "0755")


def _remount_cgroups(before: Sequence[Hierarchy]) -> None:
    """Show the cluster's own cgroup as the root, as a container runtime does for its guests."""
    for hierarchy in reversed(before):
        subprocess.run(["umount", "-l", str(hierarchy.mount)], check=False)
    for hierarchy in before:
        hierarchy.mount.mkdir(exist_ok=True)
        flags = ["-o", hierarchy.options] if hierarchy.options and hierarchy.kind == "cgroup" else []
        if "name=" in hierarchy.options:
            flags = ["-o", f"none,{hierarchy.options}"]
        _mount("-t", hierarchy.kind, *flags, hierarchy.kind, str(hierarchy.mount))
        if hierarchy.kind == "cgroup2":
            for controller in (hierarchy.mount / "cgroup.controllers").read_text().split():
                with contextlib.suppress(OSError):  # one that v1 or the host keeps
                    (hierarchy.mount / "cgroup.subtree_control").write_text(f"+{controller}")


def _tmpfs(place: Path, mode: str) -> None:
    place.mkdir(parents=True, exist_ok=True)
    _mount("-t", "tmpfs", "-o", f"mode={mode}", "slurmk8s", str(place))


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def enter(pid: int, command: Sequence[str], person: pwd.struct_passwd | None = None, folder: str = "/") -> list[str]:
    """The command line that runs `command` inside, as root or as a person."""
    entering = ["nsenter", "--target", str(pid), "--mount", "--pid", "--cgroup"]
    if person:
        entering += ["setpriv", f"--reuid={person.pw_uid}", f"--regid={person.pw_gid}", "--init-groups"]
    return [*entering, "env", "-C", folder, *command]


def environment(layout: Layout, person: pwd.struct_passwd | None = None) -> dict[str, str]:
    """What a program inside sees; nothing of the caller's leaks in but the terminal and the language."""
    kept = {name: os.environ[name] for name in ("TERM", "LANG", "LC_ALL", "TZ") if name in os.environ}
    account = person or pwd.getpwuid(0)
    who = {"USER": account.pw_name, "LOGNAME": account.pw_name, "HOME": account.pw_dir, "SHELL": account.pw_shell}
    return {**kept, **who, **cluster_environment(layout), **(layout.podman_environment if person is None else {})}


def cluster_environment(layout: Layout) -> Mapping[str, str]:
    """As in the file that people source, but with the paths that hold inside."""
    return {
        "PATH": f"{layout.bin}:{search_path()}",
        "SLURM_CONF": str(layout.slurm_conf),
        "SLURMK8S_CONFIG": str(layout.config),
        "SLURMK8S_LOCAL_DIR": str(layout.folder),
        "SLURMK8S_RESULTS_ROOT": str(layout.results),
    }


def remove_cgroups(layout: Layout, seconds: float = 5) -> None:
    """Remove the cluster's cgroups, once every process in them is dead."""
    deadline = time.monotonic() + seconds
    for hierarchy in hierarchies():
        own = hierarchy.mount / layout.cluster
        while own.is_dir():
            for folder, _, _ in os.walk(own, topdown=False):
                with contextlib.suppress(OSError):  # still dying, or gone
                    os.rmdir(folder)
            if time.monotonic() > deadline:
                break
            time.sleep(0.02)
