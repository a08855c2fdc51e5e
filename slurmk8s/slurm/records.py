"""Reading what Slurm prints about a job, when people may have written half of it.

A job's name, account, comment, network and paths are the person's text and may hold anything, newlines and
`UserId=root(0)` too; no Slurm program escapes them, except `--json`, which prints the whole queue. Therefore:

- Almost every field comes from one squeue, its fields divided by a random word that nobody could have known.
- CPUs, memory and GPUs per node, the stamp and the expanded log paths are only in `scontrol show job -d`. There, a
  field is believed only between two anchors that Slurm always prints and that occur exactly once: text that imitates
  an anchor makes two of it, and the record is refused.
"""

import os
import re
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from slurmk8s.errors import PersonFault
from slurmk8s.slurm.client import Job
from slurmk8s.slurm.hostlist import expand, numbers

FIELDS = (
    # Slurm's own words and numbers
    *("JobID", "ArrayJobID", "ArrayTaskID", "HetJobID", "HetJobOffset", "UserID", "GroupID", "UserName", "Partition"),
    *("State", "Reason", "exit_code", "RestartCnt", "Requeue", "BatchHost", "NodeList"),
    *("TimeLimit", "SubmitTime", "StartTime", "EndTime", "PreemptTime"),
    # the person's text
    *("Account", "Name", "Comment", "Network", "Command", "WorkDir", "STDOUT", "STDERR"),
)

UNSET = ("", "(null)", "N/A", "n/a", "Unknown", "None")

FINISHED = frozenset(
    {
        *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED"),
        *("REVOKED", "TIMEOUT"),
    }
)
"""Base states in which a job has come to its end."""

CLOCK_SKEW = 60
"""Seconds by which slurmctld's clock may be ahead of ours."""

END_BY_REASON = {
    "TimeLimit": "TIMEOUT",
    "NonZeroExitCode": "FAILED",
    "JobLaunchFailure": "FAILED",  # also when the batch script dies by a signal of its own
    "RaisedSignal": "FAILED",
    "SystemFailure": "FAILED",
    "OutOfMemory": "OUT_OF_MEMORY",
    "NodeDown": "NODE_FAIL",
    "DeadLine": "DEADLINE",
}

ALLOCATION = (" NtasksPerN:B:S:C=", " MinCPUsNode=")
"""The anchors around the lines for each node; printed for every job, allocated or not."""
NODE_DETAIL = re.compile(
    r" Nodes=(?P<nodes>\S+) CPU_IDs=(?P<cpus>[0-9,-]*) Mem=(?P<memory>\d+) GRES=(?P<gres>\S*)(?= |$)"
)
GPU = re.compile(r"gpu(?::[^:(),]+)?:\d+\(IDX:(?P<indices>[0-9,-]+)\)")
MAIL = re.compile(r" MailUser=(\S*) MailType=([A-Z0-9_,]*)")
ADMIN_COMMENT = re.compile(r" AdminComment=(?P<stamp>\S*) ")


def divider() -> str:
    """A word that no job contains. It starts with a sign: squeue takes a digit for a width."""
    return f"@{secrets.token_hex(16)}@"


def squeue_format(word: str, fields: Sequence[str] = FIELDS) -> str:
    """The argument of `squeue --Format` that prints these fields, each followed by the divider."""
    return ",".join(f"{name}:{word}" for name in fields)


def rows(output: str, word: str, fields: Sequence[str] = FIELDS) -> Iterator[dict[str, str]]:
    """One mapping per job. The divider never occurs in a value, so newlines in names do no harm."""
    values = output.split(word)
    if values[-1].strip("\n") or (len(values) - 1) % len(fields):
        raise ValueError(f"squeue printed {len(values) - 1} values, not a multiple of {len(fields)}")
    for start in range(0, len(values) - 1, len(fields)):
        # The newline after the row before comes out in front of the first value.
        yield dict(zip(fields, [values[start].lstrip("\n"), *values[start + 1 : start + len(fields)]], strict=True))


@dataclass(frozen=True)
class Detail:
    """What only `scontrol show job -d -o` knows."""

    admin_comment: str = ""
    stdout: str = ""
    stderr: str = ""
    cpus: Mapping[str, int] = field(default_factory=dict)
    memory_mb: Mapping[str, int] = field(default_factory=dict)
    gpus: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    mail_user: str = ""
    mail_types: tuple[str, ...] = ()


def show_name(row: Mapping[str, str]) -> str:
    """How to name exactly this record to scontrol: the id of an array or a heterogeneous job means all its parts."""
    task = re.match(r"\d+", row["ArrayTaskID"])
    if task:
        return f"{row['ArrayJobID']}_{task[0]}"
    if row["HetJobID"] not in (*UNSET, "0"):
        return f"{row['HetJobID']}+{row['HetJobOffset']}"
    return row["JobID"]


