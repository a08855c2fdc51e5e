"""Make a bundle ready for an attempt, or find the place of one: `results/<id>`, or `attempt-N` in it.

The results folder is open to all (mode 1777), so anybody can put something at the name of a job to come. The folder
is made by a bare mkdir; what is already there is used only if it is a real folder of this user's own.
"""

import contextlib
import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass

from slurmk8s.errors import ClusterFault, PersonFault
from slurmk8s.results import files, handover, index, marker, paths
from slurmk8s.results.marker import Marker
from slurmk8s.results.request import Modes, Prepare, Target
from slurmk8s.results.steps import At, nothing
from slurmk8s.results.summary_file import read_summary


@dataclass(frozen=True)
class Place:
    """An open folder that holds the files of one attempt."""

    folder: int
    bundle: int
    """The job's own folder; the same as `folder` while the attempt is the latest."""
    path: str
    attempt: int

    @property
    def is_latest(self) -> bool:
        """Whether outputs/ is this attempt's, and not in use by a later one."""
        return self.folder == self.bundle


def prepare(request: Prepare, at: At = nothing) -> dict[str, object]:
    """Do what the request asks; asked again it changes nothing, and the logs of the running attempt are kept."""
    target = request.target
    wanted = Marker(request.attempt, target.submitted, request.name, request.array)
    with open_root(target.root) as root, _own_bundle(root, target, at) as folder:
        known = marker.read(folder)
        if known is not None and known.attempt > wanted.attempt:
            raise PersonFault(
                f"Attempt {wanted.attempt} of job {target.job_id} cannot start: "
                f"attempt {known.attempt} already has its results folder {target.folder}."
            )
        _settle(folder, target.modes, wanted, at)
        _log_files(folder, target.modes)
        at("logs made")
        if request.handover:
            handover.make(folder, request.attempt)
            at("handover made")
    if known is None or known.attempt < wanted.attempt:
        array = str(wanted.array) if wanted.array else ""
        start = index.begun(target.job_id, wanted.attempt, wanted.name, array, wanted.submitted)
        # Not durable: a job's start must not wait for it.
        index.note(target.root, start, durable=False)
    return {
        "ok": True,
        "folder": target.folder,
        "stdout": f"{target.folder}/{paths.STDOUT}",
        "stderr": f"{target.folder}/{paths.STDERR}",
        "outputs": f"{target.folder}/{paths.OUTPUTS}",
    }


@contextlib.contextmanager
def place(target: Target, at: At = nothing) -> Iterator[Place]:
    """Where the files of this attempt are. A bundle that was never prepared is made: every ending leaves one."""
    with open_root(target.root) as root, _own_bundle(root, target, at) as folder:
        known = marker.read(folder)
        latest = known.attempt if known else 0
        attempt = latest if target.attempt is None else target.attempt
        if known is not None and attempt < known.attempt:
            with attempt_folder(folder, attempt, target.modes.folder) as inner:
                yield Place(inner, folder, f"{target.folder}/{paths.attempt_name(attempt)}", attempt)
            return
        if known is None or known.attempt != attempt or not known.prepared:
            _settle(folder, target.modes, Marker(attempt, target.submitted, "", None, prepared=False), at)
            # Only here: what a job has made of its own logs must not cost it its summary.
            _log_files(folder, target.modes)
        yield Place(folder, folder, target.folder, attempt)


def exists(target: Target) -> bool:
    """Whether the job has a folder at all, for those who only want to read."""
    with open_root(target.root) as root:
        return files.lstat(root, str(target.job_id)) is not None


@contextlib.contextmanager
def attempt_folder(bundle: int, attempt: int, mode: int) -> Iterator[int]:
    """The folder of an earlier attempt, made if need be."""
    name = paths.attempt_name(attempt)
    _own_folder(bundle, name, mode)
    with files.folder(name, bundle) as folder:
        yield folder


@contextlib.contextmanager
def open_root(path: str) -> Iterator[int]:
    """The folder that holds all bundles."""
    try:
        # The root is the admin's and may be a link; links are refused from here on.
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
        raise ClusterFault(
            f"The results folder {path} cannot be opened on this node: {error.strerror}.",
            "Ask the admin whether the NAS is mounted and the folder is there with mode 1777.",
        ) from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _own_bundle(root: int, target: Target, at: At) -> Iterator[int]:
    """The job's own folder. That of an older job with the same number goes aside first, whatever is asked for."""
    with _bundle(root, target) as folder:
        at("folder made")
        if _is_another_job(folder, target):
            _set_aside(root, target)
            at("earlier bundle aside")
    with _bundle(root, target) as folder:
        yield folder


