"""All the ways in which a job ends, as a table."""

from collections.abc import Callable
from typing import Any

import pytest

from slurmk8s.agent import ending
from slurmk8s.agent.record import Record
from slurmk8s.results.summary import FAULTS, STATES
from slurmk8s.slurm.client import Job

GONE = None
"""Slurm has forgotten the job."""

TABLE: list[tuple[str, dict[str, Any], dict[str, Any] | None, tuple[str, int | None, str | None, str, str]]] = [
    (
        "a good end",
        {"exit_code": 0, "reported": True},
        {},
        ("completed", 0, None, "none", "exit code 0"),
    ),
    (
        "a good end that Slurm has forgotten",
        {"exit_code": 0, "reported": True},
        GONE,
        ("completed", 0, None, "none", "exit code 0"),
    ),
    (
        "the body's own exit code",
        {"exit_code": 7, "reported": True},
        {"state": "FAILED", "exit_code": "7:0"},
        ("failed", 7, None, "person", "exit code 7."),
    ),
    (
        "the body died of a signal",
        {"exit_code": 139, "reported": True},
        {"state": "FAILED", "exit_code": "139:0"},
        ("failed", 139, "SIGSEGV", "person", "exit code 139 (128 + 11: SIGSEGV)"),
    ),
    (
        "an exit code above 128 that is no signal",
        {"exit_code": 255, "reported": True},
        {"state": "FAILED", "exit_code": "255:0"},
        ("failed", 255, None, "person", "exit code 255."),
    ),
    (
        "killed by itself, with memory to spare",
        {"exit_code": 137, "reported": True},
        {"state": "FAILED", "exit_code": "137:0"},
        ("failed", 137, "SIGKILL", "person", "SIGKILL"),
    ),
    (
        "out of memory",
        {"exit_code": 137, "reported": True, "out_of_memory": True},
        {"state": "FAILED", "exit_code": "137:0"},
        ("out_of_memory", 137, "SIGKILL", "person", "8192 MiB; ask for more with #SBATCH --mem"),
    ),
    (
        "a child was out of memory, the body went on and ended well",
        {"exit_code": 0, "reported": True, "out_of_memory": True},
        {},
        ("completed", 0, None, "none", "exit code 0"),
    ),
    (
        "scancel",
        {"exit_code": 143, "reported": True},
        {"state": "CANCELLED", "exit_code": "0:15"},
        ("cancelled", 143, "SIGTERM", "none", "scancel"),
    ),
    (
        "scancel before there was a body",
        {},
        {"state": "CANCELLED", "exit_code": "0:15"},
        ("cancelled", None, None, "none", "scancel"),
    ),
    (
        "scancel of a body that ends well on SIGTERM",
        {"exit_code": 0, "reported": True},
        {"state": "CANCELLED", "exit_code": "0:15"},
        ("cancelled", 0, None, "none", "scancel"),
    ),
    (
        "the time limit",
        {"exit_code": 143, "reported": True},
        {"state": "TIMEOUT", "exit_code": "0:15"},
        ("timeout", 143, "SIGTERM", "person", "time limit of 01:00:00"),
    ),
    (
        "the deadline",
        {"exit_code": 143, "reported": True},
        {"state": "DEADLINE"},
        ("timeout", 143, "SIGTERM", "person", "deadline"),
    ),
    (
        "the node failed",
        {},
        {"state": "NODE_FAIL"},
        ("node_fail", None, None, "node", "node failed"),
    ),
    (
        "pre-empted",
        {"exit_code": 143, "reported": True},
        {"state": "PREEMPTED"},
        ("preempted", 143, "SIGTERM", "none", "higher priority"),
    ),
    (
        "requeued, and already pending",
        {"exit_code": 143, "reported": True},
        {"state": "PENDING", "restarts": 1},
        ("requeued", 143, "SIGTERM", "none", "requeue). The next attempt follows."),
    ),
    (
        "requeued, and already running again",
        {"exit_code": 143, "reported": True},
        {"state": "RUNNING", "restarts": 1},
        ("requeued", 143, "SIGTERM", "none", "The next attempt follows."),
    ),
    (
        "pre-empted and requeued",
        {"exit_code": 143, "reported": True, "started": 1000.0, "told_to_end": True},
        {"state": "PENDING", "restarts": 1, "preempted": 1010.0},
        ("requeued", 143, "SIGTERM", "none", "Pre-empted by a job of higher priority. The next attempt follows."),
    ),
    (
        "requeued by hand, when an earlier attempt was pre-empted",
        {"attempt": 1, "exit_code": 143, "reported": True, "started": 1100.0, "told_to_end": True},
        {"state": "PENDING", "restarts": 2, "preempted": 1010.0},
        ("requeued", 143, "SIGTERM", "none", "(requeue). The next attempt follows."),
    ),
    (
        "requeued, and the body ignored SIGTERM",
        {"exit_code": 137, "body_started": 1001.0, "told_to_end": True},
        {"state": "PENDING", "restarts": 1},
        ("requeued", 137, "SIGKILL", "none", "(requeue). The next attempt follows."),
    ),
    (
        "requeued in the moment between pod and body",
        {"exit_code": None, "running": True, "cut_short": True},
        {"state": "PENDING", "restarts": 1},
        ("requeued", None, None, "none", "(requeue). The next attempt follows."),
    ),
    (
        "the node was lost, and the job requeued",
        {"exit_code": 137, "running": True, "body_started": 1001.0},
        {"state": "PENDING", "restarts": 1},
        ("requeued", 137, "SIGKILL", "node", "The node failed while the job ran. The next attempt follows."),
    ),
    (
        "the node was lost and booted anew, and the job requeued",
        {"exit_code": None, "running": True},
        {"state": "RUNNING", "restarts": 1},
        ("requeued", None, None, "node", "The node failed while the job ran. The next attempt follows."),
    ),
    (
        "requeued for a registry that is down",
        {"failure": "The registry does not answer.", "fault": "cluster", "requeueing": True},
        {"state": "PENDING", "restarts": 1},
        ("requeued", None, None, "cluster", "The registry does not answer. The next attempt follows."),
    ),
    (
        "the requeue was refused",
        {"failure": "The registry does not answer.", "fault": "cluster", "requeueing": True},
        {"state": "FAILED", "exit_code": "1:0"},
        ("failed", None, None, "cluster", "The registry does not answer."),
    ),
    (
        "no such image",
        {"failure": "The image does not exist.", "fault": "person"},
        {"state": "FAILED", "exit_code": "1:0"},
        ("failed", None, None, "person", "The image does not exist."),
    ),
    (
        "no such image, told before scancel",
        {"failure": "The image does not exist.", "fault": "person"},
        {"state": "CANCELLED"},
        ("failed", None, None, "person", "The image does not exist."),
    ),
    (
        "the launcher could not run the body",
        {"exit_code": 127, "reported": True, "problem": "The image has no python3."},
        {"state": "FAILED", "exit_code": "127:0"},
        ("failed", 127, None, "person", "The image has no python3."),
    ),
    (
        "slurmk8s-run was killed: the agent cut the body short",
        {"exit_code": 143, "reported": True, "cut_short": True},
        {"state": "FAILED", "exit_code": "0:9"},
        ("failed", 143, "SIGTERM", "node", "slurmk8s-run was killed"),
    ),
    (
        "the batch script itself was killed while its body ended well",
        {"exit_code": 0, "reported": True},
        {"state": "FAILED", "exit_code": "0:9"},
        ("failed", 0, None, "node", "slurmk8s-run was killed"),
    ),
    (
        "the container was killed from outside",
        {"exit_code": 137, "reported": False},
        {"state": "FAILED", "exit_code": "137:0"},
        ("failed", 137, "SIGKILL", "node", "killed from outside"),
    ),
    (
        "the container vanished",
        {"exit_code": None, "reported": False},
        {"state": "FAILED", "exit_code": "137:0"},
        ("failed", None, None, "node", "killed from outside"),
    ),
    (
        "Slurm could not open the output file",
        {},
        {"state": "FAILED", "exit_code": "0:53", "stdout": "/etc/out.txt"},
        ("failed", None, None, "person", "could not open the job's output file /etc/out.txt"),
    ),
    (
        "Slurm has not finished with a job that ended well",
        {"exit_code": 0, "reported": True},
        {"state": "COMPLETING"},
        ("completed", 0, None, "none", "exit code 0"),
    ),
]


@pytest.mark.parametrize(("known", "slurm", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_the_end_of_a_job(
    record: Callable[..., Record],
    job: Callable[..., Job],
    known: dict[str, Any],
    slurm: dict[str, Any] | None,
    expected: tuple[str, int | None, str | None, str, str],
) -> None:
    end = ending.of(record(**known), None if slurm is GONE else job(**slurm))
    state, code, signal, fault, words = expected
    assert (end.state, end.exit_code, end.signal, end.fault) == (state, code, signal, fault)
    assert words in end.cause
    assert end.cause.endswith(".")
    assert end.state in STATES
    assert end.fault in FAULTS


@pytest.mark.parametrize(
    ("code", "name"), [(None, None), (0, None), (128, None), (129, "SIGHUP"), (137, "SIGKILL"), (255, None)]
)
def test_a_signal_is_named_by_its_exit_code(code: int | None, name: str | None) -> None:
    assert ending.signal_name(code) == name


def test_out_of_memory_says_limit_and_peak() -> None:
    told = ending.out_of_memory(2048, 2047 << 20)
    assert "limit of 2048 MiB (peak 2047 MiB); ask for more with #SBATCH --mem." in told
    assert "limit of 2048 MiB; ask" in ending.out_of_memory(2048, None)
