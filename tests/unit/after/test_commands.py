"""The site's own programs get the summary and no more; and jobs are counted."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slurmk8s.after.figures import Figures
from slurmk8s.metrics import Metrics

Make = Callable[..., Any]


@pytest.mark.parametrize(("run_as", "uid"), [("service", 65534), ("person", 54321)])
def test_a_program_gets_the_summary_and_nothing_else(
    bench: Make, job_item: Make, nas: Path, run_as: str, uid: int
) -> None:
    drop = nas / "drop"
    drop.mkdir()
    drop.chmod(0o777)
    script = f'id -u >{drop}/who; id -G >>{drop}/who; env >{drop}/env; cat >{drop}/summary; echo "$1" >{drop}/argument'
    script += f"; cat /proc/self/oom_score_adj >{drop}/oom"
    made = bench(commands={"book": {"run": ["/bin/sh", "-c", script, "sh", "a; rm -rf $HOME"], "run_as": run_as}})
    made.hand_over(job_item(name="täst"))
    made.run(made.is_idle)
    assert (drop / "who").read_text().splitlines()[0] == str(uid)
    assert "0" not in (drop / "who").read_text().splitlines()[1].split()
    assert json.loads((drop / "summary").read_text())["name"] == "täst"
    assert (drop / "oom").read_text() == "500\n"
    assert (drop / "argument").read_text() == "a; rm -rf $HOME\n"
    names = {line.partition("=")[0] for line in (drop / "env").read_text().splitlines()}
    assert names <= {"PATH", "LANG", "USER", "LOGNAME", "HOME", "PWD", "SHLVL", "_"}


def test_a_program_that_fails_hangs_or_eats_memory_is_given_up(bench: Make, job_item: Make, nas: Path) -> None:
    pids = nas / "pids"
    pids.touch()
    pids.chmod(0o666)
    hang = f"echo $$ >>{pids}; sleep 1000 & echo $! >>{pids}; sleep 1000"
    eat = "x = []\nwhile True: x.append(bytearray(1 << 20))"
    made = bench(
        commands={
            "fails": {"run": ["/bin/sh", "-c", "echo no such book >&2; exit 3"], "attempts": 3},
            "hangs": {"run": ["/bin/sh", "-c", hang], "attempts": 1, "timeout_seconds": 0.5},
            "eats": {"run": ["/usr/bin/python3", "-c", eat], "attempts": 1, "memory_mb": 64, "timeout_seconds": 30},
            "floods": {"run": ["/bin/sh", "-c", "yes | head -c 20000000; exit 1"], "attempts": 1},
            "missing": {"run": ["/no/such/program"], "attempts": 1},
            "good": {"run": ["/bin/true"]},
        }
    )
    made.hand_over(job_item())
    made.run(made.is_idle)
    lost = {item.action: item for item in made.spool.given_up()}
    assert set(lost) == {f"command.{name}" for name in ("fails", "hangs", "eats", "floods", "missing")}
    assert lost["command.fails"].tries == 3
    assert "status 3: no such book" in lost["command.fails"].problem
    assert "longer than 0.5 s" in lost["command.hangs"].problem
    assert "MemoryError" in lost["command.eats"].problem
    assert len(lost["command.floods"].problem) < 3000
    assert made.figures()["slurmk8s_after_actions_total command.good done"] == 1
    for pid in pids.read_text().split():
        assert not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text().split(")")[1]


def test_what_was_taken_out_of_the_configuration_is_left_out(bench: Make, job_item: Make) -> None:
    made = bench(commands={"old": {"run": ["/bin/false"]}})
    made.hand_over(job_item())
    made.run(made.spool.names)
    new = bench(commands={"new": {"run": ["/bin/true"]}})
    new.run(new.is_idle)
    assert new.spool.given_up() == []


def test_after_too_long_a_target_is_given_up(bench: Make, job_item: Make, nas: Path) -> None:
    made = bench(chats={"lab": {"url_file": str(nas / "missing")}}, give_up_hours=0.0001)
    made.hand_over(job_item())
    made.run(made.is_idle)
    assert ["missing cannot be read" in item.problem for item in made.spool.given_up()] == [True]


def test_jobs_are_counted_with_their_gpu_time(bench: Make, job_item: Make) -> None:
    made = bench()
    made.metrics = Metrics("agent")
    figures = Figures(made.metrics, users=True)
    figures.ended(job_item().summary)
    figures.ended(job_item(8, state="failed", fault="person", complete=False, durations=None, outputs=None).summary)
    told = made.figures()
    assert told["slurmk8s_jobs_total none gpu completed alice"] == 1
    assert told["slurmk8s_jobs_total person gpu failed alice"] == 1
    assert told["slurmk8s_job_gpu_seconds_total gpu alice"] == 7200
    assert told["slurmk8s_job_cpu_seconds_total gpu alice"] == 14400
    assert told["slurmk8s_job_queue_seconds_sum gpu"] == 12
    assert told["slurmk8s_bundles_incomplete_total"] == 1
