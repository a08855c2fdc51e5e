"""Show a job's logs, also while they grow, byte for byte."""

import errno
import os
import stat
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from slurmk8s.errors import PersonFault
from slurmk8s.results import files
from slurmk8s.results.paths import Bundle
from slurmk8s.results.status import status

_POLL_SECONDS = 0.3
_CHUNK = 1 << 16
_NO_FILE = (errno.ELOOP, errno.ENXIO)  # a link, a socket

Sink = Callable[[bytes], None]


@dataclass
class Stream:
    """One log and how far it has been shown."""

    name: str
    sink: Sink
    _descriptor: int = -1
    _inode: tuple[int, int] = (0, 0)
    _offset: int = 0

    def show(self, folder: Path) -> bool:
        """Show what is new. Whether the file was there; PersonFault if something else stands in its place.

        It is opened anew each time: an NFS client looks at the server again only then.
        """
        try:
            descriptor = os.open(folder / self.name, os.O_RDONLY | files.FILE_FLAGS)
        except FileNotFoundError:
            return False
        except OSError as error:
            if error.errno in _NO_FILE:
                raise _no_log(folder / self.name) from None
            raise
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):  # the folder is its owner's: a pipe, a folder
            os.close(descriptor)
            raise _no_log(folder / self.name)
        if (found.st_dev, found.st_ino) != self._inode:
            self._drain()  # the job was started again: its old log has moved, the rest of it is still to be shown
            self._inode, self._offset = (found.st_dev, found.st_ino), 0
        elif found.st_size < self._offset:
            self._offset = 0  # cut short by its owner
        self.close()
        self._descriptor = descriptor
        self._drain()
        return True

    def close(self) -> None:
        """Let go of the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _drain(self) -> None:
        while self._descriptor >= 0 and (chunk := os.pread(self._descriptor, _CHUNK, self._offset)):
            self._offset += len(chunk)
            self.sink(chunk)


def _no_log(path: Path) -> PersonFault:
    return PersonFault(f"{path} is not a plain file, so it cannot be shown as a log.")


def show(bundle: Bundle, streams: Sequence[Stream]) -> bool:
    """Show what is there now. Whether there was any log."""
    try:
        return _show_all(bundle, streams)
    finally:
        for stream in streams:
            stream.close()


def follow(find: Callable[[], Bundle | None], streams: Sequence[Stream], waiting: Callable[[], None]) -> None:
    """Show until the job is over, through requeues too. `waiting` is called once if there is nothing yet."""
    told = False
    try:
        while True:
            bundle = find()
            ended = _has_ended(bundle)  # asked before the logs are read, so that nothing after it is missed
            seen = bundle is not None and _show_all(bundle, streams)
            if ended:
                return
            if not seen and not told:
                waiting()
                told = True
            time.sleep(_POLL_SECONDS)
    finally:
        for stream in streams:
            stream.close()


def _show_all(bundle: Bundle, streams: Sequence[Stream]) -> bool:
    there = [stream.show(bundle.folder) for stream in streams]
    return any(there)


def _has_ended(bundle: Bundle | None) -> bool:
    try:
        return bundle is not None and status(bundle).ended
    except FileNotFoundError:
        return False
