"""`slurmk8s check`: judge job files as the watcher would, without submitting anything."""

import dataclasses
import json
import os
import sys
from typing import TYPE_CHECKING, Any, get_args

import click

from slurmk8s.jobfile import Checked, ClusterFacts, Facts, Finding, render
from slurmk8s.jobfile import check as judge
from slurmk8s.jobfile.finding import WHOLE_FILE, problem
from slurmk8s.jobfile.render import printable
from slurmk8s.jobfile.text import LARGEST_SCRIPT
from slurmk8s.language import Language

if TYPE_CHECKING:
    from slurmk8s.config import Config


_NOT_ASKED: dict[Language, str] = {
    "en": "slurmk8s: partitions and limits were not checked: {words}",
    "ko": "slurmk8s: 파티션과 제한은 검사하지 못했습니다: {words}",
}


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(allow_dash=True))
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON, for programs.")
@click.option("--offline", is_flag=True, help="Judge the text alone: ask neither Slurm nor the file system.")
@click.option(
    "--language",
    type=click.Choice(get_args(Language)),
    help="Language of what is told, also as JSON. Default: yours by the configuration.",
)
def check(files: tuple[str, ...], as_json: bool, offline: bool, language: Language | None) -> int:
    """Check job FILEs and tell all their problems at once; `-` reads standard input.

    Exit status 0 if every file could be submitted (warnings do not count), else 1.
    """
    from slurmk8s.config import load
    from slurmk8s.site import pwd_name

    config = load()
    person = pwd_name(os.geteuid())
    language = language or config.intake.language_of(person)
    facts = _facts(config, person, offline, language)
    verdicts = [(name, check_one(name, facts, None if offline else config)) for name in files]
    if as_json:
        data = [_as_data(name, checked, language) for name, checked in verdicts]
        click.echo(json.dumps(data, ensure_ascii=False, indent=2))
    else:
        colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        for name, checked in verdicts:
            if checked.findings:
                click.echo(render(name, checked.text, checked.findings, language, colour=colour))
            click.echo(f"{printable(name)}: {_verdict(checked, language)}")
    return 1 if any(checked.job is None for _, checked in verdicts) else 0


def _facts(config: "Config", person: str, offline: bool, language: Language) -> Facts:
    """The site's policy, and unless offline what Slurm says."""
    from slurmk8s.site import site_of

    cluster: ClusterFacts | None = None
    if not offline:
        from slurmk8s.errors import SlurmK8sError
        from slurmk8s.slurm.commands import SlurmCommands

        try:
            cluster = SlurmCommands(config.slurm).facts()
        except SlurmK8sError as error:
            click.echo(_NOT_ASKED[language].format(words=error.sentence), err=True)
    return Facts(site=site_of(config), cluster=cluster, submitter=person)


def check_one(name: str, facts: Facts, config: "Config | None") -> Checked:
    """Judge one file, `-` being standard input; with a configuration the paths it names are looked at too."""
    try:
        if name == "-":
            data = sys.stdin.buffer.read(LARGEST_SCRIPT + 1)
        else:
            with open(name, "rb") as file:
                data = file.read(LARGEST_SCRIPT + 1)
    except OSError as error:
        reason = error.strerror or "Unknown error"
        return Checked(None, (problem(WHOLE_FILE, "unreadable", reason=reason),), "")
    if config is not None:
        from slurmk8s.site import file_facts

        facts = dataclasses.replace(facts, files=file_facts(data, config))
    return judge(data, facts)


def _verdict(checked: Checked, language: Language) -> str:
    problems = len(checked.problems)
    warnings = len(checked.findings) - problems
    if language == "ko":
        counts = [f"{word} {count}건" for count, word in ((problems, "문제"), (warnings, "경고")) if count]
        container, plain, fine = "컨테이너 작업, 이미지 {}", "컨테이너 없는 일반 Slurm 작업", "이상 없음"
    else:
        counts = [
            f"{count} {word}{'' if count == 1 else 's'}"
            for count, word in ((problems, "problem"), (warnings, "warning"))
            if count
        ]
        container, plain, fine = "container job in {}", "plain Slurm job, no container", "fine"
    if checked.job is None:
        return ", ".join(counts)
    kind = container.format(checked.job.image) if checked.job.is_container else plain
    return f"{fine} ({', '.join((kind, *counts))})"


def _as_data(name: str, checked: Checked, language: Language) -> dict[str, Any]:
    job = checked.job
    return {
        "file": name,
        "ok": job is not None,
        "findings": [_finding(finding, language) for finding in checked.findings],
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


def _finding(finding: Finding, language: Language) -> dict[str, Any]:
    names = ("line", "column", "length", "severity", "code")
    return {name: getattr(finding, name) for name in names} | dataclasses.asdict(finding.words(language))
