"""Works the spool off: every target has its own line, so that one that hangs delays nobody else's.

What a target does not take is tried again, first soon, then every hour, until it is given up with a line in the log.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace

from loguru import logger

from slurmk8s.after import cap
from slurmk8s.after.actions import Actions
from slurmk8s.after.asked import wants_array
from slurmk8s.after.choose import chosen
from slurmk8s.after.figures import Figures
from slurmk8s.after.item import Item, Owner, Summary
from slurmk8s.after.spool import Spool
from slurmk8s.config import Config
from slurmk8s.errors import PersonFault, SlurmK8sError
from slurmk8s.slurm.client import Slurm
from slurmk8s.slurm.records import FINISHED

SECONDS_BETWEEN_ROUNDS = 5.0
SECONDS_TO_FINISH = 3.0
FIRST_PAUSE = 60.0
LONGEST_PAUSE = 3600.0
# Rooms are for people: what ends within this time comes in one message.
SECONDS_BETWEEN_CHATS = 30.0
# Well below the five minutes for which Slurm remembers a job that has ended.
SECONDS_BETWEEN_LOOKS = 30.0
# So much of a line is read at a time: memory stays flat however long a target is down.
AT_ONCE = 500


class Runner:
    """The agent's own; one for each node."""

    def __init__(
        self,
        config: Config,
        node: str,
        spool: Spool,
        slurm: Slurm,
        is_owed: Callable[[int, int], bool],
        figures: Figures | None = None,
        first_pause: float = FIRST_PAUSE,
    ) -> None:
        self._config = config
        self._settings = config.after
        self._spool = spool
        self._slurm = slurm
        self._is_owed = is_owed
        self._figures = figures
        self._actions = Actions(config, node)
        self._first_pause = first_pause
        self._wake = asyncio.Event()
        self._lines: dict[str, asyncio.Task[None]] = {}
        self._due: dict[str, float] = {}
        """When what is to be tried again, by the item's name or the line's; all of it now after a restart."""
        self._over: dict[int, float] = {}
        """Since when an array is known to be over."""
        self._noted: dict[int, set[int]] = {}
        """Which tasks are on their array's list."""

    # What the agent tells.

    def expect(self, owner: Owner, summary: Summary) -> None:
        """How a job ended is known, and the bundle will follow."""
        if self._settings.actions or self._figures:
            try:
                self._spool.expect(owner, summary)
            except OSError as error:  # the bundle matters more
                logger.error(f"job {summary['job_id']}: nothing will follow it, the spool cannot be written: {error}")

    def complete(self, job_id: int, attempt: int, added: Summary) -> None:
        """The bundle is as complete as it will be."""
        try:
            item = self._spool.complete(job_id, attempt, added)
        except OSError as error:
            logger.error(f"job {job_id}: nothing will follow it, the spool cannot be written: {error}")
            return
        if item is not None and self._figures:
            self._figures.ended(item.summary)
        self._wake.set()

    # The work.

    async def run(self) -> None:
        """Until cancelled."""
        try:
            while True:
                self._wake.clear()
                try:
                    self._take_over()
                    self._begin()
                except OSError:
                    logger.exception("what is to be done after jobs cannot be read")
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min(SECONDS_BETWEEN_ROUNDS, self._first_pause)):
                        await self._wake.wait()
        finally:
            # What is on its way has a moment to arrive: cut off, it would be sent again.
            if self._lines:
                await asyncio.wait(self._lines.values(), timeout=SECONDS_TO_FINISH)
            for task in self._lines.values():
                task.cancel()
            await asyncio.gather(*self._lines.values(), return_exceptions=True)

    def _take_over(self) -> None:
        """A job that the agent may still hand over again, after a crash, is not begun: nothing is done twice."""
        for item in self._spool.ready():
            if not self._is_owed(item.job_id, item.attempt):
                self._spool.split(item, chosen(item, self._settings))

    def _begin(self) -> None:
        names = self._spool.names()
        if self._figures:
            self._figures.waiting.set(len(names))
        waiting: dict[str, list[str]] = {}
        for name in names:
            waiting.setdefault(self.line_of(name), []).append(name)
        self._due = {name: due for name, due in self._due.items() if self._must_wait(name)}
        for line, its in waiting.items():
            due = [name for name in its if not self._must_wait(name)]
            if due and line not in self._lines and not self._must_wait(line):
                # An array's tasks are looked at together.
                self._lines[line] = asyncio.create_task(
                    self._line(line, its if line.startswith("array") else due[:AT_ONCE])
                )

    def _must_wait(self, name: str) -> bool:
        return self._due.get(name, 0) > time.monotonic()

    async def _line(self, line: str, names: list[str]) -> None:
        try:
            items = [item for name in names if (item := self._spool.load(name))]
            action = line.partition("@")[0]
            kind, _, name = action.partition(".")
            if action not in (*self._settings.actions, "array"):
                for item in items:
                    logger.warning(f"job {item.job_id}: {line} is no longer configured, so it is left out")
                    self._spool.done(item)
            elif kind == "mail":
                await self._mails(items)
            elif kind == "array":
                await self._arrays(items)
            elif kind == "chat":
                if await self._try(line, items, self._actions.chat(name, items), together=True):
                    self._due[line] = time.monotonic() + min(SECONDS_BETWEEN_CHATS, self._first_pause)
            else:
                for item in items:
                    if kind == "archive":
                        await self._try(line, [item], self._actions.archive(item))
                    else:
                        await self._try(line, [item], self._actions.command(name, item))
        except Exception:  # noqa: BLE001 - a bug of ours in one line is not the others'
            logger.exception(f"after jobs: {line} failed")
            self._due[line] = time.monotonic() + self._first_pause
        finally:
            del self._lines[line]
            self._wake.set()

    async def _mails(self, items: list[Item]) -> None:
        """What a person's jobs are to send, as far as the hour's number allows: no wording of an address is a way past.

        What is above it goes in one letter to those who are to get the oldest of it; the others' waits for its turn.
        """
        for uid in dict.fromkeys(item.owner.uid for item in items):
            theirs = [item for item in items if item.owner.uid == uid]
            sent, now = self._spool.sent_times(uid), time.time()
            portion = cap.portion(len(theirs), sent, self._settings.mail.per_hour, now)
            letters = [[item] for item in theirs[: portion.alone]]
            if portion.together:
                rest = theirs[portion.alone :]
                letters.append([item for item in rest if self._actions.same_recipients(item, rest[0])])
            for letter in letters:
                if await self._try("mail", letter, self._actions.mail(letter), together=True):
                    self._spool.sent(uid)
                elif self._must_wait("mail"):
                    return
            if portion.again_at is not None:
                for item in theirs:
                    self._due[item.name] = time.monotonic() + portion.again_at - now

    async def _arrays(self, items: list[Item]) -> None:
        for number in dict.fromkeys(item.array for item in items):
            if number is not None:
                theirs = [item for item in items if item.array == number]
                await self._try("array", theirs, self._array(number, theirs), finished=False)

    async def _array(self, number: int, items: list[Item]) -> None:
        """Note what ended here; when the whole array is over, one of its nodes tells."""
        if self._spool.was_told(number):
            for item in items:
                self._spool.done(item)
            return
        here = {item.job_id for item in items}
        if not here <= self._noted.get(number, set()):
            await self._actions.note_tasks(items, claim=False)
            self._noted[number] = here
        jobs = await asyncio.to_thread(self._slurm.parts, str(number))
        is_over = all(job.state in FINISHED and not job.completing for job in jobs)
        since = self._over.setdefault(number, time.time()) if is_over else time.time()
        noted, _ = await self._actions.note_tasks(items, claim=False) if is_over else ([], False)
        missing = {job.job_id for job in jobs if job.nodes} - {job for _, job, _ in noted}
        # Another node still writes a bundle; one that never comes back must not keep the message for ever.
        if not is_over or (missing and time.time() - since < self._settings.give_up_hours * 1800):
            for item in items:
                self._due[item.name] = time.monotonic() + min(SECONDS_BETWEEN_LOOKS, self._first_pause)
            return
        noted, ours = await self._actions.note_tasks(items, claim=True)
        if ours and wants_array(items[0].owner.mail_types, [state for _, _, state in noted]):
            self._spool.put(replace(items[0], action="mail.array", job_id=number, tasks=tuple(noted), tries=0))
        self._spool.told(number)
        for item in items:
            self._spool.done(item)
        self._over.pop(number, None)
        self._noted.pop(number, None)

    async def _try(
        self,
        line: str,
        items: Sequence[Item],
        work: Awaitable[None],
        *,
        together: bool = False,
        finished: bool = True,
    ) -> bool:
        """Whether it worked. `together`: a target that does not take one message takes no other either."""
        try:
            await work
        except SlurmK8sError as fault:
            pause = 0.0
            for item in items:
                pause = max(pause, self._failed(line, item, fault))
            if together and pause:
                self._due[line] = time.monotonic() + pause
            return False
        if finished:
            for item in items:
                self._spool.done(item)
            self._count(line, "done", items)
        return True

    def _failed(self, line: str, item: Item, fault: SlurmK8sError) -> float:
        """Keep it for later, or give it up; how long it waits."""
        item = replace(item, tries=item.tries + 1, problem=str(fault)[:2000])
        kind, _, name = line.partition("@")[0].partition(".")
        too_often = kind == "command" and item.tries >= self._settings.commands[name].attempts
        too_old = kind != "command" and time.time() - item.since > self._settings.give_up_hours * 3600
        if isinstance(fault, PersonFault) or too_often or too_old:
            logger.error(f"job {item.job_id}: {line} is given up after {item.tries} tries: {fault}")
            self._spool.give_up(item)
            self._count(line, "given up", [item])
            return 0.0
        pause: float = min(self._first_pause * 2 ** min(item.tries - 1, 20), LONGEST_PAUSE)
        logger.warning(f"job {item.job_id}: {line} must wait {pause:.0f} s: {fault}")
        self._spool.put(item)
        self._due[item.name] = time.monotonic() + pause
        return pause

    def _count(self, line: str, outcome: str, items: Iterable[Item]) -> None:
        if self._figures:
            self._figures.done.labels(line.partition("@")[0], outcome).inc(sum(1 for _ in items))

    def line_of(self, name: str) -> str:
        """Which line an item of this name stands in: a target's, and a person's own where it runs as that person.

        They may stop a process of theirs; it is their own next one that then waits.
        """
        uid, action = name.removesuffix(".json").split(".", 3)[2:]
        action = "mail" if action == "mail.array" else action
        command = self._settings.commands.get(action.removeprefix("command."))
        as_person = action in ("archive", "array") or (command is not None and command.run_as == "person")
        return f"{action}@{uid}" if as_person else action
