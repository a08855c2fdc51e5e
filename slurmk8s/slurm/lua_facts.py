"""The table of the site's facts that `slurmk8s.lua` loads: what can be decided at submission without reading a file."""

from slurmk8s.config import Config
from slurmk8s.errors import SetupError

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
    ]
    return HEAD + "return {\n" + "".join(f"\t{line}\n" for line in lines) + "}\n"


def literal(text: str) -> str:
    """A Lua string; every byte outside plain ASCII as a decimal escape, which all Lua versions read."""
    plain = {ord(char) for char in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 -_./:@+,=#"}
    return '"' + "".join(chr(byte) if byte in plain else f"\\{byte:03d}" for byte in text.encode()) + '"'
