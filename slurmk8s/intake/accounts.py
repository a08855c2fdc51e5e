"""Accounts of this machine, remembered for a few seconds: a directory server is not asked once per file of a burst."""

import os
import pwd
import time
from collections.abc import Callable
from typing import TypeVar

from slurmk8s.slurm.client import Identity

SECONDS = 10.0
"""A new account, or a new group of somebody's, counts after that long."""
MOST = 10_000

Key = TypeVar("Key", int, str)
_by_uid: dict[int, tuple[float, Identity | None]] = {}
_by_name: dict[str, tuple[float, Identity | None]] = {}


def with_uid(uid: int) -> Identity | None:
    """The account with this number."""
    return _remembered(_by_uid, uid, lambda: pwd.getpwuid(uid))


def with_name(name: str) -> Identity | None:
    """The account with this name."""
    return _remembered(_by_name, name, lambda: pwd.getpwnam(name))


def name_of(uid: int) -> str:
    """The account's name, or its number."""
    account = with_uid(uid)
    return account.name if account else f"user number {uid}"


def _remembered(
    memory: dict[Key, tuple[float, Identity | None]], key: Key, ask: Callable[[], pwd.struct_passwd]
) -> Identity | None:
    now = time.monotonic()
    if (known := memory.get(key)) and now - known[0] < SECONDS:
        return known[1]
    if len(memory) >= MOST:
        memory.clear()
    try:
        entry = ask()
        groups = tuple(os.getgrouplist(entry.pw_name, entry.pw_gid))
        found = Identity(entry.pw_name, entry.pw_uid, entry.pw_gid, groups, entry.pw_dir)
    except (KeyError, ValueError):  # ValueError: a name that no account can have
        found = None
    memory[key] = (now, found)
    return found
