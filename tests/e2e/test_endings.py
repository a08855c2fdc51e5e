"""However a job ends, its bundle is there, complete and right, and its owner's alone; nothing that is lost is silent.

One row for each ending. They share a cluster whose NAS is a share on which root is nobody and which can fail. Not tried
here: a node whose whole machine stops. Both nodes are on this one, so podman's store and Kubernetes' own processes live
on; test_kubernetes_restarts.py takes a kubelet and its containerd away as well.
"""

import errno
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from bundles import check_bundle, check_files
from losses import down, node_lost
from test_journey import DEBIAN

HOLD = 'while [ ! -e "/mnt/nas/work/go-$SLURM_JOB_ID" ]; do sleep 0.05; done'
A_WHILE = "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.1; done"
AGAIN = 'if [ -n "$SLURM_RESTART_COUNT" ]; then exit 0; fi'
"""Only the first attempt goes on from here."""
ON_1, ON_2 = ("--nodelist=node1",), ("--nodelist=node2",)
ALONE = (*ON_1, "--exclusive")
PREEMPTED = "Pre-empted by a job of higher priority."
LOST = "The node failed while the job ran."


# How they are brought about, once the body has begun.


def by_itself(_cluster: Any, _job_id: int) -> None:
    """The body ends."""


def scancel(cluster: Any, job_id: int) -> None:
    cluster.run("scancel", str(job_id))


def time_limit(cluster: Any, job_id: int) -> None:
    """Slurm looks at limits, and warns, every 30 seconds. No job may end in the second in which it began."""
    command = ("scontrol", "update", f"JobId={job_id}", "EndTime=now")
    cluster.wait_for(lambda: cluster.run(*command, user="root", check=False).returncode == 0, "an end set", 10)


def requeue(cluster: Any, job_id: int) -> None:
    cluster.run("scontrol", "requeue", str(job_id))
    start_again(cluster, job_id)


def preempt(cluster: Any, job_id: int) -> None:
    """By a job that needs the same node, in a partition that goes first."""
    cluster.run("scontrol", "update", "PartitionName=gpu", "PriorityTier=10", user="root")
    cluster.run("scontrol", "update", "PartitionName=cpu", "PreemptMode=CANCEL", user="root")
    urgent = cluster.sbatch("#!/bin/sh\n:\n", "--partition=gpu", "--output=/dev/null", "--mem=100M", *ALONE)
    assert cluster.wait(urgent)["JobState"] == "COMPLETED"
    if cluster.job(job_id)["Partition"] == "main":
        # Slurm lets two minutes pass; with its next start it forgets that the job was pre-empted.
        assert cluster.summary(job_id)["attempt"] == 0
        start_again(cluster, job_id)


def lose_node(cluster: Any, job_id: int) -> None:
    """Until Slurm has given it up; on its return the agent owes the bundle."""
    with node_lost(cluster, "node2", job_id):
        cluster.wait_for(lambda: cluster.state(job_id) != "RUNNING", "Slurm's word that the node is down", 60)
    cluster.wait_for(lambda: cluster.nodes()["node2"] == "idle", "the node back", 60)
    # Only now: what Slurm could not tell the lost node, to end the job, would end its next attempt there.
    assert cluster.summary(job_id)["attempt"] == 0
    if cluster.state(job_id) == "PENDING":
        start_again(cluster, job_id)


def agent_down(cluster: Any, job_id: int) -> None:
    """From before the body's end until the Epilog waits for it."""
    with down(cluster, "agent-node1"):
        go(cluster, job_id)
        cluster.wait_for(lambda: cluster.state(job_id) == "COMPLETING", "the Epilog waiting", 60)


def nas_down(cluster: Any, job_id: int) -> None:
    """The body must end without it, too."""
    outage = cluster.share.fault("*", error=errno.EHOSTDOWN)
    cluster.run("scancel", "--signal=USR1", str(job_id), cwd="/")
    told = f"job {job_id}: the summary must wait"
    cluster.wait_for(lambda: any(told in cluster.log(f"agent_{node}.log") for node in ("node1", "node2")), told, 60)
    assert outage.met()
    outage.clear()


