"""Why a job is where it is: one sentence, the next step, and the evidence for both. Pure."""

import signal
from collections import Counter
from dataclasses import dataclass

from slurmk8s.ops import reasons, stage
from slurmk8s.ops.evidence import Evidence, Results
from slurmk8s.ops.waiting import Waiting, freest, ordinal, requeue_reason
from slurmk8s.results.summary import Summary
from slurmk8s.results.summary_text import duration, printable, when
from slurmk8s.slurm.client import Job
from slurmk8s.slurm.nodes import Node
from slurmk8s.slurm.queue import Seen, in_line
from slurmk8s.slurm.records import FINISHED

NODES_SHOWN = 5
# slurmstepd's status when it cannot open --output or --error.
NO_OUTPUT_FILE = "0:53"


@dataclass(frozen=True)
class Answer:
    """What `slurmk8s why` says."""

    job: str
    state: str
    """pending, running, ended or unknown."""
    sentence: str
    step: str
    evidence: tuple[str, ...]

    @property
    def known(self) -> bool:
        """Whether there is such a job, as far as can be found out."""
        return self.state != "unknown"

    def to_json(self) -> dict[str, object]:
        """For programs."""
        return {
            "job": self.job,
            "state": self.state,
            "sentence": self.sentence,
            "next": self.step,
            "evidence": list(self.evidence),
        }


def explain(found: Evidence) -> Answer:
    """The answer, from what was found."""
    seen = found.seen
    if seen is None:
        return _without_slurm(found)
    if seen.waits:
        return _waiting(found, seen)
    if seen.job.completing or seen.job.state not in FINISHED:
        return _on_its_nodes(found, seen)
    return _ended(found, seen)


def _waiting(found: Evidence, seen: Seen) -> Answer:
    told = reasons.told(Waiting(seen, found.place, found.nodes, found.now))
    sentence = f"{_name(seen)} waits because {told.clause}."
    if seen.job.restarts and found.results.earlier is not None:
        before = printable(found.results.earlier.cause).removesuffix(" The next attempt follows.")
        sentence += f" Its {ordinal(seen.job.restarts)} attempt ended: {before}"
    reason = f"Slurm: JobState={seen.job.state} Reason={printable(seen.job.reason or 'None')} Priority={seen.priority}"
    lines = [f"{reason} Partition={printable(seen.job.partition)}"]
    if why := requeue_reason(seen):
        lines.append(f"comment: requeued: {printable(why)}")
    if found.nodes and in_line(seen.job.reason):
        lines.append(f"partition {printable(seen.job.partition)}: {freest(list(found.nodes.values()))}")
        closed = [node for node in found.nodes.values() if not node.takes_jobs]
        lines += [_node_line(node) for node in closed[:NODES_SHOWN]]
    return Answer(found.asked, "pending", sentence, told.step, (*lines, *_common(found)))


def _on_its_nodes(found: Evidence, seen: Seen) -> Answer:
    job = seen.job
    where = printable(", ".join(job.nodes)) or "no node"
    silent = [node for node in found.nodes.values() if not node.responds]
    reached = stage.furthest([each for each in found.stages if each.words])
    step = reached.step if reached else ""
    for_ = f" for {duration(max(0.0, found.now - job.started))}" if job.started else ""
    if job.completing:
        end = "" if job.state == "COMPLETING" else f" ({job.state})"
        sentence = f"{_name(seen)} has ended{end} and is being cleaned up on {where}; how it ended is told then."
    elif job.state == "RUNNING":
        runs = "has been" if seen.stamped else "has been running"
        sentence = f"{_name(seen)} {runs} on {where}{for_}{_so_far(seen, reached)}.{_left(seen, found.now)}"
    else:
        states = {
            "CONFIGURING": f"has got {where}, which is being made ready (booted, or in its Prolog)",
            "SUSPENDED": f"is suspended on {where}: an administrator or a job of higher priority stopped it",
            "STOPPED": f"is stopped on {where} by a signal; `scancel -s CONT {seen.name}` lets it go on",
        }
        sentence = f"{_name(seen)} {states.get(job.state, f'is {job.state} on {where}')}."
    if silent:
        names = ", ".join(node.name for node in silent)
        sentence = (
            f"{_name(seen)} is on {where}, but {names} does not answer Slurm: whether it still runs is not known."
        )
        step = "Ask your administrator; if the node stays silent, Slurm ends or requeues the job after SlurmdTimeout."
    lines = [
        f"Slurm: JobState={'COMPLETING' if job.completing else job.state} NodeList={where} Restarts={job.restarts}"
    ]
    lines += [_node_line(node) for node in list(found.nodes.values())[:NODES_SHOWN]]
    lines += [line for each in found.stages for line in each.evidence]
    return Answer(found.asked, "running", sentence, step, (*lines, *_common(found)))


