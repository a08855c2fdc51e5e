"""Makes and removes what a pod needs on the node: the rendezvous folder, /dev/shm, a home, passwd and group."""

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
from slurmk8s.errors import NodeFault
from slurmk8s.mountpoint import is_mountpoint
from slurmk8s.rendezvous import Rendezvous


@dataclass(frozen=True)
class Places:
    """The folders of one job on this node."""

    meeting: Rendezvous
    home: Path
    """A private home for the job, where the person's own is not shared with pods."""

    @property
    def shm(self) -> Path:
        """A tmpfs that becomes the pod's /dev/shm."""
        return self.meeting.folder / "shm"

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


def furnish(places: Places, record: Record, person: pwd.struct_passwd, shm_bytes: int, plan: dict[str, Any]) -> None:
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
        _mount_shm(places.shm, shm_bytes)
        _put(meeting.plan, json.dumps(plan))
    except OSError as error:
        raise NodeFault(f"The node cannot make the job's folder {places.meeting.folder}: {error}.") from None


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


def _mount_shm(path: Path, size: int) -> None:
    path.mkdir(mode=0o1777, exist_ok=True)
    if not is_mountpoint(path):
        options = f"size={size},mode=1777,nosuid,nodev"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "slurmk8s-shm", str(path)], check=True)


def clear(places: Places) -> None:
    """Remove everything, also what is half there."""
    if is_mountpoint(places.shm):
        subprocess.run(["umount", "--lazy", str(places.shm)], check=False)
    # rm follows no link and knows no depth at which it gives up; shutil.rmtree ends at a thousand folders.
    subprocess.run(
        ["rm", "-rf", "--one-file-system", "--", str(places.meeting.folder), str(places.home)],
        stderr=subprocess.PIPE,
        text=True,
        check=True,
    )


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
