"""A claim while somebody works on it: its folder, open, and what is known about it."""

import contextlib
import os
from dataclasses import dataclass, field

from slurmk8s.config import Intake
from slurmk8s.errors import PersonFault
from slurmk8s.intake import accounts
from slurmk8s.intake import identity as people
from slurmk8s.intake.claim import Claim, open_folder
from slurmk8s.intake.folders import Folders
from slurmk8s.intake.journal import Answer, Submission
from slurmk8s.intake.receipts import Prepared
from slurmk8s.intake.texts import Refused
from slurmk8s.language import Language
from slurmk8s.slurm.client import Identity


@dataclass(eq=False)
class Case:
    """Close it when done."""

    claim: Claim
    folder: int
    """The claim's own, by descriptor: it stays right when another watcher moves it to done/ meanwhile."""
    facts: frozenset[str]
    """Which facts the journal had when it was opened."""
    name: str
    """The drop's name; "" if the drop is no longer, or was never, in the claim."""
    status: os.stat_result | None = None
    identity: Identity | None = None
    """Whose it is; None: nobody's, or our own where we are not root."""
    objection: PersonFault | None = None
    """Why it can be nobody's job."""
    submission: Submission | None = None
    first: bool = False
    """Whether nobody can have tried to submit it before."""
    answer: Answer | None = None
    recorded: bool = False
    """Whether the journal has the answer."""
    receipt: Prepared | None = None
    told: bool = False
    """Whether it is now that the person gets the receipt."""
    trouble: Exception | None = None
    """What a step for the whole batch met with this one."""
    _closed: bool = field(default=False, repr=False)

    @property
    def uid(self) -> int:
        """Whose job it is."""
        return self.identity.uid if self.identity else os.geteuid()

    def close(self) -> None:
        """Let go of the folder."""
        if not self._closed:
            self._closed = True
            for descriptor in (self.folder, *(self.receipt.opened if self.receipt else ())):
                with contextlib.suppress(OSError):
                    os.close(descriptor)


def opened(folders: Folders, claim: Claim, intake: Intake) -> Case:
    """Open a claim and look whose it is."""
    folder = open_folder(folders, claim)
    case = Case(claim, folder, frozenset(), "")
    try:
        names = os.listdir(folder)
        case.facts = frozenset(name for name in names if name.startswith("."))
        case.name = next((name for name in names if not name.startswith(".")), "")
        if case.name:
            case.status = os.stat(case.name, dir_fd=folder, follow_symlinks=False)
            _recognise(case, intake)
    except BaseException:
        case.close()
        raise
    return case


def _recognise(case: Case, intake: Intake) -> None:
    assert case.status is not None
    claim = case.claim
    # Where the folder alone says whose it is, one that others can write to says nothing.
    folder = claim.folder if claim.trusted or intake.identity == "owner" else ""
    try:
        case.identity = people.of_drop(case.status, folder, intake)
    except PersonFault as objection:
        case.objection = objection
    if not claim.trusted:
        case.objection = Refused("open-folder", folder=claim.folder)


def owner_of(case: Case) -> str:
    """Whose it is, by name; for a text."""
    if case.identity is not None:
        return case.identity.name
    return accounts.name_of(case.status.st_uid) if case.status else ""


def language_of(case: Case, intake: Intake) -> Language:
    """The language that the drop's person reads."""
    return intake.language_of(owner_of(case))
