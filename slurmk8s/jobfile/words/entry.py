"""The shape of the catalogue: what each entry says, in every language."""

from collections.abc import Mapping
from dataclasses import dataclass

from slurmk8s.language import Language


@dataclass(frozen=True)
class Words:
    """A finding's three texts: what is the matter, why it matters, and the way out."""

    what: str
    why: str
    fix: str


Findings = Mapping[str, Mapping[Language, Words]]
"""By a finding's code; `code/case` where one code has several ways to say it."""

Phrases = Mapping[str, Mapping[Language, str]]
"""Parts of such texts, by name."""
