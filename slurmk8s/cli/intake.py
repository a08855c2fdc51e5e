"""`slurmk8s intake`: a look at the files that are on their way to become jobs."""

import dataclasses
import json
from typing import TYPE_CHECKING

import click

from slurmk8s.config import load
from slurmk8s.errors import SetupError

if TYPE_CHECKING:
    from slurmk8s.intake.status import Item

SHOWN = 50


@click.group()
def intake() -> None:
    """Look at the files that are on their way to become jobs."""


@intake.command()
@click.option("--json", "as_json", is_flag=True, help="For programs: a list of objects.")
def status(*, as_json: bool) -> None:
    """Show the files that wait, are claimed, or are in doubt; oldest first. For admins.

    In doubt: Slurm gave no answer when the file was submitted. It has its job, and if Slurm accepts a second one late,
    that is cancelled before it runs. Status 1 if anything waits for Slurm.
    """
    from slurmk8s.intake.status import items

    config = load()
    try:
        found = items(config)
    except PermissionError:
        raise SetupError(
            f"The intake's own folder in {config.nas.jobs_folder} is closed to you.", "Run it as root: sudo …"
        ) from None
    if as_json:
        click.echo(json.dumps([dataclasses.asdict(item) for item in found], ensure_ascii=False))
    else:
        _show(found)
    waiting = [item for item in found if item.state == "waiting"]
    raise SystemExit(1 if waiting else 0)


def _show(found: "list[Item]") -> None:
    kinds = ("arriving", "claimed", "waiting", "in doubt")
    counts = {kind: sum(item.state == kind for item in found) for kind in kinds}
    click.echo(", ".join(f"{number} {kind}" for kind, number in counts.items()))
    for item in found[:SHOWN]:
        job = f"job {item.job_id}" if item.job_id else ""
        click.echo(f"{item.state:9} {_age(item.seconds):>8}  {item.user:16} {item.file}  {job}".rstrip())
    if len(found) > SHOWN:
        click.echo(f"… and {len(found) - SHOWN} more")
    if counts["waiting"]:
        click.echo("What they wait for is in job_watcher.log.")


def _age(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
