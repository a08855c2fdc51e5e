"""How a job ended and why, in one sentence: from what Slurm, the launcher and the runtime say. Pure."""

import signal
from dataclasses import dataclass

from slurmk8s.agent.record import Record
from slurmk8s.slurm.client import Job

# Slurm's base states that say more than an exit code does.
_BY_SLURM = {
    "CANCELLED": ("cancelled", "none", "Cancelled before it had ended (scancel)."),
    "TIMEOUT": ("timeout", "person", "Stopped at its time limit{limit}: ask for more with #SBATCH --time."),
    "DEADLINE": ("timeout", "person", "Stopped at its deadline (#SBATCH --deadline)."),
    "NODE_FAIL": ("node_fail", "node", "The node failed while the job ran."),
    "PREEMPTED": ("preempted", "none", "Pre-empted by a job of higher priority."),
}
# The batch script was never started: slurmstepd could not open --output or --error.
_NO_OUTPUT_FILE = "0:53"
_BY_HEAD = "the head node wrote this from what Slurm knows"
_WAITING = ("PENDING", "REQUEUED", "CONFIGURING", "REQUEUE_HOLD", "SPECIAL_EXIT")


@dataclass(frozen=True)
class Ending:
    """What the summary says about the end."""

    state: str
    exit_code: int | None
    signal: str | None
    cause: str
    fault: str


def of(record: Record, job: Job | None) -> Ending:
    """The end of an attempt; `job` is what Slurm says of it, None where it no longer knows it."""
    code = record.exit_code
    if record.state is not None:
        return Ending(record.state, code, signal_name(code), record.failure or "", record.fault)
    slurm_state, restarts = (job.state, job.restarts) if job else (None, None)
    # `0:9`: the batch script itself died of a signal, and Slurm then ended the rest.
    run_killed = record.cut_short or (job is not None and slurm_state == "FAILED" and not job.exit_code.endswith(":0"))
    name = signal_name(code)
    again = slurm_state is not None and (
        (restarts is not None and restarts > record.attempt) or slurm_state in _WAITING
    )
    if job is not None and job.exit_code == _NO_OUTPUT_FILE and not again:
        cause = f"Slurm could not open the job's output file {job.stdout}: name one that {record.user} can write."
        return Ending("failed", code, None, cause, "person")
    if record.failure and not again:
        return Ending("failed", code, None, record.failure, record.fault)
    if again:
        why, fault = _why_again(record, job)
        return Ending("requeued", code, name, f"{why} The next attempt follows.", fault)
    if record.out_of_memory and code == 128 + signal.SIGKILL:
        cause = out_of_memory(record.memory_mb, record.peak_bytes)
        return Ending("out_of_memory", code, name, cause, "person")
    if slurm_state in _BY_SLURM:
        state, fault, cause = _BY_SLURM[slurm_state]
        return Ending(state, code, name, cause.format(limit=f" of {record.time_limit}"), fault)
    if record.problem:
        return Ending("failed", code, name, record.problem, "person")
    if code == 0 and record.reported and not run_killed:
        return Ending("completed", 0, None, "Completed: the body ended with exit code 0.", "none")
    if run_killed:
        cause = "Slurm ended the job while its body still ran: slurmk8s-run was killed on the node."
        return Ending("failed", code, name, cause, "node")
    if not record.reported:
        cause = "The container ended without a word from its launcher: it was killed from outside."
        return Ending("failed", code, name, cause, "node")
    meaning = f" (128 + {(code or 0) - 128}: {name})" if name else ""
    return Ending("failed", code, name, f"The body ended with exit code {code}{meaning}.", "person")


def _why_again(record: Record, job: Job | None) -> tuple[str, str]:
    """Why Slurm starts the job once more, and whose fault that is."""
    if record.failure:
        return record.failure, record.fault
    if job is not None and job.preempted is not None and job.preempted >= (record.started or 0):
        return _BY_SLURM["PREEMPTED"][2], "none"
    # A body that had begun, or a container that is dead, and nobody had told it to end.
    begun = record.body_started is not None or (record.running and not record.cut_short)
    if begun and not (record.reported or record.told_to_end):
        return _BY_SLURM["NODE_FAIL"][2], "node"
    return "Put back into the queue (requeue).", record.fault


def of_lost(record: Record, slurm_state: str, slurm_code: str, lost: str, pod: str = "") -> Ending:
    """The end of an attempt whose node was lost, from Slurm's last words of it; `lost` says what became of the node.

    `pod` is what Kubernetes last said of the pod, where it was asked.
    """
    tail = f"{lost}; {_BY_HEAD}."
    if slurm_state == "REQUEUED":
        cause = f"{lost}, so Slurm put the job back into the queue; {_BY_HEAD}. The next attempt follows."
        return Ending("requeued", None, None, cause, "node")
    if slurm_state in _BY_SLURM and slurm_state != "NODE_FAIL":
        state, fault, cause = _BY_SLURM[slurm_state]
        return Ending(state, None, None, f"{cause.format(limit=f' of {record.time_limit}')} {tail}", fault)
    code, _, killed = slurm_code.partition(":")
    if slurm_state in ("COMPLETED", "FAILED") and killed == "0":
        ended = f"body ended with exit code {code}, by what Slurm says. {tail}"
        if code == "0":
            return Ending("completed", 0, None, f"Completed: the {ended}", "none")
        return Ending("failed", int(code), signal_name(int(code)), f"The {ended}", "person")
    seen = f" (Kubernetes last said: {pod})" if pod else ""
    return Ending("node_fail", None, None, f"{lost}, so how the body ended is not known{seen}; {_BY_HEAD}.", "node")


def out_of_memory(limit_mb: int, peak_bytes: int | None) -> str:
    """The sentence for a job that the kernel killed at its memory limit."""
    peak = f" (peak {peak_bytes >> 20} MiB)" if peak_bytes else ""
    return f"Out of memory: it was killed at its limit of {limit_mb} MiB{peak}; ask for more with #SBATCH --mem."


def signal_name(code: int | None) -> str | None:
    """The signal behind an exit code of 128 + n, as shells report it."""
    if code is None or code <= 128:
        return None
    try:
        return signal.Signals(code - 128).name
    except ValueError:
        return None
