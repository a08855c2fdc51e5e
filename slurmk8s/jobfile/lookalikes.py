"""Characters that look like plain ones and are not: spaces, quotes and dashes of word processors and web pages."""

import re

from slurmk8s.jobfile.finding import Finding, Spot, problem, warning

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
    "\u00a0": "a non-breaking space",
    "\u3000": "a full-width space",
    "\ufeff": "an invisible byte order mark",
    "\u200b": "an invisible zero-width space",
}


def _kind(char: str) -> tuple[str, str, str]:
    """Code, name and remedy."""
    if char in _SPACES:
        return "odd-space", _NAMES.get(char, "a typographic space"), "Replace it by a plain space."
    if char in _INVISIBLE:
        return "odd-space", _NAMES.get(char, "an invisible character"), "Delete it (retype the word)."
    if char in _QUOTES:
        return "smart-quote", f"the typographic quote {char}", f"Replace it by {_QUOTES[char]}"
    if char in _DASHES:
        return "odd-dash", f"the typographic dash {char}", "Replace it by two plain hyphens."
    return "odd-equals", f"the full-width sign {char}", "Replace it by a plain =."


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
            code, name, fix = _kind(char)
            found.setdefault(
                code,
                problem(
                    Spot(number, at + 1, 1),
                    code,
                    f"there is {name} in this line",
                    "It looks right but is another character, which Slurm takes for part of a word.",
                    fix,
                ),
            )
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
                code, name, fix = _kind(char)
                why = "The shell takes it for part of a word."
                found.setdefault(code, warning(Spot(number, at + 1, 1), code, f"there is {name} here", why, fix))
    return list(found.values())
