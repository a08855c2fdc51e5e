"""Makes and removes what a pod needs on the node: the rendezvous folder, /dev/shm, a home, passwd and group."""

import ctypes
import errno
import grp
import json
import os
import pwd
import subprocess
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from slurmk8s.agent.record import Record
from slurmk8s.config import Config
from slurmk8s.errors import NodeFault, PersonFault
from slurmk8s.mountpoint import is_mountpoint
from slurmk8s.rendezvous import Rendezvous
from slurmk8s.results import paths

MS_BIND = 4096
# A script, its environment and a few words: room enough for them, not for filling the node's memory.
HANDOVER_OPTIONS = "size=64m,nr_inodes=4096,nosuid,nodev"


@dataclass(frozen=True)
class Places:
    """The folders of one job on this node."""

    meeting: Rendezvous
    home: Path
    """A private home for the job, where the person's own is not shared with pods."""

    @classmethod
    def of(cls, config: Config, node: str, job_id: int) -> "Places":
        """Where a job's folders are on this node."""
        meeting = Rendezvous.of(str(config.agent.run_folder), node, job_id)
        return cls(meeting, config.agent.state_folder_of(node) / "homes" / str(job_id))

    @property
    def shm(self) -> Path:
        """A tmpfs that becomes the pod's /dev/shm."""
        return self.meeting.folder / "shm"

    @property
    def results(self) -> Path:
        """The results folder, bound here by descriptor."""
        return self.meeting.folder / "results"

    @property
    def outputs(self) -> Path:
        """Its outputs, bound here by descriptor."""
        return self.meeting.folder / "outputs"

    @property
    def passwd(self) -> Path:
        """Becomes /etc/passwd."""
        return self.meeting.told / "passwd"

    @property
    def group(self) -> Path:
        """Becomes /etc/group."""
        return self.meeting.told / "group"


def furnish(
    places: Places,
    record: Record,
    person: pwd.struct_passwd,
    results: Path,
    shm_bytes: int | None,
    plan: dict[str, Any],
    *,
    in_bundle: bool = False,
) -> None:
    """Make everything; what is there from before a restart is kept. The plan comes last: it says all is ready.

    `shm_bytes` None: the runtime makes /dev/shm and a home. `in_bundle`: the hand-over folder is the bundle's own.
    """
    try:
        meeting = places.meeting
        meeting.told.mkdir(mode=0o755, parents=True, exist_ok=True)
        for name, text in told(person, record.groups).items():
            _put(meeting.told / name, text)
        if shm_bytes is not None:
            if not places.home.exists():
                places.home.mkdir(mode=0o700, parents=True)
                os.chown(places.home, record.uid, record.gid)
            _mount_shm(places.shm, shm_bytes, record)
        _bind_results(places, record, results, in_bundle=in_bundle)
        if not in_bundle:
            _make_handover(meeting, record)
        _put(meeting.plan, json.dumps(plan))
    except OSError as error:
        raise NodeFault(f"The node cannot make the job's folder {places.meeting.folder}: {error}.") from None


def told(person: pwd.struct_passwd, groups: tuple[int, ...]) -> dict[str, str]:
    """The files that a pod is told, by name."""
    launcher = resources.files("slurmk8s.run").joinpath("launcher.sh").read_text(encoding="utf-8")
    return {"launcher.sh": launcher, "passwd": passwd(person), "group": group(person, groups)}


def require_mounts(config: Config, node: str, record: Record) -> None:
    """Nothing is made on an empty mount point: results would land on the system disk."""
    mounts = [config.mounts[name] for name in (*config.standard_mounts, *record.mounts)]
    needed = [mount.source for mount in mounts if mount.require_mountpoint]
    if config.nas.require_mountpoint and not is_mountpoint(config.nas.root):
        raise NodeFault(
            f"The NAS is not mounted at {config.nas.root} on {node}.", f"Mount it: `mount {config.nas.root}`."
        )
    for source in needed:
        if not is_mountpoint(source):
            raise NodeFault(f"{source} is not mounted on {node}.", f"Mount it: `mount {source}`.")


def _make_handover(meeting: Rendezvous, record: Record) -> None:
    """A small file system of its own, filled by root and then given to the user: from then on root writes none of it.

    As long as it is root's nobody else can enter it, so what root makes and gives away there is what root made.
    """
    meeting.handover.mkdir(mode=0o700, exist_ok=True)
    if is_mountpoint(meeting.handover):
        if meeting.handover.stat().st_uid == record.uid:
            return  # from before a restart
    else:
        _mount_tmpfs(meeting.handover, f"{HANDOVER_OPTIONS},mode=0700")
    for pipe in (meeting.go, meeting.signals):
        pipe.unlink(missing_ok=True)
        os.mkfifo(pipe, 0o600)
        os.chown(pipe, record.uid, record.gid)
    os.chown(meeting.handover, record.uid, record.gid)


