"""Which daemons a local cluster has, in the order in which they need each other."""

import shutil
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from slurmk8s.local.machine import search_path
from slurmk8s.local.namespace import cluster_environment
from slurmk8s.local.plan import Decided


@dataclass(frozen=True)
class Daemon:
    """One program that is started and kept alive."""

    name: str
    command: tuple[str, ...]
    ready: Callable[[], bool]
    """Whether it answers."""
    environment: Mapping[str, str]
    user: str | None = None
    others_wait: bool = False
    """Whether those after it are started only once it is ready."""


def all_daemons(decided: Decided) -> list[Daemon]:
    """In starting order; they are stopped the other way round."""
    plan, ports, layout = decided.plan, decided.ports, decided.plan.layout
    slurm = dict(cluster_environment(layout))
    podman = {} if plan.on_kubernetes else layout.podman_environment
    ours = {**slurm, **podman, "PYTHONUNBUFFERED": "1"}
    slurmk8s = str(layout.bin / "slurmk8s")
    daemons = [
        Daemon(
            "munged",
            (
                _program("munged"),
                "--foreground",
                f"--socket={layout.munge_socket}",
                f"--key-file={layout.munge}/munge.key",
                f"--pid-file={layout.munge}/munged.pid",
                f"--seed-file={layout.munge}/munge.seed",
                f"--log-file={layout.munge}/munged.log",
            ),
            lambda: _listens_unix(layout.munge_socket),
            {"PATH": search_path()},
            user="munge",
            others_wait=True,
        ),
    ]
    if not plan.on_kubernetes:
        daemons.append(
            Daemon(
                "registry",
                (_program("docker-registry"), "serve", str(layout.etc / "registry.yml")),
                lambda: _listens_tcp(ports.registry),
                {"PATH": search_path(), "OTEL_TRACES_EXPORTER": "none"},
            )
        )
    daemons.append(
        Daemon(
            "slurmctld", (_program("slurmctld"), "-D"), lambda: _listens_tcp(ports.slurmctld), slurm, others_wait=True
        )
    )
    daemons += [
        Daemon(f"slurmd-{name}", (_program("slurmd"), "-D", "-N", name), _ready_on(ports.slurmd[name]), slurm)
        for name in plan.node_names
    ]
    if plan.services:
        daemons += [
            Daemon(f"agent-{name}", (slurmk8s, "agent", "--node", name), _answers(layout.run / name), ours)
            for name in plan.node_names
        ]
        daemons.append(Daemon("watch", (slurmk8s, "watch"), _at_once, ours))
    return daemons


def _program(name: str) -> str:
    return shutil.which(name, path=search_path()) or name


def _at_once() -> bool:
    return True


def _answers(folder: Path) -> Callable[[], bool]:
    def connect() -> bool:
        with socket.socket(socket.AF_UNIX) as client:
            return client.connect_ex(str(folder / "agent.sock")) == 0

    return connect


def _ready_on(port: int) -> Callable[[], bool]:
    return lambda: _listens_tcp(port)


# The kernel's own lists, not a trial connection: each daemon logs one that says nothing as an error.
def _listens_tcp(port: int) -> bool:
    for family in ("tcp", "tcp6"):
        path = Path("/proc/net") / family
        lines = path.read_text(encoding="ascii").splitlines()[1:] if path.exists() else []
        if any(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A" for line in lines):
            return True
    return False


def _listens_unix(path: Path) -> bool:
    listening = Path("/proc/net/unix").read_text(encoding="utf-8", errors="replace").split()
    return path.is_socket() and str(path) in listening
