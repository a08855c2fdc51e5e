"""Hashing stands back behind the node's jobs, whatever the agent that started it is entitled to."""

import subprocess
import sys

SHOW = "import os; print(os.nice(0), open('/proc/self/oom_score_adj').read().strip())"
STEP_BACK = f"from slurmk8s.results.background import step_back; step_back(); {SHOW}"


def test_it_is_nicer_and_goes_first_when_memory_is_short() -> None:
    before, after = (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
        for code in (SHOW, STEP_BACK)
    )
    assert int(after[0]) == min(19, int(before[0]) + 10)
    assert after[1] == "500"
