"""The person's side of an answer: files in `processed/` and `failed/`, and a note in `submit/` while a drop waits.

They are written as the person, into a folder held by descriptor, and appear complete or not at all: written under a
hidden name that only this claim knows, then linked to the visible one. link(2) never replaces an earlier receipt. The
text goes first and names its claim, so after a crash, or beside another watcher, it shows what has been told already.
"""

import contextlib
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from slurmk8s.intake import journal, naming
from slurmk8s.intake.claim import Claim, lent
from slurmk8s.intake.folders import READ, Folders, place
from slurmk8s.intake.rights import acting_as, our_uid, owner_of
from slurmk8s.intake.steps import Reached
from slurmk8s.slurm.client import Identity

ERROR = ".error.txt"
RECEIPT = ".receipt.txt"
WAITING_NOTE = ".waiting.txt"
END_OF_TEXT = 200
"""Bytes of a text in which its claim is looked for: the reference stands in its last line, and anybody can put a very
long text where ours is to go."""
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
"""O_EXCL: never into a file, or through a link, that somebody put there."""


@dataclass(frozen=True)
class Delivery:
    """What is delivered about which claim, and to whom."""

    folders: Folders
    claim: Claim
    inside: int
    """The claim's own folder."""
    name: str
    """The drop's name."""
    identity: Identity | None
    """Who gets it; None: written as ourselves, also for a drop of nobody who could have files."""
    mode: int
    """As open as the drop was."""
    reached: Reached


def mode_for(status: os.stat_result) -> int:
    """The mode of receipts: the owner's, and readable by whoever could read the drop."""
    return 0o600 | (status.st_mode & 0o044 if stat.S_ISREG(status.st_mode) else 0o044)


def notepad(text: str) -> bytes:
    """UTF-8 with a byte order mark and CRLF: right in every Windows Notepad, and everywhere else."""
    return b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode("utf-8", "replace")


@dataclass
class Prepared:
    """A receipt that is written and not yet to be seen."""

    to: Delivery
    folder: int
    names: Iterator[str]
    ending: str
    opened: list[int]
    """What the disk must keep before anybody sees it."""
    script: bytes | None = None
    """What was submitted."""
    whole: bool = False
    """Whether the dropped thing itself goes beside the text."""
    hidden: bool = True
    """Whether nobody has been shown any of it."""


def prepare_job(to: Delivery, job_id: int, script: bytes, text: str) -> Prepared:
    """`processed/<name>.<job id>`, exactly what was submitted, and its receipt."""
    names = (f"{candidate}.{job_id}" for candidate in naming.numbered(naming.base(to.name)))
    return _prepared(Prepared(to, to.folders.processed, names, RECEIPT, [], script), text)


def prepare_text(to: Delivery, text: str) -> Prepared:
    """`processed/<name>.receipt.txt` alone: the drop was a request, there is nothing in it to keep."""
    return _prepared(Prepared(to, to.folders.processed, naming.numbered(naming.base(to.name)), RECEIPT, []), text)


def prepare_refusal(to: Delivery, text: str) -> Prepared:
    """`failed/<name>`, the very thing that was dropped, and why."""
    names = naming.numbered(naming.base(to.name))
    return _prepared(Prepared(to, to.folders.failed, names, ERROR, [], whole=True), text)


def _prepared(receipt: Prepared, text: str) -> Prepared:
    to = receipt.to
    with acting_as(to.identity):
        receipt.opened.append(_written(to, receipt.folder, _hidden(to), notepad(text)))
        if receipt.script is not None:
            receipt.opened.append(_written(to, receipt.folder, _hidden(to, "script"), receipt.script))
    return receipt


def publish(receipt: Prepared) -> None:
    """Give it its visible names, once it is on disk."""
    to, folder = receipt.to, receipt.folder
    while receipt.opened:
        os.close(receipt.opened.pop())  # network file systems say here what they could not write
    receipt.hidden = False
    with acting_as(to.identity):
        name = _tell(receipt)
    to.reached("receipt delivered")
    if receipt.script is not None:
        hidden, script = _hidden(to, "script"), receipt.script
        with acting_as(to.identity):
            _link(folder, hidden, folder, name, lambda taken: _content(folder, taken, len(script) + 1) == script)
            _remove(folder, hidden)
    elif receipt.whole:
        _return_drop(to, folder, name)
    to.reached("file delivered")


def discard(receipt: Prepared) -> None:
    """A receipt that the disk did not take: no half of it stays, and it is written again later."""
    to = receipt.to
    while receipt.opened:
        with contextlib.suppress(OSError):
            os.close(receipt.opened.pop())
    with contextlib.suppress(OSError), acting_as(to.identity):
        for hidden in (_hidden(to), _hidden(to, "script")):
            _remove(receipt.folder, hidden)


def _return_drop(to: Delivery, failed: int, name: str) -> None:
    """As ourselves, for the drop may be anybody's; where root is nobody as its owner: Linux lets nobody else link it.

    Neither a link nor a rename follows what the name points to.
    """
    status = os.stat(to.name, dir_fd=to.inside, follow_symlinks=False)
    with lent(to.inside, owner_of(status)):
        if stat.S_ISDIR(status.st_mode):
            _move_folder(to, failed, name)
        else:
            look = _look(to.inside, to.name)
            _link(to.inside, to.name, failed, name, lambda taken: _look(failed, taken) == look)


