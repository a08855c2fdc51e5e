"""The one way in which tests wait: for a condition, never longer than it takes."""

import itertools
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

Result = TypeVar("Result")
FIRST, LONGEST = 0.02, 0.15
"""Seconds between looks. Most waits are short; in long ones looking, often by a program of Slurm's, would keep the
machine from what is waited for."""


def until(condition: Callable[[], Result], what: str, seconds: float = 30) -> Result:
    """Poll a condition and give what it returned; fail with what was waited for, and with what was last seen."""
    deadline = time.monotonic() + seconds
    for pause in pauses():
        if seen := condition():
            return seen
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what} (last seen: {seen!r})")
        time.sleep(pause)
    raise AssertionError  # pauses do not end


def pauses() -> Iterator[float]:
    """Each a quarter longer than the one before."""
    return (min(FIRST * 1.25**number, LONGEST) for number in itertools.count())
