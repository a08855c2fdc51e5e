"""What `slurmk8s status` shows: jobs that wait, run or have just ended, from Slurm, the results and the logs.

What does not answer is said, and the rest is shown: with slurmctld away the results still tell what had started.
"""

import contextlib
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

from slurmk8s.config import Config
from slurmk8s.errors import SlurmK8sError, SlurmUnreachable
from slurmk8s.ops import reasons, stage
from slurmk8s.ops.evidence import HAS_NODES, around
from slurmk8s.ops.stage import Stage
from slurmk8s.ops.waiting import Waiting
from slurmk8s.ops.why import by_slurm
from slurmk8s.results import history
from slurmk8s.results.history import GONE, HIDDEN, Known, Span
from slurmk8s.results.paths import Bundle
from slurmk8s.site import pwd_name
from slurmk8s.slurm import nodes, queue
from slurmk8s.slurm.commands import SlurmCommands
from slurmk8s.slurm.queue import Place, Seen
from slurmk8s.slurm.records import FINISHED

# A job that Slurm knows nothing of may have begun this long ago.
_LONGEST_RUN = 32 * 86400
_STAGES_LOOKED_AT = 50


@dataclass(frozen=True)
class Running:
    """A job that has nodes."""

    job: str
    name: str
    user: str
    partition: str
    nodes: tuple[str, ...]
    gpus: int
    elapsed: float | None
    limit: float | None
    """Seconds it may take; None: no limit, or not known."""
    stage: str
    trouble: bool = False


@dataclass(frozen=True)
class InQueue:
    """A job that waits."""

    job: str
    name: str
    user: str
    partition: str
    since: float | None
    position: int | None
    of: int | None
    because: str
    step: str


@dataclass(frozen=True)
class Ended:
    """A job that is over."""

    job: str
    name: str
    user: str
    at: float
    took: float | None
    state: str
    cause: str


@dataclass(frozen=True)
class Overview:
    """All of it."""

    now: float
    running: tuple[Running, ...] = ()
    waiting: tuple[InQueue, ...] = ()
    ended: tuple[Ended, ...] = ()
    slurm_fault: str = ""
    """Why Slurm could not be asked: then nothing is known of what waits, and what runs is as the results have it."""
    hidden: int = 0
    """Jobs that have ended and whose results are their owners' alone."""
    more_ended: int = 0

    def to_json(self) -> dict[str, object]:
        """For programs."""
        return asdict(self)


@dataclass(frozen=True)
class Question:
    """Whose jobs, and how much of the past."""

    uid: int | None
    """None: everybody's."""
    since: float
    now: float
    most_ended: int


@dataclass
class _Found:
    """While it is gathered."""

    running: list[Running] = field(default_factory=list)
    waiting: list[InQueue] = field(default_factory=list)
    ended: list[Ended] = field(default_factory=list)
    live: set[int] = field(default_factory=set)


def gather(asked: Question, config: Config, slurm: SlurmCommands, root: Path) -> Overview:
    """Look everywhere."""
    fault = ""
    found = _Found()
    by_slurm_: list[Seen] = []
    try:
        user = None if asked.uid is None else str(asked.uid)
        by_slurm_ = queue.jobs(slurm.programs, user)
        found.live = {seen.job.job_id for seen in by_slurm_ if not _is_over(seen)}
        found.waiting = _waiting(slurm, [seen for seen in by_slurm_ if seen.waits], asked.now)
        on_nodes = [seen for seen in by_slurm_ if not seen.waits and not _is_over(seen)]
        found.running = _running(config, slurm, on_nodes, root, asked.now)
    except SlurmUnreachable as error:
        fault = str(error)
    hidden = _results(found, asked, root, without_slurm=bool(fault))
    told = {each.job for each in found.ended}
    found.ended += [
        _ended_by_slurm(seen)
        for seen in by_slurm_
        if _is_over(seen) and seen.name not in told and (seen.job.ended or 0) >= asked.since
    ]
    found.ended.sort(key=lambda each: -each.at)
    return Overview(
        now=asked.now,
        running=tuple(sorted(found.running, key=lambda each: -(each.elapsed or 0))),
        waiting=tuple(found.waiting),
        ended=tuple(found.ended[: asked.most_ended]),
        slurm_fault=fault,
        hidden=hidden,
        more_ended=max(0, len(found.ended) - asked.most_ended),
    )


def _is_over(seen: Seen) -> bool:
    return seen.job.state in FINISHED and not seen.job.completing


