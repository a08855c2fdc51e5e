"""With whose rights a thread does its file work: the caller's, as a NAS does, or the server's own."""

import threading
import time
from dataclasses import dataclass

from . import system

NOBODY = 65534
REMEMBERED_SECONDS = 0.05
"""How long a caller's groups are believed: within one burst of requests they are asked for once."""
MANY = 1000


@dataclass(frozen=True)
class Caller:
    """Who asks, as the kernel says."""

    uid: int
    gid: int
    pid: int


class Callers:
    """Turns a thread into its caller and back; each thread for itself."""

    def __init__(self, *, root_squash: bool) -> None:
        self._root_squash = root_squash
        self._threads = threading.local()
        self._groups: dict[Caller, tuple[float, tuple[int, ...]]] = {}

    def become(self, caller: Caller) -> None:
        """The caller's rights, for this thread."""
        uid, gid = caller.uid, self._group(caller.gid)
        groups: tuple[int, ...] = ()
        if uid != 0:
            groups = tuple(map(self._group, self._groups_of(caller)))
        elif self._root_squash:
            uid = gid = NOBODY
        if getattr(self._threads, "groups", None) != (gid, groups):
            self.become_server()
            system.set_file_rights(uid, gid, groups)
            self._threads.groups = (gid, groups)
        elif self._threads.uid != uid:
            system.set_file_user(uid)
        self._threads.uid = uid

    def become_server(self) -> None:
        """Root's own rights: to open a file by its handle."""
        if getattr(self._threads, "uid", 0) != 0:
            system.set_file_user(0)
        self._threads.uid = 0

    def _group(self, gid: int) -> int:
        return NOBODY if gid == 0 and self._root_squash else gid

    def _groups_of(self, caller: Caller) -> tuple[int, ...]:
        """The supplementary groups: the kernel does not send them."""
        now = time.monotonic()
        known = self._groups.get(caller)
        if known and now - known[0] < REMEMBERED_SECONDS:
            return known[1]
        groups = _read_groups(caller.pid)
        if len(self._groups) > MANY:
            self._groups = {}
        self._groups[caller] = (now, groups)
        return groups


def _read_groups(pid: int) -> tuple[int, ...]:
    try:
        with open(f"/proc/{pid}/status", "rb") as status:
            for line in status:
                if line.startswith(b"Groups:"):
                    return tuple(map(int, line.split()[1:]))
    except OSError:  # the caller has ended, or the kernel itself asks
        pass
    return ()
