"""Processes that outlive the command which starts them, each with a log and a file that tells its pid."""

import contextlib
import json
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def start(name: str, command: list[str], environment: Mapping[str, str], records: Path, log: Path) -> int:
    """Start it in a session of its own, its output appended to the log."""
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    try:
        pid = os.posix_spawn(
            command[0],
            command,
            dict(environment),
            file_actions=[
                (os.POSIX_SPAWN_DUP2, source, target) for source, target in ((nothing, 0), (out, 1), (out, 2))
            ],
            setsid=True,
            setsigmask=[],
            # Python ignores the first; a shell's background job ignores the others.
            setsigdef=[signal.SIGPIPE, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP],
        )
    finally:
        os.close(out)
        os.close(nothing)
    text = json.dumps({"pid": pid, "started": _stat(pid)[1]})
    temporary = records / f".{name}.tmp"
    temporary.write_text(text, encoding="ascii")
    temporary.replace(records / name)
    return pid


def pid_of(name: str, records: Path) -> int | None:
    """Its pid, if it lives: a number that another process has by now is not it, and neither is a zombie."""
    try:
        record = json.loads((records / name).read_text(encoding="ascii"))
    except FileNotFoundError:
        return None
    pid = int(record["pid"])
    with contextlib.suppress(ChildProcessError):  # ours only if this very process started it
        os.waitpid(pid, os.WNOHANG)
    state, started = _stat(pid)
    return pid if started == record["started"] and state not in ("Z", "X", "") else None


def end(name: str, records: Path, number: int = signal.SIGTERM, seconds: float = 10) -> None:
    """Signal it and see it gone; SIGKILL after that time."""
    pid = pid_of(name, records)
    if pid is None:
        return
    _signal(pid, number)
    if number != signal.SIGKILL:
        _signal(pid, signal.SIGCONT)  # a stopped process hears nothing else
    deadline = time.monotonic() + seconds
    while pid_of(name, records) == pid:
        if time.monotonic() > deadline:
            _signal(pid, signal.SIGKILL)
            deadline += seconds
        time.sleep(0.01)


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _stat(pid: int) -> tuple[str, str]:
    """State and start time; together with the pid the latter names one process for ever."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return "", ""
    fields = text.rpartition(")")[2].split()
    if fields[0] == "Z" and _threads(pid) > 1:
        return "D", fields[19]  # its first thread has ended, but the others still hold its ports
    return fields[0], fields[19]


def _threads(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return 0
