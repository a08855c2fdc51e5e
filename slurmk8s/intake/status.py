"""What lies in the intake and how far each file is: for an admin who wants to know. Reads, changes nothing."""

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from slurmk8s.config import Config
from slurmk8s.intake import accounts, folders, journal, naming
from slurmk8s.intake.case import Case, opened
from slurmk8s.intake.claim import claims
from slurmk8s.intake.folders import Folders
from slurmk8s.intake.rights import acting_as
from slurmk8s.intake.scan import Scanner


@dataclass(frozen=True)
class Item:
    """One file."""

    state: Literal["arriving", "claimed", "waiting", "in doubt"]
    """arriving: not taken yet; claimed: being worked on; waiting: for Slurm, told to the person; in doubt: answered,
    but Slurm may still accept a second job, which is then cancelled."""
    file: str
    user: str
    seconds: float
    """Since when: a claim's own time, for one that arrives the file's last change by the NAS's clock."""
    job_id: int | None = None
    key: str = ""
    """The reference in log and receipt."""


def items(config: Config) -> list[Item]:
    """All files that are not done with, oldest first."""
    with folders.of(config) as found:
        everything = [*_claimed(found, config), *_arriving(found, config)]
    return sorted(everything, key=lambda item: -item.seconds)


def _arriving(found: Folders, config: Config) -> Iterator[Item]:
    now = time.time()
    for drop, look in Scanner(config.intake).looks(found.submit).items():
        with contextlib.suppress(OSError):  # taken meanwhile
            with folders.place(found.submit, drop.folder) as (folder, keeper), acting_as(keeper):
                owner = os.stat(drop.name, dir_fd=folder, follow_symlinks=False).st_uid
            path = f"{drop.folder}/{drop.name}" if drop.folder else drop.name
            name = accounts.name_of(owner)
            yield Item("arriving", naming.printable(path), name, max(0.0, now - look.changed_ns / 1e9))


def _claimed(found: Folders, config: Config) -> Iterator[Item]:
    now = time.time()
    for claim in claims(found.open):
        try:
            case = opened(found, claim, config.intake)
        except OSError:  # finished meanwhile
            continue
        try:
            if case.name:
                yield _item(case, now - claim.claimed)
        finally:
            case.close()


def _item(case: Case, seconds: float) -> Item:
    answered = journal.read(case.folder, journal.ANSWER)
    job_id = journal.Answer.from_bytes(answered).submitted if answered else None
    state: Literal["claimed", "waiting", "in doubt"] = "claimed"
    if journal.DOUBT in case.facts:
        state = "in doubt"
    elif journal.WAITING in case.facts:
        state = "waiting"
    owner = case.identity.name if case.identity else accounts.name_of(case.status.st_uid if case.status else 0)
    return Item(state, naming.printable(case.name), owner, max(0.0, seconds), job_id, case.claim.key)
