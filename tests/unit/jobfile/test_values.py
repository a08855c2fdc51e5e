"""Slurm's grammars of time, memory and counts, on their own."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmk8s.jobfile import values
from slurmk8s.jobfile.limits import slurm_time


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 1800),
        ("30:15", 1815),
        ("02:00:00", 7200),
        ("00:90:00", 5400),
        ("1-", 86400),
        ("1-12", 129600),
        ("1-12:30", 131400),
        ("1-12:30:05", 131405),
        ("0", None),
        ("-1", None),
        ("infinite", None),
        ("UNLIMITED", None),
    ],
)
def test_time(text: str, seconds: int | None) -> None:
    assert values.seconds(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "2h", ":5", "5:", "1::2", "1-:5", "1:2:3:4", "1-2-3", "1:2-3", "-5", "HH:MM:SS", "٣", "9" * 20, "1\n"]
)
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        values.seconds(text)


@pytest.mark.parametrize(
    ("text", "megabytes"),
    [
        ("8", 8),
        ("8M", 8),
        ("8g", 8192),
        ("8GB", 8192),
        ("1T", 1048576),
        ("1K", 1),
        ("1025k", 2),
        ("0", 0),
        ("+8G", 8192),
    ],
)
def test_memory(text: str, megabytes: int) -> None:
    assert values.megabytes(text) == megabytes


@pytest.mark.parametrize("text", ["", "G", "8Gi", "8 G", "1.5G", "-1", "8B", "8P", "XG", "٨G", "9" * 40, "8G\n"])
def test_what_is_no_memory(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        values.megabytes(text)


def test_shm() -> None:
    assert values.shm_bytes("2G") == values.shm_bytes("2Gi") == values.shm_bytes("2gb") == 2 * 1024**3
    assert values.shm_bytes("64K") == 65536
    for text in ("2", "0G", "G", "-1G", "1.5G", "999999999999999T"):
        with pytest.raises(ValueError, match=r"."):
            values.shm_bytes(text)


def test_gres() -> None:
    assert values.gres("gpu") == (values.Gres("gpu", "", 1),)
    assert values.gres("gpu:2") == (values.Gres("gpu", "", 2),)
    assert values.gres("gpu:a100") == (values.Gres("gpu", "a100", 1),)
    assert values.gres("gpu:a100:2,license:1") == (values.Gres("gpu", "a100", 2), values.Gres("license", "", 1))
    assert values.gres("none") == ()
    assert values.gpus("a100:2,1") == (values.Gres("gpu", "a100", 2), values.Gres("gpu", "", 1))


@given(st.integers(min_value=1, max_value=2**31 - 1))
def test_a_time_written_as_slurm_writes_it_reads_back(seconds: int) -> None:
    assert values.seconds(slurm_time(seconds)) == seconds


@given(st.text(max_size=30))
def test_a_grammar_answers_or_says_why_not(text: str) -> None:
    for grammar in (
        values.seconds, values.megabytes, values.shm_bytes, values.count, values.nodes,
        values.gres, values.gpus, values.array, values.signal,
    ):  # fmt: skip
        assert _reason(grammar, text) != ""


def _reason(grammar: Callable[[str], object], text: str) -> str | None:
    try:
        grammar(text)
    except ValueError as error:
        return str(error)
    return None
