"""Whose job a drop is."""

import os
import stat

from slurmk8s.config import Intake
from slurmk8s.intake import accounts
from slurmk8s.intake.texts import Refused
from slurmk8s.slurm.client import Identity

NOBODY = 65534
"""What root and unknown people become on a share that maps them; never a person."""


def of_drop(status: os.stat_result, folder: str, intake: Intake) -> Identity | None:
    """Whom to submit as; None for "as ourselves", when we are not root and the file is ours.

    `folder` is the person's own folder that the drop lay in, "" for `submit/` itself.
    """
    if os.geteuid() != 0:
        if status.st_uid != os.geteuid():
            raise Refused("not-ours", owner=accounts.name_of(status.st_uid), user=accounts.name_of(os.geteuid()))
        return None
    if intake.identity == "folder":
        person = accounts.with_name(folder) if folder else None
        if person is None:
            raise Refused("no-own-folder")
    else:
        person = accounts.with_uid(status.st_uid)
        if person is None:
            raise Refused("unknown-owner", uid=status.st_uid)
    if not _may_have_jobs(person, intake):
        raise Refused("system-account", owner=person.name)
    return person


def is_person(name: str, intake: Intake) -> bool:
    """Whether `submit/<name>/` is a person's own folder."""
    person = accounts.with_name(name)
    return person is not None and _may_have_jobs(person, intake)


def _may_have_jobs(person: Identity, intake: Intake) -> bool:
    return person.uid >= intake.minimum_uid and person.uid != NOBODY


def is_own_folder(status: os.stat_result, name: str, submit: os.stat_result, intake: Intake) -> bool:
    """Whether everything in `submit/<name>/` can be taken for that person's.

    Nobody else may write there; and where the folder alone says who it is, it must be that person's or the admin's.
    """
    if status.st_mode & stat.S_IWOTH:
        return False
    person = accounts.with_name(name)
    return intake.identity == "owner" or (person is not None and status.st_uid in {submit.st_uid, person.uid})
