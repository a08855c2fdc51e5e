"""`slurmk8s image`: bring images to nodes before jobs wait for them, and see what is where."""

import os
import shutil
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import click

if TYPE_CHECKING:
    from slurmk8s.config import Config
    from slurmk8s.kube.client import Kube
    from slurmk8s.ops.images import Held, Stage, Target, Task

COLOURS = {"present": "green", "pulled": "green", "failed": "red", "pulling": "cyan", "waiting": None}
SHORTEST_NEWS = 20
CLEAR = "\033[2K"


class Puller(Protocol):
    """What pulls: on a cluster or on this machine."""

    stages: "dict[Task, Stage]"

    def run(self, show: Callable[[], None]) -> None:
        """Pull all, and call `show` again and again meanwhile."""


@click.group()
def image() -> None:
    """Container images on the nodes: bring them there ahead of jobs, see which are there."""


def _which_nodes(command: Callable[..., object]) -> Callable[..., object]:
    options = (
        click.option("-p", "--partition", help="Only the nodes that Slurm has in this partition."),
        click.option("-w", "--node", "nodes", multiple=True, help="Only this node; may be given several times."),
        click.option(
            "--kubeconfig",
            type=click.Path(dir_okay=False, path_type=Path),
            help="Credential to use. Default: $KUBECONFIG, else ~/.kube/config.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@image.command()
@click.argument("images", nargs=-1, required=True, metavar="IMAGE...")
@_which_nodes
@click.option(
    "--at-once", default=8, show_default=True, type=click.IntRange(1, 100), help="Nodes that pull at the same time."
)
def prepull(
    images: tuple[str, ...], partition: str | None, nodes: tuple[str, ...], kubeconfig: Path | None, at_once: int
) -> int:
    """Pull IMAGEs on every node, so that no job waits for it; a bare name means the site's registry.

    On Kubernetes by a short pod per node; with podman on this machine only. Exit status 1 if any node lacks an image
    afterwards.
    """
    from slurmk8s.config import load
    from slurmk8s.ops.images import full_name

    config = load()
    wanted = [full_name(name, config) for name in dict.fromkeys(images)]
    puller: Puller
    if config.backend == "podman":
        from slurmk8s.ops import podman

        podman.require_root()
        puller = podman.Prepull(config, _this_node(partition, nodes), wanted)
    else:
        from slurmk8s.ops.prepull import Prepull

        kube = _kube(kubeconfig, config)
        chosen, _ = _chosen(kube, config, partition, nodes)
        puller = Prepull(kube, config, [(node, name) for name in wanted for node in chosen], at_once)
    # Ended by kill as by Ctrl-C, no pod of ours stays.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    begun = time.monotonic()
    _follow(puller)
    counts = Counter(stage.word for stage in puller.stages.values())
    words = ", ".join(f"{counts[word]} {word}" for word in ("pulled", "present", "failed") if counts[word])
    click.echo(f"{words or 'no node'}, in {time.monotonic() - begun:.0f} s")
    return 1 if counts["failed"] or not counts else 0


def _follow(puller: Puller) -> None:
    """On a terminal one line per node and image that is written over; else, or if they do not fit, one per change."""
    room = shutil.get_terminal_size()
    widest = max((len(node.name) + len(name) for node, name in puller.stages), default=0)
    fits = len(puller.stages) < room.lines - 1 and widest + SHORTEST_NEWS < room.columns
    if fits and sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
        _write_over(puller, room.columns)
        return
    said: dict[Task, str] = {}

    def show() -> None:
        for (node, name), stage in puller.stages.items():
            news = stage.word + stage.sentence
            if said.get((node, name)) != news:
                said[node, name] = news
                text = stage.word if not stage.is_final and not stage.sentence else str(stage)
                click.echo(f"{node.name}: {name}: {text}")

    puller.run(show)


def _write_over(puller: Puller, columns: int) -> None:
    """A line that wraps would take two, so it is cut to the terminal's width, and shown whole at the end."""
    nodes = max((len(node.name) for node, _ in puller.stages), default=0)
    names = max((len(name) for _, name in puller.stages), default=0)
    colour = not os.environ.get("NO_COLOR")
    up = ""

    def show(*, whole: bool = False) -> None:
        nonlocal up
        lines = []
        for (node, name), stage in puller.stages.items():
            place = f"{node.name:{nodes}}  {name:{names}}  "
            text = str(stage) if whole else str(stage)[: max(columns - len(place) - 1, 0)]
            lines.append(CLEAR + place + (click.style(text, fg=COLOURS[stage.word]) if colour else text) + "\n")
        sys.stdout.write(up + "".join(lines))
        sys.stdout.flush()
        up = f"\033[{len(lines)}A"

    try:
        puller.run(show)
    finally:
        show(whole=True)


@image.command(name="list")
@_which_nodes
@click.option("--all", "everything", is_flag=True, help="Also images that jobs may not use.")
def list_images(partition: str | None, nodes: tuple[str, ...], kubeconfig: Path | None, *, everything: bool) -> None:
    """Show which images are on which node, and their size.

    On Kubernetes as the kubelets report it: their largest images (50, unless told otherwise), a minute old at most.
    """
    from slurmk8s.config import load
    from slurmk8s.ops import images

    config = load()
    found: list[Held]
    if config.backend == "podman":
        from slurmk8s.ops import podman

        podman.require_root()
        found = podman.held(config, _this_node(partition, nodes), everything)
    else:
        kube = _kube(kubeconfig, config)
        chosen, known = _chosen(kube, config, partition, nodes)
        found = images.held(known, chosen, config, everything)
    _show(found, everything)


def _show(found: "list[Held]", everything: bool) -> None:
    from slurmk8s.results.summary_text import printable, size

    if not found:
        more = "" if everything else " that jobs may use; --all shows the others"
        click.echo(f"There is no image{more}.", err=True)
        return
    rows = [("NODE", "IMAGE", "SIZE"), *((held.node, printable(held.image), size(held.size)) for held in found)]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for node, name, amount in rows:
        click.echo(f"{node:{widths[0]}}  {name:{widths[1]}}  {amount:>10}")


def _kube(kubeconfig: Path | None, config: "Config") -> "Kube":
    from slurmk8s.kube.connection import of_admin

    return of_admin(kubeconfig, config.kubernetes.head_kubeconfig, config.kubernetes.request_seconds)


def _chosen(
    kube: "Kube", config: "Config", partition: str | None, names: tuple[str, ...]
) -> "tuple[list[Target], list[dict[str, object]]]":
    """The nodes that are meant, and all as Kubernetes describes them."""
    from slurmk8s.ops import images

    if partition is not None:
        from slurmk8s.slurm.programs import Programs

        names = (*names, *images.slurm_nodes(partition, Programs(config.slurm)))
    known = kube.items("/api/v1/nodes")
    return images.targets(known, config, names), known


def _this_node(partition: str | None, names: tuple[str, ...]) -> "Target":
    """podman is one machine's: another node's images are seen and pulled there."""
    from slurmk8s.errors import SetupError
    from slurmk8s.ops.images import Target

    here = socket.gethostname().partition(".")[0]
    if partition is not None or any(name not in (here, "localhost") for name in names):
        raise SetupError(
            "With the podman backend this command sees its own machine only.",
            "Call it on the node itself, without --partition and --node.",
        )
    return Target(here, here)
