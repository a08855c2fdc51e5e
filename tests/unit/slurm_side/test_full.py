"""Which words of sbatch mean "wait": pure reading of what it printed."""

import subprocess

import pytest

from slurmk8s.config import Slurm
from slurmk8s.errors import PersonFault, SlurmFull
from slurmk8s.slurm import full
from slurmk8s.slurm.client import Identity
from slurmk8s.slurm.programs import Programs

KIM = Identity("kim", 1234, 1234, (1234,), "/home/kim")
POLICY = (
    "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size)"
)


class Shown(Programs):
    """scontrol's answer, as 22.05 prints it."""

    def __init__(self, shown: str) -> None:
        super().__init__(Slurm())
        self.shown = shown

    def ask(self, *_: str) -> str:
        """Whatever is asked."""
        return self.shown


def judged(stderr: str, shown: str = "", script: bytes = b"#!/bin/sh\n") -> Exception:
    done = subprocess.CompletedProcess(["sbatch"], 1, b"", stderr.encode())
    return full.judged(Shown(shown), done, script, KIM)


@pytest.mark.parametrize("limit", full.SUBMIT_LIMITS)
def test_a_submit_limit_waits_also_where_scontrol_shows_nothing(limit: str) -> None:
    fault = judged(f"sbatch: error: {limit}\n{POLICY}\n")
    assert isinstance(fault, SlurmFull)
    assert (fault.limit, fault.user, fault.most) == (limit, "kim", None)


def test_any_other_limit_is_an_answer() -> None:
    assert isinstance(judged(f"sbatch: error: AssocMaxCpuPerJobLimit\n{POLICY}\n"), PersonFault)
    assert isinstance(judged(f"{POLICY}\n"), PersonFault)


def test_a_limit_that_is_only_quoted_is_an_answer() -> None:
    said = (
        "sbatch: error: AssocMaxSubmitJobLimit\nsbatch: error: Batch job submission failed: Invalid qos specification\n"
    )
    assert isinstance(judged(said), PersonFault)


@pytest.mark.parametrize("end", ["\u2028", "\x85", "\x0b", "\r"])
def test_no_odd_line_end_makes_everybody_wait(end: str) -> None:
    said = f"sbatch: error: unknown image x{end}{full.SLEEPS[0]}\n"
    assert isinstance(judged(said), PersonFault)


def test_the_most_generous_limit_decides_what_never_fits() -> None:
    row = (
        "ClusterName=c Account={} UserName=kim(1234) Partition= GrpSubmitJobs=N(1) MaxJobs= MaxSubmitJobs={}(1) Max=\n"
    )
    other = "ClusterName=c Account=a UserName=kimberly(9) Partition= MaxSubmitJobs=900(1) Max=\n"
    said = f"sbatch: error: AssocMaxSubmitJobLimit\n{POLICY}\n"
    array = b"#!/bin/sh\n#SBATCH --array=1-50%4,1-10\n"
    both = row.format("a", 5) + row.format("b", 60) + other
    assert isinstance(judged(said, both, array), SlurmFull)
    assert isinstance(judged(said, row.format("a", 5) + other, array), PersonFault)
    assert isinstance(judged(said, row.format("a", 50), array), SlurmFull)


@pytest.mark.parametrize(
    ("said", "user"),
    [
        ("Rate limit exceeded, please retry later", "kim"),
        ("System submissions disabled", None),
        ("I/O error writing script/environment to file", None),
        ("MaxJobCount limit reached", None),
    ],
)
def test_what_passes_says_for_whom(said: str, user: str | None) -> None:
    fault = judged(f"sbatch: error: Batch job submission failed: {said}\n")
    assert isinstance(fault, SlurmFull)
    assert fault.user == user


def test_an_array_that_no_queue_of_this_size_can_hold_is_refused() -> None:
    said = "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying\n"
    array = b"#!/bin/sh\n#SBATCH --array=0-9\n"
    assert isinstance(judged(said, "MaxJobCount             = 10\n", array), PersonFault)
    fault = judged(said, "MaxJobCount             = 11\n", array)
    assert isinstance(fault, SlurmFull)
    assert fault.user == "kim"
