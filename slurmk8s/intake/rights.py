"""File work with a person's rights, in one thread.

Root follows what a user made only with that user's rights: on a share with root_squash root is nobody anyway, and
elsewhere it would be a way to read or overwrite other people's files.

Linux keeps these rights per thread. The C library's seteuid and setgroups change all threads of a process, so that
two drops could never be worked on side by side; setfsuid and setfsgid were made for file servers and do not, and
setgroups is called past the library. The process stays root's in every other respect: the person can neither signal
nor trace it.
"""

import contextlib
import ctypes
import os
import platform
from collections.abc import Iterator, Sequence

from slurmk8s.errors import SetupError
from slurmk8s.slurm.client import Identity

SETGROUPS = {"x86_64": 116, "aarch64": 159, "riscv64": 159, "loongarch64": 159, "ppc64le": 81, "s390x": 206}
"""The kernel's number of setgroups(2) by `uname -m`."""
ASK = -1
"""An id that nobody has: setfsuid and setfsgid then change nothing and tell how it is."""

_libc = ctypes.CDLL(None, use_errno=True)


@contextlib.contextmanager
def acting_as(identity: Identity | None) -> Iterator[None]:
    """Do this thread's file work as this person; with None, or as that person already, as ourselves.

    No program may be started inside: it would start with these rights.
    """
    if identity is None or identity.uid == os.geteuid():
        yield
        return
    groups = os.getgroups()
    try:
        _set(identity.uid, identity.gid, identity.groups)
        yield
    finally:
        _set(os.geteuid(), os.getegid(), groups)


def _set(uid: int, gid: int, groups: Sequence[int]) -> None:
    """Groups while still (or again) root, whose right it is; then look, since setfsuid tells no failure."""
    _libc.setfsuid(os.geteuid())
    _setgroups(groups)
    _libc.setfsgid(gid)
    _libc.setfsuid(uid)
    if (_libc.setfsuid(ASK), _libc.setfsgid(ASK)) != (uid, gid):
        raise PermissionError(f"cannot act as user {uid}: CAP_SETUID and CAP_SETGID are needed")


def _setgroups(groups: Sequence[int]) -> None:
    number = SETGROUPS.get(platform.machine())
    if number is None:
        raise SetupError(
            f"The watcher cannot act as other people on a {platform.machine()}: the number of setgroups is not known.",
            "Add it to SETGROUPS in slurmk8s/intake/rights.py.",
        )
    ids = (ctypes.c_uint32 * len(groups))(*groups)
    if _libc.syscall(ctypes.c_long(number), ctypes.c_size_t(len(groups)), ids):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
