"""What the check says about a job file: one finding is one sentence for people, with its place in the file."""

from dataclasses import dataclass
from typing import Literal

Severity = Literal["problem", "warning"]


@dataclass(frozen=True)
class Spot:
    """A place in the text. Line and column count from 1; line 0 means the file as a whole."""

    line: int
    column: int
    length: int


WHOLE_FILE = Spot(0, 1, 1)

MOST_FINDINGS = 100
"""More of one kind help nobody, and a hostile file must not keep the check busy."""


@dataclass(frozen=True)
class Finding:
    """One thing found. A problem stops the job, a warning does not; `code` is stable, for programs."""

    line: int
    column: int
    length: int
    severity: Severity
    code: str
    what: str
    why: str
    fix: str


def problem(spot: Spot, code: str, what: str, why: str, fix: str) -> Finding:
    """A finding that stops the job."""
    return Finding(spot.line, spot.column, max(spot.length, 1), "problem", code, what, why, fix)


def warning(spot: Spot, code: str, what: str, why: str, fix: str) -> Finding:
    """A finding that is told while the job goes on."""
    return Finding(spot.line, spot.column, max(spot.length, 1), "warning", code, what, why, fix)


def shown(text: str, limit: int = 60) -> str:
    """A person's own text inside our sentence: on one line, without control characters, not endless."""
    clean = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text[: limit + 1])
    return clean if len(clean) <= limit else clean[:limit] + "…"
