"""What a job has used, in a real slurmdbd: kept beside what slurmctld has of it, and read as reportseff reads it."""

import base64
import gzip
import json
from typing import Any

from slurmk8s.slurm import stamp

JOB = "#!/bin/sh\n#K8S_IMAGE=nas-hub.local:5407/alpine:1\ntrue\n"
COMMENT = "JS1:" + base64.b64encode(gzip.compress(b'{"nodes":{},"total_time":1,"gpus":0}', mtime=0)).decode()


def kept(slurm: Any, job: str) -> str:
    shown: str = slurm.run("sacct", "-X", "-n", "-P", "-j", job, "-o", "AdminComment").strip()
    return shown


def test_there_is_a_slurmdbd_or_not(accounting_slurm: Any, bare_slurm: Any) -> None:
    assert accounting_slurm.commands.keeps_accounts()
    assert not bare_slurm.commands.keeps_accounts()


def test_the_databases_copy_is_replaced_and_slurmctlds_stamp_stays(accounting_slurm: Any, alice: Any) -> None:
    slurm = accounting_slurm
    job_id = slurm.commands.submit(JOB.encode(), ["--output=/dev/null"], alice)
    slurm.until(lambda: slurm.commands.keep_usage(str(job_id), COMMENT), "slurmdbd knows of the job's end")
    assert kept(slurm, str(job_id)) == COMMENT
    assert json.loads(gzip.decompress(base64.b64decode(kept(slurm, str(job_id))[4:])))["total_time"] == 1
    job = slurm.commands.job(job_id)
    assert stamp.decode(job.admin_comment) == "#K8S_IMAGE=nas-hub.local:5407/alpine:1"


def test_a_job_that_has_not_ended_is_left_as_it_is(accounting_slurm: Any, alice: Any) -> None:
    slurm = accounting_slurm
    job_id = slurm.commands.submit(JOB.encode(), ["--hold", "--output=/dev/null"], alice)
    slurm.until(lambda: kept(slurm, str(job_id)), "slurmdbd knows of the job")
    assert not slurm.commands.keep_usage(str(job_id), COMMENT)
    assert stamp.is_stamped(kept(slurm, str(job_id)))


def test_each_task_of_an_array_has_its_own(accounting_slurm: Any, alice: Any) -> None:
    slurm = accounting_slurm
    array = slurm.commands.submit(JOB.encode(), ["--array=1-2", "--output=/dev/null"], alice)
    slurm.until(lambda: slurm.commands.keep_usage(f"{array}_2", COMMENT), "slurmdbd knows of the task's end")
    assert kept(slurm, f"{array}_2") == COMMENT
    assert kept(slurm, f"{array}_1") != COMMENT
