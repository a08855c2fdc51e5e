"""The node's living processes, by the container that their control group names.

The one place where /proc is searched. A runtime may say that a container has ended while a process of it still hangs in
the kernel, with a GPU in its hands; the kernel's own list cannot be wrong about that.
"""

import os
from collections.abc import Iterable
from pathlib import Path


def pids_of(proc: Path, marks: Iterable[str]) -> list[int]:
    """The living processes whose control group names one of the marks: a container's id, or a pod's uid."""
    wanted = [mark.encode() for mark in marks if mark]
    if not wanted:
        return []
    found = []
    with os.scandir(proc) as entries:
        numbers = [entry.name for entry in entries if entry.name.isdigit()]
    for number in numbers:
        try:
            groups = (proc / number / "cgroup").read_bytes()
        except OSError:
            continue  # it has just ended
        if any(mark in groups for mark in wanted) and _lives(proc / number):
            found.append(int(number))
    return sorted(found)


def _lives(process: Path) -> bool:
    """A zombie is dead, unless only its first thread has ended: the others still run, and hold what they hold."""
    try:
        state = (process / "stat").read_bytes().rpartition(b")")[2].split()[0]
        return state not in (b"Z", b"X") or len(os.listdir(process / "task")) > 1
    except (OSError, IndexError):
        return False