def nas_full(cluster: Any, job_id: int) -> None:
    """It takes no more bytes, from before the body's end until the agent has met it."""
    shortage = cluster.share.fault("write", f"results/{job_id}/*", errno.ENOSPC)
    go(cluster, job_id)
    told = f"job {job_id}: the summary must wait"
    cluster.wait_for(lambda: any(told in cluster.log(f"agent_{node}.log") for node in ("node1", "node2")), told, 60)
    shortage.clear()


def go(cluster: Any, job_id: int) -> None:
    (cluster.share.back / "work" / f"go-{job_id}").touch()


def start_again(cluster: Any, job_id: int) -> None:
    """A requeued job waits two minutes, unless somebody is in a hurry."""
    cluster.wait_for(lambda: cluster.job(job_id).get("Restarts") == "1", "the requeue", 60)
    cluster.wait_for(lambda: cluster.state(job_id) == "PENDING", "the job pending", 60)
    cluster.run("scontrol", "update", f"JobId={job_id}", "StartTime=now", user="root")


@dataclass(frozen=True)
class Ending:
    """One way to end, and what the summary must say of it."""

    name: str
    body: str
    state: str
    cause: str
    """A pattern for the whole sentence."""
    exit_code: int | None = 0
    signal: str | None = None
    slurm: str = "COMPLETED"
    """Slurm's own word."""
    bring_about: Callable[[Any, int], None] = by_itself
    options: tuple[str, ...] = ON_1
    stdout: str = ""
    """What the body says after its first line."""
    earlier: str | None = None
    """The cause of the attempt before, where there was one."""
    unsaved: str | None = None
    """What the summary says of checksums, where a file could not be saved."""


def code(number: int, name: str) -> str:
    return re.escape(f"The body ended with exit code {number} (128 + {number - 128}: {name}).")


DONE = re.escape("Completed: the body ended with exit code 0.")
NEXT = " The next attempt follows."

