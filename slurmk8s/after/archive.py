"""The process that archives one bundle: `python -I -m slurmk8s.after.archive`, as its owner.

A `.tar.zst` that unpacks to `<job id>/`, in which `sha256sum -c checksums.txt` passes. It is written beside its name,
read back, and every file compared with checksums.txt, before it counts; only then may anything of the original go.
"""

import hashlib
import os
import stat
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from typing import Any

from slurmk8s.after.answering import answer
from slurmk8s.errors import ClusterFault, PersonFault
from slurmk8s.results import archived, faults, files, paths, sums
from slurmk8s.results.hashing import Identity
from slurmk8s.results.removal import remove_tree
from slurmk8s.results.summary_text import shown_name
from slurmk8s.results.walk import walk

# What a bundle keeps when the rest is in its archive: lists and reports read it.
KEPT = (paths.SUMMARY, paths.SUMMARY_TEXT, paths.MARKER)


def archive(request: dict[str, Any]) -> dict[str, Any]:
    """Make the archive, and remove the original if asked to. May be killed at any point and asked again."""
    if os.geteuid() == 0:
        raise PersonFault("Bundles are never archived as root.")
    name = f"{request['job_id']}.tar.zst"
    target = request["folder"] or request["results"]
    if request["folder"] and not os.access(target, os.W_OK | os.X_OK):
        raise ClusterFault(
            f"The folder for archives, {target}, is not there or its person cannot write to it.",
            "The administrator makes it for them, as docs/after.md says. It is tried again.",
        )
    try:
        with files.folder(request["results"]) as root, files.folder(target) as folder:
            if not files.is_own_folder(root, str(request["job_id"])):
                raise PersonFault(f"{request['results']}/{request['job_id']} is gone, or not a folder of yours.")
            with files.folder(str(request["job_id"]), root) as bundle:
                if files.lstat(bundle, paths.ARCHIVED) is None:
                    seen = make(root, str(request["job_id"]), folder, name, request)
                    if not request["remove"]:
                        return {"archive": f"{target}/{name}", "removed": False}
                    if fingerprint(root, str(request["job_id"])) != seen:
                        raise ClusterFault("The bundle changed while it was archived; its original stays for now.")
                    archived.note(bundle, f"{target}/{name}")
                elif not files.is_own_file(folder, name):
                    raise PersonFault(f"{target}/{name} is gone, so nothing more of the bundle is removed.")
                remove(bundle)
    except OSError as error:
        raise faults.explain(error, f"archive {request['results']}/{request['job_id']}") from None
    return {"archive": f"{target}/{name}", "removed": True}


def make(root: int, job: str, folder: int, name: str, request: dict[str, Any]) -> str:
    """Write, read back, put in place; what the bundle looked like."""
    temporary = f".{name}.tmp"
    if files.is_own_file(folder, temporary):  # of a try that was killed
        files.remove(folder, temporary)
    descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | files.FILE_FLAGS, 0o600, dir_fd=folder)
    try:
        with open(descriptor, "r+b") as file:
            seen = _write(root, job, file, request)
            os.fsync(descriptor)
            file.seek(0)
            _check(root, job, file, request["zstd"])
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        files.remove(folder, temporary)
        raise
    files.sync(folder)
    return seen


def _write(root: int, job: str, file: Any, request: dict[str, Any]) -> str:  # noqa: ANN401 - a binary file
    level, threads = f"-{request['level']}", f"-T{request['threads']}"
    digest = hashlib.sha256()
    with archived.through_zstd([request["zstd"], "-q", "-c", level, threads], subprocess.PIPE, file) as process:
        assert process.stdin is not None
        # GNU's format takes names of any bytes and files of any size, and every tar reads it.
        with tarfile.open(
            fileobj=process.stdin, mode="w|", format=tarfile.GNU_FORMAT, encoding="utf-8", errors="surrogateescape"
        ) as tar:
            for path, found, parent, inner in _entries(root, job):
                digest.update(_mark(path, found))
                _add(tar, path, found, parent, inner)
        process.stdin.close()
    return digest.hexdigest()


