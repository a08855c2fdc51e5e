"""`slurmk8s agent`: the node's daemon."""

import asyncio
import socket

import click


@click.command()
@click.option("--node", help="This node's name in Slurm. Default: the short host name.")
def agent(node: str | None) -> None:
    """Run the node's agent (as root, one per node, under systemd)."""
    from slurmk8s import config, logs
    from slurmk8s.agent.daemon import Agent
    from slurmk8s.agent.person import require_readable_program
    from slurmk8s.errors import SetupError
    from slurmk8s.pod.podman import Podman
    from slurmk8s.slurm.commands import SlurmCommands

    settings = config.load()
    node = node or socket.gethostname().split(".")[0]
    logs.setup(f"agent_{node}", settings)
    if settings.backend != "podman":
        raise SetupError(f"The backend {settings.backend!r} is not there yet.", 'Set backend = "podman".')
    require_readable_program()
    work = settings.agent.run_folder_of(node) / "manifests"
    work.mkdir(mode=0o700, parents=True, exist_ok=True)
    backend = Podman(settings.podman, settings.images, settings.cluster, node, work)
    asyncio.run(Agent(node, settings, SlurmCommands(settings.slurm), backend).serve())
