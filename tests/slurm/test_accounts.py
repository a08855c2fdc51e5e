"""What a job has used, in a real slurmdbd: its copy of the admin comment is replaced, slurmctld's stamp stays."""

import re
from typing import Any

import pytest

from slurmk8s.slurm import stamp

JOB = "#!/bin/sh\n#K8S_IMAGE=nas-hub.local:5407/alpine:1\ntrue\n"
COMMENT = "JS1:H4sIAAAAAAAC/6tWystPSS1Wsqqu1VEqyS9JzIkvycxNVbIy1FFKLygFShjUAgA+Tc5PJAAAAA=="


def shown(slurm: Any, job: str, field: str) -> str:
    return str(slurm.run("sacct", "-X", "-n", "-P", "-j", job, "-o", field)).strip()


@pytest.fixture
def kept(accounting_slurm: Any) -> str:
    """The comment as this release of Slurm keeps it: before 23.02 in small letters, so that nobody is told it."""
    version = re.search(r"([0-9]+)\.([0-9]+)", accounting_slurm.run("sacctmgr", "--version"))
    assert version
    return COMMENT if (int(version[1]), int(version[2])) >= (23, 2) else COMMENT.lower()


def test_only_a_slurmdbd_that_keeps_a_comment_as_it_is_is_told(
    accounting_slurm: Any, bare_slurm: Any, kept: str
) -> None:
    assert accounting_slurm.commands.takes_usage() == (kept == COMMENT)
    assert not bare_slurm.commands.takes_usage()


def test_the_databases_copy_is_replaced_and_slurmctlds_stamp_stays(
    accounting_slurm: Any, alice: Any, kept: str
) -> None:
    slurm = accounting_slurm
    job_id = slurm.commands.submit(JOB.encode(), ["--output=/dev/null"], alice)
    slurm.until(lambda: slurm.commands.keep_usage(str(job_id), COMMENT), "slurmdbd knows of the job's end")
    assert shown(slurm, str(job_id), "AdminComment") == kept
    job = slurm.commands.job(job_id)
    assert stamp.decode(job.admin_comment) == "#K8S_IMAGE=nas-hub.local:5407/alpine:1"


def test_a_job_that_has_not_ended_is_left_as_it_is(accounting_slurm: Any, alice: Any) -> None:
    slurm = accounting_slurm
    job_id = slurm.commands.submit(JOB.replace("true", "sleep 60").encode(), ["--output=/dev/null"], alice)
    slurm.until(lambda: shown(slurm, str(job_id), "State") == "RUNNING", "slurmdbd knows of the job")
    before = shown(slurm, str(job_id), "AdminComment")
    assert not slurm.commands.keep_usage(str(job_id), COMMENT)
    assert shown(slurm, str(job_id), "AdminComment") == before


def test_each_task_of_an_array_has_its_own(accounting_slurm: Any, alice: Any, kept: str) -> None:
    slurm = accounting_slurm
    array = slurm.commands.submit(JOB.encode(), ["--array=1-2", "--output=/dev/null"], alice)
    slurm.until(lambda: slurm.commands.keep_usage(f"{array}_2", COMMENT), "slurmdbd knows of the task's end")
    assert shown(slurm, f"{array}_2", "AdminComment") == kept
    assert shown(slurm, f"{array}_1", "AdminComment") != kept
