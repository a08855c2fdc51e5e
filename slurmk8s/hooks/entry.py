"""Writes the sh entry points that Slurm calls, with this installation's own paths in place of the packaged defaults."""

import re
from pathlib import Path

PROLOG = "slurm_k8s_prolog.sh"
EPILOG = "slurm_k8s_epilog.sh"
RUN = "slurmk8s-run"


def write(
    folder: Path, *, templates: Path, python: Path, package: Path, run_folder: str, state_folder: str, log_folder: str
) -> None:
    """Write prolog, epilog and slurmk8s-run into a folder. `%n` in a folder's name is resolved when a hook runs."""
    values = {
        "python": str(python),
        "hooks": str(package / "hooks"),
        "run_folder": run_folder,
        "state_folder": state_folder,
        "log_folder": log_folder,
    }
    for name in (PROLOG, EPILOG):
        text = (templates / name).read_text(encoding="utf-8")
        for key, value in values.items():
            line = f"{key}={_quoted(value)}"
            text = re.sub(rf"(?m)^{key}=.*$", line.replace("\\", r"\\"), text)
        _executable(folder / name, text)
    _executable(
        folder / RUN,
        f'#!/bin/sh\nexec {_quoted(str(python))} -I -m slurmk8s.run {_quoted(run_folder)} "$@"\n',
    )


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "'\\''") + "'"


def _executable(path: Path, text: str) -> None:
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.chmod(0o755)
    temporary.rename(path)
