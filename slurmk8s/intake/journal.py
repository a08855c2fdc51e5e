"""What is known about a claim: one file per fact, in the claim's own folder, and the first writer wins.

link(2) decides between two watchers and never replaces, on NFS too. A fact that exists is complete and on disk.
All names start with a dot: a dropped file never does, so it can lie beside them under its own name.
"""

import contextlib
import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal

from slurmk8s import durable

SUBMISSION = ".submission"
"""Written directly before sbatch: from here on a job may exist, so Slurm is asked before it is submitted again."""
DOUBT = ".doubt"
"""An attempt may have ended without an answer: a second job with this key may still turn up, held. Holds the uid."""
ANSWER = ".answer"
"""The job's id, or the reason. Nothing is released before this exists."""
WAITING = ".waiting"
"""Name of the note beside the drop that says the file waits."""
TOLD = ".told"
"""The person has the receipt. Not forced to disk: the receipt names its claim, so telling twice is one receipt."""
WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
LASTING = frozenset({DOUBT, ANSWER, TOLD})
"""What stays in done/: a watcher that was stopped in mid-work must find that all is said."""


@dataclass(frozen=True)
class Fact:
    """Something to be recorded about a claim."""

    folder: int
    """The claim's own."""
    name: str
    data: bytes = b""
    mark: bytes = field(default_factory=lambda: secrets.token_hex(8).encode())
    """Tells our own from another watcher's."""

    @property
    def temporary(self) -> str:
        """Where it is written first."""
        return f"{self.name}.{self.mark.decode()}.tmp"


def record(folder: int, fact: str, data: bytes = b"") -> bool:
    """Write the fact; False if it was there before, in which case the earlier one stands."""
    return record_all([Fact(folder, fact, data)])[0]


def record_all(facts: Sequence[Fact]) -> list[bool]:
    """Write facts about several claims, each as `record` does; the disk is asked twice for all of them together."""
    if not facts:
        return []
    opened: list[int] = []
    try:
        for fact in facts:
            opened.append(os.open(fact.temporary, WRITE, 0o600, dir_fd=fact.folder))
            with open(opened[-1], "wb", closefd=False) as file:
                file.write(fact.mark + b"\n" + fact.data)
        durable.keep(opened)
    finally:
        for descriptor in opened:
            os.close(descriptor)
    won = [_link(fact) for fact in facts]
    durable.keep([fact.folder for fact in facts])
    return won


def _link(fact: Fact) -> bool:
    folder = fact.folder
    try:
        os.link(fact.temporary, fact.name, src_dir_fd=folder, dst_dir_fd=folder)
        return True
    except FileExistsError:
        # An NFS server that answers a repeated request says "exists" about our own link. The mark tells; link counts
        # and inode numbers do not on every network file system.
        return _read_all(folder, fact.name).startswith(fact.mark + b"\n")
    finally:
        with contextlib.suppress(FileNotFoundError):  # what NFS answers to a repeated request
            os.unlink(fact.temporary, dir_fd=folder)


def mark(folder: int, fact: str) -> None:
    """Note a fact that has no content and may be lost in a power failure."""
    with contextlib.suppress(FileExistsError):
        os.close(os.open(fact, WRITE, 0o600, dir_fd=folder))


def read(folder: int, fact: str) -> bytes | None:
    """The fact, or None."""
    try:
        return _read_all(folder, fact).partition(b"\n")[2]
    except FileNotFoundError:
        return None


def _read_all(folder: int, fact: str) -> bytes:
    with open(os.open(fact, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder), "rb") as file:
        return file.read()


@dataclass(frozen=True)
class Submission:
    """Exactly what goes to sbatch, so that whoever takes over submits the same."""

    script: bytes
    options: tuple[str, ...]
    release: bool
    """Whether the job is to run; a person's own `--hold` is kept."""
    where: str
    """Where the job's output comes, with %j for its id; for the receipt."""
    remarks: str
    """What the check said beside "yes", for the receipt."""

    def to_bytes(self) -> bytes:
        """One line of JSON, then the script as it is."""
        head = {"options": self.options, "release": self.release, "where": self.where, "remarks": self.remarks}
        return json.dumps(head).encode() + b"\n" + self.script

    @classmethod
    def from_bytes(cls, data: bytes) -> "Submission":
        """The inverse of `to_bytes`."""
        line, _, script = data.partition(b"\n")
        head = json.loads(line)
        return cls(script, tuple(head["options"]), head["release"], head["where"], head["remarks"])


@dataclass(frozen=True)
class Answer:
    """How a drop ended: a job, the reason why not, or another job cancelled."""

    kind: Literal["job", "refused", "cancelled"]
    job_id: int | None = None
    text: str = ""
    """For a job the remarks, else what the person reads."""
    release: bool = False
    reason: str = ""
    """Why it was refused, as one word for statistics."""

    @property
    def submitted(self) -> int | None:
        """The job that the drop became."""
        return self.job_id if self.kind == "job" else None

    def to_bytes(self) -> bytes:
        """As JSON."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Answer":
        """The inverse of `to_bytes`."""
        return cls(**json.loads(data))


def job(job_id: int, submission: Submission) -> Answer:
    """The drop became this job."""
    return Answer("job", job_id, submission.remarks, submission.release)


def refused(text: str, reason: str) -> Answer:
    """The drop becomes no job."""
    return Answer("refused", None, text, reason=reason)
