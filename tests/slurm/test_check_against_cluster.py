"""`slurmk8s check` where Slurm answers: what the cluster does not have is told with the file's own line."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slurm

JOB = """#!/bin/sh
#SBATCH --partition=nowhere
#SBATCH --cpus-per-task=999
#K8S_IMAGE=alpine
true
"""


def found(cluster: Any, text: str) -> list[tuple[str, int]]:
    done = subprocess.run(
        [sys.executable, "-m", "slurmk8s", "check", "--json", "-"],
        input=text.encode(),
        env=cluster.environment,
        cwd=Path(__file__).parents[2],
        capture_output=True,
        check=False,
    )
    assert done.stderr == b""
    (verdict,) = json.loads(done.stdout)
    assert done.returncode == (0 if verdict["ok"] else 1)
    return [(finding["code"], finding["line"]) for finding in verdict["findings"]]


def test_an_unknown_partition_and_too_many_cpus(cluster: Any) -> None:
    assert found(cluster, JOB) == [("unknown-partition", 2)]
    assert found(cluster, JOB.replace("#SBATCH --partition=nowhere\n", "")) == [("too-many-cpus", 2)]


def test_what_fits_is_clean(cluster: Any) -> None:
    assert found(cluster, "#!/bin/sh\n#SBATCH -c 1 --mem=100M --time=1 --gres=gpu:1\n#K8S_IMAGE=alpine\ntrue\n") == []