def detail(shown: str, row: Mapping[str, str]) -> Detail:
    """Read one `scontrol show job -d -o` record; PersonFault if the person's text imitates Slurm's own."""
    start, end = ALLOCATION
    # Counted, not matched: a pattern could stretch from the true first anchor to a false second one.
    if shown.count(start) != 1 or shown.count(end) != 1 or shown.index(start) > shown.index(end):
        raise _imitation(row)
    allocation, tail = shown.partition(start)[2].split(end)
    cpus: dict[str, int] = {}
    memory: dict[str, int] = {}
    gpus: dict[str, tuple[int, ...]] = {}
    for part in NODE_DETAIL.finditer(allocation):
        for node in expand(part["nodes"]):
            cpus[node] = len(numbers(part["cpus"]))
            memory[node] = int(part["memory"])
            indices = [index for gpu in GPU.finditer(part["gres"]) for index in numbers(gpu["indices"])]
            gpus[node] = tuple(sorted(indices))
    # The log paths are the person's own choice in any case, and Slurm opens them as the person: the last ones will do.
    before, _, stdout = tail.rpartition(" StdOut=")
    stderr = before.rpartition(" StdErr=")[2].rpartition(" StdIn=")[0]
    stdout = re.split(r" (?:Power|Tres\w+|Mail\w+)=", stdout, maxsplit=1)[0].rstrip()
    # Both are the person's own choice as well; Slurm prints them last, and only if they ask for mail.
    mail = MAIL.findall(tail)[-1:]
    user, types = mail[0] if mail else ("", "")
    words = tuple(word for word in types.split(",") if word not in ("", "NONE"))
    return Detail(_stamp(tail, row), stdout, stderr, cpus, memory, gpus, user, words)


def _stamp(tail: str, row: Mapping[str, str]) -> str:
    """The admin_comment, as far as its first space: a stamp has none.

    It stands behind network, command and folder, which cannot change in a running job and are known from squeue, and
    before the comment, which can.
    """
    if any(sign in row[name] for name in ("Network", "Command", "WorkDir") for sign in (" AdminComment=", " Comment=")):
        raise _imitation(row)
    head = re.split(r" Comment=| StdErr=", tail, maxsplit=1)[0] + " "
    found = ADMIN_COMMENT.findall(head)
    if len(found) > 1:
        raise _imitation(row)
    return str(found[0]) if found else ""


def _imitation(row: Mapping[str, str]) -> PersonFault:
    return PersonFault(
        f"Job {row['JobID']} cannot be read: its name, account, network or folder contains text that imitates Slurm's "
        "own description of a job.",
        "Submit it with plain names.",
    )


def job(row: Mapping[str, str], more: Detail) -> Job:
    """The job from both answers."""
    completing = row["State"] == "COMPLETING"
    state = _end(row) if completing else row["State"]
    begun = state not in ("PENDING", "CONFIGURING")
    ended = _time(row["EndTime"]) if completing or state in FINISHED else None
    if ended is not None and ended > time.time() + CLOCK_SKEW:  # requeued: the end that its time limit would have been
        ended = None
    return Job(
        job_id=int(row["JobID"]),
        name=row["Name"],
        user=row["UserName"],
        uid=int(row["UserID"]),
        gid=int(row["GroupID"]),
        partition=row["Partition"],
        account=_text(row["Account"]),
        state=state,
        reason=_text(row["Reason"]),
        exit_code=_exit_code(int(row["exit_code"])),
        comment=_text(row["Comment"]),
        admin_comment=more.admin_comment,
        restarts=int(row["RestartCnt"]),
        requeue=row["Requeue"] == "1",
        batch_host=_text(row["BatchHost"]),
        nodes=expand(row["NodeList"]),
        work_folder=_text(row["WorkDir"]),
        # squeue does not expand an array's `%a`; scontrol does.
        stdout=more.stdout or _text(row["STDOUT"]),
        stderr=more.stderr or _text(row["STDERR"]),
        time_limit=row["TimeLimit"],
        submitted=_time(row["SubmitTime"]),
        started=_time(row["StartTime"]) if begun else None,
        ended=ended,
        preempted=_time(row["PreemptTime"]),
        # Outside an array squeue gives the job's own id as the array's.
        array_job_id=None if row["ArrayTaskID"] in UNSET else _number(row["ArrayJobID"]),
        array_task_id=_number(row["ArrayTaskID"]),
        cpus=more.cpus,
        memory_mb=more.memory_mb,
        gpus=more.gpus,
        mail_user=more.mail_user,
        mail_types=more.mail_types,
        completing=completing,
    )


def _end(row: Mapping[str, str]) -> str:
    """The end of a job that is still completing, seen on 22.05.

    Neither scontrol nor squeue (nor its `-t`) shows the state behind COMPLETING. The reason is set with the state:
    TimeLimit for TIMEOUT, NonZeroExitCode for FAILED, and so on; scancel sets none. So a failure without a reason is
    a cancelled job, and no failure without a reason may be a good end as well as a cancelled job.
    """
    reason = row["Reason"].partition(":")[0]
    if reason in END_BY_REASON:
        return END_BY_REASON[reason]
    if reason in UNSET and int(row["exit_code"]) != 0:
        return "CANCELLED"
    return "COMPLETING"


def _exit_code(status: int) -> str:
    """wait(2)'s status, as squeue prints it, in scontrol's notation `code:signal`: a signal leaves no code."""
    return f"0:{os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"{os.WEXITSTATUS(status)}:0"


def _text(value: str) -> str:
    return "" if value in ("(null)", "N/A", "n/a") else value


def _number(value: str) -> int | None:
    """A number; None for `N/A` and for the range of an array's tasks that have not started yet (`4-7%1`)."""
    return int(value) if value.isascii() and value.isdecimal() else None


def _time(value: str) -> float | None:
    return float(value) if value.isascii() and value.isdecimal() else None
