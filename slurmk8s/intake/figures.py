"""What the watcher tells Prometheus."""

from slurmk8s.intake.work import Fate
from slurmk8s.metrics import Metrics

OUTCOMES = ("job", "refused", "cancelled")


class Figures:
    """Counts what came of drops."""

    def __init__(self, metrics: Metrics) -> None:
        self.metrics = metrics
        self._drops = metrics.counter("drops", "Drops that were answered, by what they became.", ("outcome",))
        self._refusals = metrics.counter("refusals", "Drops that became no job, by reason.", ("reason",))
        self._claimed = metrics.gauge("claims_open", "Drops that are claimed and have no answer yet.")
        self._arriving = metrics.gauge("drops_arriving", "Files in submit/ that are not still yet.")
        self._oldest = metrics.gauge("oldest_drop_seconds", "Age of the oldest drop without an answer.")
        self._doubt = metrics.gauge("claims_in_doubt", "Answered drops of which a second job may still turn up.")
        self._slurm = metrics.gauge("slurm_answers", "Whether Slurm answered the last question (1) or not (0).")
        for outcome in OUTCOMES:
            self._drops.labels(outcome)

    def count(self, fate: Fate) -> None:
        """A drop was answered."""
        if fate.answer is not None and fate.state in ("finished", "doubtful"):
            self._drops.labels(fate.answer.kind).inc()
            if fate.answer.kind == "refused":
                self._refusals.labels(fate.answer.reason or "other").inc()

    def show(self, *, claimed: int, arriving: int, doubtful: int, oldest: float, slurm: bool) -> None:
        """How things stand after a pass."""
        self._claimed.set(claimed)
        self._arriving.set(arriving)
        self._doubt.set(doubtful)
        self._oldest.set(oldest)
        self._slurm.set(1 if slurm else 0)
