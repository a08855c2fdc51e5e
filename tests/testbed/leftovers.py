"""Take away everything of a cluster but its folder, however it ended: nothing here asks a daemon for help."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from . import cgroups, network, processes
from .layout import Layout

CNI_CACHE = Path("/var/lib/cni/results")
CONTAINER_LOGS = Path("/var/log/containers")


def clear(layout: Layout) -> None:
    """Kill, unmount, remove; then empty the folder, apart from the marker, which goes with it."""
    records = layout.processes
    names = sorted(path.name for path in records.iterdir() if not path.name.startswith(".")) if records.exists() else []
    # Kubelets first: they would start again what is killed next.
    for name in sorted(names, key=lambda name: not name.startswith("kubelet")):
        processes.end(name, records, signal.SIGKILL)
    if (layout.folder / "subnet").exists():
        _kill_shims(layout)
        cgroups.remove(layout)
    _unmount(layout.folder)
    if (layout.folder / "subnet").exists():
        _remove_global_files(layout)
        network.remove(layout)
    for path in layout.folder.iterdir():
        if path == layout.marker:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _kill_shims(layout: Layout, seconds: float = 10) -> None:
    """The process between containerd and a container lives on without the former; it names its containerd's socket."""
    sockets = {str(node.socket) for node in layout.nodes}
    deadline = time.monotonic() + seconds
    while pids := [pid for pid in _pids() if sockets & set(_arguments(pid))]:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise TimeoutError(f"these processes do not die: {pids}")
        time.sleep(0.01)


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def _arguments(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def mounts(folder: Path) -> list[str]:
    """Everything mounted below it, the innermost first."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        target = line.split()[4].encode().decode("unicode_escape")
        if target.startswith(f"{folder}/"):
            found.append(target)
    return found[::-1]


def _unmount(folder: Path) -> None:
    for target in mounts(folder):
        subprocess.run(["umount", "--lazy", target], check=False, capture_output=True)


def _remove_global_files(layout: Layout) -> None:
    """The few places outside the folder whose paths are constants of containerd and the kubelet."""
    for path in CNI_CACHE.glob("*"):
        with contextlib.suppress(FileNotFoundError):  # another cluster's, which its plugin has just removed
            if f'"{layout.folder}/' in path.read_text(encoding="utf-8", errors="replace"):  # the pod's netns
                path.unlink()
    for path in CONTAINER_LOGS.glob("*"):
        if path.is_symlink() and os.readlink(path).startswith(f"{layout.folder}/"):
            path.unlink(missing_ok=True)
    shutil.rmtree(layout.sockets, ignore_errors=True)
    # Others may use these; rmdir takes only what is empty.
    for folder in (CNI_CACHE, CNI_CACHE.parent, CONTAINER_LOGS):
        with contextlib.suppress(OSError):
            folder.rmdir()
