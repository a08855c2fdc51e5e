"""A claim: one atomic rename of the drop into a private folder of its own.

A claim is permanent: no lock and no lease. Its folder is named `<time>-<token>` (sorted, that is the order of arrival),
with `.<user>` behind it for a drop from that person's own folder (`.!<user>` if others can write to it), and holds the
drop under its own name beside what the journal knows. The token is secret; the key that Slurm's users can see is
derived from it.
"""

import contextlib
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass

from slurmk8s.intake import journal
from slurmk8s.intake.drop import Drop
from slurmk8s.intake.folders import FOLDER, READ, Folders, place
from slurmk8s.intake.rights import acting_as, owner_of
from slurmk8s.intake.steps import Reached
from slurmk8s.intake.texts import Refused
from slurmk8s.slurm.client import Identity
from slurmk8s.slurm.stamp import new_key

KEPT, LENT = 0o711, 0o733
"""Modes of a claim's folder. The person must be able to open the drop in it by name, and where root is nobody
even to put it there; the folders above are closed to everybody."""
DISTRUSTED = "!"
"""No account's name begins so."""


@dataclass(frozen=True)
class Claim:
    """The name of a claim's folder and what can be read from it."""

    name: str

    @property
    def folder(self) -> str:
        """The person's own folder that the drop lay in, "" for `submit/` itself."""
        return self.name.partition(".")[2].removeprefix(DISTRUSTED)

    @property
    def trusted(self) -> bool:
        """Whether nobody but that person (or the admin) can have put it there."""
        return not self.name.partition(".")[2].startswith(DISTRUSTED)

    @property
    def token(self) -> str:
        """Known to watchers only."""
        return self.name.partition(".")[0].partition("-")[2]

    @property
    def key(self) -> str:
        """Known to Slurm."""
        return new_key(self.token, self.claimed)

    @property
    def claimed(self) -> float:
        """When, by the clock of the machine that claimed it."""
        return int(self.name.partition("-")[0]) / 1e9


def take(folders: Folders, drop: Drop, reached: Reached) -> Claim | None:
    """Claim the drop; None when it is not there any more: another watcher has it, or the person took it back.

    Nothing is forced to disk: if the rename is lost in a power failure the drop lies where it lay. The journal forces
    it there together with the first fact, before anything is submitted.
    """
    suffix = f".{'' if drop.trusted else DISTRUSTED}{drop.folder}" if drop.folder else ""
    claim = Claim(f"{time.time_ns():019d}-{secrets.token_hex(16)}{suffix}")
    with contextlib.suppress(FileExistsError):  # what an NFS server answers when asked again: the name is ours alone
        os.mkdir(claim.name, KEPT, dir_fd=folders.open)
    reached("claim folder made")
    try:
        with place(folders.submit, drop.folder) as (source, keeper), opened(folders, claim) as target:
            try:
                _move(drop.name, source, target, keeper)
            except FileNotFoundError:
                # An NFS server that has done it may answer a repeated request so: the folder tells.
                if dropped_name(target) is None:
                    drop_empty(folders, claim)
                    return None
    except OSError:
        drop_empty(folders, claim)
        raise
    reached("claimed")
    return claim


def _move(name: str, source: int, target: int, keeper: Identity | None) -> None:
    """As whoever may take things out of that folder; a folder can be moved only by who may write into it."""
    try:
        with lent(target, keeper):
            os.rename(name, name, src_dir_fd=source, dst_dir_fd=target)
    except PermissionError:
        owner = owner_of(os.stat(name, dir_fd=source, follow_symlinks=False))
        if owner is None:
            raise
        with lent(target, owner):
            os.rename(name, name, src_dir_fd=source, dst_dir_fd=target)


@contextlib.contextmanager
def lent(folder: int, identity: Identity | None) -> Iterator[None]:
    """Do something in a claim's folder as this person, who cannot reach it but through us; None: as ourselves."""
    if identity is None:
        yield
        return
    os.fchmod(folder, LENT)
    try:
        with acting_as(identity):
            yield
    finally:
        os.fchmod(folder, KEPT)


def drop_empty(folders: Folders, claim: Claim) -> None:
    """Remove the folder of a claim that never came about; one that holds anything stays."""
    with contextlib.suppress(OSError):
        os.rmdir(claim.name, dir_fd=folders.open)


def open_folder(folders: Folders, claim: Claim) -> int:
    """A descriptor of the claim's folder, wherever it is by now."""
    try:
        return os.open(claim.name, FOLDER, dir_fd=folders.open)
    except FileNotFoundError:
        return os.open(claim.name, FOLDER, dir_fd=folders.done)


@contextlib.contextmanager
def opened(folders: Folders, claim: Claim) -> Iterator[int]:
    """The claim's folder by descriptor, which stays right when another watcher moves it to done/ meanwhile."""
    folder = open_folder(folders, claim)
    try:
        yield folder
    finally:
        os.close(folder)


def is_gone(folders: Folders, claim: Claim) -> bool:
    """Whether nothing is left to do: another watcher has finished it, or it never held anything."""
    try:
        os.stat(claim.name, dir_fd=folders.open)
    except FileNotFoundError:
        return True
    return False


def dropped_name(folder: int) -> str | None:
    """The drop's name in its claim: the only one without a dot in front."""
    return next((name for name in os.listdir(folder) if not name.startswith(".")), None)


def claims(folder: int) -> list[Claim]:
    """All claims in open/ or done/, in order of arrival."""
    return [Claim(name) for name in sorted(os.listdir(folder)) if name[:19].isdigit()]


def refusal(status: os.stat_result) -> Refused | None:
    """Why a thing of this kind is not even read."""
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFREG:
        return None if status.st_nlink == 1 else Refused("hard-link", links=status.st_nlink)
    return Refused({stat.S_IFLNK: "symbolic-link", stat.S_IFDIR: "folder"}.get(kind, "special"))


def read_drop(folder: int, name: str, identity: Identity | None, limit: int) -> bytes:
    """The drop's bytes, read once, as the person, through one descriptor; at most one more than the limit."""
    with acting_as(identity):
        try:
            descriptor = os.open(name, READ, dir_fd=folder)
        except PermissionError:
            raise Refused("unreadable") from None
        with open(descriptor, "rb") as file:
            return file.read(limit + 1)


def finish(folders: Folders, claim: Claim, folder: int, reached: Reached) -> None:
    """Move an answered claim to done/ and let go of what only the work needed; the answer stays for a while."""
    with contextlib.suppress(FileNotFoundError):  # another watcher has moved it
        os.rename(claim.name, claim.name, src_dir_fd=folders.open, dst_dir_fd=folders.done)
    reached("moved to done")
    for name in set(os.listdir(folder)) - journal.LASTING:
        with contextlib.suppress(OSError):  # a deleted file that NFS keeps while it is open: it goes with the claim
            os.unlink(name, dir_fd=folder)
    reached("cleared")


def forget(folders: Folders, claim: Claim) -> None:
    """Remove a claim from done/ for good."""
    shutil.rmtree(claim.name, dir_fd=folders.done, ignore_errors=True)
