"""`slurmk8s slurm-conf`: what slurm.conf and job_submit.lua need, ready to be put in place."""

from pathlib import Path

import click


@click.group(invoke_without_command=True)
@click.option(
    "--site",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The site's slurm.conf; what it has already is merged or kept.",
)
@click.option(
    "--check", is_flag=True, help="Ask the running Slurm instead and say what is missing; status 1 if anything."
)
@click.pass_context
def slurm_conf(context: click.Context, site: Path | None, *, check: bool) -> int | None:
    r"""Print the lines for slurm.conf; what must be changed by hand goes to stderr.

    \b
    slurmk8s slurm-conf --site /etc/slurm/slurm.conf > /etc/slurm/slurmk8s.conf
    slurmk8s slurm-conf lua > /etc/slurm/slurmk8s_facts.lua
    slurmk8s slurm-conf hooks /usr/local/bin
    slurmk8s slurm-conf files       # the folder of job_submit.lua and slurmk8s.lua
    """
    if context.invoked_subcommand:
        return None
    if check:
        return _check()
    from slurmk8s.slurm import conf

    merged = conf.merged(site.read_text(encoding="utf-8", errors="replace") if site else "")
    click.echo(merged.text, nl=False)
    for note in merged.notes:
        click.echo(f"slurmk8s: {note}", err=True)
    return None


@slurm_conf.command()
@click.option(
    "--run-program",
    default="/usr/local/bin/slurmk8s-run",
    show_default=True,
    help="Path of slurmk8s-run on the compute nodes.",
)
def lua(run_program: str) -> None:
    """Print slurmk8s_facts.lua, the table that slurmk8s.lua loads."""
    from slurmk8s import config
    from slurmk8s.slurm import lua_facts

    click.echo(lua_facts.render(config.load(), run_program), nl=False)


@slurm_conf.command()
def files() -> None:
    """Print the folder with slurmk8s.conf, job_submit.lua, slurmk8s.lua and the entry points."""
    from slurmk8s.slurm import conf

    click.echo(conf.files())


@slurm_conf.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, writable=True, path_type=Path))
def hooks(folder: Path) -> None:
    """Write Prolog, Epilog and slurmk8s-run into FOLDER, with this installation's and the configuration's paths."""
    import sys

    import slurmk8s
    from slurmk8s import config
    from slurmk8s.hooks import entry
    from slurmk8s.slurm import conf

    settings = config.load()
    entry.write(
        folder,
        templates=conf.files(),
        python=Path(sys.executable),
        package=Path(slurmk8s.__file__).parent,
        run_folder=str(settings.agent.run_folder),
        state_folder=str(settings.agent.state_folder),
        log_folder=str(settings.log_folder),
    )
    for name in (entry.PROLOG, entry.EPILOG, entry.RUN):
        click.echo(folder / name)


def _check() -> int:
    from slurmk8s import config
    from slurmk8s.slurm import conf
    from slurmk8s.slurm.programs import Programs

    shown = Programs(config.load().slurm).ask("scontrol", "show", "config")
    pairs = (line.partition(" = ") for line in shown.splitlines() if " = " in line)
    sentences = conf.wrong({key.strip(): value for key, _, value in pairs})
    for sentence in sentences:
        click.echo(sentence)
    if not sentences:
        click.echo("Slurm has every setting that slurmk8s needs.")
    return 1 if sentences else 0
