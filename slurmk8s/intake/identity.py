"""Whose job a drop is, and doing file work as that person.

Root follows what a user made only with that user's rights: on a share with root_squash root is nobody anyway, and
elsewhere it would be a way to read or overwrite other people's files.
"""

import contextlib
import os
import pwd
import stat
from collections.abc import Iterator

from slurmk8s.config import Intake
from slurmk8s.intake.texts import Refused
from slurmk8s.slurm.client import Identity

NOBODY = 65534
"""What root and unknown people become on a share that maps them; never a person."""


def of_drop(status: os.stat_result, folder: str, intake: Intake) -> Identity | None:
    """Whom to submit as; None for "as ourselves", when we are not root and the file is ours."""
    if os.geteuid() != 0:
        if status.st_uid != os.geteuid():
            raise Refused("not-ours", owner=name_of(status.st_uid), user=name_of(os.geteuid()))
        return None
    if intake.identity == "folder":
        return _of_folder(folder, intake)
    return of_uid(status.st_uid, intake)


def of_uid(uid: int, intake: Intake) -> Identity:
    """The account with this uid, if it may have jobs."""
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        raise Refused("unknown-owner", uid=uid) from None
    return _person(entry, intake)


def _of_folder(folder: str, intake: Intake) -> Identity:
    try:
        entry = pwd.getpwnam(folder)
    except KeyError:
        raise Refused("no-own-folder") from None
    return _person(entry, intake)


def _person(entry: pwd.struct_passwd, intake: Intake) -> Identity:
    if entry.pw_uid < intake.minimum_uid or entry.pw_uid == NOBODY:
        raise Refused("system-account", owner=entry.pw_name)
    groups = tuple(os.getgrouplist(entry.pw_name, entry.pw_gid))
    return Identity(entry.pw_name, entry.pw_uid, entry.pw_gid, groups, entry.pw_dir)


def is_person(name: str, intake: Intake) -> bool:
    """Whether `submit/<name>/` is a person's own folder."""
    try:
        entry = pwd.getpwnam(name)
    except (KeyError, ValueError):  # ValueError: a name no account can have
        return False
    return entry.pw_uid >= intake.minimum_uid and entry.pw_uid != NOBODY


def trusted_folder(status: os.stat_result, name: str, submit: os.stat_result, intake: Intake) -> bool:
    """Whether everything in `submit/<name>/` can be taken for that person's, which mode `folder` needs to know."""
    if intake.identity == "owner":
        return True
    return status.st_uid in {submit.st_uid, pwd.getpwnam(name).pw_uid} and not status.st_mode & stat.S_IWOTH


def name_of(uid: int) -> str:
    """The account's name, or its number."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user number {uid}"


@contextlib.contextmanager
def acting_as(identity: Identity | None) -> Iterator[None]:
    """Do file work with this person's rights; with None, or as that person already, with our own.

    The effective ids change for the whole process, whose other thread only reads inotify. Real and saved ids stay, so
    the person can neither signal nor trace us meanwhile. No program may be started inside.
    """
    if identity is None or identity.uid == os.geteuid():
        yield
        return
    before = (os.getgroups(), os.getegid(), os.geteuid())
    try:
        os.setgroups(identity.groups)
        os.setegid(identity.gid)
        os.seteuid(identity.uid)
        yield
    finally:
        os.seteuid(before[2])
        os.setegid(before[1])
        os.setgroups(before[0])
