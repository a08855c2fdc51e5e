"""The `slurmk8s` command: one file per command here, loaded only when it is called.

Commands parse arguments, read the configuration and print. They hold no logic of the journey itself.
"""

import importlib
import os
import sys
from typing import Any

import click

from slurmk8s import __version__
from slurmk8s.errors import SlurmK8sError

# name: (module, attribute); the order is the order of the help page, which follows a job's journey.
COMMANDS = {
    "check": ("slurmk8s.cli.check", "check"),
    "watch": ("slurmk8s.cli.watch", "watch"),
    "intake": ("slurmk8s.cli.intake", "intake"),
    "agent": ("slurmk8s.cli.agent", "agent"),
    "status": ("slurmk8s.cli.status", "status"),
    "why": ("slurmk8s.cli.why", "why"),
    "results": ("slurmk8s.cli.results", "results"),
    "logs": ("slurmk8s.cli.results", "logs"),
    "verify": ("slurmk8s.cli.results", "verify"),
    "prune": ("slurmk8s.cli.prune", "prune"),
    "report": ("slurmk8s.cli.report", "report"),
    "after": ("slurmk8s.cli.after", "after"),
    "kubeconfig": ("slurmk8s.cli.kubeconfig", "kubeconfig"),
    "image": ("slurmk8s.cli.image", "image"),
    "mkyaml": ("slurmk8s.cli.mkyaml", "mkyaml"),
    "mkinst": ("slurmk8s.cli.mkinst", "mkinst"),
    "config": ("slurmk8s.cli.config", "config"),
    "slurm-conf": ("slurmk8s.cli.slurm_conf", "slurm_conf"),
    "cluster": ("slurmk8s.cli.cluster", "cluster"),
    "local": ("slurmk8s.cli.local", "local"),
}


class LazyGroup(click.Group):
    """A group whose commands are imported when asked for: `check` must not pay for the agent's imports."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The commands in the journey's order."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import the command's own file."""
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name]
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="slurmk8s")
def group() -> None:
    """Containerised jobs under Slurm: drop a job file, get checkable results."""
    if os.environ.get("NO_COLOR"):
        click.get_current_context().color = False


def main(argv: list[str] | None = None) -> None:
    """Run a command; an error that has a sentence is told as one line, without a traceback."""
    try:
        status: Any = group.main(args=argv, prog_name="slurmk8s", standalone_mode=False)
    except SlurmK8sError as error:
        click.echo(f"slurmk8s: {error.sentence}", err=True)
        if error.hint:
            click.echo(f"  {error.hint}", err=True)
        sys.exit(2)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except BrokenPipeError:  # `slurmk8s results | head`
        sys.exit(0)
    sys.exit(status if isinstance(status, int) else 0)
