"""What the Prolog costs: for a plain job and for one of ours, against an empty Prolog (`#!/bin/sh`, `exit 0`).

Each is started as slurmd starts it, by fork and exec with an environment of its own; the three take turns.
"""

import os
import socket
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

from slurmk8s.hooks import entry
from slurmk8s.slurm import conf

ROUNDS = 60


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="slurmk8s-bench-") as name:
        folder = Path(name)
        package = Path(sysconfig.get_paths()["purelib"]) / "slurmk8s"
        entry.write(
            folder,
            templates=conf.files(),
            python=Path(sys.executable),
            package=package,
            run_folder=name,
            state_folder=name,
            log_folder=name,
        )
        empty = folder / "empty.sh"
        empty.write_text("#!/bin/sh\nexit 0\n")
        empty.chmod(0o755)
        agent = socket.socket(socket.AF_UNIX)  # stands in for the agent: the Prolog only hands over a line
        agent.bind(str(folder / "agent.sock"))
        agent.listen(4 * ROUNDS)
        ours = folder / entry.PROLOG
        ways = {"empty": (empty, ""), "plain job": (ours, "a person's words"), "our job": (ours, "words slurmk8s")}
        taken: dict[str, list[float]] = {way: [] for way in ways}
        for number in range(ROUNDS):
            for way, (program, comment) in ways.items():
                environment = {"SLURM_JOB_ID": str(number), "SLURM_JOB_COMMENT": comment, "SLURMD_NODENAME": "node1"}
                before = time.perf_counter()
                subprocess.run([program], env=environment, check=True)
                taken[way].append(time.perf_counter() - before)
        agent.close()
        assert len(os.listdir(folder / "hints")) == ROUNDS
        base = statistics.median(taken["empty"])
        for way, values in taken.items():
            middle = statistics.median(values)
            more = (middle - base) * 1000
            print(f"{way:10} p50 {middle * 1000:6.1f} ms   {middle / base:5.1f} x empty   ({more:+.1f} ms)")


if __name__ == "__main__":
    main()