def _waiting(slurm: SlurmCommands, waiting: list[Seen], now: float) -> list[InQueue]:
    if not waiting:
        return []
    places = queue.places(slurm.programs, waiting)
    known = nodes.nodes(slurm.programs)
    told = []
    for seen in sorted(waiting, key=lambda seen: (-seen.priority, seen.job.job_id)):
        place: Place | None = places.get(seen.job.job_id)
        # Its place has a column of its own.
        why = reasons.told(Waiting(seen, None, around(known, seen), now))
        told.append(
            InQueue(
                job=seen.name + (f"_[{seen.tasks}]" if seen.tasks else ""),
                name=seen.job.name,
                user=seen.job.user,
                partition=seen.job.partition,
                since=seen.job.submitted,
                position=place.position if place else None,
                of=place.waiting if place else None,
                because=why.clause,
                step=why.step,
            )
        )
    return told


def limit(seen: Seen) -> float | None:
    """Seconds the job may take. Of one that is being cleaned up Slurm gives the end it had, which is no limit."""
    job = seen.job
    if seen.ends is None or job.started is None or job.completing or job.time_limit == "UNLIMITED":
        return None
    return seen.ends - job.started


def _running(config: Config, slurm: SlurmCommands, on_nodes: list[Seen], root: Path, now: float) -> list[Running]:
    told = []
    for number, seen in enumerate(on_nodes):
        job = seen.job
        reached = _stage(config, slurm, seen, root, now) if number < _STAGES_LOOKED_AT else None
        told.append(
            Running(
                job=seen.name,
                name=job.name,
                user=job.user,
                partition=job.partition,
                nodes=job.nodes,
                gpus=seen.gpus,
                elapsed=max(0.0, now - job.started) if job.started else None,
                limit=limit(seen),
                stage=_words(seen, reached),
                trouble=reached.trouble if reached else False,
            )
        )
    return told


def _stage(config: Config, slurm: SlurmCommands, seen: Seen, root: Path, now: float) -> Stage | None:
    """How far a container job has come; None where that cannot be seen from here."""
    job = seen.job
    if not seen.stamped or not job.nodes or job.state not in HAS_NODES:
        return None
    found = stage.on_this_node(config, job.nodes[0], job.job_id)
    found += stage.in_logs(job, "", Bundle.of(root, job.job_id), now)
    reached = stage.furthest([each for each in found if each.words])
    if (reached is None or reached.reached < stage.BODY) and os.geteuid() in (0, job.uid):
        # Only now: it takes a question to slurmctld for each job, and the file is its owner's.
        with contextlib.suppress(SlurmK8sError):
            whole = slurm.job(job.job_id)
            found += stage.in_logs(job, whole.stderr if whole else "", None, now)
    return stage.furthest([each for each in found if each.words])


def _words(seen: Seen, reached: Stage | None) -> str:
    if seen.job.completing:
        return "has ended; being cleaned up"
    states = {"CONFIGURING": "its node is being made ready", "SUSPENDED": "suspended", "STOPPED": "stopped by a signal"}
    if seen.job.state in states:
        return states[seen.job.state]
    if reached is not None:
        return reached.words.removeprefix("its ").removeprefix("it ")
    return "started; nothing printed yet" if seen.stamped else "running (plain Slurm job)"


def _results(found: _Found, asked: Question, root: Path, *, without_slurm: bool) -> int:
    """Add what the results tell; how many of them tell us nothing."""
    span = Span(asked.now - _LONGEST_RUN if without_slurm else asked.since)
    hidden = 0
    with contextlib.suppress(SlurmK8sError, OSError):  # no NAS here: Slurm has told what it knows
        for known in history.latest(history.recent(root, asked.uid, span)):
            if known.entry.job_id in found.live:
                continue
            current = known
            if known.entry.runs:
                with contextlib.suppress(SlurmK8sError, OSError):  # one bundle must not hide all others
                    current = history.refreshed(root, known)
            state = current.entry.state
            if state == HIDDEN:
                hidden += 1
            elif current.entry.runs:
                if without_slurm:
                    found.running.append(_running_by_results(current, asked.now))
            elif state != GONE and current.entry.at >= asked.since:
                found.ended.append(_ended_by_results(current))
    return hidden


def _running_by_results(known: Known, now: float) -> Running:
    entry = known.entry
    began = max(0.0, now - entry.at)
    user = pwd_name(known.uid)
    return Running(entry.shown_id, entry.name, user, entry.partition, (), 0, began, None, "had started; no end known")


def _ended_by_results(known: Known) -> Ended:
    entry = known.entry
    took = entry.held if entry.started is not None else None
    user = pwd_name(known.uid)
    return Ended(entry.shown_id, entry.name, user, entry.at, took, entry.state, entry.cause)


def _ended_by_slurm(seen: Seen) -> Ended:
    job = seen.job
    sentence = by_slurm(job)
    state = {"OUT_OF_MEMORY": "out_of_memory", "NODE_FAIL": "node_fail"}.get(job.state, job.state.lower())
    took = job.ended - job.started if job.ended and job.started and job.nodes else None
    cause = f"{sentence[0].upper()}{sentence[1:]}."
    return Ended(seen.name, job.name, job.user, job.ended or 0, took, state, cause)
