"""The body: programs that a container does not have, found without pretending to be a shell."""

import re

from slurmk8s.jobfile.finding import Finding, Spot, warning
from slurmk8s.jobfile.phrase import phrase

_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "ash"))

# Where a command may start: after these, and after assignments such as `A=1`.
_COMMAND = re.compile(
    r"(?:^|[;&|(`]|\$\(|\b(?:then|do|else|exec|time|nohup|command|if|while|until)\s)\s*(?:[A-Za-z_]\w*=[^\s;&|()`]*\s+)*"
    r"(srun|scontrol|mpirun|mpiexec|sbatch|squeue|scancel|sinfo|sacct|python[23]?)(?=[\s;&|)]|$)"
)
_HINT = re.compile(r"\b(?:srun|scontrol|mpirun|mpiexec|sbatch|squeue|scancel|sinfo|sacct|python[23]?)\b")

_ALWAYS = {
    "srun": "instead-of-srun",
    "scontrol": "instead-of-scontrol",
    **dict.fromkeys(("mpirun", "mpiexec"), "instead-of-mpirun"),
    "sbatch": "instead-of-sbatch",
    "scancel": "instead-of-scancel",
    **dict.fromkeys(("squeue", "sinfo", "sacct"), "instead-of-asking"),
}


def is_shell(interpreter: str) -> bool:
    """Whether a #! line names a shell, also through env."""
    words = interpreter.split()
    names = [word.rpartition("/")[2] for word in words]
    if names and names[0] == "env":
        names = [name for name in names[1:] if not name.startswith("-") and "=" not in name]
    return bool(names) and names[0] in _SHELLS


def has_commands(lines: list[str], first: int) -> bool:
    """Whether anything is left to run from the first command on."""
    return any(line.strip() and not line.lstrip().startswith("#") for line in lines[first - 1 :])


def runs_only(lines: list[str], first: int, script: str) -> bool:
    """Whether the body does nothing but run this very script, as the guide's job does."""
    commands = [line.strip() for line in lines[first - 1 :] if line.strip() and not line.lstrip().startswith("#")]
    words = commands[0].split() if len(commands) == 1 else []
    return words[-1:] == [script] and len(words) <= 2


def missing_programs(lines: list[str], first: int, lacks: frozenset[str]) -> list[Finding]:
    """A warning at the first call of each program that the container does not have."""
    text = "\n".join(lines[first - 1 :])
    if _HINT.search(text) is None:
        return []
    found: dict[str, Finding] = {}
    for number, line in enumerate(lines[first - 1 :], start=first):
        if line.lstrip().startswith("#") or len(line) > 10_000:
            continue
        for match in _COMMAND.finditer(line):
            name = match[1]
            if name in found or not (name in _ALWAYS or name in lacks):
                continue
            spot = Spot(number, match.start(1) + 1, len(name))
            if name in _ALWAYS:
                found[name] = warning(spot, "missing-program", name=name, fix=phrase(_ALWAYS[name]))
            else:
                has_python3 = name == "python" and "python3" not in lacks
                fix = phrase("write-python3" if has_python3 else "another-image")
                found[name] = warning(spot, "missing-program/image", name=name, fix=fix)
    return list(found.values())
