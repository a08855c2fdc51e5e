"""The folders of the intake, opened afresh for each pass and used by descriptor.

Everything is reached from one descriptor of the NAS root that was seen to be a mount point, so a NAS that goes away
in mid-pass gives errors, never folders on the system disk under the empty mount point. A fresh descriptor also makes
an NFS client ask the server again instead of its cache.
"""

import contextlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass

from loguru import logger

from slurmk8s.config import Config, Nas
from slurmk8s.errors import ClusterFault
from slurmk8s.intake.rights import acting_as, our_uid, owner_of, service
from slurmk8s.mountpoint import is_root_of_mount
from slurmk8s.results.index import FOLDER as INDEX
from slurmk8s.slurm.client import Identity

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""O_NONBLOCK: a regular file may have become a fifo since the last look, and opening that would wait for a writer."""
EVERYBODY_ADDS = 0o1777
"""Everybody may add, only the owner of a file may remove it."""
PRIVATE = ".intake"


@dataclass(frozen=True)
class Folders:
    """Descriptors of the folders, valid during one pass."""

    submit: int
    processed: int
    failed: int
    open: int
    """Claims being worked on."""
    done: int
    """Answered claims, kept for a while so that a late second job is still recognised."""


def of(config: Config) -> contextlib.AbstractContextManager[Folders]:
    """The folders as this configuration has them."""
    return opened(config.nas, people_add=config.intake.identity == "owner")


@contextlib.contextmanager
def opened(nas: Nas, *, people_add: bool) -> Iterator[Folders]:
    """Open (and where missing, make) all folders. `people_add`: whether anyone may put files into `submit/` itself.

    Inside, our own file work is done as the account to which the NAS gives the right to it.
    """
    with acting_as(service(nas)), contextlib.ExitStack() as stack:

        def keep(descriptor: int) -> int:
            stack.callback(os.close, descriptor)
            return descriptor

        try:
            root = keep(_open_root(nas))
            jobs = root
            for part in nas.jobs.parts:
                jobs = keep(_made(jobs, part, 0o755))
            private = keep(_made(jobs, PRIVATE, 0o700))
            folders = Folders(
                submit=keep(_made(jobs, "submit", EVERYBODY_ADDS if people_add else 0o755)),
                processed=keep(_made(jobs, "processed", EVERYBODY_ADDS)),
                failed=keep(_made(jobs, "failed", EVERYBODY_ADDS)),
                open=keep(_made(private, "open", 0o700)),
                done=keep(_made(private, "done", 0o700)),
            )
        except OSError as error:
            raise ClusterFault(
                f"The folder {error.filename or nas.jobs_folder} cannot be used: {error.strerror}.",
                f"Check the mount {nas.root} and the owner of {nas.jobs_folder}{_if_squashed(error, nas)}.",
            ) from error
        yield folders


@contextlib.contextmanager
def place(submit: int, folder: str) -> Iterator[tuple[int, Identity | None]]:
    """`submit/` itself or a person's own folder in it, and whom to act as in it: where root is nobody, its owner."""
    keeper = owner_of(os.stat(folder, dir_fd=submit, follow_symlinks=False)) if folder else None
    with acting_as(keeper):
        descriptor = os.open(folder or ".", FOLDER, dir_fd=submit)
    try:
        yield descriptor, keeper
    finally:
        os.close(descriptor)


def keep_index(nas: Nas) -> None:
    """The folder where results are indexed. Its owner could move people's parts of it away, so it is no person's.

    Everybody may add to it, and list only their own part. The intake does without it.
    """
    with contextlib.suppress(OSError), acting_as(service(nas)), contextlib.ExitStack() as stack:
        root = _open_root(nas)
        stack.callback(os.close, root)
        results = os.open(nas.results, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=root)
        stack.callback(os.close, results)
        os.close(_made(results, INDEX, EVERYBODY_ADDS & ~0o044))


def _if_squashed(error: OSError, nas: Nas) -> str:
    if not isinstance(error, PermissionError) or os.geteuid() != 0 or nas.service_user:
        return ""
    return "; if root is nobody there (root_squash), set nas.service_user to the account that owns it"


def _open_root(nas: Nas) -> int:
    root = os.open(nas.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    if nas.require_mountpoint and not is_root_of_mount(root):
        os.close(root)
        raise ClusterFault(
            f"{nas.root} is not a mount point, so the NAS is not there.",
            f"Mount it (`mount {nas.root}`); for a local folder set nas.require_mountpoint = false.",
        )
    return root


def _made(parent: int, name: str, mode: int) -> int:
    """The folder's descriptor; it is made if it is not there."""
    try:
        folder = os.open(name, FOLDER, dir_fd=parent)
    except FileNotFoundError:
        with contextlib.suppress(FileExistsError):  # another watcher was faster
            os.mkdir(name, 0o700, dir_fd=parent)
        folder = os.open(name, FOLDER, dir_fd=parent)
        os.fchmod(folder, mode)
        return folder
    if mode == EVERYBODY_ADDS:
        _open_to_people(folder, name)
    return folder


def _open_to_people(folder: int, name: str) -> None:
    """Widen what a plain `mkdir` left, and never leave a folder where people can remove each other's files.

    A folder that an admin narrowed (to a group, say) stays as it is.
    """
    now = os.fstat(folder)
    mode = stat.S_IMODE(now.st_mode)
    wanted = EVERYBODY_ADDS if mode == 0o755 else mode | stat.S_ISVTX if mode & 0o022 else mode
    if wanted == mode:
        return
    if now.st_uid == our_uid():
        os.fchmod(folder, wanted)
    else:
        logger.warning(f"The folder {name} has mode {mode:o}; its owner should run `chmod {wanted:o}` on it.")
