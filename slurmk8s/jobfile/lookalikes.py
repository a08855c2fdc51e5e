"""Characters that look like plain ones and are not: spaces, quotes and dashes of word processors and web pages."""

import re

from slurmk8s.jobfile.finding import Finding, Spot, problem, warning
from slurmk8s.jobfile.phrase import phrase

_SPACES = dict.fromkeys(
    "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000", " "
)
_INVISIBLE = dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad", "")
_QUOTES = {**dict.fromkeys("“”„‟＂″", '"'), **dict.fromkeys("‘’‚‛＇′", "'")}
_DASHES = dict.fromkeys("‐‑‒–—―−－", "--")
_EQUALS = {"＝": "="}
_PLAIN = {**_SPACES, **_INVISIBLE, **_QUOTES, **_DASHES, **_EQUALS}
_ANY = re.compile("[" + "".join(_PLAIN) + "]")

_NAMES = {
    "\u00a0": "non-breaking-space",
    "\u3000": "full-width-space",
    "\ufeff": "invisible-mark",
    "\u200b": "zero-width-space",
}


def _in_header(spot: Spot, char: str) -> Finding:
    if char in _SPACES:
        return problem(spot, "odd-space", name=phrase(_NAMES.get(char, "typographic-space")))
    if char in _INVISIBLE:
        return problem(spot, "odd-space/invisible", name=phrase(_NAMES.get(char, "invisible-character")))
    if char in _QUOTES:
        return problem(spot, "smart-quote", char=char, plain=_QUOTES[char])
    return problem(spot, "odd-dash" if char in _DASHES else "odd-equals", char=char)


def _in_body(spot: Spot, char: str) -> Finding:
    if char in _SPACES:
        return warning(spot, "odd-space/body", name=phrase(_NAMES.get(char, "typographic-space")))
    if char in _INVISIBLE:
        return warning(spot, "odd-space/invisible-in-body", name=phrase(_NAMES.get(char, "invisible-character")))
    return warning(spot, "smart-quote/body", char=char, plain=_QUOTES[char])


def straighten(line: str, start: int, number: int) -> tuple[list[str], list[int], list[Finding]]:
    """The line from `start` on in plain characters, the column of each, and a problem for each kind replaced.

    Inside plain quotes everything is meant as it stands, and so is a trailing comment.
    """
    columns = list(range(start + 1, len(line) + 1))
    if _ANY.search(line, start) is None:
        return list(line[start:]), columns, []
    chars: list[str] = []
    columns = []
    found: dict[str, Finding] = {}
    quote = ""
    for at in range(start, len(line)):
        char = line[at]
        before = chars[-1] if chars else " "
        plain = char
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char == "#" and at > start and before.isspace():
            chars += line[at:]
            columns += range(at + 1, len(line) + 1)
            break
        elif char in _PLAIN and not (char in _DASHES and not before.isspace()):
            plain = _PLAIN[char]
            finding = _in_header(Spot(number, at + 1, 1), char)
            found.setdefault(finding.code, finding)
        chars += plain
        columns += [at + 1] * len(plain)
    return chars, columns, list(found.values())


def in_body(lines: list[str], first: int) -> list[Finding]:
    """One warning per kind for commands of the body: there the shell would take the character for part of a word."""
    text = "\n".join(lines[first - 1 :])
    if text.isascii() or _ANY.search(text) is None:
        return []
    found: dict[str, Finding] = {}
    for number, line in enumerate(lines[first - 1 :], start=first):
        if len(found) == 2:  # both kinds that matter here
            break
        if _ANY.search(line) is None or line.lstrip().startswith("#"):
            continue
        quote = ""
        for at, char in enumerate(line):
            if quote:
                quote = "" if char == quote else quote
            elif char in "\"'":
                quote = char
            elif char == "#" and (at == 0 or line[at - 1].isspace()):
                break
            elif char in _SPACES or char in _INVISIBLE or char in _QUOTES:
                finding = _in_body(Spot(number, at + 1, 1), char)
                found.setdefault(finding.code, finding)
    return list(found.values())
