"""Take parts of a local cluster away and bring them back: daemons that stay down, a node that loses its power."""

import contextlib
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def down(cluster: Any, *names: str) -> Iterator[None]:
    """kill -9, and nobody starts them again until the end of the block: the supervisor, who would, is stopped."""
    old = {name: cluster.daemon(name) for name in names}
    os.kill(cluster.pid, signal.SIGSTOP)
    try:
        for pid in old.values():
            os.kill(pid, signal.SIGKILL)
        yield
    finally:
        os.kill(cluster.pid, signal.SIGCONT)
    for name, pid in old.items():
        cluster.restarted(name, pid)


@contextlib.contextmanager
def node_lost(cluster: Any, node: str, job_id: int) -> Iterator[None]:
    """slurmd, the agent and all processes of the job die at once; at the end of the block the node is up again.

    The machine, and with it podman's or Kubernetes' own processes, is shared with the other node, and lives on.
    """
    with down(cluster, f"slurmd-{node}", f"agent-{node}"):
        for pid in job_processes(cluster, job_id):
            with contextlib.suppress(ProcessLookupError):  # a namespace's first has gone, and all others with it
                os.kill(pid, signal.SIGKILL)
        yield


def job_processes(cluster: Any, job_id: int) -> list[int]:
    """slurmstepd, slurmk8s-run and what runs in the pod, as the host counts."""
    steps = processes(cluster, rf"slurmstepd: \[{job_id}\.|job0*{job_id}/")
    return steps + processes_of(cluster.runtime.mark(cluster, job_id))


def processes(cluster: Any, pattern: str) -> list[int]:
    """Processes of this cluster whose command line matches, as the host counts."""
    namespace = os.readlink(f"/proc/{cluster.daemon('slurmctld')}/ns/pid")
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if os.readlink(entry / "ns/pid") == namespace and re.search(pattern, command):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def processes_of(mark: str) -> list[int]:
    """Processes whose control group names a pod or a container."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (entry / "cgroup").read_text():
                found.append(int(entry.name))
        except OSError:
            continue
    return found
