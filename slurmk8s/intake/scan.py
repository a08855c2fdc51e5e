"""What lies in `submit/` and in people's own folders in it: names and looks, nothing is read.

Files that editors, file managers and copiers leave are passed over by name. What cannot be told from a job file by its
name is not decided here: it is claimed like any other and answered.
"""

import errno
import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path

from loguru import logger

from slurmk8s.config import Intake
from slurmk8s.intake import accounts, identity, naming
from slurmk8s.intake.drop import Drop, Look, job_to_cancel
from slurmk8s.intake.folders import READ, place
from slurmk8s.intake.rights import acting_as, owner_of

README = "README.txt"
FOLDER_PATIENCE = 15
"""A dropped folder is copied file by file, with pauses: it waits this many settle times."""
EMPTY_PATIENCE = 5
"""Many programs create a file first and fill it later: an empty one waits this many settle times."""
HOLE = bytes(16)
"""So many NUL bytes on end are in no text, not even in UTF-32: room that a copying client has reserved."""
MOST_WARNINGS = 1000
"""About different files: one person can make any number of them."""
PASSING = {errno.ENOENT, errno.ESTALE, errno.EIO, errno.ELOOP, errno.ENXIO}
"""A file that went away, or a network file system's bad moment. Not seen is not gone: the next pass looks again."""

_PASSED_OVER = re.compile(
    r"""
    \. .*                       # hidden: .DS_Store, ._name of macOS, .~lock of LibreOffice, .nfs of deleted files
    | ~\$ .*                    # Office's owner files
    | .* ~                      # backups of editors
    | .* \.(swp|swx|swo)        # vim
    | .* \.(part|filepart|partial|crdownload|tmp)   # browsers, WinSCP, rsync
    | .* :Zone\.Identifier      # Windows' mark of downloads
    | Thumbs\.db | desktop\.ini
    | README\.txt               # ours
    | .* \.waiting\.txt         # ours
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)


def passed_over(name: str) -> bool:
    """Whether the name says that this is not a drop."""
    return _PASSED_OVER.fullmatch(name) is not None


@dataclass
class Scanner:
    """Looks into the folders, pass after pass.

    It knows the names that it has passed over before: a folder with a hundred thousand of them costs its listing.
    """

    intake: Intake
    _passed: dict[str, set[str]] = field(default_factory=dict)
    _warned: set[tuple[str, str]] = field(default_factory=set)
    people: dict[str, tuple[int, int]] = field(default_factory=dict)
    """People's own folders at the last pass, with device and inode."""

    def looks(self, submit: int) -> dict[Drop, Look]:
        """Everything that might be a drop, as it looks now."""
        found: dict[Drop, Look] = {}
        ours = os.fstat(submit)
        self.people = {}
        for name in self._candidates("", submit):
            status = self._status_of(submit, "", name)
            if status is None:
                continue
            if stat.S_ISDIR(status.st_mode) and identity.is_person(name, self.intake):
                self.people[name] = (status.st_dev, status.st_ino)
                try:
                    with place(submit, name) as (folder, _):
                        self._look_into(folder, name, ours, found)
                except OSError as error:  # gone between two looks, or closed to us: the next pass sees
                    self._warn(f"{name}/", error)
            else:
                found[Drop("", name)] = _look(name, status)
        for gone in self._passed.keys() - self.people.keys() - {""}:
            del self._passed[gone]
        return found

    def watched(self, submit: int, path: Path) -> dict[Path, tuple[int, int]]:
        """`submit/` and people's own folders in it, with device and inode."""
        ours = os.fstat(submit)
        return {path: (ours.st_dev, ours.st_ino)} | {path / name: place for name, place in self.people.items()}

    def _look_into(self, folder: int, name: str, ours: os.stat_result, found: dict[Drop, Look]) -> None:
        status = os.fstat(folder)
        trusted = identity.is_own_folder(status, name, ours, self.intake)
        with acting_as(owner_of(status)):
            for inner in self._candidates(name, folder):
                if look := self._status_of(folder, name, inner):
                    found[Drop(name, inner, trusted)] = _look(inner, look)

    def _candidates(self, key: str, folder: int) -> list[str]:
        names = os.listdir(folder)
        passed = self._passed.setdefault(key, set())
        candidates = []
        for name in names:
            if name in passed:
                continue
            if passed_over(name):
                passed.add(name)
            else:
                candidates.append(name)
        if len(passed) + len(candidates) > len(names):  # some of them have gone
            passed.intersection_update(names)
        return candidates

    def _status_of(self, folder: int, place: str, name: str) -> os.stat_result | None:
        """Whoever put it there may have made it answer oddly (a lease, a mount of their own): it alone waits."""
        try:
            return _status(folder, name)
        except OSError as error:
            self._warn(f"{place}/{name}" if place else name, error)
            return None

    def _warn(self, path: str, error: OSError) -> None:
        reason = error.strerror or str(error)
        if (path, reason) not in self._warned and len(self._warned) < MOST_WARNINGS:
            self._warned.add((path, reason))
            logger.warning(f"submit/{naming.printable(path)} cannot be looked at ({reason}); it waits.")


def look_again(submit: int, drop: Drop) -> Look | None:
    """How one drop looks right now."""
    with place(submit, drop.folder) as (folder, keeper), acting_as(keeper):
        status = _status(folder, drop.name)
        return _look(drop.name, status) if status else None


def has_hole(submit: int, drop: Drop, limit: int) -> bool:
    """Whether the file is still being copied though its size stands still: room in it is reserved and not filled.

    Looked at as its owner. What cannot be read is no reason to wait: it is claimed and answered.
    """
    try:
        with place(submit, drop.folder) as (folder, keeper):
            with acting_as(keeper):
                status = os.stat(drop.name, dir_fd=folder, follow_symlinks=False)
            owner = accounts.with_uid(status.st_uid)
            if not stat.S_ISREG(status.st_mode) or not 0 < status.st_size <= limit or owner is None:
                return False
            with acting_as(owner if os.geteuid() == 0 else None):
                opened = os.open(drop.name, READ, dir_fd=folder)
                try:
                    data = os.read(opened, limit) if stat.S_ISREG(os.fstat(opened).st_mode) else b""
                finally:
                    os.close(opened)
    except OSError:
        return False
    return HOLE in data or not data.strip(b"\0")


def _status(folder: int, name: str) -> os.stat_result | None:
    """What the entry is; None when it went away or does not answer just now."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        return _opened_status(folder, name, status) if stat.S_ISREG(status.st_mode) else status
    except OSError as error:
        if error.errno in PASSING:
            return None
        raise


def _opened_status(folder: int, name: str, status: os.stat_result) -> os.stat_result:
    """By open and fstat: an NFS client may answer a plain stat from its cache, but asks the server on open."""
    try:
        try:
            descriptor = os.open(name, READ, dir_fd=folder)
        except PermissionError:  # a private file where root is nobody
            with acting_as(owner_of(status)):
                descriptor = os.open(name, READ, dir_fd=folder)
    except PermissionError:  # nor may its owner: the cached look must do
        return status
    try:
        return os.fstat(descriptor)
    finally:
        os.close(descriptor)


def _look(name: str, status: os.stat_result) -> Look:
    patience = 1
    if stat.S_ISDIR(status.st_mode):
        patience = FOLDER_PATIENCE
    elif stat.S_ISREG(status.st_mode) and status.st_size == 0 and not job_to_cancel(name):
        patience = EMPTY_PATIENCE
    return Look(status.st_ino, status.st_size, status.st_mtime_ns, patience)
