"""Our part of slurm.conf, merged with what a site's own file says already.

Slurm takes the last of two equal keys without a word, so an include that repeats a site's line would undo its work.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import slurmk8s

INCLUDE = "slurmk8s.conf"
LUA = ("job_submit.lua", "slurmk8s.lua")
FACTS = "slurmk8s_facts.lua"

LINE = re.compile(r"(?m)^(?P<key>[A-Za-z]\w*)=(?P<value>.*)$")


@dataclass(frozen=True)
class Merged:
    """The include to use with a site's slurm.conf."""

    text: str
    notes: tuple[str, ...]
    """What an administrator must change in slurm.conf, or should know, each one sentence."""


def files() -> Path:
    """The folder with slurmk8s.conf, the Lua files and the entry points."""
    package = Path(slurmk8s.__file__).parent
    carried = package / "slurm" / "conf"  # in the wheel
    return carried if carried.is_dir() else package.parent / "slurm-conf"


def settings(prolog: str | None = None, epilog: str | None = None) -> dict[str, str]:
    """Every setting of the include, with the hooks at these paths instead of the guide's."""
    found = {line["key"]: line["value"] for line in LINE.finditer(_include())}
    return found | ({"Prolog": prolog} if prolog else {}) | ({"Epilog": epilog} if epilog else {})


def _include() -> str:
    return (files() / INCLUDE).read_text(encoding="utf-8")


def site_values(text: str) -> dict[str, tuple[int, str]]:
    """A slurm.conf's settings by lower-case key, with the line's number; the last one counts, as for Slurm."""
    values: dict[str, tuple[int, str]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        bare = re.sub(r"(?<!\\)#.*", "", line).strip()
        match = re.match(r"(\w+)\s*=\s*(.*)$", bare)
        if match:
            values[match[1].lower()] = (number, match[2].strip())
    return values


def merged(site_conf_text: str) -> Merged:
    """The include for this site: what its file has already is kept where we can live with it, and merged where not."""
    site = site_values(site_conf_text)
    notes: list[str] = []

    def line(match: re.Match[str]) -> str:
        key, ours = match["key"], match["value"]
        if key.lower() not in site:
            return match[0]
        number, theirs = site[key.lower()]
        value = RULES.get(key, _theirs)(theirs, ours)
        if value == theirs:
            return f"# {key}: line {number} of your slurm.conf says {theirs}, which is kept."
        what = f"Remove line {number} of slurm.conf, {key}={theirs}"
        if key in ("Prolog", "Epilog"):
            notes.append(
                f"{what}: the include has {key}={value}; move your program {theirs} into that folder and link {ours} "
                "into it, since Slurm takes one value and runs all that match."
            )
        else:
            notes.append(f"{what}: the include has {key}={value}.")
        return f"{key}={value}"

    text = LINE.sub(line, _include())
    for hook in ("Prolog", "Epilog"):
        number, theirs = site.get(hook.lower(), (0, ""))
        if "*" in theirs:
            notes.append(
                f"Link {settings()[hook]} into {Path(theirs).parent}: line {number} of slurm.conf runs {theirs}."
            )
    return Merged(text, tuple(notes))


def wrong(config: Mapping[str, str]) -> list[str]:
    """What is missing in a running Slurm, from `scontrol show config`; one sentence each.

    scontrol prints its own forms (`30 sec`, `(null)`), hence the first word.
    """
    running = {key.lower(): value.strip() for key, value in config.items()}
    sentences = []
    for key, ours in settings().items():
        theirs = running.get(key.lower(), "")
        theirs = "" if theirs == "(null)" else re.sub(r" sec$", "", theirs)
        theirs = re.sub(r"\[\d+\]$", "", theirs)  # several hooks are printed as a numbered list
        if key in ("Prolog", "Epilog"):
            if not theirs:
                sentences.append(f"{key} is not set; slurmk8s needs {key}={ours}.")
        elif key in RULES and RULES[key](theirs, ours) != theirs and not _same(theirs, ours):
            sentences.append(f"{key} is {theirs or 'not set'}; slurmk8s needs {key}={RULES[key](theirs, ours)}.")
    return sentences


def _same(theirs: str, ours: str) -> bool:
    """Whether two lists hold the same words, whatever their order and case."""
    return sorted(theirs.lower().split(",")) == sorted(ours.lower().split(","))


def _theirs(theirs: str, ours: str) -> str:
    """A matter of taste: the site's choice stays."""
    return theirs or ours


def _ours(_theirs: str, ours: str) -> str:
    return ours


def _at_least(theirs: str, ours: str) -> str:
    return theirs if theirs.isdecimal() and int(theirs) >= int(ours) else ours


def _finite(theirs: str, ours: str) -> str:
    """A time limit that exists; 0, 65534 and the like are Slurm's ways to say never."""
    return theirs if theirs.isdecimal() and 0 < int(theirs) < 65534 else ours


def _both(theirs: str, ours: str) -> str:
    """A list of words or `key=value`: all of both; where both give a key a value, the site's stays."""
    words = [word.strip() for word in theirs.split(",") if word.strip()]
    known = {word.partition("=")[0].lower() for word in words}
    missing = [word for word in ours.split(",") if word.partition("=")[0].lower() not in known]
    return ",".join(words + missing)


def _memory_counts(theirs: str, ours: str) -> str:
    """Any unit of CPUs will do if memory is counted with it."""
    return theirs if "_memory" in theirs.lower() else ours


def _alloc(theirs: str, ours: str) -> str:
    """Contain implies Alloc."""
    return theirs if "contain" in theirs.lower() else _both(theirs, ours)


def _hooks_folder(theirs: str, ours: str) -> str:
    """Slurm takes one value, but it may be a pattern: a folder for the site's hook and ours."""
    if "*" in theirs or Path(theirs).name == Path(ours).name:
        return theirs
    return f"/etc/slurm/{Path(ours).name.removeprefix('slurm_k8s_').removesuffix('.sh')}.d/*"


RULES: dict[str, Callable[[str, str], str]] = {
    "SelectType": _ours,
    "SelectTypeParameters": _memory_counts,
    "SchedulerParameters": _both,
    "JobSubmitPlugins": _both,
    "Prolog": _hooks_folder,
    "Epilog": _hooks_folder,
    "PrologFlags": _alloc,
    "PrologEpilogTimeout": _finite,
    "BatchStartTimeout": _at_least,
    "KillWait": _at_least,
    "MessageTimeout": _at_least,
    "MinJobAge": _at_least,
}
"""How a value of the site's and ours become one. A key that is not here is a matter of taste."""
