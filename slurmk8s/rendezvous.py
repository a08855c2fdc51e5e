"""The folder on the node where a job and its pod meet; every path in it is named here.

`<run folder>/jobs/<id>/told/` is written by the agent (root) and read by the job's user; `handover/` is written by the
job's user alone, on the host by slurmk8s-run and in the pod by the launcher. Root never writes there once it exists.
"""

import json
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Where the pod sees the two folders; launcher.sh has the same path for what it is told.
IN_POD = Path("/slurmk8s")
# What a body's exit code is when somebody else has ended it: SIGTERM, SIGKILL.
ENDED_BY_SIGNAL = (143, 137)


@dataclass(frozen=True)
class Rendezvous:
    """One job's folder on this node."""

    folder: Path

    @classmethod
    def of(cls, run_folder: str, node: str, job_id: int) -> "Rendezvous":
        """The folder of a job; `%n` in the run folder is the node's name."""
        return cls(Path(run_folder.replace("%n", node)) / "jobs" / str(job_id))

    @property
    def told(self) -> Path:
        """What the agent tells the job."""
        return self.folder / "told"

    @property
    def plan(self) -> Path:
        """Told: where the logs are and what the body's environment may hold."""
        return self.told / "plan.json"

    @property
    def handover(self) -> Path:
        """What the job's user hands over, and what the launcher answers."""
        return self.folder / "handover"

    @property
    def go(self) -> Path:
        """Fifo: the launcher waits on it."""
        return self.handover / "go"

    @property
    def signals(self) -> Path:
        """Fifo: lines `all USR1` or `shell USR1` for the launcher's helper."""
        return self.handover / "signals"

    @property
    def command(self) -> Path:
        """The body's variables and command line, as sh."""
        return self.handover / "command"

    @property
    def script(self) -> Path:
        """The batch script, as the person wrote it."""
        return self.handover / "slurm_script"

    @property
    def terminated(self) -> Path:
        """Exists once the step has passed SIGTERM on to all processes."""
        return self.handover / "terminated"

    @property
    def shell(self) -> Path:
        """The body's pid in the pod; exists once the body has started."""
        return self.handover / "shell"

    @property
    def exit(self) -> Path:
        """The body's exit code; complete when it ends with a newline."""
        return self.handover / "exit"

    @property
    def out_of_memory(self) -> Path:
        """Exists if the kernel killed a process of the pod for its memory."""
        return self.handover / "out_of_memory"

    @property
    def peak(self) -> Path:
        """The most memory that the pod ever held, in bytes, by the kernel's own count."""
        return self.handover / "peak"

    @property
    def cpu(self) -> Path:
        """The CPU time that the pod has used, by the kernel's own count: in µs (version 2) or ns (version 1)."""
        return self.handover / "cpu"

    @property
    def sha256(self) -> Path:
        """Digest of the body that runs."""
        return self.handover / "sha256"

    @property
    def stopped(self) -> Path:
        """Exists once Kubernetes has begun to end the pod while the body ran: somebody deleted or evicted it."""
        return self.handover / "stopped"

    @property
    def problem(self) -> Path:
        """One sentence by the launcher when it could not run the body."""
        return self.handover / "problem"

    def read_plan(self) -> dict[str, Any] | None:
        """What the agent told, or None while it has not."""
        try:
            plan = json.loads(self.plan.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        return plan if isinstance(plan, dict) else None

    def read_exit(self) -> int | None:
        """The exit code, or None while the body runs."""
        text = read_users_file(self.exit, 16)
        if text is None or re.fullmatch(r"[0-9]+\n", text) is None:
            return None
        return int(text) & 0xFF

    def read_peak(self) -> int | None:
        """The peak of memory in bytes, where the launcher could read it."""
        text = read_users_file(self.peak, 24)
        return int(text) if text and re.fullmatch(r"[0-9]+\n", text) else None

    def read_cpu_seconds(self) -> float | None:
        """The CPU time in seconds, where the launcher could read it."""
        found = re.fullmatch(r"([0-9]{1,20}) (us|ns)\n", read_users_file(self.cpu, 32) or "")
        return int(found[1]) / (1e6 if found[2] == "us" else 1e9) if found else None

    def read_sha256(self) -> str | None:
        """The body's digest, where slurmk8s-run could read the body."""
        found = re.fullmatch(r"([0-9a-f]{64})\n", read_users_file(self.sha256, 80) or "")
        return found[1] if found else None

    def was_ended_from_outside(self, code: int | None) -> bool:
        """Whether that exit code is no decision of the body's own, but of whoever ended its pod."""
        return code in (None, *ENDED_BY_SIGNAL) and exists(self.stopped)

    def read_problem(self) -> str | None:
        """The launcher's sentence, if there is one."""
        text = read_users_file(self.problem, 1000)
        return " ".join(text.split()) if text else None

    def send_signal(self, whom: str, signal_name: str) -> bool:
        """Ask the launcher's helper to pass a signal on. False when nobody can be listening any more."""
        try:
            fifo = os.open(self.signals, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            if not stat.S_ISFIFO(os.fstat(fifo).st_mode):  # the agent asks too, as root, and the folder is the user's
                return False
            os.write(fifo, f"{whom} {signal_name}\n".encode())  # below PIPE_BUF, so lines never mix
        except BlockingIOError:
            return False
        finally:
            os.close(fifo)
        return True


def exists(path: Path) -> bool:
    """Whether there is anything of that name in a folder that the job's user controls: a link is not followed."""
    return os.path.lexists(path)  # unlike Path.exists it never raises, whatever a link points at


def read_users_file(path: Path, limit: int) -> str | None:
    """Read a small file from a folder that the job's user controls: no link, no fifo, no more than `limit` bytes."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        return os.read(descriptor, limit).decode("utf-8", "replace")
    except OSError:
        return None
    finally:
        os.close(descriptor)
