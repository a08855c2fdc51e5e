"""Walk a tree without following links and with flat memory: one folder at a time, its names in order.

The order is fixed (files of a folder by name, then its folders by name), so that work that was cut short can go on
where it stopped. A folder of millions of files is given in parts: it is listed again for each, which costs seconds,
where holding all its names would cost a gigabyte.
"""

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from slurmk8s.results import files

# So many names of one folder are held at a time.
WINDOW = 1 << 16
_FILE, _FOLDER, _OTHER = b"f", b"d", b"o"


@dataclass(frozen=True)
class Folder:
    """One folder of the tree, or a part of it."""

    path: bytes
    """Relative to where the walk began, with that folder's own name in front."""
    descriptor: int
    """Open while this value is looked at; -1 with an error."""
    names: tuple[bytes, ...]
    """Its regular files."""
    skipped: tuple[bytes, ...]
    """Links, pipes, sockets, devices."""
    error: OSError | None = None
    """Why it could not be listed."""


def walk(parent: int, name: bytes, window: int = WINDOW) -> Iterator[Folder]:
    """The folder `name` and all below it. Names of bytes: not every name on a NAS is UTF-8."""
    waiting = [name]
    while waiting:
        path = waiting.pop()
        folders: list[bytes] = []
        try:
            descriptor = open_below(parent, path)
        except OSError as error:
            yield Folder(path, -1, (), (), error)
            continue
        try:
            after: bytes | None = b""
            while after is not None:
                try:
                    entries, after = _listing(descriptor, after, window)
                except OSError as error:
                    yield Folder(path, -1, (), (), error)
                    break
                folders += _of(entries, _FOLDER)
                yield Folder(path, descriptor, tuple(_of(entries, _FILE)), tuple(_of(entries, _OTHER)))
        finally:
            os.close(descriptor)
        waiting.extend(path + b"/" + folder for folder in reversed(folders))


def open_below(parent: int, path: bytes) -> int:
    """Open a folder part by part, none of which may be a link; the caller closes it.

    One descriptor at a time, however deep: a path of a thousand folders is neither too long nor too many open files.
    """
    descriptor = os.dup(parent)
    for part in path.split(b"/"):
        try:
            inner = os.open(part, files.FOLDER_FLAGS, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = inner
    return descriptor


def trouble(error: OSError) -> Literal["unreadable", "missing"]:
    """What it means for a folder's files: closed by its owner, or taken away. The NAS's own errors are raised."""
    if isinstance(error, PermissionError):
        return "unreadable"
    if isinstance(error, FileNotFoundError | NotADirectoryError) or error.errno == errno.ELOOP:
        return "missing"
    raise error


def _listing(descriptor: int, after: bytes, window: int) -> tuple[list[bytes], bytes | None]:
    """The next names in order, each with its kind behind a zero byte, which no name has and which sorts first."""
    found: list[bytes] = []
    more = False
    with os.scandir(descriptor) as entries:
        for entry in entries:
            name = os.fsencode(entry.name)
            if name <= after:
                continue
            if entry.is_file(follow_symlinks=False):
                kind = _FILE
            else:
                kind = _FOLDER if entry.is_dir(follow_symlinks=False) else _OTHER
            found.append(name + b"\0" + kind)
            if len(found) >= 2 * window:
                found.sort()
                del found[window:]
                more = True
    found.sort()
    if len(found) > window:
        del found[window:]
        more = True
    return found, found[-1][:-2] if more else None


def _of(entries: list[bytes], kind: bytes) -> list[bytes]:
    return [entry[:-2] for entry in entries if entry[-1:] == kind]
