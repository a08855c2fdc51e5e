"""What a job used over time, on disk: a file that only grows at its end, and never beyond a bound.

One line of JSON says which GPUs are meant; then each sample is one record of fixed size. When the file is full its
samples are thinned to half as many, evenly over time, so that a month of a job takes as much room as its first hours.
What an agent was stopped in the middle of writing is cut off by the next.
"""

import contextlib
import json
import math
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

MOST = 4096
"""Samples in a file: 100 kB without GPUs, 500 kB with eight."""


@dataclass(frozen=True)
class Card:
    """A GPU whose use is measured."""

    index: int
    model: str
    memory: int
    """Bytes that it has."""


@dataclass(frozen=True)
class OfCard:
    """One GPU at one moment."""

    utilisation: float | None
    """Percent; None where the driver did not say."""
    memory: int
    """Bytes in use."""


@dataclass(frozen=True)
class Sample:
    """One moment, or after thinning the time since the sample before."""

    time: float
    """Unix time."""
    cpu_seconds: float
    """Since the container began."""
    memory: int
    """Bytes; of several samples the most."""
    cards: tuple[OfCard, ...] = ()


@dataclass(frozen=True)
class History:
    """All that was measured of a job."""

    cards: tuple[Card, ...] = ()
    samples: tuple[Sample, ...] = ()


def read(path: Path) -> History:
    """What the file holds; nothing if there is none, or something else stands there."""
    try:
        head, _, body = path.read_bytes().partition(b"\n")
        cards = tuple(Card(**card) for card in json.loads(head)["cards"])
    except (OSError, ValueError, KeyError, TypeError):
        return History()
    shape = _shape(cards)
    whole = len(body) - len(body) % shape.size
    return History(cards, tuple(_unpacked(values) for values in shape.iter_unpack(body[:whole])))


def begin(path: Path, cards: Sequence[Card]) -> History:
    """The file of a job whose measuring begins, or goes on after a restart; what it holds."""
    known = read(path)
    if known.samples:
        whole = len(_head(known.cards)) + len(known.samples) * _shape(known.cards).size
        os.truncate(path, whole)
        return known
    _write(path, History(tuple(cards)))
    return History(tuple(cards))


def add(path: Path, cards: Sequence[Card], sample: Sample) -> None:
    """Put a sample at the end of the file; thin it out when it is full."""
    with open(path, "r+b") as file:  # never a new file: the job may be over and done with meanwhile
        file.seek(0, os.SEEK_END)
        file.write(_packed(_shape(cards), sample))
        size = file.tell()
    if size >= len(_head(cards)) + MOST * _shape(cards).size:
        known = read(path)
        _write(path, History(known.cards, thinned(known.samples, MOST // 2)))


def thinned(samples: Sequence[Sample], keep: int) -> tuple[Sample, ...]:
    """At most so many: neighbours become one as long as it stands for no more than its share of the time.

    Peaks stay peaks, means stay means. Any two neighbours that are left stand for more than one share together, so
    shares are made for half as many; and thinned again and again, none stands for more than its share of the whole.
    """
    if len(samples) <= keep:
        return tuple(samples)
    spans = [0.0, *(max(0.0, after.time - before.time) for before, after in pairwise(samples))]
    share = 2 * sum(spans) / keep
    result: list[Sample] = []
    bucket: list[tuple[float, Sample]] = []
    filled = 0.0
    for span, sample in zip(spans, samples, strict=True):
        if bucket and filled + span > share:
            result.append(_merged(bucket))
            bucket, filled = [], 0.0
        bucket.append((span, sample))
        filled += span
    return (*result, _merged(bucket))


def _merged(bucket: Sequence[tuple[float, Sample]]) -> Sample:
    last = bucket[-1][1]
    cards = tuple(
        _merged_card([(weight, sample.cards[place]) for weight, sample in bucket]) for place in range(len(last.cards))
    )
    return Sample(last.time, last.cpu_seconds, max(sample.memory for _, sample in bucket), cards)


def _merged_card(bucket: Sequence[tuple[float, OfCard]]) -> OfCard:
    return OfCard(mean([(weight, card.utilisation) for weight, card in bucket]), max(card.memory for _, card in bucket))


def mean(values: Sequence[tuple[float, float | None]]) -> float | None:
    """The mean of what is known, by weight; the plain mean where nothing has any weight."""
    known = [(weight, value) for weight, value in values if value is not None]
    total = sum(weight for weight, _ in known)
    if total > 0:
        return sum(weight * value for weight, value in known) / total
    return sum(value for _, value in known) / len(known) if known else None


def _shape(cards: Sequence[Card]) -> struct.Struct:
    return struct.Struct("<ddQ" + "fQ" * len(cards))


def _packed(shape: struct.Struct, sample: Sample) -> bytes:
    values: list[Any] = [sample.time, sample.cpu_seconds, sample.memory]
    for card in sample.cards:
        values += [math.nan if card.utilisation is None else card.utilisation, card.memory]
    return shape.pack(*values)


def _unpacked(values: tuple[Any, ...]) -> Sample:
    time, cpu_seconds, memory, *rest = values
    cards = zip(rest[::2], rest[1::2], strict=True)
    told = tuple(OfCard(None if math.isnan(used) else used, held) for used, held in cards)
    return Sample(time, cpu_seconds, memory, told)


def _head(cards: Sequence[Card]) -> bytes:
    return json.dumps({"cards": [vars(card) for card in cards]}).encode() + b"\n"


def _write(path: Path, history: History) -> None:
    """As a whole: a crash leaves the old file or the new one."""
    temporary = path.with_name(path.name + ".tmp")
    shape = _shape(history.cards)
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(_head(history.cards))
            file.writelines(_packed(shape, sample) for sample in history.samples)
        temporary.rename(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
