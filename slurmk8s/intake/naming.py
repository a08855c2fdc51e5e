"""Names of receipts: never one that is taken, never longer than a file system takes."""

import itertools
import os
from collections.abc import Iterator

LONGEST = 255
ROOM = len(".4294967295.receipt.txt") + len("-9999")
"""Bytes kept free for what a receipt's name adds."""


def base(name: str) -> str:
    """The drop's name, shortened before its last dot if nothing could be added to it otherwise."""
    whole = os.fsencode(name)
    if len(whole) <= LONGEST - ROOM:
        return name
    stem, dot, suffix = whole.rpartition(b".")
    if not stem or len(suffix) > 20:
        stem, dot, suffix = whole, b"", b""
    cut = stem[: LONGEST - ROOM - len(dot + suffix)]
    while cut and (stem[len(cut)] & 0xC0) == 0x80:  # not in the middle of a UTF-8 character
        cut = cut[:-1]
    return os.fsdecode(cut + dot + suffix)


def numbered(name: str) -> Iterator[str]:
    """`job.sh`, `job-2.sh`, `job-3.sh`, …"""
    yield name
    stem, dot, suffix = name.rpartition(".")
    if not stem:
        stem, dot, suffix = name, "", ""
    for number in itertools.count(2):
        yield f"{stem}-{number}{dot}{suffix}"


def printable(name: str) -> str:
    """The name as a person can read it in a text, whatever bytes it has."""
    text = os.fsencode(name).decode("utf-8", "replace")
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
