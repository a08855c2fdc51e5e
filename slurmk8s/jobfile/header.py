"""The lines before the first command, taken apart as sbatch does it.

Facts from Slurm's sources: a directive line starts with exactly `#SBATCH` (or the old `#SLURM`), also without a space
after it; the first line that is neither blank nor a comment ends them; words are split at white space, both kinds of
quotes group, a backslash escapes everywhere, an unquoted `#` starts a comment even inside a word; and the words of all
lines form one list, so that an option at the end of one line takes its value from the next.
"""

import re
from dataclasses import dataclass

from slurmk8s.jobfile import lookalikes
from slurmk8s.jobfile.finding import MOST_FINDINGS, Finding, Spot, problem, shown, warning
from slurmk8s.jobfile.k8s import K8sLine, k8s_line
from slurmk8s.jobfile.misspelt import misspelt_directive

_SPACE = " \t\n\v\f\r"
# Far more than any job has, and little enough to be read in no time.
_LARGEST_HEADER = 256 * 1024
_HETJOB = re.compile(r"(?:hetjob|packjob)(?=\s|$)", re.IGNORECASE)


@dataclass(frozen=True)
class Word:
    """One argument as sbatch sees it, with the column each of its characters came from."""

    text: str
    line: int
    columns: tuple[int, ...]

    def spot(self, start: int = 0) -> Spot:
        """Where the word's text from that character on stands in the file."""
        if start >= len(self.columns):
            start = max(len(self.columns) - 1, 0)
        first = self.columns[start]
        return Spot(self.line, first, self.columns[-1] - first + 1)


@dataclass(frozen=True)
class Header:
    """All that stands before the first command."""

    interpreter: str
    words: tuple[Word, ...]
    k8s: tuple[K8sLine, ...]
    first_command: int
    """Line of the first command; one past the last line where there is none."""
    het: Spot | None
    findings: tuple[Finding, ...]


def parse(lines: list[str]) -> Header:
    """Take the header apart. Whatever stands there, the rest is still read, so that all is found at once."""
    findings: list[Finding] = []
    words: list[Word] = []
    k8s: list[K8sLine] = []
    het: Spot | None = None
    number = size = 0
    for number, line in enumerate(lines, start=1):
        if line.startswith(("#SBATCH", "#SLURM", "#K8S_")):
            size += len(line)
            if size > _LARGEST_HEADER or len(findings) > MOST_FINDINGS:
                findings.append(_too_large(number))
                break
        if line.startswith(("#SBATCH", "#SLURM")):
            marker = "#SBATCH" if line.startswith("#SBATCH") else "#SLURM"
            findings += _marker_findings(line, marker, number)
            chars, columns, odd = lookalikes.straighten(line, len(marker), number)
            findings += odd
            if _HETJOB.match("".join(chars).lstrip(_SPACE)):
                het = Spot(number, 1, len(line))
                continue
            found, quote = _split(chars, columns, number)
            findings += quote
            if het is None:  # options of the later components do not describe the whole job
                words += found
        elif line.startswith("#K8S_"):
            chars, columns, odd = lookalikes.straighten(line, 0, number)
            entry, wrong = k8s_line("".join(chars), number, columns)
            findings += odd + wrong
            if entry is not None:
                k8s.append(entry)
        elif line.strip(_SPACE) and not line.lstrip(_SPACE).startswith("#"):
            break
        elif "#" in line and len(findings) < MOST_FINDINGS:
            findings += misspelt_directive(line, number)
    else:
        number += 1
    interpreter, wrong = _interpreter(lines)
    return Header(interpreter, tuple(words), tuple(k8s), number, het, (*wrong, *findings))


def _too_large(number: int) -> Finding:
    return problem(Spot(number, 1, 1), "header-too-large")


def _interpreter(lines: list[str]) -> tuple[str, list[Finding]]:
    first = lines[0]
    spot = Spot(1, 1, len(first))
    if first.startswith("#!"):
        interpreter = first[2:].strip(_SPACE)
        if interpreter.startswith("/"):
            return interpreter, []
        if not interpreter:
            return interpreter, [problem(spot, "bad-interpreter/empty")]
        return interpreter, [problem(spot, "bad-interpreter", interpreter=shown(interpreter))]
    later = next((number for number, line in enumerate(lines[:50], start=1) if line.lstrip().startswith("#!")), None)
    if later is not None:
        return "", [problem(spot, "no-interpreter/later", later=later)]
    return "", [problem(spot, "no-interpreter")]


def _marker_findings(line: str, marker: str, number: int) -> list[Finding]:
    if marker == "#SLURM":
        return [warning(Spot(number, 1, len(marker)), "old-directive")]
    rest = line[len(marker) :]
    if rest.startswith("-"):
        return [warning(Spot(number, 1, len(marker) + len(rest.split(maxsplit=1)[0])), "no-space", rest=shown(rest))]
    return []


def _split(chars: list[str], columns: list[int], number: int) -> tuple[list[Word], list[Finding]]:
    """The words of one line."""
    words: list[Word] = []
    at = 0
    while True:
        while at < len(chars) and chars[at] in _SPACE:
            at += 1
        if at == len(chars):
            return words, []
        text: list[str] = []
        places: list[int] = []
        quote, opened = "", at
        while at < len(chars) and (quote or chars[at] not in _SPACE):
            char = chars[at]
            if char == "\\" and at + 1 < len(chars):
                at += 1
                char = chars[at]
                if not quote and char in _SPACE:  # to sbatch a backslash does not keep a word together
                    break
            elif char == "\\":
                break
            elif quote:
                if char == quote:
                    quote = ""
                    at += 1
                    continue
            elif char in "\"'":
                quote, opened = char, at
                at += 1
                continue
            elif char == "#":
                if text:
                    words.append(Word("".join(text), number, tuple(places)))
                return words, []
            text.append(char)
            places.append(columns[at])
            at += 1
        if quote:
            return words, [problem(Spot(number, columns[opened], 1), "open-quote", quote=quote)]
        if not text:  # sbatch takes a lone "" for the end of the line
            return words, []
        words.append(Word("".join(text), number, tuple(places)))
        if at < len(chars) and chars[at] == "\\":
            at += 1
