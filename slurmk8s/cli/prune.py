"""`slurmk8s prune`: remove results that have had their time."""

import json
import os
import time
from typing import TYPE_CHECKING, Any

import click

from slurmk8s.cli.results import results_root
from slurmk8s.config import load
from slurmk8s.errors import PersonFault
from slurmk8s.results.retention import DAY, KEEP, Rule
from slurmk8s.results.summary_text import printable, size

if TYPE_CHECKING:
    from slurmk8s.ops.housekeeping import Told


@click.command()
@click.option("-n", "--dry-run", is_flag=True, help="Only say what would go.")
@click.option("--older-than", type=click.FloatRange(0), metavar="DAYS", help="Your own rule instead of the site's.")
@click.option("--user", metavar="NAME", help="As root: only this person's.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def prune(*, dry_run: bool, older_than: float | None, user: str | None, as_json: bool, yes: bool) -> int:
    """Remove results that have had their time: yours, or as root everybody's, by [results.retention].

    A bundle stays while its job runs or starts again, while it is not complete, and while it holds a file `.keep`.
    """
    from slurmk8s.ops.housekeeping import rule_of

    if os.geteuid() == 0 and older_than is not None:
        raise PersonFault("--older-than is for one's own results.", "Set results.retention.days for everybody's.")
    if os.geteuid() != 0 and user is not None:
        raise PersonFault("Only root can look after somebody else's results.")
    rule = Rule(days=older_than) if older_than is not None else rule_of(load().results.retention)
    if rule is None:
        hint = "Set results.retention.days or results.retention.gib_per_person."
        click.echo(f"There is no rule, so nothing goes. {hint if os.geteuid() == 0 else 'Give one: --older-than 90'}")
        return 0
    if os.geteuid() == 0:
        return _everybody(rule, user, dry_run=dry_run, as_json=as_json)
    return _own(rule, dry_run=dry_run, as_json=as_json, yes=yes)


def _own(rule: Rule, *, dry_run: bool, as_json: bool, yes: bool) -> int:
    from slurmk8s.results import prune as work
    from slurmk8s.results.request import Prune

    root = str(results_root().absolute())
    plan: dict[str, Any] = work.prune(Prune(root, rule, dry_run=True))
    if not as_json:
        _show(plan)
    removed: list[Any] = []
    while plan["removed"] and not dry_run:
        if not yes and not as_json and not removed:
            click.confirm("Remove them for good?", abort=True)
        plan = work.prune(Prune(root, rule, dry_run=False))
        removed += plan["removed"]
        if not plan["more"]:
            break
    if as_json:
        click.echo(json.dumps({"dry_run": dry_run, **plan, **({} if dry_run else {"removed": removed})}))
    elif removed:
        click.echo(f"Removed {len(removed)}.")
    for name, why in plan["failed"].items() if not as_json else ():
        click.echo(f"slurmk8s: {name} could not be removed: {why}", err=True)
    return 1 if plan["failed"] else 0


def _show(plan: dict[str, Any]) -> None:
    for one in plan["removed"]:
        days = (time.time() - one["ended"]) / DAY
        click.echo(
            f"{one['folder']:>10}  {size(one['bytes']):>10}  {days:5.0f} d  {printable(one['name'])}: {one['why']}"
        )
    freed, more = sum(one["bytes"] for one in plan["removed"]), f" and {plan['more']} more" if plan["more"] else ""
    click.echo(
        f"{len(plan['removed'])} of {plan['bundles']} bundles{more} have had their time: {size(freed)} of "
        f"{size(plan['bytes'])}. `touch {KEEP}` in a bundle keeps it."
    )


def _everybody(rule: Rule, user: str | None, *, dry_run: bool, as_json: bool) -> int:
    from loguru import logger

    from slurmk8s import logs
    from slurmk8s.ops.housekeeping import keep_house

    config = load()
    logs.setup("prune", config)
    told: dict[str, list[Any]] = {}

    def tell(person: "Told", is_plan: bool) -> None:
        if person.fault:
            logger.error(f"results of {person.user}: {person.fault}")
            return
        if not is_plan or dry_run:
            told.setdefault(person.user, []).append(person.answer)
        for one in person.answer["removed"] if is_plan else ():
            would = "would remove" if dry_run else "removing"
            name = f"{one['folder']} ({printable(one['name'])}, {size(one['bytes'])})"
            logger.info(f"{would} {config.nas.results_folder}/{name} of {person.user}: {one['why']}")
        if not is_plan:
            for folder, why in person.answer["failed"].items():
                logger.error(f"{config.nas.results_folder}/{folder} of {person.user} could not be removed: {why}")
            if person.answer["removed"]:
                freed = size(sum(one["bytes"] for one in person.answer["removed"]))
                logger.info(f"removed {len(person.answer['removed'])} bundles of {person.user}, {freed}")

    all_well = keep_house(config, rule, dry_run=dry_run, only=user, tell=tell)
    if as_json:
        click.echo(json.dumps({"dry_run": dry_run, "people": told}))
    return 0 if all_well else 1
