"""What a failed Slurm program means; the texts were seen on 22.05. Needs nothing."""

import subprocess

import pytest

from slurmk8s.slurm.programs import outcome_unknown, refusal, words


def failed(stderr: str, program: str = "sbatch") -> "subprocess.CompletedProcess[bytes]":
    return subprocess.CompletedProcess([f"/usr/bin/{program}"], 1, b"", stderr.encode())


@pytest.mark.parametrize(
    "stderr",
    [
        "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)",
        "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation",
        "sbatch: error: Batch job submission failed: Resource temporarily unavailable",
        "sbatch: error: Munge encode failed\nsbatch: error: Batch job submission failed: Protocol authentication error",
        "slurm_load_jobs error: Unable to contact slurm controller (connect failure)",
        "slurm_load_partitions: Unable to contact slurm controller (connect failure)",
        "Unexpected message received for job 5\nslurm_suspend error: Unexpected message received",
        "Unexpected message received for job 5",
        "scancel: error: Kill job error on job id 5: Unable to contact slurm controller (connect failure)",
        "slurm_update error: Unable to contact slurm controller (connect failure)",
        "squeue: error: fetch_config: DNS SRV lookup failed\nsqueue: fatal: Could not establish a configuration source",
        "sbatch: error: ClusterName needs to be specified\nsbatch: fatal: Unable to process configuration file",
    ],
)
def test_no_answer_is_unknown(stderr: str) -> None:
    assert outcome_unknown(failed(stderr))


@pytest.mark.parametrize(
    "stderr",
    [
        "",
        "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified",
        "sbatch: error: invalid partition specified: Connection refused",
        "sbatch: error: Connection refused\nsbatch: error: Batch job submission failed: Unspecified error",
        "sbatch: unrecognized option '--Munge '\nTry \"sbatch --help\" for more information",
    ],
)
def test_an_answer_is_not(stderr: str) -> None:
    assert not outcome_unknown(failed(stderr))


def test_the_words_are_one_line_without_the_programs_name() -> None:
    assert words(failed("sbatch: error: one.\n\nsbatch: two\n")) == "one; two"
    assert words(failed("")) == "status 1 without a word"


def test_lua_has_the_last_word() -> None:
    done = failed("sbatch: error: slurmk8s: no.\nsbatch: error: Batch job submission failed: Unspecified error\n")
    assert refusal(done).sentence == "sbatch: slurmk8s: no."
