"""`slurmk8s mkyaml`: the manifest that a job file's pod would have. Also installed as `mkyaml`, the guide's name."""

import os
import socket
import sys

import click


@click.command()
@click.argument("jobfile", type=click.Path(allow_dash=True))
@click.option("-w", "--node", help="Slurm's name of the node it would run on. Default: this machine.")
@click.option("--user", help="Login name or uid of the person whose job it would be (root only). Default: you.")
@click.option("--job-id", default=0, show_default=True, type=click.IntRange(0), help="The number it would have.")
def mkyaml(jobfile: str, node: str | None, user: str | None, job_id: int) -> int:
    """Print the manifest that the pod of JOBFILE would have; `-` reads standard input.

    Made by the code that makes the real one, from the file and the configuration alone: neither Slurm nor a cluster is
    asked. Exit status 1 if the file has problems, which are told as by `slurmk8s check`.
    """
    from slurmk8s.cli.check import check_one
    from slurmk8s.config import load
    from slurmk8s.jobfile import Facts, render
    from slurmk8s.ops import whom
    from slurmk8s.ops.imagined import imagined
    from slurmk8s.pod import manifest
    from slurmk8s.site import pwd_name, site_of

    config = load()
    person = whom.whose(user)
    checked = check_one(jobfile, Facts(site=site_of(config), submitter=person.pw_name), None)
    if checked.findings:  # apart from the manifest, which may go into a file
        colour = sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        language = config.intake.language_of(pwd_name(os.geteuid()))
        click.echo(render(jobfile, checked.text, checked.findings, language, colour=colour), err=True)
    if checked.job is None:
        return 1
    here = node or socket.gethostname().partition(".")[0]
    made = imagined(checked.job, checked.text, config, here, person, job_id)
    for note in made.notes:
        click.echo(f"slurmk8s: {note}", err=True)
    click.echo(manifest.render(made.pod), nl=False)
    return 0
