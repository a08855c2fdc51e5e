"""Needs nothing: what people are told about what they had asked for."""

import re

import pytest

from slurmk8s.results.usage import CardUsage, Usage
from slurmk8s.results.verdict import Asked, notes, seconds_of

GIB = 1 << 30


def asked(**changes: object) -> Asked:
    fields: dict = {"cpus": 8, "memory_mb": 65536, "gpus": 0, "time_limit": "02:00:00", "state": "completed"}
    return Asked(**{**fields, "running": 3600.0, **changes})


def used(cores: float = 7.0, memory: float = 40.0, cards: tuple[float | None, ...] = (), high: float = 0.0) -> Usage:
    found = tuple(CardUsage(str(n), "", busy, GIB, 80 * GIB, "") for n, busy in enumerate(cards))
    return Usage(720, cores * 3600, cores, high or cores, "", int(memory * GIB), "", found)


def test_a_job_that_used_what_it_had_hears_nothing() -> None:
    assert notes(asked(gpus=2), used(cards=(90.0, 85.0))) == ()


def test_memory_in_the_guides_own_words() -> None:
    assert notes(asked(), used(memory=1.8)) == (
        "Used 1.8 of 64 GB of memory; ask for 4G next time with #SBATCH --mem=4G.",
    )


def test_memory_that_was_nearly_not_enough() -> None:
    (note,) = notes(asked(), used(memory=62.5))
    assert note.startswith("Used 62.5 of 64 GB of memory: with a little more it would have been killed; ")
    assert note.endswith("ask for more with #SBATCH --mem=80G.")
    assert notes(asked(state="out_of_memory"), used(memory=63.9)) == ()  # the cause says it
    assert notes(asked(memory_mb=0), used(memory=1.0)) == ()  # nobody had asked for any


def test_cpus_by_what_bursts_need() -> None:
    assert notes(asked(), used(cores=1.1)) == (
        "Used 1.1 of 8 CPUs; ask for 2 next time with #SBATCH --cpus-per-task=2.",
    )
    assert notes(asked(), used(cores=1.1, high=6.0)) == ()
    assert notes(asked(cpus=2), used(cores=0.5)) == ()  # one core of many machines is two CPUs


def test_gpus_that_nobody_used() -> None:
    (note,) = notes(asked(gpus=2), used(cards=(88.0, 0.3)))
    assert "Used 1 of 2 GPUs (idle: 1)" in note
    assert "#SBATCH --gres=gpu:1," in note
    assert "leave out #SBATCH --gres=gpu:2" in notes(asked(gpus=2), used(cards=(0.0, 0.3)))[0]


@pytest.mark.parametrize("cards", [(), (None,), (0.0, None), (0.0,)])
def test_a_gpu_of_which_nothing_is_known_is_not_idle(cards: tuple[float | None, ...]) -> None:
    assert notes(asked(gpus=2), used(cards=cards)) == ()


def test_a_time_limit_that_kept_the_job_waiting() -> None:
    (note,) = notes(asked(time_limit="7-00:00:00"), used())
    assert note.endswith("Ran 1 h of the 168 h it had asked for; a shorter time starts sooner: #SBATCH --time=2:00:00.")
    assert notes(asked(time_limit="7-00:00:00", state="cancelled"), used()) == ()
    assert notes(asked(time_limit="UNLIMITED"), used()) == ()


@pytest.mark.parametrize("running", [None, 0.0, 299.9])
def test_a_short_job_hears_nothing(running: float | None) -> None:
    assert notes(asked(running=running, gpus=1), used(cores=0.1, memory=0.1, cards=(0.0,))) == ()


def test_never_more_than_three_each_with_its_line() -> None:
    told = notes(asked(running=300.0, gpus=1, time_limit="7-00:00:00"), used(cores=0.1, memory=0.1, cards=(0.0,)))
    assert len(told) == 3
    assert all(re.search(r"#SBATCH --\w+", note) for note in told)


def test_time_limits_as_slurm_prints_them() -> None:
    limits = ("30:00", "01:00:00", "2-03:00:00", "UNLIMITED", "Partition_Limit", "", "x-1:00")
    assert [seconds_of(limit) for limit in limits] == [1800, 3600, 183600, None, None, None, None]
