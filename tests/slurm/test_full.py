"""Slurm says no: for good, or for now. With a slurmctld that is full, and with slurmdbd's limits. Needs: root."""

import contextlib
import secrets
import time
from typing import Any

import pytest
from slurm import accounting

from slurmk8s.errors import PersonFault, SlurmFull
from slurmk8s.slurm import stamp
from slurmk8s.slurm.client import Identity

pytestmark = pytest.mark.slurm

SCRIPT = b"#!/bin/bash\ntrue\n"
ARRAY = b"#!/bin/bash\n#SBATCH --array=1-3\ntrue\n"
HELD = ["--hold", "--output=/dev/null"]
OWN_RETRIES = 60.0
"""sbatch's own fifteen tries take 120 seconds."""


def submit(slurm: Any, person: Identity, *options: str, script: bytes = SCRIPT) -> int:
    number: int = slurm.commands.submit(script, [*HELD, *options], person)
    return number


def refused(slurm: Any, person: Identity, *options: str, script: bytes = SCRIPT) -> str:
    with pytest.raises(PersonFault) as caught:
        submit(slurm, person, *options, script=script)
    return str(caught.value)


def waits(slurm: Any, person: Identity, *options: str, script: bytes = SCRIPT) -> SlurmFull:
    with pytest.raises(SlurmFull) as caught:
        submit(slurm, person, *options, script=script)
    return caught.value


@pytest.fixture
def filled(full_slurm: Any, alice: Identity) -> Any:
    """A queue with no place left."""
    with contextlib.suppress(SlurmFull):
        for _ in range(5):
            submit(full_slurm, alice)
    assert len(full_slurm.commands.live_jobs()) == 4
    return full_slurm


def test_a_full_queue_means_wait_for_everybody(filled: Any, bob: Identity) -> None:
    """And sbatch's own retries are not waited for."""
    start = time.monotonic()
    full = waits(filled, bob)
    assert time.monotonic() - start < OWN_RETRIES
    assert (full.limit, full.user, full.most) == ("MaxJobCount", None, 5)
    assert "MaxJobCount 5" in full.sentence


def test_an_array_that_does_not_fit_now_keeps_only_its_owner_waiting(filled: Any, alice: Identity) -> None:
    assert waits(filled, alice, script=ARRAY).user == alice.name


def test_an_array_that_no_empty_queue_could_hold_is_refused(filled: Any, alice: Identity) -> None:
    said = refused(filled, alice, script=ARRAY.replace(b"1-3", b"1-5"))
    assert "5 tasks, and this Slurm takes fewer than 5 jobs in all (MaxJobCount)" in said


def test_nothing_of_a_stopped_sbatch_arrives_later(filled: Any, bob: Identity) -> None:
    key = secrets.token_hex(16)
    waits(filled, bob, f"--comment={stamp.with_key('', key)}")
    filled.cancel_all()
    filled.until(lambda: "JobId" not in filled.run("scontrol", "show", "jobs"), "there is room again", 60)
    after = submit(filled, bob)
    assert filled.commands.live_jobs() == {after}
    assert key not in filled.commands.ids_by_key(bob.uid)


def test_a_submit_limit_of_a_person_means_wait_for_that_person(
    accounting_slurm: Any, alice: Identity, bob: Identity
) -> None:
    accounting.limit(accounting_slurm, "user", alice.name, "MaxSubmitJobs=2")
    submit(accounting_slurm, alice)
    submit(accounting_slurm, alice)
    full = waits(accounting_slurm, alice)
    assert (full.limit, full.user, full.most) == ("AssocMaxSubmitJobLimit", alice.name, 2)
    assert f"no more jobs of {alice.name}" in full.sentence
    submit(accounting_slurm, bob)
    accounting_slurm.cancel_all()
    submit(accounting_slurm, alice)


def test_a_submit_limit_of_an_account_means_wait(accounting_slurm: Any, alice: Identity, bob: Identity) -> None:
    accounting.limit(accounting_slurm, "account", "lab", "GrpSubmitJobs=1")
    submit(accounting_slurm, alice)
    full = waits(accounting_slurm, bob)
    assert (full.limit, full.user, full.most) == ("AssocGrpSubmitJobsLimit", bob.name, 1)


@pytest.mark.parametrize(
    ("qos", "limit"),
    [
        ("one", "QOSMaxSubmitJobPerUserLimit"),
        ("group", "QOSGrpSubmitJobsLimit"),
        ("account", "MaxSubmitJobsPerAccount"),
    ],
)
def test_a_submit_limit_of_a_qos_means_wait(accounting_slurm: Any, alice: Identity, qos: str, limit: str) -> None:
    submit(accounting_slurm, alice, f"--qos={qos}")
    full = waits(accounting_slurm, alice, f"--qos={qos}")
    assert (full.limit, full.user, full.most) == (limit, alice.name, 1)


def test_an_array_larger_than_the_limit_is_refused_also_while_others_wait(
    accounting_slurm: Any, alice: Identity
) -> None:
    accounting.limit(accounting_slurm, "user", alice.name, "MaxSubmitJobs=2")
    submit(accounting_slurm, alice)
    said = refused(accounting_slurm, alice, script=ARRAY)
    assert "AssocMaxSubmitJobLimit" in said
    assert "asks for 3 jobs at once and the limit is 2" in said
    said = refused(accounting_slurm, alice, "--qos=one", script=ARRAY)
    assert "asks for 3 jobs at once and the limit is 1" in said


def test_a_limit_of_none_at_all_is_an_answer(accounting_slurm: Any, alice: Identity) -> None:
    accounting.limit(accounting_slurm, "user", alice.name, "MaxSubmitJobs=0")
    assert "the limit is 0: ask the admin" in refused(accounting_slurm, alice)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--account=nosuch"], "Invalid account or account/partition combination specified"),
        (["--qos=nosuch"], "Invalid qos specification"),
        (["--time=3-0"], "Requested time limit is invalid (missing or exceeds some limit)"),
        (["--partition=drained"], "Required partition not available (inactive or drain)"),
        (["--partition=inactive"], "Required partition not available (inactive or drain)"),
        (["--reservation=nosuch"], "Requested reservation is invalid"),
        (["--array=1-5000"], "Invalid job array specification"),
        (["--qos=strict", "--ntasks=3"], "AssocMaxCpuPerJobLimit"),
        (["--qos=strict", "--time=20"], "AssocMaxWallDurationPerJobLimit"),
    ],
)
def test_what_does_not_pass_is_an_answer_in_sbatchs_own_words(
    accounting_slurm: Any, bob: Identity, options: list[str], words: str
) -> None:
    accounting.limit(accounting_slurm, "user", bob.name, "MaxTRES=cpu=2", "MaxWall=10")
    assert words in refused(accounting_slurm, bob, *options)


def test_a_job_is_found_by_its_key_where_slurmdbd_is(accounting_slurm: Any, alice: Identity, bob: Identity) -> None:
    key = secrets.token_hex(16)
    comment = f"--comment={stamp.with_key('', key)}"
    first = submit(accounting_slurm, alice, comment)
    array = submit(accounting_slurm, alice, comment, script=ARRAY)
    submit(accounting_slurm, bob, comment)
    assert accounting_slurm.commands.ids_by_key(alice.uid)[key] == [first, array]
    accounting_slurm.stop("slurmctld")
    accounting_slurm.start_slurmctld()
    assert accounting_slurm.commands.ids_by_key(alice.uid)[key] == [first, array]
