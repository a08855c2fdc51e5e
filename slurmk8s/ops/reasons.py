"""Slurm's one word for why a job waits, in plain words with the numbers. Pure.

Each clause completes "Job 7 waits because …"; the second text is what can be done about it. What Slurm says and we do
not know is passed on as it is: nothing is made up.
"""

import re
from collections.abc import Callable

from slurmk8s.ops import limits
from slurmk8s.ops.waiting import (
    ASK,
    SUBMIT_AGAIN,
    Told,
    Waiting,
    asked,
    closed,
    names_of,
    planned,
    requeue_reason,
    standing,
)
from slurmk8s.results.summary_text import duration, printable, when
from slurmk8s.slurm import stamp


def told(waiting: Waiting) -> Told:
    """Why it waits."""
    reason = waiting.seen.job.reason.replace("_", " ").strip("() ")
    word = re.split(r"[ ,:]", reason, maxsplit=1)[0]
    if reason in _PHRASES:
        answer = _PHRASES[reason](waiting)
    elif word in _WORDS:
        known = _WORDS[word]
        answer = known(waiting) if callable(known) else known
    else:
        answer = limits.told(word, waiting) or Told(f"Slurm says “{printable(reason or 'None')}”")
    return Told(answer.clause, answer.step.replace("{job}", waiting.seen.name))


# What depends on the job, the queue or the nodes.


def _priority(waiting: Waiting) -> Told:
    if none := _no_node(waiting):
        return none
    return Told(f"other jobs go first{standing(waiting)}{planned(waiting)}")


def _resources(waiting: Waiting) -> Told:
    if none := _no_node(waiting):
        return none
    return Told(f"what it asks for is not free now ({asked(waiting.seen)}){standing(waiting)}{planned(waiting)}")


def _no_node(waiting: Waiting) -> Told | None:
    """All nodes that it could run on are out of service: that is why, whatever Slurm says of its place."""
    nodes = list(waiting.nodes.values())
    if not nodes or any(node.takes_jobs for node in nodes):
        return None
    where = " and ".join(waiting.seen.partitions) or "its partition"
    which = "the only node" if len(nodes) == 1 else f"none of the {len(nodes)} nodes"
    verb = "takes no jobs" if len(nodes) == 1 else "takes jobs"
    return Told(f"{which} of partition {printable(where)} {verb}: {closed(nodes)}", f"{ASK} to look at the nodes.")


def _required_nodes(waiting: Waiting) -> Told:
    wanted = [waiting.nodes[name] for name in waiting.seen.required_nodes if name in waiting.nodes]
    out = [node for node in wanted if not node.takes_jobs]
    if out:
        step = f"{ASK} to look at it, or submit the job without --nodelist."
        return Told(f"it asks for {names_of([node.name for node in out])}, and {closed(out)}", step)
    if wanted and "reserved" not in waiting.seen.job.reason:
        return Told(
            f"it asks for {names_of([node.name for node in wanted])}, which is not available now{planned(waiting)}"
        )
    if none := _no_node(waiting):
        return none
    what = "the node it asks for is" if waiting.seen.required_nodes else "all nodes that it could run on are"
    step = "`scontrol show reservation` lists reservations; a shorter --time may fit before one."
    return Told(f"{what} down, drained or reserved for other jobs{planned(waiting)}", step)


def _begin_time(waiting: Waiting) -> Told:
    start = waiting.seen.expected_start
    at = f" before {when(start)}" if start else " yet"
    if start and start > waiting.now:
        at += f" (in {duration(start - waiting.now)})"
    if waiting.seen.job.restarts:
        why = requeue_reason(waiting.seen)
        said = f" ({printable(why).rstrip('.')})" if why else ""
        return Told(f"it was put back into the queue{said}, and Slurm does not start it again{at}")
    return Told(f"it is not to start{at} (--begin)", "`scontrol update JobId={job} StartTime=now` starts it sooner.")


def _dependency(waiting: Waiting) -> Told:
    return Told(f"it is to start {_dependencies(waiting.seen.dependency)}")


