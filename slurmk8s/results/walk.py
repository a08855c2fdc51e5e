"""Walk a tree without following links and with flat memory: one folder at a time, its names in order.

The order is fixed (files of a folder by name, then its folders by name), so that work that was cut short can go on
where it stopped.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass

from slurmk8s.results import files


@dataclass(frozen=True)
class Folder:
    """One folder of the tree."""

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


def walk(parent: int, name: bytes) -> Iterator[Folder]:
    """The folder `name` and all below it. Names of bytes: not every name on a NAS is UTF-8."""
    waiting = [name]
    while waiting:
        path = waiting.pop()
        try:
            descriptor = open_below(parent, path)
        except OSError as error:
            yield Folder(path, -1, (), (), error)
            continue
        try:
            regular, folders, skipped = _listing(descriptor)
        except OSError as error:
            yield Folder(path, -1, (), (), error)
        else:
            yield Folder(path, descriptor, regular, skipped)
            waiting.extend(path + b"/" + folder for folder in reversed(folders))
        finally:
            os.close(descriptor)


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


def _listing(descriptor: int) -> tuple[tuple[bytes, ...], list[bytes], tuple[bytes, ...]]:
    regular, folders, skipped = [], [], []
    with os.scandir(descriptor) as entries:
        for entry in entries:
            name = os.fsencode(entry.name)
            if entry.is_file(follow_symlinks=False):
                regular.append(name)
            elif entry.is_dir(follow_symlinks=False):
                folders.append(name)
            else:
                skipped.append(name)
    return tuple(sorted(regular)), sorted(folders), tuple(sorted(skipped))
