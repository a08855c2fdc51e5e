"""Makes and removes what a pod needs on the node: the rendezvous folder, /dev/shm, a home, passwd and group."""

import ctypes
import grp
import json
import os
import pwd
import shutil
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

MS_BIND = 4096


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

    @property
    def launcher(self) -> Path:
        """What the pod runs."""
        return self.meeting.told / "launcher.sh"


def furnish(
    places: Places,
    record: Record,
    person: pwd.struct_passwd,
    results: Path,
    shm_bytes: int,
    plan: dict[str, Any],
) -> None:
    """Make everything; what is there from before a restart is kept. The plan comes last: it says all is ready."""
    try:
        meeting = places.meeting
        meeting.told.mkdir(mode=0o755, parents=True, exist_ok=True)
        _put(places.launcher, resources.files("slurmk8s.run").joinpath("launcher.sh").read_text(encoding="utf-8"))
        _put(places.passwd, passwd(person))
        _put(places.group, group(person, record.groups))
        if not meeting.handover.exists():
            _make_handover(meeting, record)
        if not places.home.exists():
            places.home.mkdir(mode=0o700, parents=True)
            os.chown(places.home, record.uid, record.gid)
        _mount_shm(places.shm, shm_bytes, record)
        _bind_results(places, record, results)
        _put(meeting.plan, json.dumps(plan))
    except OSError as error:
        raise NodeFault(f"The node cannot make the job's folder {places.meeting.folder}: {error}.") from None


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
    """Built under another name by root, then given to the user: from then on root writes nothing in it."""
    building = meeting.folder / "handover.tmp"
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(mode=0o700)
    for name in (meeting.go.name, meeting.signals.name):
        os.mkfifo(building / name, 0o600)
        os.chown(building / name, record.uid, record.gid)
    os.chown(building, record.uid, record.gid)
    building.rename(meeting.handover)


def _bind_results(places: Places, record: Record, results: Path) -> None:
    """Hold the very folders that the worker made.

    Their names belong to the user, who may put a link in their place, and the runtime would follow it as root; so they
    are opened without following, looked at, and bound by descriptor.
    """
    opened: list[int] = []
    try:
        for name, target in ((str(results), places.results), ("outputs", places.outputs)):
            try:
                flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                opened.append(os.open(name, flags, dir_fd=opened[-1] if opened else None))
            except OSError as error:
                raise PersonFault(
                    f"{results} was changed while the job started: {error}.", "Submit it again."
                ) from None
            if os.fstat(opened[-1]).st_uid != record.uid:
                raise PersonFault(f"{results} was changed while the job started: it is not {record.user}'s any more.")
            target.mkdir(mode=0o755, exist_ok=True)
            if not is_mountpoint(target):
                bind(opened[-1], target)
    finally:
        for descriptor in opened:
            os.close(descriptor)


def bind(descriptor: int, target: Path) -> None:
    """mount(2) itself: the program of that name would turn the descriptor back into a path first."""
    source = f"/proc/self/fd/{descriptor}".encode()
    if ctypes.CDLL(None, use_errno=True).mount(source, os.fsencode(target), None, MS_BIND, None):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(target))


def _mount_shm(path: Path, size: int, record: Record) -> None:
    path.mkdir(mode=0o755, exist_ok=True)
    if not is_mountpoint(path):
        options = f"size={size},mode=0700,uid={record.uid},gid={record.gid},nosuid,nodev"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "slurmk8s-shm", str(path)], check=True)


def clear_home(places: Places) -> None:
    """Remove the job's private home: first of all, since it may have filled the disk that records are written to."""
    _remove(places.home)


def clear(places: Places) -> None:
    """Remove everything, also what is half there."""
    for path in (places.shm, places.outputs, places.results):
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
