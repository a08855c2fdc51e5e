"""Needs nothing. Times as people type them."""

from datetime import datetime, timedelta

import pytest
from click.testing import CliRunner

from slurmk8s.cli.dates import moment
from slurmk8s.cli.results import results

NOW = datetime(2026, 11, 18, 13, 30).astimezone()


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("now", NOW),
        ("today", datetime(2026, 11, 18).astimezone()),
        ("Yesterday", datetime(2026, 11, 17).astimezone()),
        ("12h", NOW - timedelta(hours=12)),
        ("7d", NOW - timedelta(days=7)),
        ("2 w", NOW - timedelta(days=14)),
        ("2026-11-01", datetime(2026, 11, 1).astimezone()),
        ("2026-11", datetime(2026, 11, 1).astimezone()),
        ("2026-11-01 14:30", datetime(2026, 11, 1, 14, 30).astimezone()),
        ("2026-11-01T14:30:05", datetime(2026, 11, 1, 14, 30, 5).astimezone()),
    ],
)
def test_a_time_is_understood(word: str, expected: datetime) -> None:
    assert moment(word, NOW) == expected.timestamp()


@pytest.mark.parametrize("word", ["", "soon", "2026-13-01", "11/01/2026", "-3d", "99999999d", "7dd", "٣d"])
def test_what_is_no_time_is_none(word: str) -> None:
    assert moment(word, NOW) is None


def test_a_bad_time_is_refused_with_examples() -> None:
    refused = CliRunner().invoke(results, ["--since", "soon"])
    assert refused.exit_code == 2
    assert "'soon' is no time. Write a day (2026-11-01)" in refused.output.replace("\n", " ")
