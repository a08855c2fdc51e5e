"""When a file has arrived: it has been the same for a while.

A file is compared with itself, on this machine's monotonic clock. The NAS's clock may be wrong by hours, and a copied
file often keeps an old time of change, so neither says when the copy ended.
"""

from dataclasses import dataclass, field

from slurmk8s.intake.drop import Arrived, Drop, Look


@dataclass
class Settling:
    """The present files' last looks and since when they are so. Files that are gone are forgotten."""

    settle_seconds: float
    hole_seconds: float = 300.0
    """How long a file with room that is reserved and not filled must stay so: the copy has then been broken off."""
    _since: dict[Drop, tuple[Look, float]] = field(default_factory=dict)
    _holes: dict[Drop, Look] = field(default_factory=dict)

    def still(self, looks: dict[Drop, Look], now: float) -> list[Drop]:
        """Of all files present in this pass, those that have been still for long enough, oldest change first."""
        since = {}
        ready = []
        for drop, look in looks.items():
            before = self._since.get(drop)
            start = before[1] if before and before[0] == look else now
            since[drop] = (look, start)
            if now >= start + self._patience(drop, look):
                ready.append(drop)
        self._since = since
        self._holes = {drop: look for drop, look in self._holes.items() if looks.get(drop) == look}
        return sorted(ready, key=lambda drop: (looks[drop].changed_ns, drop.folder, drop.name))

    def _patience(self, drop: Drop, look: Look) -> float:
        return self.hole_seconds if self._holes.get(drop) == look else self.settle_seconds * look.patience

    def taken(self, drop: Drop) -> None:
        """Forget a file that is being claimed."""
        self._since.pop(drop, None)

    def postpone(self, arrived: Arrived, until: float) -> None:
        """A file that could not be claimed is not tried again before then."""
        self._since[arrived.drop] = (arrived.look, until)

    def wait_for_filling(self, arrived: Arrived, now: float) -> None:
        """A file that looks still has a hole: it waits until it changes, or for long."""
        self._since[arrived.drop] = (arrived.look, now)
        self._holes[arrived.drop] = arrived.look

    def has_waited(self, drop: Drop) -> bool:
        """Whether it has waited for that in vain: it is taken as it is."""
        return drop in self._holes

    def next_due(self, now: float) -> float | None:
        """Seconds until the next file could be still; None when nothing is arriving."""
        waits = [start + self._patience(drop, look) - now for drop, (look, start) in self._since.items()]
        return max(0.0, min(waits)) if waits else None

    @property
    def arriving(self) -> int:
        """How many files lie there and are not taken yet."""
        return len(self._since)
