"""The Epilog for our jobs: return when the agent has confirmed that the pod is gone, else fail and say why.

Run as a single file by `python -I -S`: standard library only, nothing of ours imported. It may run twice and without a
Prolog before it; finishing what is finished is success.
"""

import json
import os
import socket
import sys
import time

# Below PrologEpilogTimeout, so that the reason in the log is ours and not slurmd's.
SECONDS_FOR_THE_AGENT = 240
SECONDS_BETWEEN_TRIES = 0.25


def main(run_folder: str, state_folder: str, log_folder: str) -> int:
    """Ask until the agent says done, or the time is over; the exit status for slurmd."""
    node = os.environ.get("SLURMD_NODENAME", "")
    job_id = int(os.environ["SLURM_JOB_ID"])
    path = os.path.join(run_folder.replace("%n", node), "agent.sock")
    state_folder = state_folder.replace("%n", node)
    deadline = time.monotonic() + SECONDS_FOR_THE_AGENT
    problem = ""
    while (left := deadline - time.monotonic()) > 0:
        try:
            reply = ask(path, {"ask": "finish", "job_id": job_id}, left)
        except (OSError, ValueError) as error:
            problem = f"the agent does not answer ({error})"
            if not os.path.exists(os.path.join(state_folder, "jobs", f"{job_id}.json")):
                # The agent records a job before it makes a pod; with no record there is no pod to wait for. The hint of
                # the Prolog stays, so that the agent, when it is back, finds that it owes a bundle.
                log(log_folder, node, f"job {job_id}: {problem}, and it made no pod: done")
                return 0
            time.sleep(SECONDS_BETWEEN_TRIES)  # an agent that restarts is back within a second or two
            continue
        if reply.get("done"):
            log(log_folder, node, f"job {job_id}: pod gone")
            return 0
        problem = str(reply.get("sentence", "the agent could not confirm that the pod is gone"))
        time.sleep(SECONDS_BETWEEN_TRIES)
    log(log_folder, node, f"job {job_id}: FAILED, the node will be drained: {problem}")
    print(f"slurmk8s epilog: job {job_id}: {problem}", file=sys.stderr)
    return 1


def ask(path: str, question: dict[str, object], seconds: float) -> dict[str, object]:
    """One question, one answer; ValueError when the connection ends without one."""
    with socket.socket(socket.AF_UNIX) as agent:
        agent.settimeout(seconds)
        agent.connect(path)
        agent.sendall(json.dumps(question).encode() + b"\n")
        with agent.makefile("rb") as answers:
            reply = json.loads(answers.readline())
    if not isinstance(reply, dict):
        raise ValueError("no answer")
    return reply


def log(folder: str, node: str, line: str) -> None:
    """Add a line to epilog_<node>.log; a full disk must not matter here."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S")
    try:
        with open(os.path.join(folder, f"epilog_{node}.log"), "a", encoding="utf-8") as file:
            file.write(f"{stamp} {line}\n")
    except OSError as error:
        print(f"slurmk8s epilog: {line} (no log: {error})", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
