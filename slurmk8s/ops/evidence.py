"""Everything that can be found out about a job from here: Slurm, its nodes, its results, its node's agent, its pod.

What does not answer, or is somebody else's, is said as such; none of it stops the rest.
"""

import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from slurmk8s.config import Config
from slurmk8s.errors import PersonFault, SlurmK8sError, SlurmUnreachable
from slurmk8s.ops import pod_stage, stage
from slurmk8s.ops.stage import Stage
from slurmk8s.results import find, status
from slurmk8s.results.paths import Bundle
from slurmk8s.results.summary import Summary
from slurmk8s.site import pwd_name
from slurmk8s.slurm import nodes, queue
from slurmk8s.slurm.client import Job
from slurmk8s.slurm.commands import SlurmCommands
from slurmk8s.slurm.nodes import Node
from slurmk8s.slurm.queue import Place, Seen

if TYPE_CHECKING:
    from slurmk8s.kube.client import Kube

JOB = re.compile(r"[1-9][0-9]{0,17}(?:_[0-9]{1,9})?", re.ASCII)
# A pod and its stages exist in these; see slurm/client.py for COMPLETING.
HAS_NODES = ("RUNNING", "CONFIGURING", "SUSPENDED", "STOPPED", "SIGNALING", "COMPLETING")


@dataclass(frozen=True)
class Results:
    """The job's bundle, as far as it may be read."""

    root: Path
    folder: Path | None = None
    """None: there is none."""
    note: str = ""
    """Why it tells nothing: not readable, or not this job's."""
    summary: Summary | None = None
    """Of the attempt that Slurm knows, or of the last one."""
    earlier: Summary | None = None
    """Of the attempt before, of a job that was put back into the queue."""


@dataclass(frozen=True)
class Evidence:
    """What was found."""

    asked: str
    results: Results
    seen: Seen | None = None
    """The job, as Slurm knows it."""
    others: tuple[Seen, ...] = ()
    """The other parts of the array, if that was asked for."""
    slurm_fault: str = ""
    """Why Slurm could not be asked."""
    place: Place | None = None
    nodes: Mapping[str, Node] = field(default_factory=dict)
    """Those that the job has, or those that it could get."""
    stages: tuple[Stage, ...] = ()
    now: float = 0


def gather(asked: str, config: Config, slurm: SlurmCommands, root: Path, kube: "Kube | None") -> Evidence:
    """Look everywhere. PersonFault if `asked` is no job's number."""
    if JOB.fullmatch(asked) is None:
        raise PersonFault(f"{asked!r} is not a job id.", "Give a number such as 123, or 123_4 for a task of an array.")
    now = time.time()
    try:
        parts = queue.find(slurm.programs, asked)
    except SlurmUnreachable as fault:
        return Evidence(asked, _results(root, asked, None), slurm_fault=str(fault), now=now)
    seen = _chosen(parts)
    others = tuple(part for part in parts if part is not seen)
    results = _results(root, asked, seen)
    if seen is None:
        return Evidence(asked, results, now=now)
    found = Evidence(asked, results, seen, others, now=now)
    try:
        if seen.waits:
            found = replace(found, place=queue.place(slurm.programs, seen))
        found = replace(found, nodes=around(nodes.nodes(slurm.programs), seen))
        return replace(found, stages=_stages(config, slurm, seen, results, kube, now))
    except SlurmUnreachable as fault:  # it went away in the middle
        return replace(found, slurm_fault=str(fault))


def _chosen(parts: list[Seen]) -> Seen | None:
    """Of an array's parts: one that runs, else one that waits, else any."""
    order = {"RUNNING": 0, "PENDING": 1}
    return min(parts, key=lambda part: (order.get(part.job.state, 2), part.job.job_id), default=None)


def around(known: Mapping[str, Node], seen: Seen) -> dict[str, Node]:
    """Those of the known nodes that the job has, or that it could get."""
    if seen.job.nodes:
        return {name: known[name] for name in seen.job.nodes if name in known}
    if not seen.waits:
        return {}
    return {
        name: node
        for name, node in known.items()
        if name in seen.required_nodes or any(each in seen.partitions for each in node.partitions)
    }


def _stages(
    config: Config, slurm: SlurmCommands, seen: Seen, results: Results, kube: "Kube | None", now: float
) -> tuple[Stage, ...]:
    """Of a container job that has a node."""
    job = seen.job
    if not seen.stamped or not job.nodes or job.state not in HAS_NODES:
        return ()
    found = stage.on_this_node(config, job.nodes[0], job.job_id)
    bundle = Bundle(results.folder) if results.folder is not None and not results.note else None
    found += stage.in_logs(job, _stderr(slurm, job), bundle, now)
    if kube is not None:
        found.append(pod_stage.look(kube, config, job))
    return tuple(found)


def _stderr(slurm: SlurmCommands, job: Job) -> str:
    """Slurm's stderr file, all its `%` expanded."""
    try:
        whole = slurm.job(job.job_id)
    except PersonFault:  # its text imitates Slurm's own
        return ""
    return whole.stderr if whole else ""


def _results(root: Path, asked: str, seen: Seen | None) -> Results:
    """The bundle, if it is this very job's: numbers start again, and anybody can make a folder of that name."""
    if seen is not None and seen.waits and not seen.job.restarts:
        return Results(root)
    try:
        found = find.find(root, asked if seen is None else str(seen.job.job_id))
    except SlurmK8sError as fault:
        return Results(root, note=fault.sentence)
    if found is None:
        return Results(root)
    folder = found.bundle.folder
    if seen is not None and found.uid != seen.job.uid:
        return Results(root, folder, f"belongs to {pwd_name(found.uid)}, not to the job's owner")
    try:
        latest = status.status(found.bundle)
        if not latest.readable:
            return Results(root, folder, f"belongs to {pwd_name(found.uid)}, who alone may read it")
        if seen is None:
            return Results(root, folder, summary=latest.summary)
        if _is_another_job(latest, seen.job):
            return Results(root, folder, "is of an earlier job of the same number")
        summary = latest.summary if latest.summary and latest.summary.attempt == seen.job.restarts else None
        return Results(root, folder, "", summary, _earlier(found.bundle, latest, seen.job))
    except OSError as error:
        return Results(root, folder, f"cannot be read: {error.strerror or error}")


def _is_another_job(latest: status.Status, job: Job) -> bool:
    known = latest.marker
    if known is None or known.attempt < job.restarts:  # a requeue gives the job a new time of submission
        return False
    if known.attempt > job.restarts:
        return True
    return None not in (known.submitted, job.submitted) and abs((known.submitted or 0) - (job.submitted or 0)) > 1


def _earlier(bundle: Bundle, latest: status.Status, job: Job) -> Summary | None:
    """How the attempt before ended: still in place, or set aside."""
    if not job.restarts:
        return None
    if latest.summary is not None and latest.summary.attempt == job.restarts - 1:
        return latest.summary
    aside = bundle.attempt(job.restarts - 1)
    return status.status(aside).summary if os.path.isdir(aside.folder) else None