def _never(waiting: Waiting) -> Told:
    what = _dependencies(waiting.seen.dependency)
    return Told(f"it is to start {what}, and that can never come true any more", SUBMIT_AGAIN)


_AFTER = {
    "after": "after the start of {jobs}",
    "afterany": "after the end of {jobs}",
    "afterok": "after the good end of {jobs}",
    "afternotok": "after the failure of {jobs}",
    "aftercorr": "after the good end of the same task of {jobs}",
    "afterburstbuffer": "after the burst buffer of {jobs}",
    "expand": "with {jobs}, which it enlarges",
    "singleton": "after all earlier jobs of the same name and person",
}


def _dependencies(written: str) -> str:
    """`afterok:3(unfulfilled),singleton(unfulfilled)` in words."""
    said = []
    for part in re.split(r"[,?]", re.sub(r"\((?:unfulfilled|failed)\)", "", written)):
        kind, _, jobs = part.partition(":")
        if kind in _AFTER:
            which = printable(jobs.replace(":", " and ").replace("_*", ""))
            said.append(_AFTER[kind].format(jobs=f"jobs {which}" if " and " in which else f"job {which}"))
        elif part:
            said.append(printable(part))
    return " and ".join(said) or "after other jobs"


def _held_by_user(waiting: Waiting) -> Told:
    step = "`scontrol release {job}` lets it go."
    if stamp.key_of(waiting.seen.job.comment):
        step += " (A dropped job file is held for a moment until it is recorded; then it is released by itself.)"
    return Told("its owner holds it", step)


def _array_limit(waiting: Waiting) -> Told:
    most = waiting.seen.tasks.partition("%")[2]
    return Told(f"as many tasks of its array as may run at a time{f' ({most})' if most else ''} are running")


def _licenses(waiting: Waiting) -> Told:
    which = f" ({printable(waiting.seen.licenses)})" if waiting.seen.licenses else ""
    return Told(f"the licences it asks for are all in use{which}", "`scontrol show license` shows them.")


def _reservation(waiting: Waiting) -> Told:
    named = f" {printable(waiting.seen.reservation)}" if waiting.seen.reservation else ""
    return Told(f"its reservation{named} has not begun or is full", "`scontrol show reservation` shows when it begins.")


def _partition(words: str, step: str) -> Callable[[Waiting], Told]:
    def say(waiting: Waiting) -> Told:
        return Told(words.format(partition=printable(" and ".join(waiting.seen.partitions))), step)

    return say


def _constraints(waiting: Waiting) -> Told:
    wish = f" with the features {printable(waiting.seen.features)}" if waiting.seen.features else ""
    return Told(f"no node has what it asks for ({asked(waiting.seen)}{wish})", SUBMIT_AGAIN)


def _launch_failed(waiting: Waiting) -> Told:
    why = requeue_reason(waiting.seen)
    said = f" ({printable(why).rstrip('.')})" if why else ""
    step = f"{ASK}: the node's Prolog or slurmd failed, and the node may be drained; then `scontrol release {{job}}`."
    return Told(f"it could not be started on its node and is held since{said}", step)


_PHRASES: dict[str, Callable[[Waiting], Told]] = {
    "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions": _required_nodes,
    "launch failed requeued held": _launch_failed,
    "user env retrieval failed requeued held": lambda _: Told(
        "its owner's environment could not be read on the node (--get-user-env) and it is held since",
        "Submit it without --get-user-env, or `scontrol release {job}`.",
    ),
    "job requeued in held state": lambda _: Told(
        "it was put back into the queue and held", "`scontrol release {job}` lets it go."
    ),
    "job requeued in special exit state": lambda _: Told(
        "it ended with an exit code for which this site holds jobs", "`scontrol release {job}` starts it again."
    ),
}

