"""Copies the growing logs on the NAS to Slurm's own output files, byte for byte."""

import os
import selectors
from pathlib import Path

CHUNK = 1 << 20


class Follower:
    """One log and where it goes. The file may not be there yet; nothing is lost or repeated."""

    def __init__(self, path: Path, to: int) -> None:
        self._path = path
        self._to = to
        self._file: int | None = None
        self._broken = False

    def pump(self) -> bool:
        """Copy what is new; True when there was something."""
        if self._broken:
            return False
        if self._file is None:
            try:
                self._file = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            except FileNotFoundError:
                return False
            if os.path.samestat(os.fstat(self._file), os.fstat(self._to)):
                self._broken = True  # Slurm's own file is this very log: copied into itself it would never end
                return False
        moved = False
        while data := os.read(self._file, CHUNK):
            moved = True
            if not self._write(data):
                break
        return moved

    def _write(self, data: bytes) -> bool:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._to, view) :]
            except BlockingIOError:
                with selectors.DefaultSelector() as selector:
                    selector.register(self._to, selectors.EVENT_WRITE)
                    selector.select()
            except OSError as error:
                # A full disk under Slurm's log must not end the job: the log on the NAS is the one that counts.
                self._broken = True
                os.write(2, f"slurmk8s: no more output here ({error.strerror}); see {self._path}\n".encode())
                return False
        return True
