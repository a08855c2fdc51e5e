"""How jobs ended, by a real slurmdbd."""

import signal
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from slurmk8s.config import Slurm
from slurmk8s.errors import ClusterFault
from slurmk8s.slurm import past
from slurmk8s.slurm.client import Identity
from slurmk8s.slurm.commands import SlurmCommands

SCRIPT = "#!/bin/bash\n#SBATCH --mem=50M --nodelist=node2 --output=/dev/null\n{body}\n"


def begun(slurm: Any, person: Identity, body: str, *options: str) -> Any:
    """A job of that person's once it has begun."""
    done = subprocess.run(
        ["sbatch", "--parsable", "--account=lab", *options],
        input=SCRIPT.format(body=body),
        env=slurm.environment,
        cwd="/",
        check=True,
        capture_output=True,
        text=True,
        user=person.uid,
        group=person.gid,
        extra_groups=[],
    )
    job_id = int(done.stdout)
    slurm.until(lambda: (job := slurm.commands.job(job_id)) is not None and job.started is not None, "its start")
    return slurm.commands.job(job_id)


@pytest.mark.parametrize(
    ("body", "state", "code"), [("exit 0", "COMPLETED", "0:0"), ("exit 7", "FAILED", "7:0"), ("", "CANCELLED", "0:0")]
)
def test_an_ended_job_is_known_by_its_start_and_node(
    accounting_slurm: Any, alice: Identity, wait_for: Callable[..., Any], body: str, state: str, code: str
) -> None:
    job = begun(accounting_slurm, alice, body or "sleep 60")
    programs = accounting_slurm.commands.programs
    if not body:
        accounting_slurm.run("scancel", str(job.job_id))
    found = wait_for(lambda: past.end(programs, str(job.job_id), "node2", job.started), "its end", 60)
    assert (found.state, found.exit_code) == (state, code)
    assert found.ended >= job.started
    assert past.end(programs, str(job.job_id), "node1", job.started) is None
    assert past.end(programs, str(job.job_id), "node2", job.started - 100) is None


def test_a_running_job_has_no_end(accounting_slurm: Any, alice: Identity, wait_for: Callable[..., Any]) -> None:
    job = begun(accounting_slurm, alice, "sleep 60")
    rows = lambda: accounting_slurm.run("sacct", "-n", "-X", "-j", str(job.job_id))  # noqa: E731
    wait_for(lambda: "RUNNING" in rows(), "the database told", 60)
    assert past.end(accounting_slurm.commands.programs, str(job.job_id), "node2", job.started) is None


def test_without_a_database_nothing_is_known(bare_slurm: Any) -> None:
    assert past.end(bare_slurm.commands.programs, "1", "node1", 1.0) is None


def test_a_database_that_does_not_answer_is_no_answer(accounting_slurm: Any) -> None:
    programs = SlurmCommands(Slurm(conf=accounting_slurm.conf, command_seconds=2)).programs
    database = accounting_slurm.daemons["slurmdbd"]
    database.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(ClusterFault):
            past.end(programs, "1", "node1", 1.0)
    finally:
        database.send_signal(signal.SIGCONT)
