"""The index of a person's results: what is found without opening a hundred thousand bundles.

`results/.index/<uid>/2026-11.node1.jsonl` has one line per start and one per end of an attempt, added by the results
worker as that person. One file per month and machine: two NFS clients that append to the same file overwrite each
other's lines, one client alone does not. A line begins on a new line of its own, so one that a crash cut short spoils
no other. Nothing is ever taken out, and nothing depends on it: bundles are what counts, and a scan adds what is missing
(reindex.py).

The folder `.index` is made by the watcher or the admin. If it has the set-group-id bit, members of its group may read
everybody's index; without it each person reads their own.
"""

import contextlib
import errno
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from slurmk8s.results import entry, files
from slurmk8s.results.entry import Entry

FOLDER = ".index"
WHOLE = "whole"
"""A file beside the lines: all bundles of the time before the index are in it."""
_LINES = re.compile(r"([0-9]{4}-[0-9]{2})\.[A-Za-z0-9_.-]{1,64}\.jsonl", re.ASCII)
_HOST = re.compile(r"[^A-Za-z0-9_.-]")
_AT_ONCE = 500
_NO_LINES = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO)
# An admin reads what anybody wrote. Ours are shorter; what is cut here is no line.
_LONGEST_LINE = 1 << 14
# Of one person at a time: some hundred thousand attempts. A line takes memory besides its bytes, however short.
_MOST_BYTES = 1 << 29
_BESIDES = 64


