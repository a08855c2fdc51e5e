"""What runs: state.json, written by the supervisor alone, and the check that it still tells the truth."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from slurmk8s.local.layout import Layout


@dataclass
class DaemonState:
    """One daemon. `pid` is as seen inside; 0 while it does not run."""

    pid: int = 0
    starts: int = 0
    last_end: str = ""
    ready: bool = False


@dataclass
class State:
    """The supervisor's word."""

    pid: int
    """The supervisor, as the host counts."""
    born: str
    """Its start time in clock ticks since boot, and the boot: a pid alone may be somebody else's by now."""
    stopping: bool = False
    daemons: dict[str, DaemonState] = field(default_factory=dict)


def birth(pid: int) -> str | None:
    """What tells this process from every other that ever had its pid; None if there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()
    if fields[0] in "ZX":
        return None
    return f"{fields[19]}@{Path('/proc/sys/kernel/random/boot_id').read_text(encoding='ascii').strip()}"


def write(layout: Layout, state: State) -> None:
    """Replace the file whole: a reader never sees half of it."""
    temporary = layout.state.with_suffix(".tmp")
    temporary.write_text(json.dumps(asdict(state), indent=1) + "\n", encoding="utf-8")
    temporary.chmod(0o644)
    temporary.replace(layout.state)


def running(layout: Layout) -> State | None:
    """The state, if the supervisor that wrote it is alive."""
    try:
        data = json.loads(layout.state.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    daemons = {name: DaemonState(**values) for name, values in data.pop("daemons").items()}
    state = State(**data, daemons=daemons)
    return state if birth(state.pid) == state.born else None


def processes(state: State) -> dict[int, int]:
    """Every process of the cluster: its pid inside, its pid as the host counts."""
    namespace = Path(f"/proc/{state.pid}/ns/pid").readlink()
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            lines = (entry / "status").read_text(encoding="utf-8", errors="replace").splitlines()
            if (entry / "ns/pid").readlink() != namespace:
                continue
        except OSError:  # it ended meanwhile
            continue
        numbers = next(line.split()[1:] for line in lines if line.startswith("NSpid:"))
        found[int(numbers[-1])] = int(entry.name)
    return found
