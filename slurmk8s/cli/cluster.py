"""`slurmk8s cluster`: what an admin sets up in Kubernetes once, and looks after."""

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from slurmk8s.config import Config
    from slurmk8s.kube.client import Kube

LATER = {"books": ("slurmk8s.cli.books", "books")}
"""Commands in files of their own, imported when asked for."""


class ClusterGroup(click.Group):
    """The commands here, and those in files of their own."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All of them."""
        return [*super().list_commands(ctx), *LATER]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's own file."""
        if cmd_name not in LATER:
            return super().get_command(ctx, cmd_name)
        module, attribute = LATER[cmd_name]
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command


@click.group(cls=ClusterGroup)
def cluster() -> None:
    """Set up slurmk8s in Kubernetes; for admins."""


@cluster.command()
@click.option(
    "--node", "nodes", multiple=True, metavar="NODE", help="A node with an agent, by Kubernetes' name; may be repeated."
)
def rbac(nodes: tuple[str, ...]) -> None:
    r"""Print accounts, roles and admission policies for this configuration, as YAML to apply.

    \b
    slurmk8s cluster rbac --node gpu01 --node gpu02 | kubectl apply -f -

    Again after a change of mounts, registries, priorities or nodes in the configuration: the policies hold them.
    """
    from slurmk8s.config import load
    from slurmk8s.kube.policy import render

    click.echo(render(load(), nodes), nl=False)


@cluster.command()
@click.option("--node", metavar="NODE", help="For the agent on this node, by Kubernetes' name.")
@click.option("--head", is_flag=True, help="For the watcher on the head node.")
@click.option(
    "--days",
    default=365,
    show_default=True,
    type=click.IntRange(min=0),
    help="How long it is valid; 0: until its Secret is deleted.",
)
@click.option(
    "--kubeconfig",
    "path",
    type=click.Path(path_type=Path),
    help="An admin's kubeconfig; else $KUBECONFIG or ~/.kube/config.",
)
def kubeconfig(node: str | None, head: bool, days: int, path: Path | None) -> None:
    r"""Print the kubeconfig of a node's agent, or of the head node.

    \b
    slurmk8s cluster kubeconfig --node gpu01 | ssh root@gpu01 'umask 077; cat >/etc/slurmk8s/kubeconfig'
    slurmk8s cluster kubeconfig --head       | (umask 077; cat >/etc/slurmk8s/head.kubeconfig)

    `slurmk8s cluster rbac` comes first.
    """
    if (node is None) == (not head):
        raise click.UsageError("Say for whom: --node NODE or --head.")
    from slurmk8s.config import load
    from slurmk8s.kube import credentials

    config = load()
    kube = admin(config, path)
    if node is None:
        click.echo(credentials.head_kubeconfig(kube, config, days), nl=False)
        return
    _require_node(kube, node)
    click.echo(credentials.agent_kubeconfig(kube, config, node, days), nl=False)


def _require_node(kube: "Kube", node: str) -> None:
    """The credential is good for exactly that name, so a wrong one would be noticed only at the first job."""
    from slurmk8s.errors import SetupError

    if kube.find(f"/api/v1/nodes/{node}") is None:
        names = ", ".join(each["metadata"]["name"] for each in kube.items("/api/v1/nodes"))
        raise SetupError(f"Kubernetes has no node {node}.", f"It has: {names or 'none'}.")


def admin(config: "Config", path: Path | None) -> "Kube":
    """The connection of the admin who typed the command."""
    from slurmk8s.kube.connection import of_admin

    settings = config.kubernetes
    return of_admin(path, settings.head_kubeconfig, settings.request_seconds)
