"""Starting programs, as a person, with a time limit. Standard library alone: a clerk is nothing but this."""

import os
import select
import signal
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

SECONDS_TO_LISTEN = 0.2
SECONDS_TO_GO = 1.0
"""For a program that was killed. One that its person traces stays, dead, for as long as that person likes."""
LONGEST_WORDS = 1 << 20
"""Bytes that are read of what a person's program says: the person can make it say any amount."""

_unreaped: list[int] = []
"""Programs that have ended and could not be waited for."""


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


def execute_all(errands: Sequence[Errand], at_once: int) -> list[Done]:
    """Run all to their ends, begun in this order, so many at a time."""
    _unreaped[:] = [pid for pid in _unreaped if not _has_gone(pid)]
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
        line = self._read(self.err).rstrip().rpartition(b"\n")[2]
        return any(word.encode() in line for word in self.order.last_words)

    def finish(self, *, by_itself: bool) -> Done:
        if not by_itself:
            os.kill(self.pid, signal.SIGKILL)
        status = _end_of(self.pid)
        if not by_itself:
            status = 1 if self._says() else None
        done = Done(status, self._read(self.out), self._read(self.err))
        for descriptor in (self.ended, self.out, self.err):
            os.close(descriptor)
        return done

    def _read(self, descriptor: int) -> bytes:
        size = os.fstat(descriptor).st_size
        return os.pread(descriptor, size if self.order.uid is None else min(size, LONGEST_WORDS), 0)


def _end_of(pid: int) -> int | None:
    """How it ended; None if somebody else keeps that for now."""
    deadline = time.monotonic() + SECONDS_TO_GO
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            _unreaped.append(pid)
            return None
        time.sleep(0.001)


def _has_gone(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:  # it was started before we were forked: somebody else's to wait for
        return True


def _begin(order: Order, stdin: bytes) -> _Running | Done:
    given, out, err = (os.memfd_create(name) for name in ("stdin", "stdout", "stderr"))
    try:
        with open(given, "wb", closefd=False) as file:
            file.write(stdin)
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
