"""That Slurm gives jobs what `slurmk8s cluster books` takes it to give. Needs: Slurm, munge, root."""

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from slurmk8s.ops import books
from slurmk8s.ops.books import Amounts, Books
from slurmk8s.slurm import nodes

pytestmark = pytest.mark.slurm

SLEEP = b"#!/bin/bash\nexec sleep 300\n"
# What Kubernetes would have for jobs on these nodes: 8 CPUs of 4 cores, less what other pods ask for.
FREE = Amounts(millicores=7300, memory=6500 * 2**20, gpus=2)
COUNTED = Books(FREE, Amounts(), Amounts())
BEFORE = "CPUs=4 RealMemory=8000"
SHAPE = "Sockets=1 CoresPerSocket=4 ThreadsPerCore=2"


@pytest.fixture(scope="module")
def agreeing(running_slurm: Any) -> Iterator[Any]:
    """A second cluster whose nodes have the line that the books print; node2 with a MemSpecLimit besides."""
    kind = type(running_slurm)

    class Agreeing(kind):  # type: ignore[misc,valid-type]
        def slurm_conf(self) -> str:
            text: str = kind.slurm_conf(self)
            before = nodes.parse(f"NodeName=n CPUTot=8 {SHAPE} RealMemory=8000 Gres=gpu:tesla:2 State=IDLE")["n"]
            for each in (before, replace(before, memory_reserved_mb=300)):
                line = books.conf_line(each, COUNTED, count_gpus=True).removeprefix("NodeName=n ")
                text = text.replace(BEFORE, f"{SHAPE} {line}", 1)
            return text

    folder = Path(tempfile.mkdtemp(prefix="slurmk8s-books-", dir="/tmp"))
    folder.chmod(0o755)
    slurm = Agreeing(folder)
    try:
        slurm.write()
        slurm.start_all()
        yield slurm
    finally:
        slurm.stop_all()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("node", ["node1", "node2"])
def test_a_job_that_gets_the_whole_node_gets_no_more_than_kubernetes_has(agreeing: Any, node: str) -> None:
    """Exclusive, with `--mem=0` and all GPUs: what the agent reads and puts into the pod."""
    known = nodes.nodes(agreeing.commands.programs)[node]
    assert (known.cpus, known.cpus_for_jobs, known.core_spec) == (8, 6, 1)  # a core has two CPUs
    assert (known.memory_for_jobs_mb, known.gpus) == (6500, 2)
    options = ["--exclusive", "--mem=0", "--gres=gpu:2", f"--nodelist={node}", "--output=/dev/null"]
    job_id = agreeing.commands.submit(SLEEP, options, None)
    agreeing.until_state(job_id, "RUNNING")
    job = agreeing.commands.job(job_id)
    assert job.cpus[node] * 1000 <= FREE.millicores
    assert job.cpus[node] == 6
    assert job.memory_mb[node] == 6500
    assert job.gpus[node] == (0, 1)
    used = nodes.nodes(agreeing.commands.programs)[node]
    assert (used.cpus_free, used.memory_free_mb, used.gpus_free) == (0, 0, 0)
    agreeing.cancel_all()


def test_many_small_jobs_get_no_more_either(agreeing: Any) -> None:
    jobs = [
        agreeing.commands.submit(SLEEP, ["--ntasks=1", "--mem=100", "--nodelist=node1", "--output=/dev/null"], None)
        for _ in range(9)
    ]
    running = lambda: [each for each in jobs if agreeing.state(each) == "RUNNING"]  # noqa: E731 - asked twice
    agreeing.until(
        lambda: sum(agreeing.commands.job(each).cpus["node1"] for each in running()) == 6, "the node is full"
    )
    assert nodes.nodes(agreeing.commands.programs)["node1"].cpus_used == 6
    agreeing.cancel_all()