def tell_waiting(to: Delivery, text: str) -> None:
    """A note beside where the drop lay; once per claim."""
    if journal.read(to.inside, journal.WAITING) is not None:
        return
    with place(to.folders.submit, to.claim.folder) as (folder, _):
        for candidate in naming.numbered(naming.base(to.name)):
            note = f"{candidate}{WAITING_NOTE}"
            try:
                with acting_as(to.identity):
                    _write_safely(folder, note, notepad(text), to.mode)
            except FileExistsError:
                with acting_as(to.identity):
                    if not _mentions(to, folder, note):
                        continue
            journal.record(to.inside, journal.WAITING, os.fsencode(note))
            return


def clear_waiting(folders: Folders, claim: Claim, inside: int, identity: Identity | None) -> None:
    """Take the note away again."""
    note = journal.read(inside, journal.WAITING)
    if note is None:
        return
    with (
        # The person removed their own folder, or put another one in the note's place.
        contextlib.suppress(FileNotFoundError, IsADirectoryError),
        place(folders.submit, claim.folder) as (folder, _),
        acting_as(identity),
    ):
        _remove(folder, os.fsdecode(note))


def keep_readme(folders: Folders, name: str, text: str) -> None:
    """Keep the guide in `submit/` up to date; it is ours, so it is replaced."""
    wanted = notepad(text)
    with contextlib.suppress(OSError), open(os.open(name, READ, dir_fd=folders.submit), "rb") as file:
        if os.fstat(file.fileno()).st_uid == our_uid() and file.read(len(wanted) + 1) == wanted:
            return
    temporary = f".{name}.{os.getpid()}.tmp"
    _remove(folders.submit, temporary)
    _write_safely(folders.submit, temporary, wanted, 0o644)
    os.rename(temporary, name, src_dir_fd=folders.submit, dst_dir_fd=folders.submit)


def _tell(receipt: Prepared) -> str:
    """Put the text beside the first name that is free, and take that name by it; or find that it is there already."""
    to, folder, hidden = receipt.to, receipt.folder, _hidden(receipt.to)
    ours = os.stat(hidden, dir_fd=folder, follow_symlinks=False).st_uid
    for name in receipt.names:
        note = f"{name}{receipt.ending}"
        if _exists(folder, name) and not _mentions(to, folder, note, ours):
            continue
        try:
            os.link(hidden, note, src_dir_fd=folder, dst_dir_fd=folder)
        except FileExistsError:
            if not _mentions(to, folder, note, ours):  # else: told before a crash, or by another watcher
                continue
        _remove(folder, hidden)
        return name
    raise AssertionError("names never end")


def _mentions(to: Delivery, folder: int, note: str, owner: int | None = None) -> bool:
    """Whether a text is this claim's own. Anybody can read the key in Slurm, so it must be of our texts' owner."""
    with contextlib.suppress(OSError), open(os.open(note, READ, dir_fd=folder), "rb") as file:
        status = os.fstat(file.fileno())
        if owner is not None and status.st_uid != owner:
            return False
        file.seek(-min(END_OF_TEXT, status.st_size), os.SEEK_END)
        return to.claim.key.encode() in file.read(END_OF_TEXT)
    return False


def _content(folder: int, name: str, limit: int) -> bytes:
    """The first bytes of a file; none if it cannot be read."""
    with contextlib.suppress(OSError), open(os.open(name, READ, dir_fd=folder), "rb") as file:
        return file.read(limit)
    return b""


def _hidden(to: Delivery, what: str = "text") -> str:
    """A name that only watchers know before it is there, and that tells no other: a name can be taken by anybody."""
    return f".{hashlib.sha256(f'{to.claim.token} {what}'.encode()).hexdigest()[:32]}.tmp"


def _written(to: Delivery, folder: int, hidden: str, data: bytes) -> int:
    """Write it and keep it open."""
    try:
        return _write(folder, hidden, data, to.mode)
    except FileExistsError:  # half written before a crash
        _remove(folder, hidden)
        return _write(folder, hidden, data, to.mode)


def _write(folder: int, name: str, data: bytes, mode: int) -> int:
    descriptor = os.open(name, CREATE, 0o600, dir_fd=folder)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(data)
        os.fchmod(descriptor, mode)
    except OSError:  # a full disk or quota: no half receipt stays
        os.close(descriptor)
        _remove(folder, name)
        raise
    return descriptor


def _write_safely(folder: int, name: str, data: bytes, mode: int) -> None:
    """Write it, and have the disk keep it."""
    descriptor = _write(folder, name, data, mode)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _link(source: int, old: str, folder: int, wanted: str, is_it: Callable[[str], bool]) -> None:
    """Give a file its visible name, unless it is there already; a name that was taken meanwhile is numbered."""
    for name in naming.numbered(wanted):
        try:
            os.link(old, name, src_dir_fd=source, dst_dir_fd=folder, follow_symlinks=False)
        except FileExistsError:
            if not is_it(name):
                continue
        return


def _look(folder: int, name: str) -> tuple[int, int, int, int]:
    """What two names of one file share. Inode numbers are not to be trusted on every network file system."""
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    return stat.S_IFMT(status.st_mode), status.st_uid, status.st_size, status.st_mtime_ns


def _move_folder(to: Delivery, failed: int, wanted: str) -> None:
    """A folder cannot be linked. Its absence from the claim then tells that it was delivered."""
    for visible in naming.numbered(wanted):
        try:
            os.mkdir(visible, 0o700, dir_fd=failed)  # reserves the name: a rename may replace an empty folder
        except FileExistsError:
            continue
        os.rename(to.name, visible, src_dir_fd=to.inside, dst_dir_fd=failed)
        return


def _remove(folder: int, name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


def _exists(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