def _add(tar: tarfile.TarFile, path: bytes, found: os.stat_result, parent: int, name: bytes) -> None:
    info = tarfile.TarInfo(os.fsdecode(path))
    info.mode, info.mtime = stat.S_IMODE(found.st_mode), int(found.st_mtime)
    info.uid, info.gid = found.st_uid, found.st_gid
    if stat.S_ISDIR(found.st_mode):
        info.type = tarfile.DIRTYPE
        tar.addfile(info)
    elif stat.S_ISLNK(found.st_mode):
        info.type, info.linkname = tarfile.SYMTYPE, os.fsdecode(os.readlink(name, dir_fd=parent))
        tar.addfile(info)
    else:
        descriptor = os.open(name, os.O_RDONLY | files.FILE_FLAGS, dir_fd=parent)
        with open(descriptor, "rb", buffering=0) as file:
            now = os.fstat(descriptor)
            if not stat.S_ISREG(now.st_mode):
                raise ClusterFault(f"{shown_name(path)} changed while it was archived.")
            info.size = now.st_size
            try:
                tar.addfile(info, file)
            except OSError as error:
                if error.errno is None:  # tarfile's own: the file is shorter than it was
                    raise ClusterFault(f"{shown_name(path)} changed while it was archived.") from None
                raise
            if Identity.of(os.fstat(descriptor)) != Identity.of(now):
                raise ClusterFault(f"{shown_name(path)} changed while it was archived.")


def _check(root: int, job: str, file: Any, zstd: str) -> None:  # noqa: ANN401 - a binary file
    """Read the archive back: every file that checksums.txt names must be in it, as it says."""
    wanted = _digests(root, job)
    for member in archived.members(file, zstd):
        if member.path in wanted and member.digest != wanted.pop(member.path):
            raise PersonFault(
                f"{shown_name(member.path)} is no longer what checksums.txt says, so the bundle is not archived.",
                f"`slurmk8s verify {job}` tells more.",
            )
    if wanted:
        missing = shown_name(min(wanted))
        raise PersonFault(f"{missing} is in checksums.txt and no longer in the bundle, so it is not archived.")


def _digests(root: int, job: str) -> dict[bytes, str]:
    with files.folder(job, root) as bundle:
        try:
            descriptor = os.open(paths.CHECKSUMS, os.O_RDONLY | files.FILE_FLAGS, dir_fd=bundle)
        except FileNotFoundError:
            raise PersonFault("The bundle has no checksums.txt, so it is not archived.") from None
        wanted: dict[bytes, str] = {}
        with open(descriptor, "rb") as file:
            for number, line in enumerate(sums.lines(file), 1):
                if (parsed := sums.parse(line)) is None:
                    raise PersonFault(f"Line {number} of checksums.txt is none, so the bundle is not archived.")
                wanted[parsed[1]] = parsed[0]
    for log in (paths.STDOUT, paths.STDERR):
        if os.fsencode(log) not in wanted:  # of a complete bundle both are: somebody has changed the list
            raise PersonFault(f"{log} is not in checksums.txt, so the bundle is not archived.")
    return wanted


def fingerprint(root: int, job: str) -> str:
    """What the bundle looks like: every name with size, time and inode."""
    digest = hashlib.sha256()
    for path, found, _, _ in _entries(root, job):
        digest.update(_mark(path, found))
    return digest.hexdigest()


def _mark(path: bytes, found: os.stat_result) -> bytes:
    if stat.S_ISREG(found.st_mode):
        return b"%s\0%d %d %d\0" % (path, found.st_size, found.st_mtime_ns, found.st_ino)
    return b"%s\0%d\0" % (path, stat.S_IFMT(found.st_mode))


def _entries(root: int, job: str) -> Iterator[tuple[bytes, os.stat_result, int, bytes]]:
    """Folders, files and links of the bundle, none of them followed; pipes, sockets and devices hold nothing."""
    last = b""
    for folder in walk(root, os.fsencode(job)):
        if folder.error is not None:
            raise folder.error
        if folder.path != last:  # a very large folder comes in parts
            yield folder.path, os.fstat(folder.descriptor), folder.descriptor, b"."
            last = folder.path
        for name in sorted(folder.names + folder.skipped):
            if folder.path == os.fsencode(job) and _is_passing(os.fsdecode(name)):
                continue
            found = os.stat(name, dir_fd=folder.descriptor, follow_symlinks=False)
            if stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode):
                yield folder.path + b"/" + name, found, folder.descriptor, name


def _is_passing(name: str) -> bool:
    return name in (paths.PARTIAL, paths.PROGRESS, paths.ARCHIVED) or paths.TEMPORARY_NAME.fullmatch(name) is not None


def remove(bundle: int) -> None:
    """Everything but the summaries, and never through a link."""
    with os.scandir(bundle) as entries:
        inside = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in inside:
        if name in (*KEPT, paths.ARCHIVED):
            continue
        if is_folder:
            remove_tree(bundle, os.fsencode(name))
        else:
            files.remove(bundle, name)
    files.sync(bundle)


def main() -> int:
    """Answer one request."""
    os.umask(0o077)
    return answer(archive)


if __name__ == "__main__":
    sys.exit(main())
