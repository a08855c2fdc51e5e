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
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace

from slurmk8s.slurm.execute import LONGEST_WORDS, SECONDS_TO_GO, Done, Errand, Order, execute_all

LONGEST = 16 << 20
"""Bytes of one part: a script is as long as a drop may be."""
MOST_PARTS = 10_000
PIPE = 65536
SECONDS_MORE = 5.0
"""A clerk that has not answered by then has been stopped."""

Person = tuple[int, int, tuple[int, ...]]

_unreaped: list[subprocess.Popen[bytes]] = []
"""Clerks that were killed and could not be waited for: their person traces them."""


class Clerks:
    """`run_all` is `execute_all`, done by the person's clerk while any are on duty."""

    def __init__(self) -> None:
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
            idle, self._idle = self._idle, {}
            for clerk in [clerk for clerks in idle.values() for clerk in clerks]:
                clerk.dismiss()

    def run_all(self, errands: Sequence[Errand], at_once: int) -> list[Done]:
        """Have errands of one person run. If the clerk is killed, nobody knows what became of them."""
        order = errands[0][0]
        if not self._on_duty or order.uid is None or order.gid is None:
            return execute_all(errands, at_once)
        person = order.uid, order.gid, tuple(order.groups or ())
        idle = self._idle.get(person)
        try:
            clerk = idle.pop() if idle else _Clerk(person)
        except OSError:  # no Python for that person: the dear way
            return execute_all(errands, at_once)
        try:
            done = clerk.ask(errands, at_once)
        except (OSError, EOFError, ValueError, KeyError, TypeError, RecursionError):
            clerk.dismiss()
            return [Done(-signal.SIGKILL)] * len(errands)
        self._idle.setdefault(person, []).append(clerk)
        return done


class _Clerk:
    def __init__(self, person: Person) -> None:
        _unreaped[:] = [process for process in _unreaped if process.poll() is None]
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
        # The person can open the other ends too, and take away what was just there: nothing here may wait for it.
        for ours in (self._to, self._from):
            os.set_blocking(ours.fileno(), False)

    def ask(self, errands: Sequence[Errand], at_once: int) -> list[Done]:
        slowest = max(order.seconds for order, _ in errands)
        deadline = time.monotonic() + slowest * -(-len(errands) // at_once) + SECONDS_MORE
        orders = [asdict(replace(order, uid=None, gid=None, groups=None)) for order, _ in errands]
        head = {"orders": orders, "at_once": at_once}
        _send(self._to.fileno(), [json.dumps(head).encode(), *(stdin for _, stdin in errands)], deadline)
        said, *parts = _receive(self._from.fileno(), deadline, 1 + 2 * len(errands), LONGEST_WORDS)
        ends = json.loads(said)
        if len(ends) != len(errands) or len(parts) != 2 * len(errands):
            raise ValueError("not an answer")
        return [
            Done(_status(end["status"]), out, err, str(end["trouble"]))
            for end, out, err in zip(ends, parts[0::2], parts[1::2], strict=True)
        ]

    def dismiss(self) -> None:
        """It has no order, or is not worth waiting for."""
        self._process.kill()
        with contextlib.suppress(OSError):
            self._to.close()
        self._from.close()
        try:
            self._process.wait(SECONDS_TO_GO)
        except subprocess.TimeoutExpired:
            _unreaped.append(self._process)


def _status(value: object) -> int | None:
    if value is not None and not isinstance(value, int):
        raise ValueError("not a status")
    return value


def _send(descriptor: int, parts: Sequence[bytes], deadline: float | None = None) -> None:
    """The number of parts, their lengths, the parts."""
    lengths = struct.pack(f"!{len(parts) + 1}I", len(parts), *map(len, parts))
    left = memoryview(b"".join([lengths, *parts]))
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    while left:
        if deadline is not None and not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise TimeoutError
        with contextlib.suppress(BlockingIOError):
            left = left[os.write(descriptor, left[:PIPE]) :]


def _receive(
    descriptor: int, deadline: float | None = None, most: int = MOST_PARTS, longest: int = LONGEST
) -> list[bytes]:
    (count,) = struct.unpack("!I", _exactly(descriptor, 4, deadline))
    if not 0 < count <= most:
        raise ValueError("too many parts")
    lengths = struct.unpack(f"!{count}I", _exactly(descriptor, 4 * count, deadline))
    if max(lengths) > longest:
        raise ValueError("too long")
    return [_exactly(descriptor, length, deadline) for length in lengths]


def _exactly(descriptor: int, length: int, deadline: float | None) -> bytes:
    data = bytearray()
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    while len(data) < length:
        if deadline is not None and not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise TimeoutError
        try:
            part = os.read(descriptor, min(length - len(data), 1 << 20))
        except BlockingIOError:
            continue
        if not part:
            raise EOFError
        data += part
    return bytes(data)


def main() -> None:
    """Be a clerk."""
    while True:
        try:
            head, *texts = _receive(0)
        except EOFError:
            return
        asked = json.loads(head)
        errands = [(Order(**order), stdin) for order, stdin in zip(asked["orders"], texts, strict=True)]
        done = execute_all(errands, asked["at_once"])
        ends = [{"status": each.status, "trouble": each.trouble} for each in done]
        parts = [part[:LONGEST_WORDS] for each in done for part in (each.stdout, each.stderr)]
        _send(1, [json.dumps(ends).encode(), *parts])


if __name__ == "__main__":
    main()
