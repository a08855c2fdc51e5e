"""A drop and how it looks, as the scan sees it."""

import re
from dataclasses import dataclass

_CANCEL = re.compile(r"cancel-([1-9][0-9]{0,9}(?:_[0-9]{1,7})?)(?:\.txt)?", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Drop:
    """Something that lies in `submit/` (folder "") or in a person's `submit/<folder>/`."""

    folder: str
    name: str
    trusted: bool = True
    """Whether only that person (or the admin) can have put it into that folder."""


@dataclass(frozen=True, slots=True)
class Look:
    """What changes when a file changes."""

    inode: int
    size: int
    changed_ns: int
    patience: int = 1
    """How many settle times it must stay so before it is taken."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """A drop that is to be claimed, as it looked when it was found still."""

    drop: Drop
    look: Look
    as_it_is: bool = False
    """Also if it seems to be half copied: it has waited long enough."""


def job_to_cancel(name: str) -> str | None:
    """The job that a file of this name asks to cancel, `12` or `12_3`. Windows likes to add `.txt`."""
    found = _CANCEL.fullmatch(name)
    return found[1] if found else None
