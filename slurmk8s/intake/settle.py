"""When a file has arrived: it has been the same for a while.

A file is compared with itself, on this machine's monotonic clock. The NAS's clock may be wrong by hours, and a copied
file often keeps an old time of change, so neither says when the copy ended.
"""

from dataclasses import dataclass, field

from slurmk8s.intake.drop import Drop, Look


@dataclass
class Settling:
    """The present files' last looks and since when they are so. Files that are gone are forgotten."""

    settle_seconds: float
    _since: dict[Drop, tuple[Look, float]] = field(default_factory=dict)

    def still(self, looks: dict[Drop, Look], now: float) -> list[Drop]:
        """Of all files present in this pass, those that have been still for long enough, oldest change first."""
        since = {}
        ready = []
        for drop, look in looks.items():
            before = self._since.get(drop)
            start = before[1] if before and before[0] == look else now
            since[drop] = (look, start)
            if now - start >= self.settle_seconds * look.patience:
                ready.append(drop)
        self._since = since
        return sorted(ready, key=lambda drop: (looks[drop].changed_ns, drop.folder, drop.name))

    def taken(self, drop: Drop) -> None:
        """Forget a file that was claimed."""
        self._since.pop(drop, None)

    def postpone(self, drop: Drop, until: float) -> None:
        """A file that could not be claimed is not tried again before then."""
        look, _ = self._since[drop]
        self._since[drop] = (look, until)

    def next_due(self, now: float) -> float | None:
        """Seconds until the next file could be still; None when nothing is arriving."""
        waits = [start + self.settle_seconds * look.patience - now for look, start in self._since.values()]
        return max(0.0, min(waits)) if waits else None
