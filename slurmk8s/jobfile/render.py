"""Findings as people read them: place, sentence, the line itself, a caret, the way out."""

import unicodedata
from collections.abc import Sequence

from slurmk8s.jobfile.finding import Finding
from slurmk8s.language import Language

_RED, _YELLOW, _BOLD, _CYAN, _OFF = "\033[1;31m", "\033[1;33m", "\033[1m", "\033[36m", "\033[0m"
# A line may be a megabyte long: only what surrounds the caret is shown.
_WIDEST = 110
_LABELS = {
    "en": {"problem": "problem", "warning": "warning", "why": "why", "fix": "fix"},
    "ko": {"problem": "문제", "warning": "경고", "why": "이유", "fix": "해결"},
}


def render(name: str, text: str, findings: Sequence[Finding], language: Language, *, colour: bool) -> str:
    """All findings of one file. `text` is `Checked.text`: what line numbers refer to."""
    lines = text.split("\n")
    return "\n".join(_one(name, lines, finding, language, colour) for finding in findings)


def _one(name: str, lines: list[str], finding: Finding, language: Language, colour: bool) -> str:
    label, words = _LABELS[language], finding.words(language)
    bold, cyan, off = (_BOLD, _CYAN, _OFF) if colour else ("", "", "")
    mark = (_RED if finding.severity == "problem" else _YELLOW) if colour else ""
    place = f"{printable(name)}:{finding.line}:{finding.column}" if finding.line else printable(name)
    parts = [f"{bold}{place}:{off} {mark}{label[finding.severity]}:{off} {bold}{words.what}{off} [{finding.code}]"]
    if 0 < finding.line <= len(lines):
        source, caret = _caret(lines[finding.line - 1], finding.column, finding.length)
        parts.append(f"    {source}")
        parts.append(f"    {mark}{caret}{off}")
    parts.append(f"  {cyan}{label['why']}:{off} {words.why}")
    parts.append(f"  {cyan}{label['fix']}:{off} {words.fix}")
    return "\n".join(parts) + "\n"


def _caret(line: str, column: int, length: int) -> tuple[str, str]:
    """The line and the carets under it, both cut to what fits and aligned by the width of each character."""
    start = column - 1
    left = max(0, start - _WIDEST // 2) if len(line) > _WIDEST else 0
    cut = line[left : left + _WIDEST]
    end = min(start - left + length, len(cut)) if length else start - left + 1
    head = "…" if left else ""
    tail = "…" if left + _WIDEST < len(line) else ""
    indent = len(head) + _width(cut[: start - left])
    return head + printable(cut) + tail, " " * indent + "^" * max(_width(cut[start - left : end]), 1)


def printable(text: str) -> str:
    """The text with every control character made visible: a file must not be able to steer the terminal."""
    if text.isprintable():
        return text
    return "".join(_visible(char) for char in text)


def _visible(char: str) -> str:
    if char.isprintable():
        return char
    if char == "\t" or unicodedata.category(char) == "Zs":
        return " "
    return "\N{REPLACEMENT CHARACTER}"


def _width(text: str) -> int:
    """Columns on a terminal: Korean takes two, a combining letter none."""
    return sum(_char_width(char) for char in text)


def _char_width(char: str) -> int:
    if unicodedata.combining(char) or "\u1160" <= char <= "\u11ff":  # vowels and finals of decomposed Korean
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