def _so_far(seen: Seen, reached: stage.Stage | None) -> str:
    if reached is not None:
        return f", and {reached.words}"
    return ", and how far its container has come cannot be seen from here" if seen.stamped else ""


def _left(seen: Seen, now: float) -> str:
    if seen.ends is None or seen.job.time_limit == "UNLIMITED":
        return ""
    if seen.ends <= now:
        return f" Its time limit of {seen.job.time_limit} has passed."
    return f" {duration(seen.ends - now)} are left of its time limit of {seen.job.time_limit}."


def _ended(found: Evidence, seen: Seen) -> Answer:
    job, summary = seen.job, found.results.summary
    lines = [f"Slurm: JobState={job.state} Reason={printable(job.reason or 'None')} ExitCode={job.exit_code}"]
    if job.state in ("NODE_FAIL", "BOOT_FAIL") or (summary is not None and summary.fault == "node"):
        lines += [_node_line(node) for node in list(found.nodes.values())[:NODES_SHOWN]]
    if summary is not None:
        sentence, step = _by_summary(_name(seen), summary), _see(found.results)
    else:
        sentence, step = f"{_name(seen)} {by_slurm(job)}.", ""
        if seen.stamped and job.nodes and not found.results.note:
            step = "Its summary is not written yet; if it stays so, the agent's log on its node says why."
            if any(not node.responds for node in found.nodes.values()):
                step = "Its node writes the summary when it is back; if it stays away, the head node does in time."
    return Answer(found.asked, "ended", sentence, step, (*lines, *_common(found)))


def _without_slurm(found: Evidence) -> Answer:
    """Slurm does not know the job, or does not answer: the results folder is left."""
    results, summary = found.results, found.results.summary
    lines = (f"Slurm: {printable(found.slurm_fault) or 'does not know it (any more)'}", *_common(found))
    if summary is not None and not summary.starts_again:
        return Answer(found.asked, "ended", _by_summary(f"Job {found.asked}", summary), _see(results), lines)
    if found.slurm_fault:
        sentence = f"How job {found.asked} is, is not known: Slurm does not answer."
        step = "Nothing is lost by that; ask again later. `scontrol ping` says whether slurmctld answers."
        return Answer(found.asked, "unknown", sentence, step, lines)
    if summary is not None:
        rest = f"its last attempt is known: {_by_summary('it', summary)}"
    elif results.folder is None:
        rest = results.note or f"there are no results of it in {results.root}."
    else:
        rest = f"its results tell nothing: {results.folder} {results.note or 'has no summary'}."
    step = (
        "Check the number with `squeue --me` and `slurmk8s results`. Slurm forgets a job some minutes after its end; "
        f"where accounting runs, `sacct -j {found.asked}` knows older ones."
    )
    sentence = f"Slurm does not know job {found.asked} (any more); {printable(rest)}"
    return Answer(found.asked, "unknown", sentence, step, lines)


_STATES = {"node_fail": "failed with its node", "out_of_memory": "ran out of memory", "timeout": "ran out of time"}
_FAULTS = {
    "cluster": " (the cluster's fault, not the job's)",
    "node": " (the node's fault, not the job's)",
    "ours": " (a fault of slurmk8s, not the job's)",
}


