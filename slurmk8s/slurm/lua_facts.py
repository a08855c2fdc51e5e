"""The table of the site's facts that `slurmk8s.lua` loads: what can be decided at submission without reading a file."""

import pwd

from slurmk8s.config import Config
from slurmk8s.errors import SetupError
from slurmk8s.jobfile.facts import Limits
from slurmk8s.kube.quotas import limits_of

HEAD = "-- Written by `slurmk8s slurm-conf lua`; change slurmk8s's configuration instead, and write it again.\n"


def render(config: Config, run_program: str) -> str:
    """The text of slurmk8s_facts.lua. `run_program` is the path of slurmk8s-run on the compute nodes."""
    if not run_program.startswith("/") or any(char.isspace() for char in run_program):
        raise SetupError(
            f"{run_program!r} cannot stand in a #! line.", "Install slurmk8s-run under a full path without spaces."
        )
    images = {name: partition.image for name, partition in config.partitions.items() if partition.image}
    lines = [
        f"run = {literal(run_program)},",
        f"registry = {literal(config.images.registry)},",
        f"allowed = {{ {', '.join(map(literal, config.images.allowed))} }},",
        "images = {",
        *(f"\t[{literal(name)}] = {literal(image)}," for name, image in sorted(images.items())),
        "},",
        f"limits = {_limits(limits_of(config))},",
        "other_limits = {",
        *(f"\t{line}" for line in _other_limits(config)),
        "},",
    ]
    return HEAD + "return {\n" + "".join(f"\t{line}\n" for line in lines) + "}\n"


def _limits(limits: Limits) -> str:
    """A quota as a Lua table; what has no limit is left out."""
    known = {"cpus": limits.cpus, "memory_mb": limits.memory_mb, "gpus": limits.gpus}
    return f"{{ {', '.join(f'{name} = {most}' for name, most in known.items() if most is not None)} }}"


def _other_limits(config: Config) -> list[str]:
    """By uid, as slurmctld knows people: to look a name up there would be I/O under its locks."""
    lines = []
    for name in sorted(config.kubernetes.quotas):
        try:
            uid = pwd.getpwnam(name).pw_uid
        except KeyError:
            lines.append(f"-- {literal(name)} has a quota but no account on this machine")
            continue
        lines.append(f"[{uid}] = {_limits(limits_of(config, name))}, -- {literal(name)}")
    return lines


def literal(text: str) -> str:
    """A Lua string; every byte outside plain ASCII as a decimal escape, which all Lua versions read."""
    plain = {ord(char) for char in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 -_./:@+,=#"}
    return '"' + "".join(chr(byte) if byte in plain else f"\\{byte:03d}" for byte in text.encode()) + '"'