ENDINGS = (
    Ending("success", "mkdir -p deep/er; echo x >deep/er/file; ln -s file deep/er/link", "completed", DONE),
    Ending("failure", "exit 7", "failed", re.escape("The body ended with exit code 7."), 7, slurm="FAILED"),
    Ending("SIGSEGV", "kill -SEGV $$", "failed", code(139, "SIGSEGV"), 139, "SIGSEGV", "FAILED"),
    Ending("SIGKILL", "kill -KILL $$", "failed", code(137, "SIGKILL"), 137, "SIGKILL", "FAILED"),
    Ending("SIGTERM", "kill -TERM $$", "failed", code(143, "SIGTERM"), 143, "SIGTERM", "FAILED"),
    Ending(
        "out of memory",
        "python3 -c 'x = bytearray(600 << 20); print(len(x))'",
        "out_of_memory",
        r"Out of memory: it was killed at its limit of 256 MiB( \(peak \d+ MiB\))?; ask for more with #SBATCH --mem\.",
        137,
        "SIGKILL",
        "FAILED",
    ),
    Ending(
        "time limit",
        # Brought about like this, warning and end come at the same moment in any order, and SIGTERM perhaps twice.
        f"trap 'echo warned' USR1; trap 'trap \"\" TERM; {A_WHILE}; echo told; exit 3' TERM\n{HOLD}",
        "timeout",
        re.escape("Stopped at its time limit of 1:00: ask for more with #SBATCH --time."),
        3,
        None,
        "TIMEOUT",
        time_limit,
        options=("--time=1", "--signal=USR1@50"),
        stdout="warned\ntold\n",
    ),
    Ending(
        "scancel",
        f"trap 'echo bye; exit 3' TERM\n{HOLD}",
        "cancelled",
        re.escape("Cancelled before it had ended (scancel)."),
        3,
        None,
        "CANCELLED",
        scancel,
        stdout="bye\n",
    ),
    Ending(
        "requeue",
        f"{AGAIN}; {HOLD}",
        "completed",
        DONE,
        bring_about=requeue,
        earlier=re.escape("Put back into the queue (requeue)." + NEXT),
    ),
    Ending(
        "pre-emption that requeues",
        f"{AGAIN}; {HOLD}",
        "completed",
        DONE,
        bring_about=preempt,
        options=ALONE,
        earlier=re.escape(PREEMPTED + NEXT),
    ),
    Ending(
        "pre-emption that cancels",
        f"trap 'exit 3' TERM; {HOLD}",
        "preempted",
        re.escape(PREEMPTED),
        3,
        None,
        "PREEMPTED",
        preempt,
        options=("--partition=cpu", *ALONE),
    ),
    Ending(
        "node lost",
        HOLD,
        "node_fail",
        re.escape(LOST),
        137,
        "SIGKILL",
        "NODE_FAIL",
        lose_node,
        options=("--no-requeue", *ON_2),
    ),
    Ending(
        "node lost, and the job started again",
        f"{AGAIN}; {HOLD}",
        "completed",
        DONE,
        bring_about=lose_node,
        options=ON_2,
        earlier=re.escape(LOST + NEXT),
    ),
    Ending(
        "agent down at the end",
        f"{HOLD}; echo end; exit 5",
        "failed",
        re.escape("The body ended with exit code 5."),
        5,
        None,
        "FAILED",
        agent_down,
        stdout="end\n",
    ),
    Ending(
        "NAS down at the end",
        "trap 'exit 5' USR1; while :; do sleep 0.05; done",
        "failed",
        re.escape("The body ended with exit code 5."),
        5,
        None,
        "FAILED",
        nas_down,
    ),
    Ending(
        "NAS full at the end",
        f"{HOLD}; echo lost || exit 6",
        "failed",
        "The body ended with exit code 6. The NAS was full: what the job wrote last may be missing from its results.",
        6,
        None,
        "FAILED",
        nas_full,
    ),
    Ending(
        "a file that cannot be saved",
        "echo x >locked; chmod 0 locked",
        "completed",
        DONE,
        unsaved="failed: outputs/locked was not readable",
    ),
)


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.name.replace(" ", "-"))
def test_every_ending_leaves_its_bundle(squashed: Any, ending: Ending) -> None:
    job_id = squashed.sbatch(
        f"#!/bin/bash\n#SBATCH --mem=256M\n#K8S_IMAGE={DEBIAN}\n#K8S_WORKDIR=/workspace\n"
        f'echo "attempt ${{SLURM_RESTART_COUNT:-0}}"; echo trouble >&2; echo kept >>answer\n{ending.body}\n',
        "--output=/mnt/nas/work/slurm-%j.out",
        *ending.options,
    )
    folder = squashed.results(job_id)
    answer = folder / "outputs" / "answer"
    squashed.wait_for(lambda: answer.exists() and answer.read_text() == "kept\n", "the body", 60)
    ending.bring_about(squashed, job_id)
    assert squashed.wait(job_id, 120)["JobState"] == ending.slurm

    summary = look_at(squashed, job_id, ending)
    assert re.fullmatch(ending.cause, summary["cause"]), summary["cause"]
    ended = {key: summary[key] for key in ("state", "exit_code", "signal")}
    assert ended == {"state": ending.state, "exit_code": ending.exit_code, "signal": ending.signal}
    attempts = 2 if ending.earlier else 1
    assert squashed.stdout(job_id) == f"attempt {attempts - 1}\n{ending.stdout}"
    assert squashed.stderr(job_id).startswith("trouble\n")  # the shell adds what its children died of
    assert answer.read_text() == "kept\n" * attempts
    assert len(list(folder.glob("attempt-*"))) == attempts - 1
    if ending.earlier:
        first = json.loads((folder / "attempt-0" / "summary.json").read_text())
        assert re.fullmatch(ending.earlier, first["cause"]), first["cause"]
        assert first["state"] == "requeued"
        assert (folder / "attempt-0" / "stdout.log").read_text() == "attempt 0\n"
        assert (folder / "attempt-0" / "stderr.log").read_text().startswith("trouble\n")
    squashed.wait_for(lambda: set(squashed.nodes().values()) == {"idle"}, "idle nodes", 60)
    squashed.wait_for(lambda: squashed.pods() == [], "no pod", 60)


def look_at(cluster: Any, job_id: int, ending: Ending) -> dict[str, Any]:
    """The summary, once the bundle is as complete as it can be, and was found right."""
    if ending.unsaved is None:
        return check_bundle(cluster, job_id)

    def settled() -> dict[str, Any] | None:
        path = cluster.results(job_id) / "summary.json"
        found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"checksums": "pending"}
        return found if found["checksums"] != "pending" else None

    summary: dict[str, Any] = cluster.wait_for(settled, "the checksums")
    check_files(cluster, job_id)
    assert (summary["checksums"], summary["complete"]) == (ending.unsaved, False)
    return summary
