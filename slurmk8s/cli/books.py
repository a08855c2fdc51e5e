"""`slurmk8s cluster books`: do Slurm and Kubernetes count the same?"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from slurmk8s.ops.audit import Audit
    from slurmk8s.ops.book_checks import Check

_SHOWN = {"ok": ("OK", "green"), "differs": ("differs", "red"), "unknown": ("not known", "yellow")}


@click.command()
@click.argument("nodes", nargs=-1, metavar="[NODE]...")
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    help="An administrator's credential. Default: $KUBECONFIG, ~/.kube/config, or the head node's.",
)
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def books(nodes: tuple[str, ...], *, kubeconfig: Path | None, as_json: bool) -> int:
    """Compare what Slurm gives to jobs on each NODE (default: on all) with what its kubelet admits.

    Prints the lines for slurm.conf with which both agree, so that a job that gets a whole node starts as well; and
    checks what else keeps the two together: a taint that dedicates the node, the kubelet's CPU manager and limit of
    processes, GPUs, PriorityClasses that pre-empt nobody. Each point that differs comes with the next step.
    Exit status 1 if something differs.
    """
    from slurmk8s.config import load
    from slurmk8s.kube.connection import of_admin
    from slurmk8s.ops.audit import audit
    from slurmk8s.slurm.programs import Programs

    config = load()
    kube = of_admin(kubeconfig, config.kubernetes.head_kubeconfig, config.kubernetes.request_seconds)
    found = audit(config, Programs(config.slurm), kube, nodes)
    if as_json:
        click.echo(json.dumps(found.to_json(), ensure_ascii=False, indent=2))
    else:
        _show(found)
    return 0 if found.agrees else 1


def _show(found: "Audit") -> None:
    for node in found.nodes:
        other = "" if node.kube_name == node.name else f" (in Kubernetes {node.kube_name})"
        click.secho(f"{node.name}{other}", bold=True)
        _rows(node.checks)
    if found.cluster:
        click.secho("all nodes", bold=True)
        _rows(found.cluster)
    lines = [node.conf_line for node in found.nodes if node.conf_line]
    if lines:
        click.echo("\nThe most that slurm.conf may say, each in its node's own line:")
        for line in lines:
            click.echo(f"  {line}")
    if found.agrees:
        click.echo("\nThe books agree.")


def _rows(checks: Iterable["Check"]) -> None:
    checks = list(checks)
    width = max(len(check.what) for check in checks)
    for check in checks:
        word, colour = _SHOWN[check.verdict]
        click.echo(f"  {click.style(f'{word:<9}', fg=colour)}  {check.what:<{width}}  {check.found}")
        if check.step:
            click.echo(f"  {'':<9}  {'':<{width}}  → {check.step}")
