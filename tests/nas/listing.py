"""What lies in a folder."""

import os

FOLDER, FILE, LINK, UNKNOWN = 4, 8, 10, 0
"""As in <dirent.h>."""
Entry = tuple[int, int, bytes]
"""Inode, kind and name."""


def listing(descriptor: int) -> list[Entry]:
    """All entries of an open folder."""
    with os.scandir(descriptor) as entries:
        found = [(entry.inode(), _kind(entry), os.fsencode(entry.name)) for entry in entries]
    return [(1, FOLDER, b"."), (1, FOLDER, b".."), *found]


def _kind(entry: "os.DirEntry[str]") -> int:
    if entry.is_dir(follow_symlinks=False):
        return FOLDER
    if entry.is_file(follow_symlinks=False):
        return FILE
    return LINK if entry.is_symlink() else UNKNOWN
