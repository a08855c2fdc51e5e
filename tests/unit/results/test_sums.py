"""Needs nothing. Lines of checksums.txt."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmk8s.results import sums

DIGEST = "0123456789abcdef" * 4


@given(st.binary(min_size=1).filter(lambda name: b"\0" not in name))
def test_every_name_survives(name: Any) -> None:
    line = sums.line(DIGEST, name)
    assert line.count(b"\n") == 1
    assert sums.parse(line) == (DIGEST, name)


@given(st.binary(max_size=200))
def test_no_bytes_whatever_raise(data: bytes) -> None:
    sums.parse(data)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"abc  name",
        DIGEST.encode() + b"  ",
        DIGEST.encode() + b" name",
        b"\\" + DIGEST.encode() + b"  a\\x",
        b"\\" + DIGEST.encode() + b"  a\\",
        DIGEST.upper().encode() + b"  name",
    ],
)
def test_other_lines_are_none(line: bytes) -> None:
    assert sums.parse(line) is None
