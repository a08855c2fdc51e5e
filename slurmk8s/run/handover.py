"""What is handed to the pod: the body's variables and its command line. Pure text building.

The environment of the body is not the submitter's: the image's PATH and libraries are right in the image. It gets
SLURM_*, what `--export` names, and what the site passes on.
"""

import fnmatch
import re
from collections.abc import Mapping, Sequence

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def environment(submitted: Mapping[str, str], slurm: Mapping[str, str], pass_through: Sequence[str]) -> dict[str, str]:
    """The body's variables. `slurm` are the batch script's own SLURM_*: srun changes them for its step."""
    named = exported_names(slurm.get("SLURM_EXPORT_ENV", "ALL"))
    chosen = {
        name: value
        for name, value in submitted.items()
        if name in named or any(fnmatch.fnmatchcase(name, pattern) for pattern in pass_through)
    }
    chosen = {name: value for name, value in chosen.items() if not name.startswith(NOT_THE_PERSONS)}
    chosen.update((name, value) for name, value in slurm.items() if name not in OUTSIDE_ONLY)
    return {
        name: value
        for name, value in chosen.items()
        if _NAME.match(name) and name not in SHELLS_OWN and "\0" not in value
    }


# Slurm's, ours, and in small letters the launcher's own.
NOT_THE_PERSONS = ("SLURM_", "SLURMK8S_", "slurmk8s_")
# These point at files and sockets of the host, which the pod does not have.
OUTSIDE_ONLY = frozenset({"SLURM_CONF", "SLURM_EXPORT_ENV"})
# A shell holds these itself: setting one in the launcher ends it (`UID` is read-only in bash, `OPTIND` a number in
# dash) or changes how it reads (`IFS`), and no shell hands on what it was given.
SHELLS_OWN = frozenset(
    """
    IFS OPTIND PPID LINENO _ UID EUID GROUPS SHLVL SHELLOPTS BASHOPTS BASHPID BASH_VERSINFO BASH_ALIASES
    BASH_ARGC BASH_ARGV BASH_CMDS BASH_COMMAND BASH_LINENO BASH_SOURCE BASH_SUBSHELL BASH_MONOSECONDS DIRSTACK
    FUNCNAME HISTCMD RANDOM SRANDOM SECONDS EPOCHSECONDS EPOCHREALTIME
    """.split()  # noqa: SIM905 - a list of words reads best as words
)


def exported_names(export: str) -> set[str]:
    """The variables that an `--export` value names: `ALL,LR=0.1` names LR. Commas may be quoted, as sbatch allows."""
    names = set()
    for part in re.findall(r"""(?:[^,'"]|'[^']*'|"[^"]*")+""", export):
        name = part.split("=", 1)[0].strip()
        if "=" in part or name not in ("ALL", "NONE", "NIL"):
            names.add(name)
    return names


def interpreter(first_line: str) -> list[str]:
    """Split what stands after `#!` as the kernel does: the program, and all the rest as one argument."""
    return [part for part in re.split(r"[ \t]+", first_line.strip(" \t"), maxsplit=1) if part]


def original_script(script: bytes, interpreter_line: str) -> bytes:
    """The script as the person wrote it: Lua put slurmk8s-run in front of the interpreter."""
    _, newline, rest = script.partition(b"\n")
    return b"#!" + interpreter_line.encode("utf-8", "surrogateescape") + newline + rest


def command_of_file(path: str, first_line: str | None) -> list[str] | str:
    """How `#K8S_SCRIPT` is run: `.py` by python3, `.sh` by bash, else by its first line; a sentence if it has none."""
    if path.endswith(".py"):
        return ["/usr/bin/env", "python3", path]
    if path.endswith(".sh"):
        return ["/bin/bash", path]
    if first_line is not None and first_line.startswith("#!") and interpreter(first_line[2:]):
        return [*interpreter(first_line[2:]), path]
    return f"#K8S_SCRIPT={path} ends neither in .py nor in .sh and has no #! line: add one that names its interpreter."


def command_file(variables: Mapping[str, str], umask: int, command: Sequence[str]) -> bytes:
    """The sh file that the launcher reads: umask, exports, then the command line as its positional parameters."""
    lines = [f"umask {umask:04o}"]
    lines += [f"export {name}={quoted(value)}" for name, value in sorted(variables.items())]
    lines.append("set -- " + " ".join(quoted(word) for word in command))
    return ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape")


def quoted(value: str) -> str:
    """One sh word, whatever it holds."""
    return "'" + value.replace("'", "'\\''") + "'"
