"""`slurmk8s agent`: the node's daemon."""

import asyncio
import socket
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from slurmk8s.config import Config
    from slurmk8s.pod.backend import Backend


@click.command()
@click.option("--node", help="This node's name in Slurm. Default: the short host name.")
def agent(node: str | None) -> None:
    """Run the node's agent (as root, one per node, under systemd)."""
    from slurmk8s import config, logs
    from slurmk8s.agent.daemon import Agent
    from slurmk8s.agent.person import require_readable_program
    from slurmk8s.slurm.commands import SlurmCommands

    settings = config.load()
    node = node or socket.gethostname().split(".")[0]
    logs.setup(f"agent_{node}", settings)
    require_readable_program()
    asyncio.run(Agent(node, settings, SlurmCommands(settings.slurm), _backend(settings, node)).serve())


def _backend(settings: "Config", node: str) -> "Backend":
    """What runs the pods; only its own libraries are loaded."""
    if settings.backend == "kubernetes":
        from slurmk8s.pod.kubernetes import Kubernetes

        return Kubernetes(settings, node)
    from slurmk8s.pod.podman import Podman

    work = settings.agent.run_folder_of(node) / "manifests"
    work.mkdir(mode=0o700, parents=True, exist_ok=True)
    return Podman(settings.podman, settings.images, settings.cluster, node, work)
