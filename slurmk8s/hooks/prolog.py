"""The Prolog for our jobs: leave a hint on disk, nudge the node's agent, and be gone.

Run as a single file by `python -I -S`: standard library only, nothing of ours imported. It never waits, never calls
Slurm and always exits 0.
"""

import _socket  # not `socket`: it and json take longer than all the rest together
import os
import sys
import time

# connect(2) on a unix socket blocks only while the agent's backlog is full; slurmk8s-run asks again anyway.
SECONDS_FOR_THE_AGENT = 0.5


def main(run_folder: str, state_folder: str, log_folder: str) -> None:
    """Write `hints/<job>` so that the Epilog knows the job is ours, then tell the agent."""
    node = os.environ.get("SLURMD_NODENAME", "")
    job_id = int(os.environ["SLURM_JOB_ID"])
    try:
        folder = os.path.join(state_folder.replace("%n", node), "hints")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        os.close(os.open(os.path.join(folder, str(job_id)), os.O_WRONLY | os.O_CREAT, 0o600))
        agent = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)  # closed by our end
        agent.settimeout(SECONDS_FOR_THE_AGENT)
        agent.connect(os.path.join(run_folder.replace("%n", node), "agent.sock"))
        agent.sendall(b'{"ask": "hint", "job_id": %d}\n' % job_id)
        note = "hint given to the agent"
    except OSError as error:
        note = f"the agent got no hint ({error}); slurmk8s-run will ask it"
    log(log_folder, node, f"job {job_id}: {note}")


def log(folder: str, node: str, line: str) -> None:
    """Add a line to prolog_<node>.log; a full disk must not matter here."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S")
    try:
        with open(os.path.join(folder, f"prolog_{node}.log"), "a", encoding="utf-8") as file:
            file.write(f"{stamp} {line}\n")
    except OSError as error:
        print(f"slurmk8s prolog: {line} (no log: {error})", file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:4])