@contextlib.contextmanager
def _bundle(root: int, target: Target) -> Iterator[int]:
    """The folder of the job's number, made if it is not there."""
    made = True
    try:
        os.mkdir(str(target.job_id), 0o700, dir_fd=root)
    except FileExistsError:
        made = False
    except PermissionError:
        raise ClusterFault(
            f"You may not make a folder in {target.root}, so job {target.job_id} has no place for its results.",
            f"Ask the admin to run `chmod 1777 {target.root}`.",
        ) from None
    try:
        descriptor = os.open(str(target.job_id), files.FOLDER_FLAGS, dir_fd=root)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise _squatted(target, "it is not a real folder") from None
        if error.errno == errno.EACCES:
            raise _squatted(target, "it is closed to you") from None
        raise
    try:
        owner = os.fstat(descriptor).st_uid
        if owner != os.geteuid() and made:
            raise ClusterFault(
                f"The NAS gives new folders in {target.root} to uid {owner} instead of uid {os.geteuid()}.",
                "Ask the admin to export the share without all_squash.",
            )
        if owner != os.geteuid():
            raise _squatted(target, f"it belongs to uid {owner}")
        yield descriptor
    finally:
        os.close(descriptor)


def _squatted(target: Target, why: str) -> PersonFault:
    return PersonFault(
        f"The results folder {target.folder} was there before the job, and {why}.",
        f"Ask its owner or the admin to move it away, for example with `mv {target.folder} {target.folder}.old`.",
    )


def _is_another_job(folder: int, target: Target) -> bool:
    """Whether the bundle is of an older job that had the same number: Slurm's job ids can start again."""
    known = marker.read(folder)
    if known is None or known.submitted is None or target.submitted is None:
        return False
    if (target.attempt or 0) > known.attempt or target.submitted <= known.submitted:
        return False
    # A requeue, too, gives a job a new time of submission.
    summary = read_summary(folder)
    return summary is None or not summary.starts_again


def _set_aside(root: int, target: Target) -> None:
    name = str(target.job_id)
    number = 1
    while files.lstat(root, paths.earlier_name(target.job_id, number)) is not None:
        number += 1
    os.rename(name, paths.earlier_name(target.job_id, number), src_dir_fd=root, dst_dir_fd=root)


def _settle(folder: int, modes: Modes, wanted: Marker, at: At) -> None:
    """Give the folder to this attempt. The marker changes only after every file of the earlier one has moved."""
    known = marker.read(folder)
    if known is not None and known.attempt >= wanted.attempt:
        if known.attempt == wanted.attempt and wanted.prepared and not known.prepared:
            marker.write(folder, wanted, modes.file, at)
        return
    files.sweep(folder)
    if known is not None:
        _rotate(folder, known.attempt, modes, at)
    os.fchmod(folder, modes.folder)
    marker.write(folder, wanted, modes.file, at)
    if known is not None:
        _move_strays(folder, known.attempt, modes)


def follow_rotation(here: Place, modes: Modes) -> None:
    """Put right what was written into the job's folder just as a next attempt took it over.

    There are no locks: the agents of two nodes may be at one bundle, the late one of the attempt that ended and that
    of the next. Each looks again after it has written (this one at the marker, the other at the summary), so at least
    one of them sees the other.
    """
    known = marker.read(here.bundle)
    if here.is_latest and known is not None and known.attempt > here.attempt:
        _move_strays(here.bundle, here.attempt, modes)


def refuse_if_started_again(here: Place) -> None:
    """Digests that were computed across a rotation may be of the next attempt's files."""
    known = marker.read(here.bundle)
    if here.is_latest and known is not None and known.attempt > here.attempt:
        raise ClusterFault("The job was started again while its files were hashed.", "It is tried again.")


def _move_strays(bundle: int, attempt: int, modes: Modes) -> None:
    summary = read_summary(bundle)
    if summary is None or summary.attempt != attempt:
        return
    with attempt_folder(bundle, attempt, modes.folder) as inner:
        for name in (paths.CHECKSUMS, paths.USAGE, paths.SUMMARY_TEXT, paths.SUMMARY):
            with contextlib.suppress(FileNotFoundError):
                os.rename(name, name, src_dir_fd=bundle, dst_dir_fd=inner)
        files.sync(inner)


def _rotate(folder: int, attempt: int, modes: Modes, at: At) -> None:
    files.remove(folder, paths.PROGRESS)
    files.remove(folder, paths.PARTIAL)
    with attempt_folder(folder, attempt, modes.folder) as inner:
        for name in paths.OF_ONE_ATTEMPT:
            with contextlib.suppress(FileNotFoundError):  # moved by an earlier try, or never written
                os.rename(name, name, src_dir_fd=folder, dst_dir_fd=inner)
                at(f"{name} moved")
        files.sync(inner)


def _log_files(folder: int, modes: Modes) -> None:
    files.create_empty(folder, paths.STDOUT, modes.file)
    files.create_empty(folder, paths.STDERR, modes.file)
    _own_folder(folder, paths.OUTPUTS, modes.outputs)
    files.sync(folder)


def _own_folder(parent: int, name: str, mode: int) -> None:
    """A folder of this mode; one that is there is kept as it is if it is this user's own."""
    try:
        os.mkdir(name, 0o700, dir_fd=parent)
    except FileExistsError:
        if files.is_own_folder(parent, name) is False:
            raise files.not_ours(name) from None
        return
    with files.folder(name, parent) as descriptor:
        os.fchmod(descriptor, mode)
