"""What a node's agent tells Prometheus about jobs that ended there."""

from slurmk8s.after.item import Summary
from slurmk8s.metrics import Metrics

_QUEUED = (1, 10, 60, 300, 1800, 3600, 4 * 3600, 12 * 3600, 24 * 3600, 72 * 3600)
_RAN = (10, 60, 600, 3600, 4 * 3600, 12 * 3600, 24 * 3600, 72 * 3600, 168 * 3600)


class Figures:
    """Counted once for each attempt, when its bundle is complete."""

    def __init__(self, metrics: Metrics, *, users: bool) -> None:
        labels = ("partition", "user") if users else ("partition",)
        self._users = users
        self._jobs = metrics.counter("jobs", "Attempts of jobs that ended, by how.", ("state", "fault", *labels))
        self._cpu = metrics.counter("job_cpu_seconds", "CPUs that jobs held, times how long.", labels)
        self._gpu = metrics.counter("job_gpu_seconds", "GPUs that jobs held, times how long.", labels)
        self._queued = metrics.histogram("job_queue_seconds", "Time in the queue.", _QUEUED, ("partition",))
        self._ran = metrics.histogram("job_run_seconds", "Time that the body ran.", _RAN, ("partition",))
        self._outputs = metrics.counter("job_output_bytes", "Size of what jobs left in outputs/.", labels)
        self._incomplete = metrics.counter("bundles_incomplete", "Bundles that could not be completed.")
        self.waiting = metrics.gauge("after_waiting", "Things still to be done after jobs.")
        self.done = metrics.counter("after_actions", "Things done after jobs.", ("action", "outcome"))

    def ended(self, summary: Summary) -> None:
        """Count an attempt."""
        partition = str(summary.get("partition", ""))
        labels = [partition, str(summary.get("user", ""))] if self._users else [partition]
        durations, outputs = summary.get("durations") or {}, summary.get("outputs") or {}
        self._jobs.labels(str(summary.get("state")), str(summary.get("fault")), *labels).inc()
        if durations.get("queued") is not None:
            self._queued.labels(partition).observe(durations["queued"])
        ran = durations.get("running")
        if ran is not None:
            self._ran.labels(partition).observe(ran)
            self._cpu.labels(*labels).inc(ran * int(summary.get("cpus") or 0))
            self._gpu.labels(*labels).inc(ran * len(summary.get("gpus") or ()))
        self._outputs.labels(*labels).inc(int(outputs.get("bytes") or 0))
        if not summary.get("complete"):
            self._incomplete.inc()
