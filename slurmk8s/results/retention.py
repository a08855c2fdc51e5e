"""Which bundles of a person have had their time: decided from what their summaries say, without any effect."""

from collections.abc import Iterable
from dataclasses import dataclass

DAY = 86400.0
# What a bundle holds back its removal by, in the owner's hands.
KEEP = ".keep"


@dataclass(frozen=True)
class Rule:
    """What the site asks for; None: no limit."""

    days: float | None = None
    """Bundles whose job ended longer ago go."""
    total_bytes: int | None = None
    """While a person's bundles are larger together, the oldest go."""
    spare_days: float = 1.0
    """However large: what is younger stays."""


@dataclass(frozen=True)
class Candidate:
    """One bundle, as it was looked at."""

    folder: str
    """Its name below results/."""
    inode: int
    name: str
    """The job's."""
    ended: float | None
    bytes: int
    held: str = ""
    """Why it must stay, whatever the rule says."""


@dataclass(frozen=True)
class Removal:
    """One bundle that goes, and why."""

    candidate: Candidate
    why: str


def choose(candidates: Iterable[Candidate], rule: Rule, now: float) -> list[Removal]:
    """What goes, the oldest first. A clock that is wrong by years must not empty a NAS: the future is young."""
    known = sorted(candidates, key=lambda one: (one.ended if one.ended is not None else now, one.folder))
    total = sum(one.bytes for one in known)
    chosen = []
    for one in known:
        if one.held or one.ended is None:
            continue
        days = (now - one.ended) / DAY
        if rule.days is not None and days > rule.days:
            why = f"ended {days:.0f} days ago, kept for {rule.days:g} days"
        elif rule.total_bytes is not None and total > rule.total_bytes and days > rule.spare_days:
            why = f"the oldest, while all together are larger than {rule.total_bytes / 2**30:g} GiB"
        else:
            continue
        total -= one.bytes
        chosen.append(Removal(one, why))
    return chosen
