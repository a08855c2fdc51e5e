"""Our own program, put where the job's user can reach it.

`slurmk8s-run` runs as the job's user, and a clone often lies in a home that others cannot enter. So the virtual
environment we run from is copied into the cluster's folder, by hard links where it can be, which costs no space and no
time; a rebuilt environment does not disturb a cluster that is up.
"""

import contextlib
import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

import slurmk8s
from slurmk8s.errors import SetupError
from slurmk8s.local.layout import Layout


def install(layout: Layout, person: pwd.struct_passwd) -> Path:
    """Copy the environment, write `slurmk8s`, and see that the person can run it; the Python to use."""
    python = interpreter(layout)
    if sys.prefix not in (sys.base_prefix, str(layout.venv)):  # not the very copy that we run from
        shutil.rmtree(layout.venv, ignore_errors=True)
        shutil.copytree(sys.prefix, layout.venv, symlinks=True, copy_function=_link_or_copy)
        _package_from_elsewhere(layout)
    command = layout.bin / "slurmk8s"
    # A console script would name the environment it was copied from; -I keeps a person's PYTHON* variables out.
    command.write_text(f'#!/bin/sh\nexec {python} -I -m slurmk8s "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    _try(command, python, person)
    return python


def interpreter(layout: Layout) -> Path:
    """The Python that runs everything of the cluster's: the copy's, or the system's if we are installed there."""
    return layout.venv / "bin" / "python" if sys.prefix != sys.base_prefix else Path(sys.executable)


def package_folder(layout: Layout) -> Path:
    """The folder that `import slurmk8s` finds it in, in the cluster's copy."""
    own = Path(slurmk8s.__file__).parent.parent
    if own.is_relative_to(sys.prefix) and sys.prefix != sys.base_prefix:
        return layout.venv / own.relative_to(sys.prefix)
    return _site_packages(layout) if sys.prefix != sys.base_prefix else own


def _package_from_elsewhere(layout: Layout) -> None:
    """A package that is not in the environment itself (a checkout on PYTHONPATH) goes into the copy."""
    own = Path(slurmk8s.__file__).parent
    if not own.is_relative_to(sys.prefix):
        shutil.copytree(own, _site_packages(layout) / "slurmk8s", ignore=shutil.ignore_patterns("__pycache__"))


def _site_packages(layout: Layout) -> Path:
    return layout.venv / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"


def _link_or_copy(source: str, target: str) -> None:
    """Link what is root's; what a person may change must not be what root's daemons run."""
    if Path(source).lstat().st_uid == 0:
        with contextlib.suppress(OSError):  # another file system
            os.link(source, target, follow_symlinks=False)
            return
    shutil.copy2(source, target, follow_symlinks=False)


def _try(command: Path, python: Path, person: pwd.struct_passwd) -> None:
    """Run it as the person: the only check that misses nothing."""
    tried = subprocess.run(
        [command, "--version"],
        user=person.pw_uid,
        group=person.pw_gid,
        extra_groups=[],
        cwd="/",
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if tried.returncode:
        reason = (tried.stderr.strip().splitlines() or ["no message"])[-1]
        raise SetupError(
            f"{person.pw_name} cannot run {python} ({reason}), but jobs do: is the Python it links to "
            f"({python.resolve()}) in a folder that others cannot enter?",
            "Make the environment with the system's Python (`make venv PYTHON=/usr/bin/python3`) and try again.",
        )
