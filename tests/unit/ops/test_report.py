"""Needs nothing. What a report adds up."""

import pytest

from slurmk8s.ops import causes, report
from slurmk8s.results.entry import Entry

DAY = 1_700_000_000.0


def ended(job_id: int, state: str = "completed", **changes: object) -> tuple[Entry, int]:
    """An attempt that waited a minute, and had two GPUs and eight CPUs for an hour."""
    entry = Entry(
        at=DAY,
        job_id=job_id,
        attempt=0,
        state=state,
        user="alice",
        partition="gpu",
        cpus=8,
        memory_mb=1024,
        gpus=2,
        submitted=DAY - 3660,
        started=DAY - 3600,
        ended=DAY,
    )
    return entry._replace(**changes), 1000


def test_hours_failures_and_queue_times_of_each_group() -> None:
    attempts = [
        ended(1),
        ended(2, "failed", cause="The body ended with exit code 1.", fault="person"),
        ended(3, partition="cpu", gpus=0, submitted=DAY - 3600 - 600),
    ]
    found = report.make(attempts, "partition")
    assert [line.group for line in found.lines] == ["gpu", "cpu"]
    gpu, cpu = found.lines
    assert (gpu.jobs, gpu.failed, gpu.gpu_hours, gpu.lost_gpu_hours, gpu.cpu_hours) == (2, 1, 4.0, 2.0, 16.0)
    assert (gpu.queued_median, cpu.queued_median) == (60.0, 600.0)
    assert (found.total.jobs, found.total.gpu_hours, found.total.queued_p90) == (3, 4.0, 600.0)
    assert gpu.gpu_use is None
    assert gpu.idle_gpu_hours is None


def test_each_attempt_of_a_requeued_job_counts_for_its_hours_and_the_job_once() -> None:
    again = ended(1, "requeued", fault="node", cause="The node went away. The next attempt follows.")
    found = report.make([ended(1, attempt=1), again], "user")
    (line,) = found.lines
    assert (line.group, line.jobs, line.failed, line.gpu_hours, line.lost_gpu_hours) == ("alice", 1, 1, 4.0, 2.0)
    assert [(cause.cause, cause.attempts) for cause in found.causes] == [("started again (node)", 1)]


def test_waste_is_told_where_use_was_measured_and_only_of_that() -> None:
    used = ended(1, gpu_use=0.25, cpu_seconds=3600.0, memory_peak=256.0 * 2**20)
    found = report.make([used, ended(2)], "user")
    assert found.total.gpu_use == 0.25
    assert found.total.idle_gpu_hours == 1.5
    assert found.total.cpu_use == 0.125
    assert found.total.memory_use == 0.25
    assert found.total.gpu_hours == 4.0


@pytest.mark.parametrize(
    ("state", "fault", "cause", "group"),
    [
        ("out_of_memory", "person", "Out of memory: it was killed at its limit.", "out of memory"),
        ("timeout", "person", "Stopped at its time limit of 1:00.", "time limit reached"),
        ("failed", "person", "The body ended with exit code 137 (128 + 9: SIGKILL).", "exit code 137"),
        ("failed", "person", "The image x:1 does not exist in nas-hub.local:5407.", "image"),
        ("failed", "cluster", "The registry nas-hub.local:5407 does not answer.", "image (cluster)"),
        ("failed", "person", "The image x:1 has no /bin/sh, which every job needs.", "image"),
        ("failed", "node", "node1 cannot give the job its GPUs: driver not loaded.", "GPUs of the node (node)"),
        ("failed", "person", "The job asks for more than the quota of user-1000 allows at all.", "quota"),
        ("failed", "cluster", "The NAS is not mounted at /mnt/nas.", "files and mounts (cluster)"),
        ("failed", "ours", "The agent failed; see its log.", "slurmk8s itself"),
        ("failed", "person", "Something nobody has seen yet.", "other"),
        ("node_fail", "node", "The node failed while the job ran.", "node lost"),
        ("completed", "none", "Completed: the body ended with exit code 0.", "completed"),
    ],
)
def test_causes_fall_into_few_groups(state: str, fault: str, cause: str, group: str) -> None:
    entry, _ = ended(1, state, fault=fault, cause=cause)
    assert causes.group(entry) == group


def test_the_last_of_each_cause_is_its_example() -> None:
    bad = {"state": "failed", "fault": "person"}
    attempts = [ended(9, cause="The body ended with exit code 1.", **bad) for _ in range(2)]
    attempts.insert(0, ended(12, cause="The body ended with exit code 1.", array="10_2", **bad))
    (cause,) = report.make(attempts, "user").causes
    assert (cause.cause, cause.attempts, cause.example, cause.gpu_hours) == ("exit code 1", 3, "10_2", 6.0)


def test_days_and_months_come_in_their_order() -> None:
    attempts = [ended(number, at=DAY + days * 86400) for number, days in ((1, 40), (2, 0), (3, 1))]
    by_day = [line.group for line in report.make(attempts, "day").lines]
    assert by_day == sorted(by_day)
    assert len(report.make(attempts, "month").lines) == 2


def test_no_jobs_make_an_empty_report() -> None:
    found = report.make([], "user")
    assert (found.lines, found.causes, found.total.jobs, found.total.queued_p90) == ((), (), 0, None)


@pytest.mark.parametrize(("count", "expected"), [(1, 1), (2, 2), (10, 9), (11, 10), (100, 90)])
def test_the_90th_percentile_is_a_value_that_occurred(count: int, expected: int) -> None:
    assert report.percentile([float(number) for number in range(1, count + 1)], 0.9) == expected
