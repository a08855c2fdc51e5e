"""`slurmk8s why`: why a job waits, what it does, how it ended."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from slurmk8s.cli.results import results_root

if TYPE_CHECKING:
    from slurmk8s.config import Config
    from slurmk8s.kube.client import Kube


@click.command()
@click.argument("job")
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    help="A Kubernetes credential, to look at the job's pod as well. Default: $KUBECONFIG, ~/.kube/config, or the "
    "head node's, if there is one.",
)
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def why(job: str, *, kubeconfig: Path | None, as_json: bool) -> int:
    """Say in one sentence why JOB waits, what it is doing, or how it ended, and how that is known.

    JOB is a number, or 123_4 for a task of an array. Works for pending, running and ended jobs, and needs no
    Kubernetes credential. Exit status 0 if there is an answer, 1 if the job is not known or Slurm does not answer.
    """
    from slurmk8s.config import load
    from slurmk8s.ops import evidence
    from slurmk8s.ops.why import explain
    from slurmk8s.slurm.commands import SlurmCommands

    config = load()
    kube = _kube(config, kubeconfig)
    answer = explain(evidence.gather(job, config, SlurmCommands(config.slurm), results_root(), kube))
    if as_json:
        click.echo(json.dumps(answer.to_json(), ensure_ascii=False, indent=2))
    else:
        click.echo(answer.sentence)
        if answer.step:
            click.echo(f"  {answer.step}")
        click.echo()
        for line in answer.evidence:
            click.echo(click.style(f"  {line}", dim=True))
    return 0 if answer.known else 1


def _kube(config: "Config", named: Path | None) -> "Kube | None":
    """A connection, if there is a credential; one that was named must be there."""
    if named is None and config.backend != "kubernetes":
        return None
    head = config.kubernetes.head_kubeconfig
    own = (os.environ.get("KUBECONFIG"), Path("~/.kube/config").expanduser().exists(), os.access(head, os.R_OK))
    if named is None and not any(own):
        return None  # before the client is imported: most people have no credential, and it takes a moment
    from slurmk8s.errors import SetupError
    from slurmk8s.kube.connection import of_admin

    try:
        return of_admin(named, head, config.kubernetes.request_seconds)
    except SetupError:
        if named is not None:
            raise
        return None
