"""A drop and how it looks, as the scan sees it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Drop:
    """Something that lies in `submit/` (folder "") or in a person's `submit/<folder>/`."""

    folder: str
    name: str
    trusted: bool = True
    """Whether only that person (or the admin) can have put it into that folder."""


@dataclass(frozen=True)
class Look:
    """What changes when a file changes."""

    inode: int
    size: int
    changed_ns: int
    patience: int = 1
    """How many settle times it must stay so before it is taken."""
