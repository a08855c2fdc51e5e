"""Starting one program, as a person, with a time limit. Standard library alone: a clerk is nothing but this."""

import os
import select
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass

SECONDS_TO_LISTEN = 0.2


@dataclass(frozen=True)
class Order:
    """What is to be run, and as whom."""

    command: tuple[str, ...]
    environment: dict[str, str]
    seconds: float
    uid: int | None = None
    """None: as ourselves. Else all of root's rights are given up for the person's, the groups too."""
    gid: int | None = None
    groups: Sequence[int] | None = None
    last_words: Sequence[str] = ()
    """It is stopped, with status 1, once its last line of errors has one of them: its own retries take too long."""


@dataclass(frozen=True)
class Done:
    """How it ended."""

    status: int | None
    """As `subprocess` has it; None if it did not end in time and was killed, or never began."""
    stdout: bytes = b""
    stderr: bytes = b""
    trouble: str = ""
    """Why it never began, or why nobody knows how it ended."""


def execute(order: Order, stdin: bytes = b"") -> Done:
    """Run it to its end.

    Files in memory instead of pipes: nothing has to be read while the program runs, and a program that leaves a child
    behind keeps nobody waiting.
    """
    given, out, err = (os.memfd_create(name) for name in ("stdin", "stdout", "stderr"))
    try:
        _write_all(given, stdin)
        os.lseek(given, 0, os.SEEK_SET)
        process = subprocess.Popen(
            order.command,
            stdin=given,
            stdout=out,
            stderr=err,
            cwd="/",
            env=order.environment,
            umask=0o022,  # sbatch hands its umask on to the job
            user=order.uid,
            group=order.gid,
            extra_groups=order.groups,
        )
        ended = _wait(process, order, err)
        if not ended:
            process.kill()
        status: int | None = process.wait()
        if not ended:
            status = 1 if _says(err, order.last_words) else None
        return Done(status, _content(out), _content(err))
    except OSError as error:
        return Done(None, trouble=f"{order.command[0]} cannot be run: {error.strerror}")
    finally:
        for descriptor in (given, out, err):
            os.close(descriptor)


def _wait(process: "subprocess.Popen[bytes]", order: Order, err: int) -> bool:
    """Whether it has ended by itself; Popen's own way would look again and again."""
    deadline = time.monotonic() + order.seconds
    descriptor = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        while (left := deadline - time.monotonic()) > 0:
            if poll.poll(1000 * (min(left, SECONDS_TO_LISTEN) if order.last_words else left)):
                return True
            if _says(err, order.last_words):
                return False
        return False
    finally:
        os.close(descriptor)


def _says(err: int, words: Sequence[str]) -> bool:
    if not words:
        return False
    line = _content(err).rstrip().rpartition(b"\n")[2]
    return any(word.encode() in line for word in words)


def _write_all(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def _content(descriptor: int) -> bytes:
    size = os.fstat(descriptor).st_size
    return os.pread(descriptor, size, 0) if size else b""