@dataclass(frozen=True)
class Index:
    """The index of one person."""

    root: str
    uid: int

    def exists(self) -> bool:
        """Whether there is one that we may read."""
        try:
            with self._opened():
                return True
        except OSError:
            return False

    def is_whole(self) -> bool:
        """Whether bundles of the time before the index are in it as well."""
        try:
            with self._opened() as folder:
                return files.lstat(folder, WHOLE) is not None
        except OSError:
            return False

    def entries(
        self, since: float | None = None, until: float | None = None, *, running: bool = True
    ) -> Iterator[Entry]:
        """Attempts, the latest first, each once; OSError if one's own cannot be read.

        `running`: also those of which only the start is known. Their bundles may know more by now.
        """
        known: set[tuple[int, int, int]] = set()
        first, last = _month(since), _month(until)
        room = _MOST_BYTES
        with self._as_they_left_it(), self._opened() as folder:
            for month, names in _months(folder):
                if (first and month < first) or (last and month > last):
                    continue
                lines: list[bytes] = []
                for name in names:
                    room = self._read(folder, name, lines, room)
                lines.sort(reverse=True)
                for line in lines:
                    found = entry.decode(line)
                    if found is None or (found.runs and not running) or found.key in known:
                        continue
                    known.add(found.key)
                    if (since is None or found.at >= since) and (until is None or found.at < until):
                        yield found

    def named(self, task: str) -> Iterator[Entry]:
        """Attempts of this task of an array, the latest first; none where there is no index."""
        try:
            yield from (each for each in self.entries() if each.array == task)
        except OSError:
            return

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        """The person's own folder; anybody could put one at that name."""
        with _everyones(self.root) as (_, everyones), files.folder(str(self.uid), everyones) as folder:
            if os.fstat(folder).st_uid != self.uid:
                raise FileNotFoundError(errno.ENOENT, "no index of this person's own")
            yield folder

    @contextlib.contextmanager
    def _as_they_left_it(self) -> Iterator[None]:
        """What somebody did to their own index is missing from it and keeps nobody from reading the others."""
        try:
            yield
        except OSError:
            if self.uid == os.getuid():
                raise

    def _read(self, folder: int, name: str, lines: list[bytes], room: int) -> int:
        """Add the last lines of this file, as far as there is room; how much is left."""
        with self._as_they_left_it(), _plain_file(folder, name, self.uid) as descriptor:
            if descriptor is None:
                return room
            with open(descriptor, "rb", closefd=False) as file:
                # The newest are at its end. Half: of lines as long as ours all of that fits.
                file.seek(max(0, os.fstat(descriptor).st_size - room // 2))
                for line in iter(partial(file.readline, _LONGEST_LINE), b""):
                    room -= len(line) + _BESIDES
                    if room < 0:
                        break
                    if line.startswith(b"["):
                        lines.append(line)
        return max(0, room)


def everyone(root: str) -> list[Index]:
    """The indexes of all people, if we may list them; OSError if not."""
    with _everyones(root) as (_, everyones), files.folder(".", everyones) as listed:
        names = [name for name in os.listdir(listed) if name.isascii() and name.isdecimal()]
    return [Index(root, int(name)) for name in sorted(names, key=int)]


def add(root: str, new: Iterable[Entry], *, durable: bool = True) -> int:
    """Add lines to one's own index; how many. OSError, or PersonFault where something stands in the way."""
    added = 0
    with own_folder(root) as (_, folder):
        mode = 0o640 if os.fstat(folder).st_mode & stat.S_ISGID else 0o600
        for name, lines in _portions(new):
            files.create_empty(folder, name, mode)
            # Each line begins with a newline of its own, see above.
            files.append(folder, name, b"".join(b"\n" + line for line in lines), durable=durable)
            added += len(lines)
    return added


def say_whole(root: str) -> None:
    """From now on one's own index is asked alone."""
    with own_folder(root) as (_, folder):
        files.create_empty(folder, WHOLE, 0o600)


@contextlib.contextmanager
def own_folder(root: str) -> Iterator[tuple[int, int]]:
    """The results folder, and in it one's own part of the index, made if need be; FileNotFoundError without index."""
    name = str(os.geteuid())
    with _everyones(root) as (opened, everyones):
        _make_own(everyones, name, shared=bool(os.fstat(everyones).st_mode & stat.S_ISGID))
        with files.folder(name, everyones) as folder:
            if os.fstat(folder).st_uid != os.geteuid():
                raise files.not_ours(f"{FOLDER}/{name}")
            yield opened, folder


def note(root: str, new: Entry, *, durable: bool = True) -> str:
    """Add one line as the person whose bundle it is; what went wrong, if anything did.

    A bundle is complete without it: no fault of the index may become one of the job.
    """
    try:
        add(root, [new], durable=durable)
    except FileNotFoundError:
        return ""  # the site has no index
    except Exception as error:  # noqa: BLE001 - see above
        return f"{type(error).__name__}: {error}"
    return ""


def begun(job_id: int, attempt: int, name: str, array: str, submitted: float | None) -> Entry:
    """The entry of an attempt that starts now."""
    return Entry(time.time(), job_id, attempt, entry.RUNNING, array, name, submitted=submitted)


def _make_own(parent: int, name: str, *, shared: bool) -> None:
    """A bare mkdir: chmod would take the set-group-id bit away from somebody who is not in the group."""
    umask = os.umask(0)
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o750 if shared else 0o700, dir_fd=parent)
    finally:
        os.umask(umask)


@contextlib.contextmanager
def _everyones(root: str) -> Iterator[tuple[int, int]]:
    """The results folder, and the folder of all indexes in it, to go through: most people may not list it.

    The results folder is the admin's and may be a link; links are refused from there on.
    """
    flags = os.O_DIRECTORY | os.O_CLOEXEC
    results = os.open(root, os.O_RDONLY | flags)
    try:
        everyones = os.open(FOLDER, os.O_PATH | os.O_NOFOLLOW | flags, dir_fd=results)
        try:
            yield results, everyones
        finally:
            os.close(everyones)
    finally:
        os.close(results)


@contextlib.contextmanager
def _plain_file(folder: int, name: str, uid: int) -> Iterator[int | None]:
    """This person's own file, opened; None if it is anything else, such as a pipe to wait for."""
    try:
        descriptor = os.open(name, os.O_RDONLY | files.FILE_FLAGS, dir_fd=folder)
    except OSError as error:
        if error.errno not in _NO_LINES:
            raise
        yield None
        return
    try:
        found = os.fstat(descriptor)
        yield descriptor if stat.S_ISREG(found.st_mode) and found.st_uid == uid else None
    finally:
        os.close(descriptor)


def _portions(new: Iterable[Entry]) -> Iterator[tuple[str, list[bytes]]]:
    """Lines by the file they go to, some at a time: a scan adds a hundred thousand."""
    waiting: dict[str, list[bytes]] = {}
    for one in new:
        name = f"{_month(one.at)}.{_host()}.jsonl"
        lines = waiting.setdefault(name, [])
        lines.append(entry.encode(one))
        if len(lines) >= _AT_ONCE:
            yield name, waiting.pop(name)
    yield from waiting.items()


def _months(folder: int) -> list[tuple[str, list[str]]]:
    months: dict[str, list[str]] = {}
    for name in os.listdir(folder):
        match = _LINES.fullmatch(name)
        if match:
            months.setdefault(match[1], []).append(name)
    return sorted(months.items(), reverse=True)


def _month(at: float | None) -> str:
    if at is None:
        return ""
    try:
        return time.strftime("%Y-%m", time.gmtime(at))
    except (OverflowError, OSError, ValueError):  # somebody edited the summary
        return "1970-01"


def _host() -> str:
    """This machine, as part of a file's name."""
    return _HOST.sub("_", os.uname().nodename)[:64] or "host"
