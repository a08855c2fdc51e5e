"""slurmk8s-run as Slurm's batch script: starts one step of itself on each node and copies the logs to Slurm's files.

The body's control runs in a step because plain `scancel -s` and `--signal` reach steps, not batch scripts. What does
reach the batch script, `scancel --batch` and `--signal=B:`, is meant for the body's shell alone.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from slurmk8s.rendezvous import Rendezvous, exists
from slurmk8s.run.follow import Follower

# srun reads its options from SLURM_* too; a person's --ntasks or --cpus-per-task is the body's matter, not our step's.
KEPT_FOR_SRUN = ("SLURM_CONF", "SLURM_JOB_ID", "SLURM_JOBID", "SLURM_JOB_NODELIST", "SLURM_NODELIST")
RELAYED = ("HUP", "INT", "QUIT", "USR1", "USR2", "ALRM", "TERM", "CONT", "TSTP")
FASTEST, SLOWEST = 0.02, 0.25
# A SIGTERM to the whole job reaches step and batch script at once; one to the batch script alone only us.
SECONDS_FOR_THE_STEP = 1.0


def main(run_folder: str, command: list[str]) -> int:
    """Run the step to its end; the job's exit code."""
    job_id = int(os.environ["SLURM_JOB_ID"])
    node = os.environ.get("SLURMD_NODENAME", "")
    meeting = Rendezvous.of(run_folder, node, job_id)
    stopped = threading.Event()
    for name in RELAYED:
        signal.signal(getattr(signal, f"SIG{name}"), lambda number, _: _relay(meeting, signal.Signals(number)))
    step = subprocess.Popen(
        _srun(run_folder, command), env=_environment(), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert step.stderr is not None
    messages = threading.Thread(target=_pass_messages, args=(step.stderr,), daemon=True)
    messages.start()
    logs = threading.Thread(target=_follow_logs, args=(meeting, stopped))
    logs.start()
    status = step.wait()
    messages.join()
    stopped.set()
    logs.join()
    return status if status >= 0 else 128 - status


def _srun(run_folder: str, command: list[str]) -> list[str]:
    srun = shutil.which("srun") or shutil.which("srun", path="/usr/bin:/usr/local/bin:/opt/slurm/bin")
    if srun is None:
        sys.exit("slurmk8s: there is no srun on this node: install Slurm's client commands.")
    nodes = os.environ.get("SLURM_JOB_NUM_NODES", "1")
    options = [f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1", "--overlap", "--export=ALL"]
    options += ["--mem=0", "--gres=none", "--mpi=none", "--input=none", "--kill-on-bad-exit=0", "--quiet"]
    # Started from the root folder: the submitter's folder need not exist on this node, and only the pod uses it.
    here = [sys.executable, "-I", "-m", "slurmk8s.run", run_folder, "--step"]
    return [srun, *options, "--chdir=/", *here, *command]


def _environment() -> dict[str, str]:
    """For srun: the job's variables, with the batch script's SLURM_* kept apart from those srun makes for the step."""
    slurm = {name: value for name, value in os.environ.items() if name.startswith(("SLURM_", "SLURMD_"))}
    rest = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "SLURMD_", "SRUN_"))}
    rest |= {name: slurm[name] for name in KEPT_FOR_SRUN if name in slurm}
    rest["SLURMK8S_BATCH"] = json.dumps(slurm)
    return rest


def _relay(meeting: Rendezvous, number: signal.Signals) -> None:
    name = number.name.removeprefix("SIG")
    if number in (signal.SIGCONT, signal.SIGTSTP):
        return  # a suspended or resumed job: the step passes that on to everyone
    if number is signal.SIGTERM:
        timer = threading.Timer(SECONDS_FOR_THE_STEP, _terminate_shell, (meeting,))
        timer.daemon = True
        timer.start()
        return
    meeting.send_signal("shell", name)


def _terminate_shell(meeting: Rendezvous) -> None:
    if not exists(meeting.terminated):
        meeting.send_signal("shell", "TERM")


def _pass_messages(lines: "subprocess.IO[bytes]") -> None:  # type: ignore[name-defined]
    """Show what the step says, but not srun's news that a task ended with an exit code: plain jobs lack it."""
    for line in lines:
        if not (line.startswith(b"srun: error:") and b"xited with exit code" in line):
            os.write(2, line)


def _follow_logs(meeting: Rendezvous, stopped: threading.Event) -> None:
    pause = FASTEST
    followers: list[Follower] = []
    while True:
        last_round = stopped.is_set()
        if not followers and (plan := meeting.read_plan()):
            followers = [Follower(Path(plan["stdout"]), 1), Follower(Path(plan["stderr"]), 2)]
        try:
            moved = sum(follower.pump() for follower in followers) > 0  # both of them, not only until one has news
        except OSError:  # the NAS stumbles; what is there stays there
            moved = False
        if last_round:
            return
        pause = FASTEST if moved else min(SLOWEST, pause * 1.5)
        if not moved:
            stopped.wait(pause)
        else:
            time.sleep(0)
