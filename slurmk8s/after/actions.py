"""One action, carried out once: returns when it is done, raises the fault that says what to do next."""

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path

from loguru import logger

from slurmk8s.after import child, words
from slurmk8s.after.asked import recipients
from slurmk8s.after.item import Item, Owner
from slurmk8s.config import Config
from slurmk8s.errors import ClusterFault, SetupError
from slurmk8s.mountpoint import is_mountpoint
from slurmk8s.results.summary_text import printable

SECONDS_FOR_A_LIST = 120
# A thread of zstd's holds a few buffers; this is address space.
ARCHIVE_MEMORY_MB = 8192


class Actions:
    """What can be done, as configured."""

    def __init__(self, config: Config, node: str) -> None:
        self._config = config
        self._settings = config.after
        self._node = node
        self._results = str(config.nas.results_folder)

    async def mail(self, items: Sequence[Item], to: Sequence[str] = ()) -> None:
        """One mail about one job, an array, or several jobs of one person. `to` takes the place of who asked for it."""
        settings, first = self._settings.mail, items[0]
        addresses, allowed = recipients(first.owner.user, first.owner.mail_user, settings)
        message = self._about(items, allowed)
        request = {
            "kind": "mail",
            "host": settings.host,
            "port": settings.port,
            "security": settings.security,
            "user": settings.user,
            "password": _secret(settings.password_file) if settings.password_file else "",
            "from": settings.from_address,
            "to": list(to or addresses),
            "subject": message.subject,
            "text": message.text,
            "message_id": self._message_id(items),
            "seconds": settings.timeout_seconds,
        }
        await child.ask("slurmk8s.after.send", request, self._service(), settings.timeout_seconds)
        logger.info(f"mail about {_jobs(items)} sent to {', '.join(to or addresses)}")

    def same_recipients(self, one: Item, other: Item) -> bool:
        """Whether a mail about the one reaches those who get the mail about the other."""
        owners = (one.owner, other.owner)
        first, second = (set(recipients(who.user, who.mail_user, self._settings.mail)[0]) for who in owners)
        return first == second

    async def chat(self, name: str, items: Sequence[Item]) -> None:
        """One message to a room."""
        settings = self._settings.chats[name]
        lines = _secret(settings.url_file).splitlines()
        urls = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
        message = words.for_chat(self._about(items, in_room=True))
        request = {"kind": "chat", "urls": urls, "subject": message.subject, "text": message.text}
        await child.ask("slurmk8s.after.send", request, self._service(), settings.timeout_seconds)
        logger.info(f"{_jobs(items)} told to {name}")

    async def command(self, name: str, item: Item) -> None:
        """A program of the site's, with the summary on its stdin."""
        settings = self._settings.commands[name]
        who = item.owner if settings.run_as == "person" else self._service()
        data = json.dumps(item.summary, ensure_ascii=False).encode("utf-8", "backslashreplace")
        ended = await child.run(settings.run, data, who, settings.timeout_seconds, settings.memory_mb)
        said = f": {ended.said}" if ended.said else ""
        if ended.status is None:
            raise ClusterFault(
                f"{settings.run[0]} took longer than {settings.timeout_seconds:g} s and was killed{said}"
            )
        if ended.status != 0:
            raise ClusterFault(f"{settings.run[0]} ended with status {ended.status}{said}")
        logger.info(f"job {item.job_id}: {name} done{said}")

    async def archive(self, item: Item) -> None:
        """The bundle's archive, made as its owner."""
        settings = self._settings.archive
        await self._require_nas()
        folder = str(settings.folder).replace("%u", item.owner.user) if settings.folder else None
        request = {
            "results": self._results,
            "job_id": item.job_id,
            "folder": folder,
            "remove": settings.remove_original,
            "level": settings.level,
            "threads": settings.threads,
            "zstd": str(settings.zstd),
        }
        reply = await child.ask(
            "slurmk8s.after.archive", request, item.owner, settings.timeout_seconds, ARCHIVE_MEMORY_MB
        )
        removed = ", original removed" if reply.get("removed") is True else ""
        logger.info(f"job {item.job_id}: archived to {printable(str(reply.get('archive')))}{removed}")

    async def note_tasks(self, items: Sequence[Item], *, claim: bool) -> tuple[list[tuple[int, int, str]], bool]:
        """Put tasks on their array's list; all that are on it, and whether it is this node that tells people."""
        await self._require_nas()
        tasks = [(item.summary["array"]["task_id"], item.job_id, item.summary["state"]) for item in items]
        request = {
            "results": self._results,
            "array": items[0].array,
            "node": self._node,
            "tasks": tasks,
            "claim": claim,
        }
        reply = await child.ask("slurmk8s.after.array", request, items[0].owner, SECONDS_FOR_A_LIST)
        try:
            return [(int(task), int(job), str(state)) for task, job, state in reply["tasks"]], reply["ours"] is True
        except (KeyError, TypeError, ValueError):
            raise ClusterFault(f"The list of array {items[0].array} makes no sense.") from None

    def _about(self, items: Sequence[Item], allowed: str = "", *, in_room: bool = False) -> words.Message:
        """In the person's language; in a room, which is for many, in the site's."""
        cluster = self._config.cluster
        language = self._config.intake.language_of(None if in_room else items[0].owner.user)
        if len(items) > 1:
            return words.about_several(items, cluster, self._results, language)
        if items[0].tasks:
            return words.about_array(items[0], cluster, self._results, language, allowed)
        return words.about_job(items[0].summary, cluster, self._results, language, allowed)

    def _message_id(self, items: Sequence[Item]) -> str:
        first, last = items[0], items[-1]
        jobs = (
            f"{first.job_id}.{first.attempt}"
            + (f"-{last.job_id}" if len(items) > 1 else "")
            + ".array" * bool(first.tasks)
        )
        started = (first.summary.get("times") or {}).get("submitted") or 0
        return f"<slurmk8s.{self._config.cluster}.{jobs}.{int(started)}@{self._settings.mail.domain}>"

    def _service(self) -> Owner:
        return child.service(self._settings.account)

    async def _require_nas(self) -> None:
        nas = self._config.nas
        if nas.require_mountpoint and not await asyncio.to_thread(is_mountpoint, nas.root):
            raise ClusterFault(f"The NAS is not mounted at {nas.root}.")


def _secret(path: Path) -> str:
    """A file that only root may read: what is in it opens a door."""
    try:
        with open(path, encoding="utf-8") as file:
            if os.fstat(file.fileno()).st_mode & 0o007:
                raise SetupError(f"{path} can be read by everybody.", f"chmod 600 {path}")
            return file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"{path} cannot be read: {error}.") from None


def _jobs(items: Sequence[Item]) -> str:
    return f"job {items[0].job_id}" if len(items) == 1 else f"{len(items)} jobs"