def _bind_results(places: Places, record: Record, results: Path, *, in_bundle: bool) -> None:
    """Hold the very folders that the worker made.

    Their names belong to the user, who may put a link in their place, and the runtime would follow it as root; so they
    are opened without following, looked at, and bound by descriptor.
    """
    wanted = [("outputs", places.outputs)]
    if in_bundle:
        wanted.append((paths.handover_name(record.attempt), places.meeting.handover))
    bundle = _open_own(str(results), None, record, results)
    try:
        _bind_once(bundle, places.results, results)
        for name, target in wanted:
            folder = _open_own(name, bundle, record, results)
            try:
                _bind_once(folder, target, results)
            finally:
                os.close(folder)
    finally:
        os.close(bundle)


def _open_own(name: str, parent: int | None, record: Record, results: Path) -> int:
    """A real folder of the job's owner, opened."""
    try:
        opened = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    except OSError as error:
        raise PersonFault(f"{results} was changed while the job started: {error}.", "Submit it again.") from None
    if os.fstat(opened).st_uid != record.uid:
        os.close(opened)
        raise PersonFault(f"{results} was changed while the job started: it is not {record.user}'s any more.")
    return opened


def _bind_once(descriptor: int, target: Path, results: Path) -> None:
    target.mkdir(mode=0o755, exist_ok=True)
    if is_mountpoint(target):
        return
    try:
        bind(descriptor, target)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ESTALE):
            raise
        # The folder that we hold open was removed meanwhile, and only its owner could.
        raise PersonFault(f"{results} was changed while the job started: {error}.", "Submit it again.") from None


def bind(descriptor: int, target: Path) -> None:
    """mount(2) itself: the program of that name would turn the descriptor back into a path first."""
    source = f"/proc/self/fd/{descriptor}".encode()
    if ctypes.CDLL(None, use_errno=True).mount(source, os.fsencode(target), None, MS_BIND, None):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(target))


def _mount_shm(path: Path, size: int, record: Record) -> None:
    path.mkdir(mode=0o755, exist_ok=True)
    if not is_mountpoint(path):
        _mount_tmpfs(path, f"size={size},mode=0700,uid={record.uid},gid={record.gid},nosuid,nodev")


def _mount_tmpfs(path: Path, options: str) -> None:
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, f"slurmk8s-{path.name}", str(path)],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise OSError(f"mount: {done.stderr.strip()}")


def clear_home(places: Places) -> None:
    """Remove the job's private home: first of all, since it may have filled the disk that records are written to."""
    _remove(places.home)


def clear(places: Places) -> None:
    """Remove everything, also what is half there."""
    for path in (places.shm, places.outputs, places.meeting.handover, places.results):
        if is_mountpoint(path):
            subprocess.run(["umount", "--lazy", str(path)], check=False)
            if is_mountpoint(path):  # never remove what is still somebody's results
                raise NodeFault(f"{path} cannot be unmounted.")
    _remove(places.meeting.folder, places.home)


def _remove(*folders: Path) -> None:
    """By rm: it follows no link and knows no depth at which it gives up; shutil.rmtree ends at a thousand folders."""
    command = ["rm", "-rf", "--one-file-system", "--", *map(str, folders)]
    subprocess.run(command, stderr=subprocess.PIPE, text=True, check=True)


def passwd(person: pwd.struct_passwd) -> str:
    """Enough for getpwuid: torch, pip and ssh fail without the user's own line."""
    return (
        "root:x:0:0:root:/root:/bin/sh\n"
        f"{person.pw_name}:x:{person.pw_uid}:{person.pw_gid}::{person.pw_dir}:/bin/sh\n"
        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    )


def group(person: pwd.struct_passwd, groups: tuple[int, ...]) -> str:
    """The person's groups by the names of this node; the image's own group file has no say."""
    lines = ["root:x:0:"]
    for gid in sorted({person.pw_gid, *groups} - {0}):
        try:
            name = grp.getgrgid(gid).gr_name
        except KeyError:
            name = f"group{gid}"
        lines.append(f"{name}:x:{gid}:{person.pw_name}")
    return "\n".join([*lines, "nogroup:x:65534:"]) + "\n"


def _put(path: Path, text: str) -> None:
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.chmod(0o644)
    temporary.rename(path)
