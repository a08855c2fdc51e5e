"""How far the hashing of a bundle is: a small file in the bundle while it lasts, so that any machine can show it."""

import contextlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from slurmk8s.results import files, paths
from slurmk8s.results.strict import Malformed, load
from slurmk8s.results.summary_text import duration, size

SECONDS_BETWEEN = 5.0
"""Between two writings of the file: it is for people."""
_STALE_SECONDS = 60.0
"""A worker that has written nothing for so long is stopped or cut off from the NAS."""
_ENOUGH_SECONDS = 10.0
"""Before that a speed says little."""


@dataclass(frozen=True)
class Progress:
    """What has been done so far, of what was there when the job ended."""

    done_bytes: int
    total_bytes: int
    files: int
    total_files: int
    seconds: float
    """Since this worker began."""
    bytes_before: int
    """What an earlier worker had done, which says nothing about this one's speed."""
    time: float
    """When this was written, as the worker's node counts."""

    @property
    def percent(self) -> int:
        """At most 99: only the summary says that all is done."""
        if not self.total_bytes:
            return 0
        return min(99, 100 * self.done_bytes // self.total_bytes)

    def encode(self) -> bytes:
        """The bytes of the file."""
        return json.dumps(asdict(self)).encode() + b"\n"


def text(progress: Progress, now: float | None = None) -> str:
    """In one line: `41 % (8.2 GiB of 20.0 GiB, 120.0 MiB/s, about 1 min 40 s left)`."""
    words = f"{progress.percent} % ({size(progress.done_bytes)} of {size(progress.total_bytes)}"
    silent = (time.time() if now is None else now) - progress.time
    done = progress.done_bytes - progress.bytes_before
    if silent > _STALE_SECONDS:
        words += f"; nothing new for {duration(silent)}: it goes on when the node's agent reaches the NAS again"
    elif progress.seconds >= _ENOUGH_SECONDS and done > 0:
        speed = done / progress.seconds
        left = max(0, progress.total_bytes - progress.done_bytes) / speed
        words += f", {size(speed)}/s, about {duration(max(left, 1))} left"
    return words + ")"


def decode(data: bytes) -> Progress | None:
    """The progress, or None if these bytes are none: the folder is its owner's."""
    try:
        fields = load(data, "progress")
        progress = Progress(
            done_bytes=fields.whole("done_bytes"),
            total_bytes=fields.whole("total_bytes"),
            files=fields.whole("files"),
            total_files=fields.whole("total_files"),
            seconds=fields.number_or_none("seconds") or 0.0,
            bytes_before=fields.whole("bytes_before"),
            time=fields.number_or_none("time") or 0.0,
        )
        fields.done()
    except Malformed:
        return None
    return progress


def read(folder: int) -> Progress | None:
    """What the file in this open folder says; None if nothing is being hashed."""
    data = files.read_small(folder, paths.PROGRESS, limit=4096)
    return None if data is None else decode(data)


def write(folder: int, progress: Progress, mode: int) -> None:
    """Put it in place."""
    files.write(folder, paths.PROGRESS, [progress.encode()], mode)


Tell = Callable[[Progress], None]


def unheard(_progress: Progress) -> None:
    """For those who do not want to know."""


class Teller:
    """Tells now and then how far the hashing is: in the bundle, and whoever asked for it."""

    def __init__(self, folder: int, mode: int, total_bytes: int, total_files: int, tell: Tell) -> None:
        self._folder = folder
        self._mode = mode
        self._total = total_bytes
        self._total_files = total_files
        self._tell = tell
        self._began = self._told = time.monotonic()

    def tick(self, bytes_read: int, bytes_before: int, files_done: int) -> None:
        """So much was read by now, and so much an earlier worker had done."""
        now = time.monotonic()
        if now - self._told < SECONDS_BETWEEN:
            return
        self._told = now
        done = bytes_before + bytes_read
        current = Progress(
            done_bytes=done,
            total_bytes=max(self._total, done),  # files may have grown since the job ended
            files=files_done,
            total_files=max(self._total_files, files_done),
            seconds=now - self._began,
            bytes_before=bytes_before,
            time=time.time(),
        )
        with contextlib.suppress(OSError):  # a NAS that does not take this may still take what counts
            write(self._folder, current, self._mode)
        self._tell(current)