_WORDS: dict[str, Told | Callable[[Waiting], Told]] = {
    "": Told("Slurm has not looked at it yet", "Ask again in some seconds."),
    "None": Told("Slurm has not looked at it yet", "Ask again in some seconds."),
    "Priority": _priority,
    "Resources": _resources,
    "SchedDefer": Told("this site lets jobs wait for its next round of scheduling"),
    "ReqNodeNotAvail": _required_nodes,
    "NodeDown": _required_nodes,
    "FrontEndDown": Told("no front-end node is available", f"{ASK}."),
    "BeginTime": _begin_time,
    "Dependency": _dependency,
    "DependencyNeverSatisfied": _never,
    "JobHeldUser": _held_by_user,
    "JobHeldAdmin": Told("an administrator holds it", f"{ASK}; `scontrol release {{job}}` is theirs to say."),
    "JobHoldMaxRequeue": Told(
        "it was put back into the queue as often as this site allows, and is held", f"{ASK} what goes wrong with it."
    ),
    "MaxRequeueExceeded": Told(
        "it was put back into the queue as often as this site allows, and is held", f"{ASK} what goes wrong with it."
    ),
    "JobArrayTaskLimit": _array_limit,
    "Licenses": _licenses,
    "Reservation": _reservation,
    "ReservationDeleted": Told("its reservation was deleted", SUBMIT_AGAIN),
    "PartitionDown": _partition("partition {partition} is down: it starts no jobs", f"{ASK} when it is up again."),
    "PartitionInactive": _partition("partition {partition} is inactive: it takes no jobs", f"{ASK}."),
    "PartitionNodeLimit": _partition(
        "it asks for more or fewer nodes than partition {partition} gives, or those are down", SUBMIT_AGAIN
    ),
    "PartitionTimeLimit": _partition("its --time is longer than partition {partition} allows", SUBMIT_AGAIN),
    "PartitionConfig": _partition("partition {partition} does not allow what it asks for", SUBMIT_AGAIN),
    "AccountNotAllowed": _partition("its account may not use partition {partition}", SUBMIT_AGAIN),
    "QOSNotAllowed": _partition("its QOS may not be used by its account or in partition {partition}", SUBMIT_AGAIN),
    "BadConstraints": _constraints,
    "InvalidAccount": Told("its account does not exist (any more)", SUBMIT_AGAIN),
    "InvalidQOS": Told("its QOS does not exist (any more)", SUBMIT_AGAIN),
    "QOSUsageThreshold": Told("its account has used more than its QOS lets it use before others"),
    "QOSJobLimit": Told("its QOS has as many jobs as it may"),
    "QOSResourceLimit": Told("its QOS has as much as it may"),
    "QOSTimeLimit": Told("its QOS has used up its time"),
    "AssociationJobLimit": Told("its account has as many jobs as it may"),
    "AssociationResourceLimit": Told("its account has as much as it may"),
    "AssociationTimeLimit": Told("its account has used up its time"),
    "MaxMemPerLimit": Told("it asks for more memory per CPU or node than this site allows", SUBMIT_AGAIN),
    "Cleaning": Told("its earlier attempt is still being cleaned up on its node", "Ask again in a minute."),
    "Prolog": Told("its node is still being prepared (PrologSlurmctld)", "Ask again in a minute."),
    "BurstBufferResources": Told("the burst buffer is full"),
    "BurstBufferStageIn": Told("its files are being copied to the burst buffer"),
    "BurstBufferOperation": Told("the burst buffer failed", f"{ASK}."),
    "PowerNotAvail": Told("there is not enough electrical power for it now"),
    "PowerReserved": Told("the electrical power is reserved for other jobs"),
    "FedJobLock": Told("the clusters of the federation have not yet agreed where it runs"),
    "DeadLine": Told("it could not end before its --deadline", SUBMIT_AGAIN),
    "SystemFailure": Told("Slurm itself failed with it", f"{ASK} to look at slurmctld's log."),
    "JobLaunchFailure": _launch_failed,
    # The reason of an attempt's end stays until Slurm looks at the job again.
    "NonZeroExitCode": Told("its last attempt failed and it is put back into the queue"),
    "RaisedSignal": Told("its last attempt died of a signal and it is put back into the queue"),
    "TimeLimit": Told("its last attempt ran into its time limit and it is put back into the queue"),
    "InactiveLimit": Told("its last attempt did nothing for too long and it is put back into the queue"),
    "OutOfMemory": Told("its last attempt ran out of memory and it is put back into the queue"),
}
