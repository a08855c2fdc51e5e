"""The run folder as a mount that the host and the cluster's mount namespace share.

A kubelet mounts into its pods what the host sees. The agents make the folders of a job, and mounts on them, in a mount
namespace of their own; so their run folder is made on the host, before that namespace, as a shared mount: what is
mounted below it on one side appears on the other. Nothing else leaves the namespace.
"""

import ctypes
import os
import subprocess
from pathlib import Path

from slurmk8s.errors import SetupError
from slurmk8s.local.layout import Layout

MS_SLAVE = 1 << 19


def make(layout: Layout) -> None:
    """On the host, before the namespaces: a fresh tmpfs that will be in both."""
    remove(layout)
    layout.run.mkdir(mode=0o755, exist_ok=True)
    for arguments in (
        ["-t", "tmpfs", "-o", "mode=0755", "slurmk8s", str(layout.run)],
        ["--make-shared", str(layout.run)],
    ):
        done = subprocess.run(["mount", *arguments], stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise SetupError(f"{layout.run} cannot be mounted: {done.stderr.strip()}.")


def remove(layout: Layout) -> None:
    """On the host, after the last process: the mounts made inside have outlived the namespace here. Of all lives."""
    while layout.run in _mount_points():
        subprocess.run(["umount", "--recursive", "--lazy", str(layout.run)], check=True)


def keep_the_rest_inside(layout: Layout) -> None:
    """In the new namespace, before any mount: let nothing out but what is mounted below the run folder.

    Slave, not private: what the host unmounts meanwhile (its kubelet's volumes) must not be held here.
    """
    mount = ctypes.CDLL(None, use_errno=True).mount
    for point in _mount_points():
        if point == layout.run or layout.run in point.parents:
            continue
        # One that another is mounted over cannot be reached, and nothing can be mounted below it.
        if mount(None, os.fsencode(point), None, MS_SLAVE, None) and point == Path("/"):
            raise OSError(ctypes.get_errno(), "mount(MS_SLAVE)", "/")


def _mount_points() -> list[Path]:
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    return [Path(line.split()[4].encode().decode("unicode_escape")) for line in lines]
