"""`slurmk8s config`: show, check and document the one configuration file."""

import json
from pathlib import Path

import click


@click.group()
def config() -> None:
    """Show, check or document the configuration."""


@config.command()
@click.option("--file", "path", type=click.Path(path_type=Path), help="Another file than the one in use.")
def show(path: Path | None) -> None:
    """Print every value in force, defaults included, as JSON."""
    from slurmk8s.config import load

    click.echo(json.dumps(load(path).model_dump(mode="json"), indent=2, ensure_ascii=False))


@config.command()
@click.option("--file", "path", type=click.Path(path_type=Path), help="Another file than the one in use.")
def check(path: Path | None) -> None:
    """Say whether the file is right; all its problems if it is not (exit status 2)."""
    from slurmk8s.config import config_path, load

    load(path)
    used = path or config_path()
    click.echo(f"{used}: all right." if used.exists() else f"{used} does not exist: all defaults are in force.")


@config.command()
def docs() -> None:
    """Print the reference page of all keys, in Markdown."""
    from slurmk8s.config.docs import page

    click.echo(page(), nl=False)
