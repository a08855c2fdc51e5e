"""From samples to what the summary says: figures, trends, notes, and the course that is drawn. Pure."""

from collections.abc import Sequence
from itertools import pairwise

from slurmk8s.agent.record import Record
from slurmk8s.agent.samples import Card, History, Sample, mean, thinned
from slurmk8s.results import verdict
from slurmk8s.results.usage import CardCourse, CardUsage, Course, Usage, trend

POINTS = 480
"""Of the picture, at most: a dot or two of a screen each."""


def usage(history: History, record: Record, state: str) -> Usage | None:
    """The figures; None where nothing was measured."""
    samples = history.samples
    if not samples:
        return None
    running = _running(record)
    seconds = _computed(samples[-1], record)
    span = running or samples[-1].time - samples[0].time
    cores = seconds / span if span > 0 else 0.0
    drawn = course(history, record)
    limit = record.memory_mb << 20
    peak = max(sample.memory for sample in samples)
    found = Usage(
        samples=len(samples),
        cpu_seconds=round(seconds, 3),
        cpu_cores=round(cores, 3),
        cpu_cores_high=round(_high(samples), 3),
        cpu_trend=trend(drawn.cpu_cores if drawn else (), record.cpus),
        memory_peak_bytes=peak,
        memory_trend=trend(drawn.memory_bytes if drawn else (), limit or peak),
        gpus=tuple(_card(card, place, samples) for place, card in enumerate(history.cards)),
    )
    asked = verdict.Asked(record.cpus, record.memory_mb, len(record.gpus), record.time_limit, state, running)
    return Usage(**{**vars(found), "notes": verdict.notes(asked, found)})


def course(history: History, record: Record) -> Course | None:
    """What is drawn; None if there is no time between any two samples."""
    samples = thinned(history.samples, POINTS)
    if len(samples) < 2 or samples[-1].time <= samples[0].time:
        return None
    start = record.body_started or samples[0].time
    cores = _cores(samples)
    return Course(
        seconds=tuple(round(max(0.0, sample.time - start), 3) for sample in samples),
        cpu_cores=(cores[0], *cores),
        memory_bytes=tuple(float(sample.memory) for sample in samples),
        gpus=tuple(
            CardCourse(
                name=str(card.index),
                utilisation=tuple(_rounded(sample.cards[place].utilisation) for sample in samples),
                memory_bytes=tuple(float(sample.cards[place].memory) for sample in samples),
                memory_total=card.memory,
            )
            for place, card in enumerate(history.cards)
        ),
    )


def _computed(last: Sample, record: Record) -> float:
    """CPU seconds up to the very end, by the launcher; no more than was possible since our own last look.

    The launcher's word lies in a folder of the person's, and these figures are compared between people.
    """
    late = max(0.0, (record.ended or last.time) - last.time)
    possible = last.cpu_seconds + (late + 1) * max(record.cpus, 1)
    return min(max(record.cpu_seconds or 0.0, last.cpu_seconds), possible)


def _running(record: Record) -> float | None:
    if record.body_started is None or record.ended is None:
        return None
    return max(0.0, record.ended - record.body_started)


def _cores(samples: Sequence[Sample]) -> list[float]:
    """Between each sample and the one before."""
    cores = []
    for before, after in pairwise(samples):
        took = after.time - before.time
        cores.append(round(max(0.0, after.cpu_seconds - before.cpu_seconds) / took, 3) if took > 0 else 0.0)
    return cores


def _high(samples: Sequence[Sample]) -> float:
    """The cores that were enough for 95 % of the time."""
    spans = [max(0.0, after.time - before.time) for before, after in pairwise(samples)]
    left = 0.95 * sum(spans)
    high = 0.0
    for cores, took in sorted(zip(_cores(samples), spans, strict=True)):
        high = cores
        left -= took
        if left <= 0:
            break
    return high


def _card(card: Card, place: int, samples: Sequence[Sample]) -> CardUsage:
    told = [sample.cards[place] for sample in samples]
    spans = [0.0, *(max(0.0, after.time - before.time) for before, after in pairwise(samples))]
    busy = mean([(took, each.utilisation) for took, each in zip(spans, told, strict=True)])
    return CardUsage(
        name=str(card.index),
        model=card.model,
        utilisation=_rounded(busy),
        memory_peak_bytes=max(each.memory for each in told),
        memory_bytes=card.memory,
        trend=trend([each.utilisation for each in told], 100.0),
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)
