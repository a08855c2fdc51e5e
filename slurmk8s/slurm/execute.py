"""Starting programs, as a person, with a time limit. Standard library alone: a clerk is nothing but this."""

import os
import select
import signal
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

SECONDS_TO_LISTEN = 0.2


@dataclass(frozen=True)
class Order:
    """What is to be run, and as whom."""

    command: Sequence[str]
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


Errand = tuple[Order, bytes]
"""An order and what the program reads."""


def execute(order: Order, stdin: bytes = b"") -> Done:
    """Run one to its end."""
    return execute_all([(order, stdin)], 1)[0]


def execute_all(errands: Sequence[Errand], at_once: int) -> list[Done]:
    """Run all to their ends, begun in this order, so many at a time."""
    done: dict[int, Done] = {}
    running: dict[int, tuple[int, _Running]] = {}
    """By descriptor: the errand's number and its program."""
    poll = select.poll()
    following = 0
    while len(done) < len(errands):
        while following < len(errands) and len(running) < at_once:
            begun = _begin(*errands[following])
            if isinstance(begun, Done):
                done[following] = begun
            else:
                running[begun.ended] = (following, begun)
                poll.register(begun.ended, select.POLLIN)
            following += 1
        ended = {descriptor for descriptor, _ in poll.poll(_patience(running.values()))} if running else set()
        for descriptor, (number, program) in list(running.items()):
            if descriptor in ended or program.is_over():
                poll.unregister(descriptor)
                del running[descriptor]
                done[number] = program.finish(by_itself=descriptor in ended)
    return [done[number] for number in range(len(errands))]


def _patience(running: "Iterable[tuple[int, _Running]]") -> float:
    """Milliseconds until one of them must be looked at again."""
    return max(0.0, min(program.patience() for _, program in running)) * 1000


@dataclass(frozen=True)
class _Running:
    """A program that was started.

    Files in memory instead of pipes: nothing has to be read while it runs, and one that leaves a child behind keeps
    nobody waiting.
    """

    order: Order
    pid: int
    ended: int
    """Readable when it has ended."""
    out: int
    err: int
    deadline: float

    def patience(self) -> float:
        left = self.deadline - time.monotonic()
        return min(left, SECONDS_TO_LISTEN) if self.order.last_words else left

    def is_over(self) -> bool:
        return time.monotonic() >= self.deadline or self._says()

    def _says(self) -> bool:
        if not self.order.last_words:
            return False
        line = _content(self.err).rstrip().rpartition(b"\n")[2]
        return any(word.encode() in line for word in self.order.last_words)

    def finish(self, *, by_itself: bool) -> Done:
        if not by_itself:
            os.kill(self.pid, signal.SIGKILL)
        status: int | None = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        if not by_itself:
            status = 1 if self._says() else None
        done = Done(status, _content(self.out), _content(self.err))
        for descriptor in (self.ended, self.out, self.err):
            os.close(descriptor)
        return done


def _begin(order: Order, stdin: bytes) -> _Running | Done:
    given, out, err = (os.memfd_create(name) for name in ("stdin", "stdout", "stderr"))
    try:
        _write_all(given, stdin)
        os.lseek(given, 0, os.SEEK_SET)
        pid = _spawn(order, (given, out, err))
        return _Running(order, pid, os.pidfd_open(pid), out, err, time.monotonic() + order.seconds)
    except OSError as error:
        os.close(out)
        os.close(err)
        return Done(None, trouble=f"{order.command[0]} cannot be run: {error.strerror}")
    finally:
        os.close(given)


def _spawn(order: Order, streams: tuple[int, int, int]) -> int:
    given, out, err = streams
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
    process.returncode = 0  # it is waited for by its number, not by this object
    return process.pid


def _write_all(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def _content(descriptor: int) -> bytes:
    size = os.fstat(descriptor).st_size
    return os.pread(descriptor, size, 0) if size else b""
