"""Needs nothing: from samples to what the summary says."""

from collections.abc import Callable

import pytest

from slurmk8s.agent import figures
from slurmk8s.agent.record import Record
from slurmk8s.agent.samples import Card, History, OfCard, Sample

CARD = Card(2, "NVIDIA H100", 80 << 30)


def history(cores: list[float], step: float = 5.0) -> History:
    """Samples of a job that used so many cores between each two looks."""
    samples = [Sample(1000.0, 0.0, 1000, (OfCard(0.0, 0),))]
    for number, each in enumerate(cores, 1):
        used = samples[-1].cpu_seconds + each * step
        samples.append(Sample(1000.0 + number * step, used, 1000 + number, (OfCard(50.0, number),)))
    return History((CARD,), tuple(samples))


def test_nothing_measured_is_not_zero(record: Callable[..., Record]) -> None:
    assert figures.usage(History(), record(), "completed") is None
    assert figures.course(History(), record()) is None


def test_one_look_has_figures_but_no_course(record: Callable[..., Record]) -> None:
    once = history([])
    usage = figures.usage(once, record(body_started=999.0, ended=1001.0, cpu_seconds=0.5), "completed")
    assert usage is not None
    assert (usage.cpu_seconds, usage.cpu_cores, usage.memory_peak_bytes, usage.cpu_trend) == (0.5, 0.25, 1000, "")
    assert figures.course(once, record()) is None


def test_means_peaks_and_what_was_enough_most_of_the_time(record: Callable[..., Record]) -> None:
    usage = figures.usage(history([1.0] * 99 + [4.0]), record(body_started=1000.0, ended=1500.0), "completed")
    assert usage is not None
    assert (usage.samples, usage.cpu_seconds, usage.cpu_cores) == (101, 515.0, 1.03)
    assert usage.cpu_cores_high == 1.0  # a burst of a hundredth of the time
    assert usage.memory_peak_bytes == 1100
    (card,) = usage.gpus
    assert (card.name, card.model, card.utilisation, card.memory_peak_bytes) == ("2", "NVIDIA H100", 50.0, 100)


@pytest.mark.parametrize(("told", "counted"), [(None, 10.0), (14.0, 14.0), (3.0, 10.0), (10.0**9, 30.0)])
def test_the_launchers_word_counts_as_far_as_it_is_possible(
    record: Callable[..., Record], told: float | None, counted: float
) -> None:
    """Four CPUs, and the last look was four seconds before the end."""
    job = record(body_started=1000.0, ended=1014.0, cpu_seconds=told)
    usage = figures.usage(history([1.0, 1.0]), job, "completed")
    assert usage is not None
    assert usage.cpu_seconds == counted


def test_the_course_begins_with_the_body(record: Callable[..., Record]) -> None:
    course = figures.course(history([2.0] * 2000), record(body_started=990.0))
    assert course is not None
    assert len(course.seconds) <= figures.POINTS
    assert course.seconds[-1] == 10010.0
    assert set(course.cpu_cores) == {2.0}
    assert course.gpus[0].name == "2"
