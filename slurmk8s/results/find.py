"""Find bundles: by job id, by array notation, or all of a person's, newest first."""

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from slurmk8s.errors import ClusterFault, PersonFault
from slurmk8s.results import paths
from slurmk8s.results.index import Index
from slurmk8s.results.paths import Bundle
from slurmk8s.results.status import status

_JOB = re.compile(r"([1-9][0-9]{0,17})(?:_([0-9]{1,9}))?", re.ASCII)


@dataclass(frozen=True)
class Found:
    """A bundle and whose it is."""

    bundle: Bundle
    job_id: int
    earlier: int
    """0, or n if the bundle was set aside because another job got its number."""
    uid: int

    @property
    def shown_id(self) -> str:
        """The folder's name."""
        return self.bundle.folder.name


def bundles(root: Path, uid: int | None) -> list[Found]:
    """All bundles of this user (None: of all), the highest job id first. Opens none of them."""
    found = []
    try:
        with os.scandir(root) as entries:
            for entry in entries:
                match = paths.BUNDLE_NAME.fullmatch(entry.name)
                if match is None:
                    continue
                try:
                    looked = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue  # removed meanwhile
                if stat.S_ISDIR(looked.st_mode) and uid in (None, looked.st_uid):
                    found.append(Found(Bundle(root / entry.name), int(match[1]), int(match[2] or 0), looked.st_uid))
    except OSError as error:
        raise _no_root(root, error) from None
    found.sort(key=lambda one: (-one.job_id, one.earlier))
    return found


def find(root: Path, job: str) -> Found | None:
    """The bundle of a job, named as `123` or `123_4`; None if there is none (yet)."""
    match = _JOB.fullmatch(job)
    if match is None:
        raise PersonFault(f"{job!r} is not a job id.", "Give a number such as 123, or 123_4 for a task of an array.")
    job_id = int(match[1])
    return _by_id(root, job_id) if match[2] is None else _by_task(root, job_id, int(match[2]))


def _by_id(root: Path, job_id: int) -> Found | None:
    bundle = Bundle.of(root, job_id)
    try:
        looked = bundle.folder.lstat()
    except FileNotFoundError:
        if not root.is_dir():
            raise _no_root(root, None) from None
        return None
    except OSError as error:
        raise _no_root(root, error) from None
    if not stat.S_ISDIR(looked.st_mode):
        raise PersonFault(f"{bundle.folder} is not a results folder.")
    return Found(bundle, job_id, 0, looked.st_uid)


def _by_task(root: Path, job_id: int, task_id: int) -> Found | None:
    """Tasks get ids of their own from the array's id on; which one, the bundles know, and sooner the index."""
    wanted = f"{job_id}_{task_id}"
    for entry in Index(str(root), os.getuid()).named(wanted):
        found = _by_id(root, entry.job_id)
        if found is not None and str(status(found.bundle).array) == wanted:
            return found
    for found in reversed(bundles(root, None)):
        if found.job_id < job_id or found.earlier:
            continue
        try:
            task = status(found.bundle).array
        except OSError:
            continue
        if task is not None and (task.job_id, task.task_id) == (job_id, task_id):
            return found
    return None


def _no_root(root: Path, error: OSError | None) -> ClusterFault:
    why = f": {error.strerror}" if error is not None and error.strerror else ""
    return ClusterFault(
        f"The results folder {root} cannot be read{why}.",
        "Check that the NAS is mounted and that `nas.results` in the configuration is right.",
    )
