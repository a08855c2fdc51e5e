"""The quota at sbatch, in a real slurmctld: a job that alone asks for too much is refused with the numbers."""

import itertools
import os
import re
from collections.abc import Iterator
from typing import Any

import pytest

from slurmk8s import config as configuration
from slurmk8s.errors import PersonFault
from slurmk8s.slurm import conf, lua_facts
from slurmk8s.slurm.client import Identity

pytestmark = pytest.mark.slurm

BODY = b"#!/bin/sh\n#K8S_IMAGE=alpine\n"
_dates = itertools.count(1)


def load_facts(slurm: Any, data: dict[str, object]) -> None:
    """Write the site's facts anew; slurmctld loads everything again when job_submit.lua has another date."""
    facts = lua_facts.render(configuration.parse(data, "test"), str(slurm.run_program))
    (slurm.folder / conf.FACTS).write_text(facts)
    script = slurm.folder / "job_submit.lua"
    date = script.stat().st_mtime + next(_dates)
    os.utime(script, (date, date))


@pytest.fixture
def counting(bare_slurm: Any, bob: Identity) -> Iterator[Any]:
    """A Slurm whose people may hold 3 CPUs, 1 GB and 2 GPUs, and bob 4 CPUs and nothing else counted."""
    before = (bare_slurm.folder / conf.FACTS).read_text()
    quotas = {
        "quota": {"cpu": 3, "memory": "1Gi", "gpus": 2},
        "quotas": {bob.name: {"cpu": 4, "memory": "", "gpus": 0}, "no-such-person": {"cpu": 1}},
    }
    load_facts(bare_slurm, {"backend": "kubernetes", "kubernetes": quotas})
    yield bare_slurm
    load_facts(bare_slurm, {})
    (bare_slurm.folder / conf.FACTS).write_text(before)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--cpus-per-task=4", "asks for 4 CPUs, and one person may hold 3 CPUs"),
        ("--ntasks=4", "asks for 4 CPUs, and one person may hold 3 CPUs"),
        ("--ntasks=2 --cpus-per-task=2", "asks for 4 CPUs, and one person may hold 3 CPUs"),
        ("--ntasks-per-node=4", "asks for 4 CPUs, and one person may hold 3 CPUs"),
        ("--mem=1025M", "asks for 1025M of memory, and one person may hold 1024M of memory"),
        ("--mem-per-cpu=600M -c 2", "asks for 1200M of memory, and one person may hold 1024M of memory"),
        ("--gres=gpu:tesla:2 --nodes=2", "asks for 4 GPUs, and one person may hold 2 GPUs"),
        ("--gpus=3", "asks for 3 GPUs, and one person may hold 2 GPUs"),
        ("--gpus-per-task=1 --ntasks=3", "asks for 3 GPUs, and one person may hold 2 GPUs"),
        ("-c 4 --gpus=3", "asks for 4 CPUs and 3 GPUs, and one person may hold 3 CPUs and 2 GPUs"),
    ],
)
def test_more_than_the_quota_is_refused_with_the_numbers(
    counting: Any, alice: Identity, options: str, words: str
) -> None:
    with pytest.raises(PersonFault, match=re.escape(words)):
        counting.commands.submit(BODY, ["--hold", "--output=/dev/null", *options.split()], alice)


@pytest.mark.parametrize(
    "options",
    ["", "--cpus-per-task=3", "--ntasks=3", "--mem=1G", "--mem=0", "--gres=gpu:tesla:2", "--gpus=2", "--gres=gpu"],
)
def test_the_whole_quota_may_be_asked_for(counting: Any, alice: Identity, options: str) -> None:
    """`--mem=0` means the node's memory, which slurmctld does not know yet; the agent counts it."""
    assert counting.commands.submit(BODY, ["--hold", "--output=/dev/null", *options.split()], alice) > 0


def test_a_person_may_have_another_quota(counting: Any, bob: Identity) -> None:
    roomy = ["--hold", "--output=/dev/null", "--cpus-per-task=4", "--mem=4G", "--gres=gpu:2"]
    assert counting.commands.submit(BODY, roomy, bob) > 0
    with pytest.raises(PersonFault, match="asks for 5 CPUs, and one person may hold 4 CPUs"):
        counting.commands.submit(BODY, ["--hold", "--output=/dev/null", "--ntasks=5"], bob)


def test_a_plain_slurm_job_is_not_counted(counting: Any, alice: Identity) -> None:
    options = ["--hold", "--output=/dev/null", "--cpus-per-task=4"]
    assert counting.commands.submit(b"#!/bin/sh\ntrue\n", options, alice) > 0


def test_without_kubernetes_nobody_counts(bare_slurm: Any, alice: Identity) -> None:
    options = ["--hold", "--output=/dev/null", "--ntasks=8", "--gpus=4"]
    assert bare_slurm.commands.submit(BODY, options, alice) > 0
