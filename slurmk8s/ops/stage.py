"""How far a running job has come, as far as it can be seen from here without a Kubernetes credential.

On the job's own node its rendezvous folder and the agent's socket tell; anywhere else its logs do.
"""

import contextlib
import json
import os
import socket
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from slurmk8s.config import Config
from slurmk8s.rendezvous import Rendezvous
from slurmk8s.results.paths import Bundle
from slurmk8s.results.summary_text import duration, printable, when
from slurmk8s.slurm.client import Job

# In the order of a job's life; of several sources the one that has seen it furthest is right.
UNKNOWN, PREPARING, WAITING, CONTAINER, BODY, ENDED = range(6)

SECONDS_FOR_AN_ANSWER = 2.0
# slurmk8s-run tells of a pull every 30 s.
PULL_IS_OLD = 90
TAIL = 64 * 1024
OUR_WORD = b"slurmk8s: "


@dataclass(frozen=True)
class Stage:
    """What one source says."""

    reached: int
    words: str
    """Completes "Job 7 is on node1, and …"."""
    evidence: tuple[str, ...] = ()
    step: str = ""
    trouble: bool = False
    """Whether it stays where it is unless somebody does something."""


def furthest(stages: list[Stage]) -> Stage | None:
    """The stage to believe: of several alike the one with trouble, else the last, which is Kubernetes' own."""
    ranked = [(stage.reached, stage.trouble, index) for index, stage in enumerate(stages)]
    return stages[max(ranked)[2]] if ranked else None


def on_this_node(config: Config, node: str, job_id: int) -> list[Stage]:
    """From the job's folder and the agent, if this is its node: else nothing."""
    socket_path = config.agent.run_folder_of(node) / "agent.sock"
    if not os.path.lexists(socket_path) and socket.gethostname().partition(".")[0] != node:
        return []
    alive = _agent_answers(socket_path, node)
    if alive is None:
        return []
    stages = [] if alive else [_agent_away(node, socket_path)]
    meeting = Rendezvous.of(str(config.agent.run_folder), node, job_id)
    if not os.path.isdir(meeting.folder):
        return [*stages, *([Stage(PREPARING, "the node's agent has not prepared its pod yet")] if alive else [])]
    return [*stages, _folder(meeting)]


def _agent_answers(path: Path, node: str) -> bool | None:
    """Whether the agent answers; None if the socket is another node's."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(SECONDS_FOR_AN_ANSWER)
        try:
            connection.connect(str(path))
            connection.sendall(b'{"ask": "status"}\n')
            answer = json.loads(connection.recv(4096) or b"null")
        except (OSError, ValueError):
            return False
    if not isinstance(answer, dict):
        return False
    return True if answer.get("node") == node else None


def _agent_away(node: str, path: Path) -> Stage:
    return Stage(
        PREPARING,
        f"it waits for the agent of {node}, which does not answer",
        (f"agent: no answer at {path}",),
        "Ask your administrator: `systemctl status slurmk8s-agent` on that node.",
        trouble=True,
    )


def _folder(meeting: Rendezvous) -> Stage:
    if not os.access(meeting.handover, os.X_OK):
        ready = os.path.isfile(meeting.plan)
        words = "its pod is being made" if ready else "its folders are being made"
        return Stage(PREPARING, words, (f"{meeting.folder}: there, but its hand-over is its owner's alone",))
    code = meeting.read_exit()
    if code is not None:
        return Stage(ENDED, f"its body has just ended with exit code {code}", (f"{meeting.exit}: {code}",))
    began = _modified(meeting.shell)
    if began is not None:
        return Stage(BODY, f"its body runs since {when(began)}", (f"{meeting.shell}: written {when(began)}",))
    if _modified(meeting.command) is not None:
        words = "it waits for its image or for its container to start"
        return Stage(WAITING, words, (f"{meeting.folder}: handed over, no body yet",))
    return Stage(PREPARING, "its pod is being made", (f"{meeting.folder}: nothing handed over yet",))


def in_logs(job: Job, stderr: str, bundle: Bundle | None, now: float) -> list[Stage]:
    """From what the body has printed, and from slurmk8s-run's own words in Slurm's stderr file."""
    stages = []
    if bundle is not None:
        for path in (bundle.stdout, bundle.stderr):
            found = _printed(path, job.uid)
            if found:
                ago = f"{duration(max(0.0, now - found.st_mtime))} ago"
                evidence = f"{path}: {found.st_size:,} bytes, last written {ago}"
                stages.append(Stage(BODY, f"its body runs and last printed something {ago}", (printable(evidence),)))
                break
    last = _last_word(Path(stderr), job) if stderr else None
    if last is not None:
        said, written = last
        age = max(0.0, now - written)
        evidence = f"log: “{printable(said)}” ({duration(age)} ago)"
        pulling = said.startswith("pulling image") and age < PULL_IS_OLD
        words = f"it waits for its image ({printable(said)})" if pulling else f"its log last said: {printable(said)}"
        stages.append(Stage(WAITING if pulling else UNKNOWN, words.rstrip("."), (evidence,)))
    return stages


def _printed(path: Path, uid: int) -> os.stat_result | None:
    """The file, if the body has written to it. The agent's own notes stand there only when no body ran."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return found if stat.S_ISREG(found.st_mode) and found.st_uid == uid and found.st_size else None


def _last_word(path: Path, job: Job) -> tuple[str, float] | None:
    """The last thing slurmk8s-run said, and when; only from the job owner's own file, since we may be root."""
    with contextlib.suppress(OSError), _found(path) as place:
        found = os.fstat(place)
        written_before = job.started is not None and found.st_mtime < job.started - 1
        if not stat.S_ISREG(found.st_mode) or found.st_uid != job.uid or written_before:
            return None
        descriptor = os.open(f"/proc/self/fd/{place}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            file.seek(max(0, found.st_size - TAIL))
            ours = [line for line in file.read(TAIL).splitlines() if line.startswith(OUR_WORD)]
        if ours:
            return ours[-1].removeprefix(OUR_WORD).decode("utf-8", "replace").strip(), found.st_mtime
    return None


@contextlib.contextmanager
def _found(path: Path) -> Iterator[int]:
    """What a path that somebody chose leads to, to look at: it may be a device, which opening would do something to."""
    place = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield place
    finally:
        os.close(place)


def _modified(path: Path) -> float | None:
    try:
        return path.lstat().st_mtime
    except OSError:
        return None
