"""`slurmk8s local`: the whole system on one machine, for trying it, for tests and for one person's workstation."""

import os
import subprocess
import sys
from pathlib import Path

import click

from slurmk8s.local.layout import DEFAULT_FOLDER, Layout

FOLDER = click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path),
    default=DEFAULT_FOLDER,
    envvar="SLURMK8S_LOCAL_DIR",
    show_default=True,
    help="Folder of the cluster. After sourcing its env file, that cluster's.",
)


def _layout(folder: Path) -> Layout:
    return Layout(Path(os.path.abspath(folder)))


@click.group()
def local() -> None:
    """A private Slurm with everything on this machine."""


@local.command()
@FOLDER
@click.option("--user", help="Whom it serves. Default: who called sudo, else an account slurmk8s-user that it makes.")
@click.option("--nodes", type=click.IntRange(1, 64), default=1, show_default=True, help="Slurm nodes to pretend.")
@click.option(
    "--gpus", type=click.IntRange(0, 64), default=0, show_default=True, help="GPUs of each node: podman's are fake."
)
@click.option(
    "--backend",
    type=click.Choice(["podman", "kubernetes"]),
    default="podman",
    show_default=True,
    help="What runs the pods.",
)
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="With kubernetes: an admin's, of a cluster whose nodes run on this machine. Default: $KUBECONFIG.",
)
@click.option(
    "--kube-node",
    "kube_nodes",
    multiple=True,
    metavar="NAME",
    help="With kubernetes: its name of the first, second … node. Default: those that are ready.",
)
@click.option("--test-image", is_flag=True, help="Also offer nas-hub.local:5407/debian:test with bash and python3.")
@click.option("--slurm-set", multiple=True, metavar="KEY=VALUE", hidden=True)
@click.option("--set", "settings", multiple=True, metavar="SECTION.KEY=VALUE", hidden=True)
def up(
    *,
    folder: Path,
    user: str | None,
    nodes: int,
    gpus: int,
    backend: str,
    kubeconfig: Path | None,
    kube_nodes: tuple[str, ...],
    test_image: bool,
    slurm_set: tuple[str, ...],
    settings: tuple[str, ...],
) -> None:
    """Start it, or say that it is up; then tell what to do next."""
    from slurmk8s.local import lifecycle
    from slurmk8s.local.plan import Plan, setting, toml_setting

    wanted = Plan(
        folder=folder,
        user=user,
        nodes=nodes,
        gpus=gpus,
        backend=backend,
        kubeconfig=kubeconfig or _own_kubeconfig(backend),
        kube_nodes=kube_nodes,
        test_image=test_image,
        slurm_overrides=dict(map(setting, slurm_set)),
        config_overrides=dict(map(toml_setting, settings)),
    )
    decided, already = lifecycle.up(wanted, lambda sentence: click.echo(f"  {sentence}"))
    layout = decided.plan.layout
    if already and (decided.plan.nodes, decided.plan.gpus) != (nodes, gpus):
        click.echo(
            f"It has {decided.plan.nodes} node(s) with {decided.plan.gpus} GPU(s) each, as it was started; "
            "`slurmk8s local down` first to change that."
        )
    for problem in lifecycle.unready(decided):
        click.echo(f"problem: {problem}", err=True)
    sudo = f"sudo -u {decided.user} -i" if os.environ.get("SUDO_USER") != decided.user else "sh"
    click.echo(f"""\
The cluster in {layout.folder} is {"up already" if already else "up"}; it serves {decided.user}.

  {sudo:<44} # be that person
  . {layout.env!s:<42} # sbatch, squeue and slurmk8s now mean this cluster
  cp my_job.sh {layout.jobs}/submit/
  ls {layout.jobs}/processed {layout.jobs}/failed
  squeue; slurmk8s results                     # what runs, what came back
  ls {layout.results}/

In job files the NAS is /mnt/nas; `sudo {layout.bin}/slurmk8s local shell --dir {layout.folder}` goes where it is.
Stop it: sudo {layout.bin}/slurmk8s local down --dir {layout.folder}""")


def _own_kubeconfig(backend: str) -> Path | None:
    named = os.environ.get("KUBECONFIG")
    return Path(named) if named and backend == "kubernetes" else None


@local.command()
@FOLDER
@click.option("--purge", is_flag=True, help="Also delete its folder with the NAS, the results and the logs.")
def down(folder: Path, purge: bool) -> int:
    """Stop it: no process, mount or container stays; data does. Exit status 1 if something else had to stay."""
    from slurmk8s.local import lifecycle

    layout = _layout(folder)
    stopped = lifecycle.down(layout, purge=purge)
    rest = "is deleted" if purge and not stopped.left else "keeps the NAS and the logs"
    click.echo(f"Stopped; {layout.folder} {rest}." if stopped.was_up else f"No cluster was up in {layout.folder}.")
    for sentence in stopped.left:
        click.echo(f"problem: {sentence}", err=True)
    return 1 if stopped.left else 0


@local.command()
@FOLDER
def status(folder: Path) -> int:
    """Daemons, nodes and queue; exit status 1 if something is wrong."""
    from slurmk8s.local import lifecycle, plan, state
    from slurmk8s.local.machine import search_path

    layout = _layout(folder)
    decided, running = plan.read(layout), state.running(layout)
    if not decided or not running:
        click.echo(f"No cluster is up in {layout.folder}.")
        return 1
    click.echo(f"{decided.plan.folder} serves {decided.user}; supervisor {running.pid}; NAS {layout.nas}\n")
    for name, node in decided.nodes.items():
        if node.kube:
            click.echo(f"  {name:<16} is Kubernetes' {node.kube}")
    for name, daemon in running.daemons.items():
        again = f", started {daemon.starts} times, last {daemon.last_end}" if daemon.starts > 1 else ""
        click.echo(f"  {name:<16} {'runs' if daemon.pid else 'DOWN'}{again}")
    environment = {"PATH": search_path(), "SLURM_CONF": str(layout.slurm_conf)}
    for command in (["sinfo", "--Node", "--long"], ["squeue"]):
        click.echo()
        sys.stdout.flush()
        subprocess.run(command, env=environment, check=False)
    problems = lifecycle.unready(decided)
    for problem in problems:
        click.echo(f"problem: {problem}", err=True)
    return 1 if problems else 0


@local.command()
@FOLDER
def env(folder: Path) -> int:
    """Print the settings to source, which are also in the file `env` below its folder."""
    layout = _layout(folder)
    if not layout.env.exists():
        click.echo(f"No cluster has been up in {layout.folder}.", err=True)
        return 1
    click.echo(layout.env.read_text(encoding="utf-8"), nl=False)
    return 0


@local.command(context_settings={"ignore_unknown_options": True})
@FOLDER
@click.option("--root", is_flag=True, help="As root instead of the person it serves.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def shell(folder: Path, root: bool, command: tuple[str, ...]) -> int:
    """Go inside, where the NAS is /mnt/nas: a shell, or COMMAND."""
    from slurmk8s.local import lifecycle

    return lifecycle.run_inside(_layout(folder), list(command) or ["bash"], root=root)
