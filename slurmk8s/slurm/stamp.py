"""What travels with a job inside Slurm: the stamp in its admin_comment, and our words in its comment.

The stamp is written by `slurmk8s.lua` and holds the job file's `#K8S_` lines. `scontrol show job` prints an
admin_comment raw, newlines and all, between other fields, so the lines are percent-encoded: one word without space or
`=`, which nobody can mistake for another field. Percent, since Lua can write it in one line.

The comment belongs to the person; we only append words to it. It may change after submission, so nothing that matters
for safety is read from it.
"""

import hashlib
import re
from urllib.parse import quote, unquote

from slurmk8s.errors import PersonFault

PREFIX = "slurmk8s/1:"
"""How a stamp begins; the number is the version of what follows."""
MARKER = "slurmk8s"
"""Word in the comment that tells the Prolog to do something."""
KEY = "slurmk8s-key="
"""Word in the comment by which the watcher finds its own job again; 32 hex digits follow."""
REQUEUED = "requeued:"
"""Starts the reason of a requeue in the comment, where squeue can show it; it runs to the end."""
COMMENT_LIMIT = 1024
"""Bytes that slurmctld takes as a comment."""

CLOCK_SKEW = 60.0
"""Seconds by which the clocks of two machines may differ."""
EARLIEST = 1.6e9
"""2020: nothing of ours is older."""

KEY_WORD = re.compile(rf"(?:^|\s){KEY}([0-9a-f]{{32}})(?=\s|$)")
STAMP = re.compile(r"slurmk8s/1:([A-Za-z0-9_.~/:@%-]*)(?:!([0-9]{1,6}))?")
"""The lines, and behind a `!` how often the job was started only to find its person's quota full."""


def encode(lines: str) -> str:
    """The stamp for these `#K8S_` lines. Production stamps are written by Lua; this is the same in Python."""
    return PREFIX + quote(lines, safe="/:@", errors="surrogateescape")


def decode(admin_comment: str) -> str:
    """The `#K8S_` lines, joined by newlines; "" if this is no stamp of ours; ValueError if it is a broken one."""
    if not admin_comment.startswith("slurmk8s/"):
        return ""
    match = STAMP.fullmatch(admin_comment)
    if match is None or re.search(r"%(?![0-9A-Fa-f]{2})", match[1]):
        raise ValueError(f"the stamp {admin_comment[:40]!r} is not one of version 1")
    return unquote(match[1], errors="surrogateescape")


def waits(admin_comment: str) -> int:
    """How often the job was put back into the queue because its person's quota was full."""
    match = STAMP.fullmatch(admin_comment)
    return int(match[2] or 0) if match else 0


def with_wait(admin_comment: str) -> str:
    """The stamp of a job that goes back into the queue for that reason once more."""
    return f"{admin_comment.partition('!')[0]}!{waits(admin_comment) + 1}"


def is_stamped(admin_comment: str) -> bool:
    """Whether Lua has taken this job for one of ours."""
    return admin_comment.startswith(PREFIX)


def with_key(comment: str, key: str) -> str:
    """The comment to submit with: the person's own words, then the key. Lua appends the marker itself."""
    whole = f"{without_key(comment)} {KEY}{key}".lstrip()
    size = len(f"{whole} {MARKER}".encode(errors="surrogateescape"))
    if size > COMMENT_LIMIT:
        raise PersonFault(
            f"The comment with the words that slurmk8s adds has {size} bytes, and Slurm takes {COMMENT_LIMIT}.",
            f"Shorten --comment by {size - COMMENT_LIMIT} bytes.",
        )
    return whole


def key_of(comment: str) -> str | None:
    """The key in a comment. A person may write one too, so the last counts, which is where ours stands."""
    found = KEY_WORD.findall(comment)
    return found[-1] if found else None


def new_key(secret: str, claimed: float) -> str:
    """The key of a drop: 12 digits of when it was taken, in ms, and 20 that nobody can foresee."""
    return f"{int(claimed * 1000):012x}{hashlib.sha256(secret.encode()).hexdigest()[:20]}"


def dropped_at(comment: str, submitted: float | None) -> float | None:
    """When the watcher took the file of this job, by its key; None for a job by plain sbatch.

    Whoever invents a key for a job of their own deceives nobody else: no earlier than Slurm's first jobs, no later
    than the job was submitted.
    """
    key = key_of(comment)
    if key is None or submitted is None:
        return None
    moment = int(key[:12], 16) / 1000
    return moment if EARLIEST <= moment <= submitted + CLOCK_SKEW else None


def without_key(comment: str) -> str:
    """The comment without any key, for a person who copied the comment of an earlier job."""
    return KEY_WORD.sub("", comment).strip()


def with_requeue_reason(comment: str, reason: str) -> str:
    """The comment that shows why the job waits again; an earlier reason is replaced, a long one cut."""
    head = comment.partition(f" {REQUEUED} ")[0]
    text = " ".join(reason.split())
    room = COMMENT_LIMIT - len(f"{head} {REQUEUED} ".encode(errors="surrogateescape"))
    if room <= 0:
        return head
    return f"{head} {REQUEUED} {text.encode()[:room].decode(errors='ignore')}"
