"""`slurmk8s after`: what happens when a bundle is complete."""

import json
import os
import pwd
import socket
import time
from typing import TYPE_CHECKING, Any

import click

from slurmk8s.errors import SetupError

if TYPE_CHECKING:
    from slurmk8s.after.item import Item
    from slurmk8s.after.spool import Spool
    from slurmk8s.config import Config
    from slurmk8s.results.summary import Summary

SHOWN = 10
INVENT = "Leave --job out to use an invented job."


@click.group()
def after() -> None:
    """See and try what happens when a bundle is complete: mails, chat rooms, archives, programs."""


@after.command()
@click.option("--node", help="This node's name in Slurm. Default: the short host name.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def status(node: str | None, *, as_json: bool) -> int:
    """Say what is configured, what this node's agent still has to do, and what it gave up (as root).

    On the head node: the same of its watcher, for jobs of lost nodes. Exit status 1 if something was given up or is
    failing.
    """
    from slurmk8s.config import load

    config = load()
    spools = _spools(config, node or socket.gethostname().split(".")[0])
    waiting = [item for spool in spools for name in spool.names() if (item := spool.load(name))]
    lost = [item for spool in spools for item in spool.given_up()]
    if as_json:
        document = {
            "actions": list(config.after.actions),
            "waiting": [_entry(item) for item in waiting],
            "given_up": [_entry(item) for item in lost],
        }
        click.echo(json.dumps(document, ensure_ascii=False, indent=2))
    else:
        click.echo(f"configured: {', '.join(config.after.actions) or 'nothing (see [after] in docs/configuration.md)'}")
        _show("waiting", waiting)
        _show("given up", lost)
    return 1 if lost or any(item.problem for item in waiting) else 0


def _spools(config: "Config", node: str) -> "list[Spool]":
    """The agent's and the watcher's, whichever this machine has. None at all is not the same as nothing to do."""
    from slurmk8s.after.spool import Spool
    from slurmk8s.ops.lost_jobs import NAME, folder_of

    own = config.agent.state_folder_of(node) / "after"
    folders = [folder for folder in (own, folder_of(config) / "after") if folder.exists()]
    # Where the nodes of one machine have their own folders, the watcher's does not speak for an agent.
    if not folders or ("%n" in str(config.agent.state_folder) and own not in folders and node != NAME):
        raise SetupError(
            f"No agent with the name {node} has run on this machine: there is no {own}.",
            f"Run it on the job's node, with --node if Slurm calls it otherwise; on the head node with --node {NAME}.",
        )
    for folder in folders:
        if not os.access(folder / "todo", os.R_OK):
            raise SetupError(f"{folder} is for root alone.", "Run it with sudo.")
    return [Spool(folder) for folder in folders]


def _show(title: str, items: "list[Item]") -> None:
    from slurmk8s.results.summary_text import printable

    click.secho(f"{title}: {len(items)}", bold=bool(items))
    for item in items[-SHOWN:]:
        age = int((time.time() - item.since) / 60)
        tries = f", {item.tries} tries: {printable(item.problem)}" if item.tries else ""
        click.echo(f"  job {item.job_id}  {item.action}  for {item.owner.user}, {age} min{tries}")


def _entry(item: "Item") -> dict[str, Any]:
    from slurmk8s.results.summary_text import printable

    keys = ("job_id", "attempt", "action", "since", "tries")
    known = {key: getattr(item, key) for key in keys}
    return {**known, "problem": printable(item.problem), "user": item.owner.user}


@after.command(name="try")
@click.argument("name")
@click.option("--job", type=click.IntRange(1), help="Use this job's summary. Default: an invented job of yours.")
@click.option("--to", "address", help="With `mail`: write to this address instead.")
def try_out(name: str, job: int | None, address: str | None) -> int:
    """Carry out one action now (as root): NAME is mail, archive, or the name of a chat room or a program.

    It is the agent's own way, with the same rights and limits, and no retries. Nothing is put in the spool.
    """
    import asyncio

    from slurmk8s.after.actions import Actions
    from slurmk8s.config import load

    config = load()
    known = {action.rpartition(".")[2]: action for action in config.after.actions} | {
        action: action for action in config.after.actions
    }
    if name not in known:
        raise SetupError(
            f"There is no action {name} in the configuration.",
            f"There are: {', '.join(config.after.actions) or 'none'}.",
        )
    if os.geteuid() != 0:
        raise SetupError("Actions run as other accounts, so this needs root.", "Run it with sudo.")
    kind, _, target = known[name].partition(".")
    if kind == "archive" and job is None:
        raise SetupError("An archive needs a bundle.", "Name a job with --job.")
    item = _item(config, job)
    actions = Actions(config, socket.gethostname().split(".")[0])
    match kind:
        case "mail":
            asyncio.run(actions.mail([item], [address] if address else ()))
        case "archive":
            asyncio.run(actions.archive(item))
        case "chat":
            asyncio.run(actions.chat(target, [item]))
        case _:
            asyncio.run(actions.command(target, item))
    click.echo(f"{known[name]}: done")
    return 0


def _item(config: "Config", job: int | None) -> "Item":
    from slurmk8s.after.item import Item, Owner

    summary, account = _stored(config, job) if job else _invented(config)
    groups = tuple(sorted(set(os.getgrouplist(account.pw_name, account.pw_gid)) - {0}))
    owner = Owner(account.pw_name, account.pw_uid, account.pw_gid, groups)
    return Item("try", summary.job_id, summary.attempt, owner, summary.to_json(), time.time())


def _stored(config: "Config", job: int) -> "tuple[Summary, pwd.struct_passwd]":
    """A job's summary, and whose it is: by who owns the folder, since they can write what they like in it."""
    from slurmk8s.results import files
    from slurmk8s.results.summary_file import read_summary

    path = config.nas.results_folder / str(job)
    try:
        with files.folder(str(config.nas.results_folder)) as root, files.folder(str(job), root) as bundle:
            uid, summary = os.fstat(bundle).st_uid, read_summary(bundle)
    except OSError as error:
        raise SetupError(f"{path} cannot be read: {error.strerror}.", INVENT) from None
    if uid == 0:
        raise SetupError(f"{path} is root's, and nothing is done for root.", f"Name a person's job. {INVENT}")
    if summary is None:
        raise SetupError(f"{path} holds no summary.json that slurmk8s has written.", INVENT)
    account = _account(uid)
    if (summary.job_id, summary.uid, summary.user) != (job, uid, account.pw_name):
        raise SetupError(
            f"{path} is {account.pw_name}'s, but its summary.json tells of another job or of somebody else's.",
            f"Its owner may have changed it; `slurmk8s why {job}` tells what Slurm knows. {INVENT}",
        )
    return summary, account


def _account(uid: int) -> pwd.struct_passwd:
    try:
        return pwd.getpwuid(uid)
    except KeyError:
        raise SetupError(
            f"This machine has no account with uid {uid}, who owns the results.", "Run it on a node that has."
        ) from None


def _invented(config: "Config") -> "tuple[Summary, pwd.struct_passwd]":
    from slurmk8s.results.summary import Summary, Times

    now = time.time()
    user = os.environ.get("SUDO_USER") or pwd.getpwuid(os.getuid()).pw_name
    try:
        account = pwd.getpwnam(user)
    except KeyError:
        raise SetupError(f"This machine has no account {user}.", "Name a job with --job.") from None
    summary = Summary(
        cluster=config.cluster,
        job_id=1,
        array=None,
        name="a try",
        user=user,
        uid=account.pw_uid,
        account="",
        partition="none",
        attempt=0,
        node="none",
        nodes=("none",),
        image="none",
        image_digest=None,
        workdir="/",
        command="nothing",
        gpus=(),
        cpus=1,
        memory_mb=1,
        times=Times(submitted=now - 90, started=now - 60, body_started=now - 60, ended=now),
        state="completed",
        exit_code=0,
        signal=None,
        cause="This is a try of the administrator's: no job has run.",
        fault="none",
        checksums="complete",
        complete=True,
    )
    return summary, account
