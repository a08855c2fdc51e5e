"""Small processes that start programs for a big one, when there are many to start.

To start a program as somebody else Linux copies the caller's page tables, and the caller then pays for each page it
writes: for a watcher of 40 MB that is as much work as sbatch itself. A clerk has 10 MB. It does one order at a time,
and ends when whoever hired it is gone.
"""

import contextlib
import json
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict
from typing import IO

from slurmk8s.slurm.execute import Done, Order, execute

LENGTHS = struct.Struct("!QQQ")


class Clerks:
    """`run` is `execute`, done by a clerk while any are on duty. May be called by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Clerk] = []
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
                idle, self._idle = self._idle, []
            for clerk in idle:
                clerk.dismiss()

    def run(self, order: Order, stdin: bytes = b"") -> Done:
        """Have it run. If the clerk is killed meanwhile, nobody knows what became of its program."""
        if not self._on_duty:
            return execute(order, stdin)
        with self._lock:
            clerk = self._idle.pop() if self._idle else None
        clerk = clerk or _Clerk()
        try:
            done = clerk.ask(order, stdin)
        except (OSError, EOFError, struct.error):
            clerk.dismiss()
            return Done(None, trouble=f"the process that had started {order.command[0]} was killed")
        with self._lock:
            if self._on_duty:
                self._idle.append(clerk)
                return done
        clerk.dismiss()
        return done


class _Clerk:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-m", "slurmk8s.slurm.clerks"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd="/",
            start_new_session=True,  # Ctrl-C is for the watcher, which finishes its files first
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout

    def ask(self, order: Order, stdin: bytes) -> Done:
        _send(self._to, json.dumps(asdict(order)).encode(), stdin, b"")
        head, out, err = _receive(self._from)
        answer = json.loads(head)
        return Done(answer["status"], out, err, answer["trouble"])

    def dismiss(self) -> None:
        """It reads the end of its orders and goes; one in the middle of an order finishes that first."""
        with contextlib.suppress(OSError):
            self._to.close()
        self._from.close()
        self._process.wait()


def _send(stream: IO[bytes], head: bytes, first: bytes, second: bytes) -> None:
    stream.write(LENGTHS.pack(len(head), len(first), len(second)) + head + first + second)
    stream.flush()


def _receive(stream: IO[bytes]) -> tuple[bytes, bytes, bytes]:
    lengths = LENGTHS.unpack(_exactly(stream, LENGTHS.size))
    head, first, second = (_exactly(stream, length) for length in lengths)
    return head, first, second


def _exactly(stream: IO[bytes], length: int) -> bytes:
    data = stream.read(length)
    if len(data) != length:
        raise EOFError
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
        _send(sys.stdout.buffer, answer, done.stdout, done.stderr)


if __name__ == "__main__":
    main()
