"""Whether slurmdbd can be told what jobs have used. Needs nothing: a program in scontrol's place."""

from pathlib import Path

import pytest

from slurmk8s.config import Slurm
from slurmk8s.slurm.commands import SlurmCommands

CONFIG = """\
Configuration data as of 2026-11-18T01:00:00
AccountingStorageType   = accounting_storage/{kind}
SLURM_VERSION           = {version}
"""


@pytest.mark.parametrize(
    ("kind", "version", "takes"),
    [
        ("slurmdbd", "23.02.0", True),
        ("slurmdbd", "25.11.2", True),
        ("slurmdbd", "22.05.8", False),  # it would write base64 in small letters
        ("none", "25.11.2", False),
        ("slurmdbd", "unknown", False),
    ],
)
def test_only_a_slurmdbd_that_keeps_a_comment_as_it_is(tmp_path: Path, kind: str, version: str, takes: bool) -> None:
    scontrol = tmp_path / "scontrol"
    scontrol.write_text(f"#!/bin/sh\ncat <<'END'\n{CONFIG.format(kind=kind, version=version)}END\n")
    scontrol.chmod(0o755)
    assert SlurmCommands(Slurm(bin_folder=tmp_path)).takes_usage() is takes
