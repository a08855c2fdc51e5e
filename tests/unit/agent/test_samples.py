"""Needs nothing: the file that a job's samples are kept in."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmk8s.agent import samples
from slurmk8s.agent.samples import Card, History, OfCard, Sample

CARDS = (Card(0, "NVIDIA H100", 80 << 30), Card(3, "NVIDIA H100", 80 << 30))


def sample(number: int, memory: int = 1000) -> Sample:
    cards = (OfCard(50.0, number), OfCard(None, 5))
    return Sample(1.7e9 + 5.0 * number, number * 2.5, memory, cards)


def test_what_is_added_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "7.0"
    assert samples.begin(path, CARDS) == History(CARDS)
    for number in range(5):
        samples.add(path, CARDS, sample(number))
    assert samples.read(path) == History(CARDS, tuple(sample(number) for number in range(5)))
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_next_agent_goes_on_and_half_a_sample_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "7.0"
    samples.begin(path, CARDS)
    samples.add(path, CARDS, sample(0))
    with path.open("ab") as file:
        file.write(b"half")
    assert samples.begin(path, ()) == History(CARDS, (sample(0),))
    samples.add(path, CARDS, sample(1))
    assert samples.read(path).samples == (sample(0), sample(1))


@pytest.mark.parametrize("data", [b"", b"\n", b"{}\nxx", b"[1]\n", b'{"cards": [{"a": 1}]}\n', b"\xff\xff"])
def test_anything_else_holds_no_samples_and_is_begun_anew(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "7.0"
    path.write_bytes(data)
    assert samples.read(path) == History()
    assert samples.begin(path, CARDS) == History(CARDS)


def test_nothing_is_added_to_a_file_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        samples.add(tmp_path / "7.0", (), Sample(1.0, 1.0, 1))
    assert list(tmp_path.iterdir()) == []


def test_a_month_takes_no_more_room_than_its_first_hours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a small bound, so that the file is thinned more often than in a year."""
    monkeypatch.setattr(samples, "MOST", 64)
    path = tmp_path / "7.0"
    samples.begin(path, ())
    largest = 0
    for number in range(20_000):
        memory = 9999 if number == 4321 else number % 100
        samples.add(path, (), Sample(5.0 * number, 2.0 * number, memory))
        largest = max(largest, path.stat().st_size)
    kept = samples.read(path).samples
    assert largest <= 65 * 24 + 100
    assert 16 <= len(kept) <= 64
    assert max(each.memory for each in kept) == 9999
    assert (kept[-1].time, kept[-1].cpu_seconds) == (5.0 * 19_999, 2.0 * 19_999)
    widths = [after.time - before.time for before, after in pairwise(kept)]
    assert max(widths) <= 5.0 * 20_000 / 16 + 5  # evenly: the beginning is not pressed into one sample


@given(st.lists(st.tuples(st.floats(0, 1e6), st.integers(0, 2**40), st.floats(0, 100)), min_size=1), st.integers(1, 50))
def test_thinning_keeps_peaks_and_the_end(values: list[tuple[float, int, float]], keep: int) -> None:
    whole = [Sample(time, time, memory, (OfCard(busy, memory),)) for time, memory, busy in values]
    thin = samples.thinned(whole, keep)
    assert 1 <= len(thin) <= max(keep, 1)
    assert thin[-1].cpu_seconds == whole[-1].cpu_seconds
    assert max(each.memory for each in thin) == max(each.memory for each in whole)
    assert all(-0.001 <= (each.cards[0].utilisation or 0) <= 100.001 for each in thin)


def test_means_are_by_time_and_only_of_what_is_known() -> None:
    assert samples.mean([(1.0, 10.0), (3.0, 50.0)]) == 40.0
    assert samples.mean([(1.0, None), (0.0, 20.0), (0.0, 40.0)]) == 30.0
    assert samples.mean([(1.0, None)]) is None