def _by_summary(name: str, summary: Summary) -> str:
    """`Job 7 (train) failed on gpu1: The body ended with exit code 3.`"""
    state = _STATES.get(summary.state, summary.state)
    verb = f"was {state}" if state in ("cancelled", "preempted", "requeued") else state
    cause = printable(summary.cause.removeprefix("Completed: ")) or "why is not known."
    return f"{name} {verb} on {printable(summary.node)}{_FAULTS.get(summary.fault, '')}: {cause}"


def by_slurm(job: Job) -> str:
    """The end as Slurm tells it, and no more than that."""
    code, _, number = job.exit_code.partition(":")
    if job.exit_code == NO_OUTPUT_FILE:
        return f"did not start: Slurm could not open its output file {printable(job.stdout)}"
    if job.state == "FAILED" and job.reason == "BadConstraints":  # its exit code 0:1 is no signal
        return "did not start: no node can give what it asks for; `sinfo -o '%P %c %m %G'` shows what there is"
    how = f"with exit code {code}" if number == "0" else f"by signal {number} ({_signal(number)})"
    ran = f" after {duration(job.ended - job.started)}" if job.ended and job.started and job.ended > job.started else ""
    return {
        "COMPLETED": f"ended well{ran}, by what Slurm says",
        "FAILED": f"failed {how}{ran}, by what Slurm says",
        "CANCELLED": f"was cancelled{ran if job.nodes else ' before it started'}",
        "TIMEOUT": f"was stopped at its time limit of {job.time_limit}",
        "DEADLINE": "was stopped at its deadline (--deadline)",
        "OUT_OF_MEMORY": f"ran out of memory{ran}, by what Slurm says",
        "NODE_FAIL": f"ended because its node failed{ran}",
        "BOOT_FAIL": "ended because its node did not boot",
        "PREEMPTED": f"was pre-empted by a job of higher priority{ran}",
        "REVOKED": "runs in another cluster of the federation",
    }.get(job.state, f"ended as {job.state} {how}")


def _signal(number: str) -> str:
    try:
        return signal.Signals(int(number)).name
    except ValueError:
        return "unknown"


def _see(results: Results) -> str:
    return f"Its logs, outputs and summary are in {printable(str(results.folder))}."


def _common(found: Evidence) -> list[str]:
    """The array's other parts and the results, last."""
    lines = []
    if found.others:
        states = Counter(part.job.state for part in (*found.others, *([found.seen] if found.seen else [])))
        counted = ", ".join(f"{number} {state}" for state, number in sorted(states.items()))
        lines.append(f"array {found.asked}: {counted}; this is {found.seen.name if found.seen else 'one'}")
    if found.seen is not None and found.slurm_fault:
        lines.append(f"Slurm: {printable(found.slurm_fault)}")
    results = found.results
    for which, summary in (("summary", results.summary), ("summary of the attempt before", results.earlier)):
        if summary is not None:
            code = "none" if summary.exit_code is None else str(summary.exit_code)
            ended = f" ended {when(summary.times.ended)}" if summary.times.ended else ""
            lines.append(f"{which}: state={summary.state} exit_code={code} fault={summary.fault}{ended}")
    if results.folder is not None:
        lines.append(printable(f"results: {results.folder}" + (f" {results.note}" if results.note else "")))
    elif results.note:
        lines.append(f"results: {printable(results.note)}")
    return lines


def _name(seen: Seen) -> str:
    """`Job 7 (train)`."""
    return f"Job {seen.name} ({printable(seen.job.name)})" if seen.job.name else f"Job {seen.name}"


def _node_line(node: Node) -> str:
    why = f" ({printable(node.reason)})" if node.reason else ""
    since = f" since {when(node.reason_since)}" if node.reason and node.reason_since else ""
    return f"node {node.name}: {node.state}{why}{since}"
