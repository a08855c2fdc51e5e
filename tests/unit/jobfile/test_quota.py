"""A job that alone exceeds its person's quota is told so, with the numbers, at the line that asks."""

import pytest
from sample_jobs import job

from slurmk8s.config import parse
from slurmk8s.jobfile import Facts, Finding, Site, check
from slurmk8s.jobfile.facts import Limits
from slurmk8s.jobfile.quota import exceeds
from slurmk8s.kube.quotas import limits_of
from slurmk8s.site import site_of

GUIDE = Limits(cpus=32, memory_mb=128 * 1024, gpus=4)
FACTS = Facts(site=Site(limits=GUIDE, other_limits={"kim": Limits(cpus=64)}), submitter="lee")


def over(data: bytes, facts: Facts = FACTS) -> list[Finding]:
    return [finding for finding in check(data, facts).findings if finding.code.startswith("over-quota")]


@pytest.mark.parametrize(
    ("lines", "what", "column_of"),
    [
        (["#SBATCH --cpus-per-task=33"], "the job asks for 33 CPUs", "--cpus"),
        (["#SBATCH -n 40"], "the job asks for 40 CPUs", "-n"),
        (["#SBATCH -n 12 -c 3"], "the job asks for 36 CPUs", "-n"),
        (["#SBATCH -n 2 -c 20"], "the job asks for 40 CPUs", "-c"),
        (["#SBATCH --ntasks-per-node=40"], "the job asks for 40 CPUs", "--ntasks"),
        (["#SBATCH --mincpus=33"], "the job asks for 33 CPUs", "--mincpus"),
        (["#SBATCH --mem=200G"], "the job asks for 200G of memory", "--mem"),
        (["#SBATCH --mem=131073M"], "the job asks for 131073M of memory", "--mem"),
        (["#SBATCH -c 32 --mem-per-cpu=5G"], "the job asks for 160G of memory", "--mem-per-cpu"),
        (["#SBATCH --gres=gpu:8"], "the job asks for 8 GPUs", "--gres"),
        (["#SBATCH --gres=gpu:a100:3,gpu:t4:2"], "the job asks for 5 GPUs", "--gres"),
        (["#SBATCH --gpus=5"], "the job asks for 5 GPUs", "--gpus"),
        (["#SBATCH --gpus-per-task=1 -n 5"], "the job asks for 5 GPUs", "--gpus"),
        (["#SBATCH --cpus-per-gpu=20 --gpus=2"], "the job asks for 40 CPUs", "--cpus-per-gpu"),
    ],
)
def test_too_much_is_found_where_it_is_asked(lines: list[str], what: str, column_of: str) -> None:
    data = job(*lines)
    (finding,) = over(data)
    assert finding.what == what
    assert finding.severity == "problem"
    text = data.decode().split("\n")[finding.line - 1]
    assert text[finding.column - 1 :].startswith(column_of)


def test_everything_too_large_is_told_at_once() -> None:
    found = over(job("#SBATCH -c 64", "#SBATCH --mem=256G", "#SBATCH --gres=gpu:8"))
    assert [finding.code for finding in found] == ["over-quota-cpu", "over-quota-memory", "over-quota-gpu"]
    assert found[0].why == "One person may hold 32 CPUs at the same time, so it could never start."
    assert found[0].fix == "Ask for 32 CPUs or less, or ask the admins for a larger quota."


def test_the_whole_quota_may_be_asked_for() -> None:
    assert over(job("#SBATCH -c 32 --mem=128G --gres=gpu:4")) == []


def test_a_whole_nodes_memory_is_left_to_the_node() -> None:
    assert over(job("#SBATCH --mem=0")) == []


def test_a_person_may_have_another_quota() -> None:
    kim = Facts(site=FACTS.site, submitter="kim")
    assert over(job("#SBATCH -c 64 --gres=gpu:8"), kim) == []
    assert len(over(job("#SBATCH -c 65"), kim)) == 1


def test_a_plain_slurm_job_is_not_counted() -> None:
    assert over(b"#!/bin/sh\n#SBATCH -c 64\nhostname\n") == []


def test_the_quota_comes_from_the_configuration() -> None:
    data = {
        "backend": "kubernetes",
        "kubernetes": {"quota": {"memory": "1500M", "gpus": 0}, "quotas": {"kim": {"cpu": 0, "memory": ""}}},
    }
    site = site_of(parse(data, "test"))
    assert site.limits == Limits(cpus=32, memory_mb=1430, gpus=None)
    assert site.other_limits == {"kim": Limits(cpus=None, memory_mb=None, gpus=4)}


def test_without_kubernetes_nobody_counts() -> None:
    config = parse({"kubernetes": {"quotas": {"kim": {"cpu": 1}}}}, "test")
    assert limits_of(config) == limits_of(config, "kim") == Limits()


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ((32, 128 * 1024, 4), None),
        ((33, 0, 0), "The job asks for 33 CPUs, and one person may hold 32 CPUs at the same time."),
        (
            (64, 200 * 1024, 8),
            (
                "The job asks for 64 CPUs and 200G of memory and 8 GPUs, and one person may hold 32 CPUs and 128G of "
                "memory and 4 GPUs at the same time."
            ),
        ),
    ],
)
def test_the_agent_gets_one_sentence(asked: tuple[int, int, int], sentence: str | None) -> None:
    assert exceeds(*asked, GUIDE) == sentence
