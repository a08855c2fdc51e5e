"""Small processes that start a person's programs for a big one, when there are many to start.

To start a program as somebody else Linux copies the caller's page tables, and the caller then pays for each page it
writes: for a watcher of 40 MB that is as much work as sbatch itself. A clerk is that person from its beginning, so it
starts programs without any of this. It does one order at a time, and ends when whoever hired it is gone.

A clerk belongs to the person, who may stop it, kill it, or make it say anything: about that person's own orders, which
run with that person's own rights. Whatever it says is short and in time, or it is dismissed.
"""

import contextlib
import json
import os
import select
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import IO

from slurmk8s.slurm.execute import Done, Order, execute

LENGTHS = struct.Struct("!III")
LONGEST = 4 << 20
"""Bytes of each part of an answer. sbatch says a line or two."""
SECONDS_MORE = 5.0
"""A clerk that has not answered by then has been stopped."""

Person = tuple[int, int, tuple[int, ...]]


class Clerks:
    """`run` is `execute`, done by the person's clerk while any are on duty. May be called by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: dict[Person, list[_Clerk]] = {}
        self._on_duty = False

    @contextlib.contextmanager
    def on_duty(self) -> Iterator[None]:
        """Clerks are hired as they are needed and dismissed at the end."""
        self._on_duty = True
        try:
            yield
        finally:
            self._on_duty = False
            with self._lock:
                idle, self._idle = self._idle, {}
            for clerk in [clerk for clerks in idle.values() for clerk in clerks]:
                clerk.dismiss()

    def run(self, order: Order, stdin: bytes = b"") -> Done:
        """Have it run. If the clerk is killed meanwhile, nobody knows what became of its program."""
        if not self._on_duty or order.uid is None or order.gid is None:
            return execute(order, stdin)
        person = order.uid, order.gid, tuple(order.groups or ())
        with self._lock:
            idle = self._idle.get(person)
            clerk = idle.pop() if idle else None
        try:
            clerk = clerk or _Clerk(person)
        except OSError:  # no Python for that person: the dear way
            return execute(order, stdin)
        try:
            done = clerk.ask(order, stdin)
        except (OSError, EOFError, ValueError, KeyError, TypeError):
            clerk.dismiss()
            return Done(-signal.SIGKILL)
        with self._lock:
            if self._on_duty:
                self._idle.setdefault(person, []).append(clerk)
                return done
        clerk.dismiss()
        return done


class _Clerk:
    def __init__(self, person: Person) -> None:
        uid, gid, groups = person
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-m", "slurmk8s.slurm.clerks"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={"PATH": "/usr/bin:/bin"},
            start_new_session=True,  # Ctrl-C is for the watcher, which finishes its files first
            user=uid,
            group=gid,
            extra_groups=groups,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout

    def ask(self, order: Order, stdin: bytes) -> Done:
        deadline = time.monotonic() + order.seconds + SECONDS_MORE
        own = replace(order, uid=None, gid=None, groups=None)
        _send(self._to, json.dumps(asdict(own)).encode(), stdin, b"")
        head, out, err = _receive(self._from, deadline)
        answer = json.loads(head)
        status, trouble = answer["status"], answer["trouble"]
        if not (status is None or isinstance(status, int)) or not isinstance(trouble, str):
            raise ValueError("not an answer")
        return Done(status, out, err, trouble)

    def dismiss(self) -> None:
        """It has no order, or is not worth waiting for."""
        self._process.kill()
        with contextlib.suppress(OSError):
            self._to.close()
        self._from.close()
        self._process.wait()


def _send(stream: IO[bytes], head: bytes, first: bytes, second: bytes) -> None:
    stream.write(LENGTHS.pack(len(head), len(first), len(second)) + head + first + second)
    stream.flush()


def _receive(stream: IO[bytes], deadline: float | None = None) -> tuple[bytes, bytes, bytes]:
    """Three parts. By the descriptor: the stream's own buffer would hide from poll what it has read ahead."""
    lengths = LENGTHS.unpack(_exactly(stream.fileno(), LENGTHS.size, deadline))
    if max(lengths) > LONGEST + 1:  # a script is as long as a drop may be
        raise ValueError("too long")
    head, first, second = (_exactly(stream.fileno(), length, deadline) for length in lengths)
    return head, first, second


def _exactly(descriptor: int, length: int, deadline: float | None) -> bytes:
    data = b""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    while len(data) < length:
        if deadline is not None and not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise TimeoutError
        part = os.read(descriptor, min(length - len(data), 1 << 20))
        if not part:
            raise EOFError
        data += part
    return data


def main() -> None:
    """Be a clerk."""
    while True:
        try:
            head, stdin, _ = _receive(sys.stdin.buffer)
        except EOFError:
            return
        done = execute(Order(**json.loads(head)), stdin)
        answer = json.dumps({"status": done.status, "trouble": done.trouble}).encode()
        _send(sys.stdout.buffer, answer, done.stdout[:LONGEST], done.stderr[:LONGEST])


if __name__ == "__main__":
    main()
