"""`results/<user>.txt`: a person's last jobs, the newest first, for those who see the NAS in a file manager.

A thousand folders with numbers for names tell nobody which is which, and links by name or date would break on SMB
clients. Written like a receipt, so that Notepad shows it too; as the person, when a job has ended.
"""

import contextlib
import errno
import fcntl
import os
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime

from slurmk8s.results import files
from slurmk8s.results.columns import clipped, padded
from slurmk8s.results.entry import Entry
from slurmk8s.results.index import own_folder
from slurmk8s.results.paths import BUNDLE_NAME
from slurmk8s.results.summary_text import duration, printable

JOBS = 500
_LOCK = "list.lock"
_SECONDS_TO_WAIT = 2.0
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,63}", re.ASCII)
_JOB = re.compile(r"[0-9-]{10} [0-9:]{5}  ([0-9]{1,18}) ")
_NAME = 24
_HEAD = "{ended:<16}  {folder:<9} {state:<13}  {ran:>11}  {name}  {cause}"


def note(root: str, entry: Entry, mode: int) -> str:
    """Put a job on top of its owner's list; what went wrong, if anything did: no fault here may become the job's."""
    name = f"{entry.user}.txt"
    if not _USER.fullmatch(entry.user) or BUNDLE_NAME.fullmatch(name):
        return ""
    try:
        with own_folder(root) as (opened, index), _alone(index):
            old = files.read_small(opened, name) if files.is_own_file(opened, name) else b""
            files.write(opened, name, [with_job(old or b"", entry)], mode)
    except FileNotFoundError:
        return ""  # the site has no index
    except Exception as error:  # noqa: BLE001 - see above
        return f"{type(error).__name__}: {error}"
    return ""


def with_job(old: bytes, entry: Entry) -> bytes:
    """The list with this job on top; an earlier line about it goes."""
    lines = old.decode("utf-8-sig", "replace").splitlines()
    jobs = [line for line in lines if (match := _JOB.match(line)) and match[1] != str(entry.job_id)]
    head = _HEAD.format(ended="ENDED", folder="FOLDER", state="HOW", ran="RAN", name=padded("NAME", _NAME), cause="WHY")
    text = "\r\n".join([head, line_of(entry), *jobs[: JOBS - 1], ""])
    return b"\xef\xbb\xbf" + text.encode("utf-8", "replace")


def line_of(entry: Entry) -> str:
    """One job."""
    name = printable(entry.name) + (f" ({entry.array})" if entry.array else "")
    return _HEAD.format(
        ended=datetime.fromtimestamp(entry.at, UTC).astimezone().strftime("%Y-%m-%d %H:%M"),
        folder=entry.job_id,
        state=entry.state.replace("_", " "),
        ran=duration(entry.held),
        name=padded(clipped(name, _NAME), _NAME),
        cause=printable(entry.cause),
    )


@contextlib.contextmanager
def _alone(index: int) -> Iterator[None]:
    """One worker at a time: two that read the same list would each lose the other's job. Never waits for long."""
    descriptor = os.open(_LOCK, os.O_RDWR | os.O_CREAT | files.FILE_FLAGS, 0o600, dir_fd=index)
    try:
        deadline = time.monotonic() + _SECONDS_TO_WAIT
        while not _locked(descriptor):
            if time.monotonic() > deadline:
                raise TimeoutError("another worker holds the list")
            time.sleep(0.02)
        yield
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
            return True  # a share without locks: a line may be lost there, and the index still has it
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise
        return False
    return True
