"""`slurmk8s kubeconfig`: a person's own look at their pods."""

import os
import pwd
from pathlib import Path

import click


@click.command()
@click.argument("user", required=False)
@click.option("--days", default=90, show_default=True, type=click.IntRange(min=1), help="How long it is valid.")
@click.option(
    "--kubeconfig",
    "path",
    type=click.Path(path_type=Path),
    help="An admin's kubeconfig; else $KUBECONFIG or ~/.kube/config.",
)
def kubeconfig(user: str | None, days: int, path: Path | None) -> None:
    r"""Print a read-only kubeconfig for USER's own namespace; for admins.

    It shows that person's pods, their logs and events (`kubectl get pods`, `kubectl logs slurm-job-<id>`,
    `kubectl top`), and nothing of anybody else's.

    \b
    slurmk8s kubeconfig kim > kim.kubeconfig
    """
    from slurmk8s.cli.cluster import admin
    from slurmk8s.config import load
    from slurmk8s.errors import SetupError
    from slurmk8s.kube import credentials
    from slurmk8s.kube.faults import Refused

    config = load()
    name, uid = _person(user)
    ask = f"Ask an admin to run `slurmk8s kubeconfig {name}` and to send you the file."
    try:
        click.echo(credentials.person_kubeconfig(admin(config, path), config, uid, name, days), nl=False)
    except Refused as error:
        if error.code in (401, 403) and os.geteuid() != 0:
            raise SetupError("Your Kubernetes credential may not make kubeconfigs.", ask) from None
        raise
    except SetupError as error:
        if os.geteuid() != 0 and path is None:
            raise SetupError(error.sentence, ask) from None
        raise


def _person(user: str | None) -> tuple[str, int]:
    """Name and uid of the person: a login name, else a uid; by default whoever calls."""
    from slurmk8s.errors import SetupError

    try:
        entry = pwd.getpwuid(os.getuid()) if user is None else _account(user)
    except (KeyError, OverflowError):
        raise SetupError(f"There is no account {user or os.getuid()} on this machine.", "Give a login name.") from None
    if entry.pw_uid == 0:
        raise SetupError("root has no namespace of its own.", "Name the person: `slurmk8s kubeconfig kim`.")
    return entry.pw_name, entry.pw_uid


def _account(user: str) -> pwd.struct_passwd:
    """A login name may be a number, so it is tried as a name first."""
    try:
        return pwd.getpwnam(user)
    except KeyError:
        if not (user.isascii() and user.isdecimal()):
            raise
        return pwd.getpwuid(int(user))
