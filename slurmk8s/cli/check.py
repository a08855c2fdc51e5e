"""`slurmk8s check`: judge job files as the watcher would, without submitting anything."""

import dataclasses
import json
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from slurmk8s.jobfile import Checked, ClusterFacts, Facts, Finding, render
from slurmk8s.jobfile import check as judge
from slurmk8s.jobfile.finding import WHOLE_FILE, problem
from slurmk8s.jobfile.render import printable
from slurmk8s.jobfile.text import LARGEST_SCRIPT

if TYPE_CHECKING:
    from slurmk8s.config import Config


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(allow_dash=True))
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON, for programs.")
@click.option("--offline", is_flag=True, help="Judge the text alone: ask neither Slurm nor the file system.")
def check(files: tuple[str, ...], as_json: bool, offline: bool) -> int:
    """Check job FILEs and tell all their problems at once; `-` reads standard input.

    Exit status 0 if every file could be submitted (warnings do not count), else 1.
    """
    from slurmk8s.config import load

    config = load()
    facts = _facts(config, offline)
    verdicts = [(name, check_one(name, facts, None if offline else config)) for name in files]
    if as_json:
        click.echo(json.dumps([_as_data(name, checked) for name, checked in verdicts], ensure_ascii=False, indent=2))
    else:
        colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        for name, checked in verdicts:
            if checked.findings:
                click.echo(render(name, checked.text, checked.findings, colour))
            click.echo(f"{printable(name)}: {_verdict(checked)}")
    return 1 if any(checked.job is None for _, checked in verdicts) else 0


def _facts(config: "Config", offline: bool) -> Facts:
    """The site's policy, and unless offline what Slurm says."""
    from slurmk8s.site import pwd_name, site_of

    cluster: ClusterFacts | None = None
    if not offline:
        from slurmk8s.errors import SlurmK8sError
        from slurmk8s.slurm.commands import SlurmCommands

        try:
            cluster = SlurmCommands(config.slurm).facts()
        except SlurmK8sError as error:
            click.echo(f"slurmk8s: partitions and limits were not checked: {error.sentence}", err=True)
    return Facts(site=site_of(config), cluster=cluster, submitter=pwd_name(os.geteuid()))


def check_one(name: str, facts: Facts, config: "Config | None") -> Checked:
    """Judge one file, `-` being standard input; with a configuration the paths it names are looked at too."""
    try:
        if name == "-":
            data = sys.stdin.buffer.read(LARGEST_SCRIPT + 1)
        else:
            with open(name, "rb") as file:
                data = file.read(LARGEST_SCRIPT + 1)
    except OSError as error:
        what = "the file cannot be read"
        why = f"{error.strerror or 'Unknown error'}."
        return Checked(None, (problem(WHOLE_FILE, "unreadable", what, why, "Check its name and its rights."),), "")
    if config is not None:
        from slurmk8s.site import file_facts

        facts = dataclasses.replace(facts, files=file_facts(data, config))
    return judge(data, facts)


def _verdict(checked: Checked) -> str:
    problems = len(checked.problems)
    warnings = len(checked.findings) - problems
    counts = [
        f"{count} {word}{'' if count == 1 else 's'}"
        for count, word in ((problems, "problem"), (warnings, "warning"))
        if count
    ]
    if checked.job is None:
        return ", ".join(counts)
    kind = f"container job in {checked.job.image}" if checked.job.is_container else "plain Slurm job, no container"
    return f"fine ({', '.join((kind, *counts))})"


def _as_data(name: str, checked: Checked) -> dict[str, Any]:
    job = checked.job
    return {
        "file": name,
        "ok": job is not None,
        "findings": [_finding(finding) for finding in checked.findings],
        "job": None
        if job is None
        else {
            "name": job.name,
            "partition": job.partition,
            "container": job.is_container,
            "image": job.image,
            "options": dict(job.options),
            "k8s": {key: line.value for key, line in job.k8s.items()},
        },
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return dataclasses.asdict(finding)
