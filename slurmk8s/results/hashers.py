"""Processes that hash files, several at a time, with the results in order and few of them ever waiting.

Processes, not threads: hashing lets go of the interpreter's lock, but opening a hundred thousand small files does not,
and two threads were slower there than one (bench/bench_collection.py). They end with the process that started them.
"""

import contextlib
import ctypes
import mmap
import os
import pickle
import selectors
import signal
import socket
import struct
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

from slurmk8s.errors import ClusterFault
from slurmk8s.results.hashing import CHUNK, Hashed, hash_file
from slurmk8s.results.walk import open_below, trouble

# Small files go to a process many at a time; a large one goes alone.
BATCH_FILES = 64
BATCH_BYTES = 4 << 20
# Between two looks at how far the processes are.
TICK_SECONDS = 1.0
_DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_COUNTER = struct.Struct("=Q")
_LENGTH = struct.Struct("=I")


@dataclass(frozen=True)
class Batch:
    """Files of one folder."""

    path: bytes
    """The folder's, relative to where the work is done; empty for that folder itself."""
    names: tuple[bytes, ...]


@dataclass(frozen=True)
class Way:
    """How the work is done."""

    processes: int = 2
    bytes_per_second: float | None = None
    """All processes together; None: as fast as it goes."""
    tries: int = 3
    """How often a file that changes is looked at."""
    tick: Callable[[int], None] | None = None
    """Told about once a second how many bytes were read so far."""


def hash_all(base: int, work: Iterable[Batch | list[Hashed]], way: Way) -> Iterator[list[Hashed]]:
    """The results of each piece of work, in order. What is known already passes through."""
    with _Crew(base, way) as crew:
        waiting: deque[list[Hashed] | _Asked] = deque()
        for piece in work:
            waiting.append(crew.ask(piece) if isinstance(piece, Batch) else piece)
            while waiting and (len(waiting) >= 4 * way.processes or not isinstance(waiting[0], _Asked)):
                yield crew.answer(waiting.popleft())
        while waiting:
            yield crew.answer(waiting.popleft())


