"""Needs nothing. What the head node remembers, and which jobs are its own to tell of."""

from dataclasses import replace
from pathlib import Path

import pytest

from slurmk8s.agent.record import Record
from slurmk8s.ops import last_seen
from slurmk8s.ops.last_seen import KEEP_SECONDS, REQUEUED, Attempt, Book
from slurmk8s.ops.lost_jobs import lost
from slurmk8s.slurm import nodes
from slurmk8s.slurm.client import Job

RECORD = Record(
    job_id=7, attempt=1, name="x", user="kim", uid=1000, gid=1000, groups=(1000,), account="", partition="gpu",
    nodes=("n1",), array=(5, 2), may_requeue=True, time_limit="1:00", cpus=2, memory_mb=100, gpus=(0,), submitted=1.0,
    started=2.0,
)  # fmt: skip
JOB = Job(
    job_id=7, name="x", user="kim", uid=1000, gid=1000, partition="", account="", state="RUNNING", reason="",
    exit_code="0:0", comment="", admin_comment="", restarts=1, requeue=True, batch_host="n1", nodes=("n1",),
    work_folder="", stdout="", stderr="", time_limit="", submitted=None, started=None, ended=None, array_job_id=None,
    array_task_id=None,
)  # fmt: skip
RUNS = Attempt(RECORD, "RUNNING", "0:0", None)
OVER = replace(RUNS, state="NODE_FAIL", over=50.0, ended=40.0)


def known(**states: str) -> dict[str, nodes.Node]:
    return nodes.parse("\n".join(f"NodeName={name} State={state}" for name, state in states.items()))


def book(attempt: Attempt, **away: float) -> Book:
    return Book(away, {attempt.key: attempt})


@pytest.mark.parametrize(
    ("state", "is_lost"),
    [
        ("IDLE", False),
        ("IDLE+DRAIN", False),
        ("DOWN", False),  # its slurmd answers: an admin has closed it, or it has just booted
        ("DOWN*", True),
        ("ALLOCATED*", True),
        ("IDLE+CLOUD+POWERED_DOWN", True),
    ],
)
def test_a_node_is_lost_when_it_does_not_answer_slurm(state: str, is_lost: bool) -> None:
    assert dict(Book().with_nodes(known(n1=state, n2="IDLE"), 100).away) == ({"n1": 100} if is_lost else {})


def test_it_is_lost_since_it_was_first_missed_and_no_longer_when_it_answers() -> None:
    since = book(OVER, n1=60.0).with_nodes(known(n1="DOWN*"), 100)
    assert since.away == {"n1": 60.0}
    assert since.with_nodes(known(n1="IDLE"), 110).away == {}


def test_a_node_that_slurm_no_longer_has_is_lost() -> None:
    assert book(OVER).with_nodes(known(n2="IDLE"), 100).away == {"n1": 100}


@pytest.mark.parametrize(
    ("job", "state", "is_over"),
    [
        (JOB, "RUNNING", False),
        (replace(JOB, state="NODE_FAIL"), "NODE_FAIL", True),
        (replace(JOB, state="NODE_FAIL", completing=True), "NODE_FAIL", False),
        (replace(JOB, state="PENDING"), REQUEUED, True),
        (replace(JOB, restarts=2), REQUEUED, True),  # it runs elsewhere by now
        (None, "RUNNING", True),  # forgotten: it is over, and how is not known
    ],
)
def test_what_slurm_says_is_remembered(job: Job | None, state: str, is_over: bool) -> None:
    told = RUNS.told(job, 70.0)
    assert (told.state, told.over) == (state, 70.0 if is_over else None)


def test_what_slurm_said_last_stays_when_it_has_forgotten_the_job() -> None:
    assert OVER.told(None, 70.0) == OVER


def test_only_what_is_over_on_a_node_that_is_lost_for_long_enough_is_due() -> None:
    assert book(OVER, n1=100.0).due(60, 160) == [OVER]
    assert book(OVER, n1=100.0).due(60, 159) == []
    assert book(OVER, n2=100.0).due(60, 10**9) == []
    assert book(RUNS, n1=100.0).due(60, 10**9) == []
    assert book(OVER, n1=100.0).with_settled(OVER.key).due(60, 10**9) == []


def test_a_job_is_forgotten_when_its_node_has_had_the_time_to_tell_of_it_itself() -> None:
    late = 50.0 + KEEP_SECONDS
    assert book(OVER).with_attempts([OVER, RUNS], late - 1).attempts
    assert book(OVER).with_attempts([OVER], late).attempts == {}
    assert book(RUNS).with_attempts([RUNS], 10**9).attempts
    assert book(OVER, n1=1.0).with_attempts([OVER], 10**9).attempts


def test_it_survives_its_file_and_a_file_that_makes_no_sense_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "last_seen.json"
    assert last_seen.load(path) == Book()
    book(OVER, n1=3.0).save(path)
    assert last_seen.load(path) == book(OVER, n1=3.0)
    path.write_text('{"attempts": [{"surprise": 1}]}')
    assert last_seen.load(path) == Book()


@pytest.mark.parametrize(
    ("state", "code", "expected", "begins"),
    [
        ("NODE_FAIL", "0:0", ("node_fail", None, "node"), "Node n1 was lost at "),
        ("BOOT_FAIL", "0:0", ("node_fail", None, "node"), "Node n1 was lost at "),
        ("RUNNING", "0:0", ("node_fail", None, "node"), "Node n1 was lost at "),
        (REQUEUED, "", ("requeued", None, "node"), "Node n1 was lost at "),
        ("COMPLETED", "0:0", ("completed", 0, "none"), "Completed: the body ended with exit code 0, by what Slurm"),
        ("FAILED", "137:0", ("failed", 137, "person"), "The body ended with exit code 137, by what Slurm says. "),
        ("FAILED", "0:9", ("node_fail", None, "node"), "Node n1 was lost at "),
        ("CANCELLED", "0:15", ("cancelled", None, "none"), "Cancelled before it had ended (scancel). Node n1 was lost"),
        ("TIMEOUT", "0:15", ("timeout", None, "person"), "Stopped at its time limit of 1:00: ask for more"),
    ],
)
def test_the_end_is_told_as_far_as_slurm_knows_it(
    state: str, code: str, expected: tuple[str, int | None, str], begins: str
) -> None:
    record = lost(replace(OVER, state=state, exit_code=code), 100.0, 3700.0)
    assert (record.state, record.exit_code, record.fault) == expected
    assert record.failure is not None
    assert record.failure.startswith(begins)
    assert "had not come back 1 h 0 min later" in record.failure
    assert "the head node wrote this from what Slurm knows." in record.failure
    assert record.ended == 40.0
    assert lost(replace(OVER, ended=None), 100.0, 3700.0).ended == 100.0


def test_what_kubernetes_last_said_of_the_pod_is_told() -> None:
    record = lost(replace(OVER, pod="its container runs since 5 o'clock"), 100.0, 3700.0)
    assert record.failure is not None
    assert "is not known (Kubernetes last said: its container runs since 5 o'clock); the head node" in record.failure
