"""The cgroups of all containers have one parent, so that at the end every process of every container is found."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from .layout import Layout

ROOT = Path("/sys/fs/cgroup")


def hierarchies() -> list[Path]:
    """Where cgroups are mounted: one place with version 2, one for each controller with version 1."""
    if (ROOT / "cgroup.controllers").exists():
        return [ROOT]
    found = {path.resolve() for path in ROOT.iterdir() if path.is_dir()}  # cpu,cpuacct has links
    return sorted(found)


def create(layout: Layout) -> None:
    """A kubelet wants its parent cgroup to be there."""
    for hierarchy in hierarchies():
        parent = hierarchy / layout.cgroup
        for folder in (parent, *(parent / node.name for node in layout.nodes)):
            folder.mkdir(exist_ok=True)
            _inherit(folder)


def _inherit(folder: Path) -> None:
    """Version 1 gives a new cpuset nothing, and version 2 gives a child no controller that its parent does not pass."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        own, parent = folder / name, folder.parent / name
        if own.exists() and parent.exists() and not own.read_text(encoding="ascii").strip():
            own.write_text(parent.read_text(encoding="ascii"), encoding="ascii")
    available = folder / "cgroup.controllers"
    if available.exists() and hierarchies() == [ROOT]:
        for controller in available.read_text(encoding="ascii").split():
            with contextlib.suppress(OSError):
                (folder / "cgroup.subtree_control").write_text(f"+{controller}", encoding="ascii")


def remove(layout: Layout, seconds: float = 20) -> None:
    """Kill what is in them, and then the cgroups themselves, the innermost first."""
    deadline = time.monotonic() + seconds
    while folders := [folder for hierarchy in hierarchies() for folder in _below(hierarchy / layout.cgroup)]:
        for folder in folders:
            _thaw(folder)
            for pid in _pids(folder):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(OSError):
                folder.rmdir()
        if time.monotonic() > deadline:
            raise TimeoutError(f"these cgroups cannot be removed: {', '.join(map(str, folders[:5]))}")
        time.sleep(0.01)


def _below(folder: Path) -> Iterator[Path]:
    with contextlib.suppress(FileNotFoundError):
        for child in folder.iterdir():
            if child.is_dir():
                yield from _below(child)
        yield folder


def _pids(folder: Path) -> list[int]:
    try:
        return [int(line) for line in (folder / "cgroup.procs").read_text(encoding="ascii").split()]
    except OSError:
        return []


def _thaw(folder: Path) -> None:
    """A frozen process does not die."""
    state = folder / "freezer.state"
    with contextlib.suppress(OSError):
        if state.exists() and state.read_text(encoding="ascii").strip() != "THAWED":
            state.write_text("THAWED", encoding="ascii")
