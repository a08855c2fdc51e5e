"""How many mails a person gets: so many in an hour by themselves, and what comes above them in one. Pure."""

from dataclasses import dataclass

HOUR = 3600.0


@dataclass(frozen=True)
class Portion:
    """What may go now."""

    alone: int
    """So many of the oldest, each by itself."""
    together: int
    """So many after them, in one message."""
    again_at: float | None = None
    """When to look again for the rest."""


def portion(waiting: int, sent: list[float], per_hour: int, now: float) -> Portion:
    """What does not fit goes together into the last free place; without one it waits for the next."""
    recent = sorted(when for when in sent if when > now - HOUR)
    room = per_hour - len(recent)
    if room <= 0 < waiting:
        return Portion(0, 0, recent[len(recent) - per_hour] + HOUR)
    if waiting <= room:
        return Portion(waiting, 0)
    return Portion(room - 1, waiting - room + 1)
