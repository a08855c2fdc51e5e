"""PID 1 of a local cluster: starts its daemons, starts them again when they die, reaps orphans, stops them in order.

`python -m slurmk8s.local.supervisor DIR --start` makes the namespaces and executes itself inside them.
"""

import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from slurmk8s.local import namespace, network, plan, state
from slurmk8s.local.daemons import Daemon, all_daemons
from slurmk8s.local.layout import Layout

FIRST_DELAY, LONGEST_DELAY = 0.2, 10.0
HEALTHY_SECONDS = 30.0
"""A daemon that lived this long is restarted at once; one that dies sooner waits longer each time."""
STOP_SECONDS = 5.0
"""For one daemon; then it is killed."""
POD_SECONDS = 60.0
"""For all pods; then they end with the namespace."""


@dataclass
class Kept:
    """A daemon and what became of it."""

    daemon: Daemon
    record: state.DaemonState
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    delay: float = FIRST_DELAY
    due: float = 0.0


@dataclass
class Supervisor:
    """The whole of it; one thread, woken by signals."""

    layout: Layout
    state: state.State
    kept: list[Kept]
    wake: int
    podman: bool
    """Whether pods are podman's; Kubernetes' are not in our namespaces, and `down` removes them."""
    stopping: bool = False

    def run(self) -> None:
        """Start in order, keep alive, stop in reverse order."""
        while not self.stopping:
            self._start_due()
            self._save()
            self._sleep(self._until_next())
            self._reap()
        self.state.stopping = True
        self._save()
        for kept in reversed(self.kept):
            self._stop(kept)
        if self.podman:
            self._remove_pods()  # after the agents: they would take it for a fault

    def _start_due(self) -> None:
        """Start what is due; a daemon whose predecessor is not ready waits."""
        for kept in self.kept:
            if kept.process is None and time.monotonic() >= kept.due:
                self._start(kept)
            if kept.process is not None and not kept.record.ready:
                kept.record.ready = kept.daemon.ready()
            if not kept.record.ready and kept.daemon.others_wait:
                return

    def _until_next(self) -> float:
        """Poll while one that runs is not ready; else sleep until one is due (or a signal comes)."""
        if any(kept.process and not kept.record.ready for kept in self.kept):
            return 0.05
        return max(0.05, min([kept.due - time.monotonic() for kept in self.kept if kept.process is None], default=60.0))

    def _start(self, kept: Kept) -> None:
        daemon = kept.daemon
        with (self.layout.log / f"{daemon.name}.out").open("ab") as log:
            kept.process = subprocess.Popen(
                daemon.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=dict(daemon.environment),
                user=daemon.user,
                group=daemon.user,
                extra_groups=[] if daemon.user else None,
                start_new_session=True,
            )
        kept.started = time.monotonic()
        kept.record.pid = kept.process.pid
        kept.record.starts += 1

    def _reap(self) -> None:
        """PID 1 gets every orphan's end; among them are our own daemons'."""
        by_pid = {kept.process.pid: kept for kept in self.kept if kept.process}
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in by_pid:
                self._ended(by_pid[pid], os.waitstatus_to_exitcode(status))

    def _ended(self, kept: Kept, code: int) -> None:
        assert kept.process
        kept.process.returncode = code
        kept.process = None
        lived = time.monotonic() - kept.started
        kept.delay = FIRST_DELAY if lived > HEALTHY_SECONDS else min(kept.delay * 2, LONGEST_DELAY)
        kept.due = time.monotonic() + (0 if lived > HEALTHY_SECONDS else kept.delay)
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
        kept.record.pid, kept.record.ready = 0, False
        kept.record.last_end = f"{how} after {lived:.1f} s"
        _say(f"{kept.daemon.name}: {kept.record.last_end}" + ("" if self.stopping else "; started again soon"))

    def _stop(self, kept: Kept) -> None:
        deadline = time.monotonic() + STOP_SECONDS
        if kept.process:
            kept.process.terminate()
        while kept.process and time.monotonic() < deadline:
            self._sleep(0.1)
            self._reap()
        if kept.process:
            kept.process.kill()

    def _remove_pods(self) -> None:
        """What jobs left running ends here; podman also takes back addresses and firewall rules."""
        podman = Daemon(
            "podman", ("podman", "pod", "rm", "--all", "--force", "--time=2"), bool, namespace.environment(self.layout)
        )
        # Reaping goes on meanwhile: podman waits for the end of each container's monitor, which is our child.
        kept = Kept(podman, state.DaemonState())
        self.kept = [kept]
        self._start(kept)
        deadline = time.monotonic() + POD_SECONDS
        while kept.process and time.monotonic() < deadline:
            self._sleep(0.1)
            self._reap()

    def _sleep(self, seconds: float) -> None:
        if select.select([self.wake], [], [], seconds)[0]:
            os.read(self.wake, 4096)

    def _save(self) -> None:
        state.write(self.layout, self.state)


def _say(sentence: str) -> None:
    print(time.strftime("%F %T"), sentence, flush=True)


def main(arguments: list[str]) -> None:
    """Run, first as the process that makes the namespaces, then as their PID 1."""
    layout = Layout(Path(arguments[0]))
    decided = plan.read(layout)
    assert decided
    if "--start" in arguments:
        namespace.start(decided.plan)
    os.umask(0o022)
    # The birth is read from the host's /proc, which furnish() hides.
    born = state.birth(int(Path("/proc/self").readlink().name))
    outer = namespace.furnish(decided.plan)
    assert born
    if not decided.plan.on_kubernetes:
        network.create(layout, decided.subnet)
    records = state.State(outer, born)
    kept = []
    for daemon in all_daemons(decided):
        records.daemons[daemon.name] = state.DaemonState()
        kept.append(Kept(daemon, records.daemons[daemon.name]))
    wake, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker)
    supervisor = Supervisor(layout, records, kept, wake, podman=not decided.plan.on_kubernetes)

    def stop(_signal: int, _frame: object) -> None:
        supervisor.stopping = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGCHLD, lambda _signal, _frame: None)  # only to wake the loop
    supervisor.run()
    layout.state.unlink()  # its absence tells that the end was orderly
    _say("stopped")


if __name__ == "__main__":
    main(sys.argv[1:])
