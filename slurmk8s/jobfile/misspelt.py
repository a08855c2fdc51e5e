"""Comment lines that were meant as directives. Slurm ignores them silently; a night later somebody notices."""

import difflib
import re

from slurmk8s.jobfile.finding import MOST_FINDINGS, Finding, Spot, problem, shown, warning

_COMMENT = re.compile(r"(\s*)#([ \t\u00a0\u3000]*)([A-Za-z]{4,8})(.*)", re.DOTALL)
_OPTION = re.compile(r"[\s\u00a0\u3000]*[-–—]")
_K8S = re.compile(r"\s*#\s*k8s[_ -]?([a-z]+)\s*=", re.IGNORECASE)
_HEREDOC = re.compile(r"(?<!<)<<(?!<)-?\s*['\"\\]?([A-Za-z_][A-Za-z0-9_]*)")


def misspelt_directive(line: str, number: int) -> list[Finding]:
    """What a comment line before the first command was probably meant to be. `##SBATCH` is switched off on purpose."""
    if (k8s := _K8S.match(line)) is not None:
        written = shown(k8s[0].strip(" ="))
        spot = Spot(number, 1, k8s.end() - 1)
        return [problem(spot, "misspelt-directive/k8s", written=written, name=shown(k8s[1].upper()))]
    match = _COMMENT.match(line)
    if match is None or not _OPTION.match(match[4]):
        return []
    indent, gap, word, _ = match.groups()
    if word.upper() != "SBATCH" and not difflib.get_close_matches(word.upper(), ["SBATCH"], cutoff=0.8):
        return []
    spot = Spot(number, 1, match.end(3))
    written = shown(line[: match.end(3)].strip())
    if word == "sbatch" and gap and not indent:  # may be a note on how to submit this file
        return [warning(spot, "misspelt-directive/note", written=written)]
    return [problem(spot, "misspelt-directive/indented" if indent else "misspelt-directive", written=written)]


def misplaced_directives(lines: list[str], first: int, shell: bool) -> list[Finding]:
    """Directives after the first command. In a here-document they belong to another script."""
    findings: list[Finding] = []
    heredoc: str | None = None
    command = shown(lines[first - 1].strip(), 30) if first <= len(lines) else ""
    for number, line in enumerate(lines[first - 1 :], start=first):
        if len(findings) == MOST_FINDINGS:
            break
        if heredoc is not None:
            if line.lstrip("\t").rstrip("\r") == heredoc:
                heredoc = None
            continue
        if line.startswith(("#SBATCH", "#K8S_")):
            tell = problem if shell else warning  # another language's long string may well hold such a line
            spot = Spot(number, 1, len(line.rstrip()))
            findings.append(tell(spot, "misplaced-directive", command=command, first=first))
        elif shell and "<<" in line and (opening := _HEREDOC.search(line)) is not None:
            heredoc = opening[1]
    return findings