class _Asked:
    """A batch on its way."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.hashed: list[Hashed] | None = None


class _Crew:
    """The processes; each is started when there is work that no other has time for."""

    def __init__(self, base: int, way: Way) -> None:
        self._base = base
        self._way = way
        self._counters = mmap.mmap(-1, _COUNTER.size * way.processes)  # shared with the processes
        self._lines: dict[int, tuple[int, socket.socket]] = {}
        self._idle: list[int] = []
        self._busy: dict[int, _Asked] = {}
        self._unassigned: deque[_Asked] = deque()
        self._selector = selectors.DefaultSelector()
        self._next_tick = time.monotonic() + TICK_SECONDS

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pid, line in self._lines.values():
            line.close()
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)  # it only reads
            os.waitpid(pid, 0)
        self._selector.close()
        self._counters.close()

    def ask(self, batch: Batch) -> _Asked:
        asked = _Asked(batch)
        self._unassigned.append(asked)
        self._assign()
        return asked

    def answer(self, asked: list[Hashed] | _Asked) -> list[Hashed]:
        if not isinstance(asked, _Asked):
            return asked
        while asked.hashed is None:
            ready = self._selector.select(TICK_SECONDS)
            for key, _ in ready:
                self._take(int(key.data))
            self._assign()
            self._tell()
        return asked.hashed

    def _assign(self) -> None:
        while self._unassigned:
            if not self._idle and len(self._lines) < self._way.processes:
                self._start()
            if not self._idle:
                return
            number, asked = self._idle.pop(), self._unassigned.popleft()
            self._busy[number] = asked
            try:
                _send(self._lines[number][1], (asked.batch.path, asked.batch.names))
            except ConnectionError:
                raise _lost() from None

    def _take(self, number: int) -> None:
        answer = _receive(self._lines[number][1])
        if answer is None:
            raise _lost()
        if isinstance(answer, Exception):
            raise answer
        self._busy.pop(number).hashed = answer
        self._idle.append(number)

    def _tell(self) -> None:
        now = time.monotonic()
        if self._way.tick is not None and now >= self._next_tick:
            self._next_tick = now + TICK_SECONDS
            self._way.tick(sum(count for (count,) in _COUNTER.iter_unpack(self._counters[:])))

    def _start(self) -> None:
        number = len(self._lines)
        ours, theirs = socket.socketpair()
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
                ours.close()
                for _, line in self._lines.values():
                    line.close()
                if os.getppid() == parent:
                    self._serve(number, theirs)
                status = 0
            finally:
                os._exit(status)  # nothing of the parent's may be flushed or closed twice
        theirs.close()
        self._lines[number] = (pid, ours)
        self._idle.append(number)
        self._selector.register(ours, selectors.EVENT_READ, number)

    def _serve(self, number: int, line: socket.socket) -> None:
        """In the process of its own: batch after batch, until the line is closed."""
        pace = _Pace(self._counters, number, (self._way.bytes_per_second or 0) / self._way.processes)
        while (asked := _receive(line)) is not None:
            path, names = asked
            try:
                _send(line, _hash_batch(self._base, path, names, self._way.tries, pace))
            except ConnectionError:
                return
            except OSError as error:
                _send(line, OSError(error.errno, error.strerror))
            except Exception:  # noqa: BLE001 - a bug: its traceback belongs to whoever asked
                _send(line, RuntimeError(traceback.format_exc()))


class _Pace:
    """Counts what one process reads, and holds it back where a site limits it."""

    def __init__(self, counters: mmap.mmap, number: int, bytes_per_second: float) -> None:
        self._counters = counters
        self._offset = number * _COUNTER.size
        self._rate = bytes_per_second
        self._count = 0
        self._free_at = time.monotonic()

    def __call__(self, count: int) -> None:
        self._count += count
        _COUNTER.pack_into(self._counters, self._offset, self._count)
        if self._rate:
            now = time.monotonic()
            # At most a second's worth is saved up while there was nothing to do.
            self._free_at = max(self._free_at, now - 1) + count / self._rate
            if self._free_at > now:
                time.sleep(self._free_at - now)


def _hash_batch(base: int, path: bytes, names: tuple[bytes, ...], tries: int, pace: _Pace) -> list[Hashed]:
    prefix = path + b"/" if path else b""
    try:
        folder = open_below(base, path) if path else os.dup(base)
    except OSError as error:
        state = trouble(error)
        return [Hashed(prefix + name, state) for name in names]
    try:
        return [hash_file(folder, name, prefix + name, tries, pace) for name in names]
    finally:
        os.close(folder)


def batches(path: bytes, sized: Iterable[tuple[bytes, int]]) -> Iterator[Batch]:
    """Files of one folder with their sizes, in pieces that keep every process busy."""
    names: list[bytes] = []
    size = 0
    for name, bytes_ in sized:
        names.append(name)
        size += bytes_
        if len(names) >= BATCH_FILES or size >= BATCH_BYTES:
            yield Batch(path, tuple(names))
            names, size = [], 0
    if names:
        yield Batch(path, tuple(names))


def _send(line: socket.socket, message: object) -> None:
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    line.sendall(_LENGTH.pack(len(data)) + data)


def _receive(line: socket.socket) -> Any:  # noqa: ANN401 - what the other side has sent
    """None when the line is closed."""
    head = _exactly(line, _LENGTH.size)
    data = _exactly(line, _LENGTH.unpack(head)[0]) if head else b""
    return pickle.loads(data) if data else None  # noqa: S301 - only ever from a process of our own


def _exactly(line: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        try:
            more = line.recv(min(count - len(data), CHUNK))
        except ConnectionError:
            return b""
        if not more:
            return b""
        data += more
    return data


def _lost() -> ClusterFault:
    return ClusterFault("A process that hashed files was ended from outside.", "It is tried again.")
