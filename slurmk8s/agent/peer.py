"""Who is calling: the uid and the Slurm job of the process at the other end of the socket.

The uid alone would let one job of a person drive another of theirs. The job is proven by the process's place: inside
Slurm's cgroup of the job, or below a slurmstepd (root's own program) that says which job it serves.
"""

import os
import re
import select
import socket
import struct
from dataclasses import dataclass

# Where Slurm itself makes them, in version 1 and 2: people can make groups of any name, but only below their own.
_CGROUP = re.compile(
    r"^[^:]*:[^:]*:(?:/slurm[^/]*/uid_\d+|/system\.slice/[^/]*slurmstepd\.scope)/job_(\d+)(?:/|$)", re.MULTILINE
)
_TITLE = re.compile(rb"slurmstepd: \[(\d+)\.")
# Processes between the task and slurmstepd are our own sh and python; a longer chain is somebody's loop.
_LONGEST_CHAIN = 20


@dataclass(frozen=True)
class Peer:
    """A caller."""

    pid: int
    uid: int
    job_id: int | None
    """The job it runs in; None where that cannot be proven."""


def of(connection: socket.socket) -> Peer:
    """The caller on this connection, as the kernel knows it."""
    pid, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    try:
        pidfd = os.pidfd_open(pid)  # holds the pid's meaning while we look
    except OSError:
        return Peer(pid, uid, None)
    try:
        job_id = job_of(pid)
        return Peer(pid, uid, job_id if _alive(pidfd) else None)
    except OSError:
        return Peer(pid, uid, None)
    finally:
        os.close(pidfd)


def _alive(pidfd: int) -> bool:
    return not select.select([pidfd], [], [], 0)[0]


def job_of(pid: int) -> int | None:
    """The Slurm job that a process belongs to."""
    with open(f"/proc/{pid}/cgroup", encoding="utf-8") as file:
        if (match := _CGROUP.search(file.read())) is not None:
            return int(match[1])
    for _ in range(_LONGEST_CHAIN):
        pid = _parent(pid)
        if pid <= 1:
            return None
        if _is_slurmstepd(pid):
            with open(f"/proc/{pid}/cmdline", "rb") as command:
                match_title = _TITLE.match(command.read(200))
            return int(match_title[1]) if match_title else None
    return None


def _parent(pid: int) -> int:
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        # The name in parentheses may hold anything; the fields after the last one are fixed.
        return int(file.read().rpartition(")")[2].split()[1])


def _is_slurmstepd(pid: int) -> bool:
    """Root's own program, not somebody's process of that name."""
    try:
        root = os.stat(f"/proc/{pid}").st_uid == 0
        return root and os.path.basename(os.readlink(f"/proc/{pid}/exe")).startswith("slurmstepd")
    except OSError:
        return False
