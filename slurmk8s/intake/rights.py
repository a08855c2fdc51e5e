"""File work with somebody's rights, in one thread: a person's, or our own on the NAS.

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

from slurmk8s.config import Nas
from slurmk8s.errors import ClusterFault, SetupError
from slurmk8s.intake import accounts
from slurmk8s.slurm.client import Identity

SETGROUPS = {"x86_64": 116, "aarch64": 159, "riscv64": 159, "loongarch64": 159, "ppc64le": 81, "s390x": 206}
"""The kernel's number of setgroups(2) by `uname -m`."""
ASK = -1
"""An id that nobody has: setfsuid and setfsgid then change nothing and tell how it is."""

_libc = ctypes.CDLL(None, use_errno=True)


@contextlib.contextmanager
def acting_as(identity: Identity | None) -> Iterator[None]:
    """Do this thread's file work as this person; with None, or as that person already, as before.

    A program that is started inside as ourselves gets root's rights to files back with its first instruction.
    """
    if identity is None or identity.uid == our_uid():
        yield
        return
    before = (our_uid(), _libc.setfsgid(ASK), os.getgroups())
    try:
        _set(identity.uid, identity.gid, identity.groups)
        yield
    finally:
        _set(*before)


def our_uid() -> int:
    """Whose file work this thread does just now."""
    uid: int = _libc.setfsuid(ASK)
    return uid


def service(nas: Nas) -> Identity | None:
    """The account that does our own work on the NAS; None: whoever we are."""
    if nas.service_user is None or os.geteuid() != 0:
        return None
    found = accounts.with_name(nas.service_user)
    if found is None:
        raise ClusterFault(
            f"There is no account {nas.service_user} on this machine.", "Make it, or correct nas.service_user."
        )
    return found


def owner_of(status: os.stat_result) -> Identity | None:
    """Whom to act as where our own rights to somebody's file or folder do not do; None: they do, for root's always do.

    The number alone will do: whoever has no account here can have files on the NAS.
    """
    if our_uid() in (os.geteuid(), status.st_uid):
        return None
    return accounts.with_uid(status.st_uid) or Identity(
        str(status.st_uid), status.st_uid, status.st_gid, (status.st_gid,), "/"
    )


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
