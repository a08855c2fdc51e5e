"""Texts as a name and values, so that one check can be told in either language."""

from dataclasses import dataclass

from slurmk8s.jobfile.words import PHRASES
from slurmk8s.language import Language


@dataclass(frozen=True)
class Phrase:
    """A part of a sentence: its name in the catalogue and what to put into it. As plain text it is English."""

    name: str
    values: tuple[tuple[str, "Value"], ...] = ()

    def text(self, language: Language) -> str:
        """The phrase in that language."""
        return filled(PHRASES[self.name][language], self.values, language)

    def __str__(self) -> str:
        return self.text("en")


Value = str | int | Phrase


class Malformed(ValueError):
    """A text that is not what it should be; the reason can be said in either language."""

    def __init__(self, reason: Phrase) -> None:
        super().__init__(str(reason))
        self.reason = reason


def phrase(name: str, /, **values: Value) -> Phrase:
    """A part of a sentence, by its name."""
    return Phrase(name, tuple(values.items()))


def malformed(name: str, /, **values: Value) -> Malformed:
    """The error for this reason."""
    return Malformed(phrase(name, **values))


def filled(template: str, values: tuple[tuple[str, Value], ...], language: Language) -> str:
    """The template with its values; phrases among them in the same language."""
    said = {name: value.text(language) if isinstance(value, Phrase) else value for name, value in values}
    text = template.format_map(said)
    if language == "en" and template.startswith("{reason}"):
        # A reason ends a sentence elsewhere; here it is one of its own. Korean has no capitals.
        return text[:1].upper() + text[1:]
    return text
