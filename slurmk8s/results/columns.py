"""Text in columns as a terminal shows it: a Korean letter is two wide. Pure."""

import unicodedata


def width(text: str) -> int:
    """How many columns it takes."""
    if text.isascii():
        return len(text)
    return sum(map(_wide, text))


def _wide(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def padded(text: str, columns: int, *, right: bool = False) -> str:
    """Filled up with spaces; `right`: flush right, for numbers."""
    space = " " * (columns - width(text))
    return space + text if right else text + space


def clipped(text: str, columns: int) -> str:
    """At most so many columns; what is cut off leaves a `…`."""
    if width(text) <= columns:
        return text
    return _head(text, columns - 1).rstrip() + "…" if columns > 0 else ""


def _head(text: str, columns: int) -> str:
    """As much of its beginning as fits."""
    used = 0
    for number, char in enumerate(text):
        used += _wide(char)
        if used > columns:
            return text[:number]
    return text


def wrapped(text: str, columns: int, most: int) -> list[str]:
    """Broken at spaces into at most so many lines; the last is clipped. A word that is too long is broken anywhere."""
    lines: list[str] = []
    words = text.split()
    line = ""
    while words:
        if len(lines) == most - 1:
            return [*lines, clipped(" ".join([*([line] if line else []), *words]), columns)]
        word = words[0]
        longer = f"{line} {word}" if line else word
        if width(longer) <= columns:
            line = longer
            words.pop(0)
        elif line:
            lines.append(line)
            line = ""
        else:
            part = _head(word, columns) or word[0]
            lines.append(part)
            words[0] = word[len(part) :]
    return [*lines, line] if line or not lines else lines
