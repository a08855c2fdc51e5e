"""What the check says about a job file: one finding is one sentence for people, with its place in the file."""

from dataclasses import dataclass
from typing import Literal

from slurmk8s.jobfile.phrase import Value, filled
from slurmk8s.jobfile.words import FINDINGS, Words
from slurmk8s.language import Language

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
    key: str
    """Its entry in the catalogue of words."""
    values: tuple[tuple[str, Value], ...] = ()

    def words(self, language: Language) -> Words:
        """What is told of it in that language."""
        said = FINDINGS[self.key][language]
        return Words(*(filled(text, self.values, language) for text in (said.what, said.why, said.fix)))

    @property
    def what(self) -> str:
        """What is the matter, in English."""
        return self.words("en").what

    @property
    def why(self) -> str:
        """Why it matters, in English."""
        return self.words("en").why

    @property
    def fix(self) -> str:
        """The way out, in English."""
        return self.words("en").fix


def problem(spot: Spot, key: str, /, code: str = "", **values: Value) -> Finding:
    """A finding that stops the job, by its entry in the catalogue; its code where several codes share one entry."""
    return _finding(spot, "problem", key, code, values)


def warning(spot: Spot, key: str, /, code: str = "", **values: Value) -> Finding:
    """A finding that is told while the job goes on."""
    return _finding(spot, "warning", key, code, values)


def _finding(spot: Spot, severity: Severity, key: str, code: str, values: dict[str, Value]) -> Finding:
    code = code or key.partition("/")[0]
    return Finding(spot.line, spot.column, max(spot.length, 1), severity, code, key, tuple(values.items()))


def shown(text: str, limit: int = 60) -> str:
    """A person's own text inside our sentence: on one line, without control characters, not endless."""
    clean = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text[: limit + 1])
    return clean if len(clean) <= limit else clean[:limit] + "…"
