"""up, down and what is in between: the steps, in order, each told to the person as it is done."""

import contextlib
import fcntl
import os
import pwd
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from slurmk8s.errors import SetupError
from slurmk8s.kube.client import Kube
from slurmk8s.local import furnishing, images, kubernetes, machine, namespace, network, plan, program, sharing, state
from slurmk8s.local.layout import Layout
from slurmk8s.local.plan import Decided, Plan

Say = Callable[[str], None]


@dataclass(frozen=True)
class Stopped:
    """How a `down` ended."""

    was_up: bool
    left: tuple[str, ...] = ()
    """What could not be removed, as sentences."""


def up(wanted: Plan, say: Say) -> tuple[Decided, bool]:
    """Bring the cluster up and wait until it can take jobs; what was decided, and whether it was up already."""
    _require_root("local up")
    wanted = plan.checked(wanted)
    machine.require_programs(wanted)
    layout, person = wanted.layout, machine.person(wanted)
    furnishing.claim_folder(layout)
    with _locked(layout):
        if state.running(layout):
            decided = plan.read(layout)
            assert decided
            return decided, True
        sweep(layout)
        kube = kubernetes.admin(wanted) if wanted.on_kubernetes else None
        decided = _decide(wanted, person, kube)
        plan.write(decided)  # from here on the folder is ours
        say(f"writing configuration for {wanted.nodes} node(s) below {layout.folder}")
        try:
            settings = furnishing.furnish(decided, person)
            if kube:
                say(f"applying roles and policies to {kube.server}")
                kubernetes.install(kube, decided, settings)
                sharing.make(layout)
            _start(decided, say)
        except BaseException:
            _stop(layout)
            raise
    return decided, False


def down(layout: Layout, *, purge: bool) -> Stopped:
    """Stop it and leave nothing behind but data, or nothing at all. The folder stays while something else does."""
    _require_root("local down")
    if not layout.plan.exists():
        return Stopped(was_up=False)
    with _locked(layout):
        stopped = _stop(layout)
    if purge and not stopped.left:
        subprocess.run(["rm", "-rf", "--one-file-system", "--", layout.folder], check=True)  # of any depth
    return stopped


def sweep(layout: Layout) -> None:
    """Remove what a killed cluster could not: cgroups, bridge, firewall rules, the mounts that the host saw too.

    Processes and the other mounts died with it.
    """
    decided = plan.read(layout)
    if decided:
        namespace.remove_cgroups(layout)
        if decided.plan.on_kubernetes:
            sharing.remove(layout)
        else:
            network.remove(layout, decided.subnet)
    for path in (layout.state, layout.munge_socket):
        path.unlink(missing_ok=True)


def _require_root(command: str) -> None:
    if os.geteuid() != 0:
        raise SetupError(f"`slurmk8s {command}` makes namespaces and mounts, which needs root.", "Run it with sudo.")


@contextlib.contextmanager
def _locked(layout: Layout) -> Iterator[None]:
    with layout.lock.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SetupError(f"Another `local up` or `down` is at work in {layout.folder}.", "Wait for it.") from None
        yield


def _decide(wanted: Plan, person: pwd.struct_passwd, kube: Kube | None) -> Decided:
    share = machine.node_size(wanted.nodes)
    nodes = kubernetes.nodes(kube, wanted, share) if kube else dict.fromkeys(wanted.node_names, share)
    subnet = "" if wanted.on_kubernetes else machine.free_subnet(wanted.layout.identity)
    return Decided(wanted, person.pw_name, machine.free_ports(wanted), subnet, nodes)


def _start(decided: Decided, say: Say) -> None:
    layout = decided.plan.layout
    say("starting munge and Slurm" if decided.plan.on_kubernetes else "starting munge, Slurm and the registry")
    alive, hold = os.pipe()  # the supervisor holds the other end: it reads as ended when the supervisor has
    try:
        with (layout.log / "supervisor.out").open("ab") as log:
            command = [
                str(program.interpreter(layout)),
                "-I",
                "-m",
                "slurmk8s.local.supervisor",
                str(layout.folder),
                "--start",
            ]
            subprocess.run(
                # It must not stay our child: whoever called us may live longer than the cluster.
                ["setsid", "--fork", *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env={"PATH": machine.search_path(), "LANG": "C.UTF-8"},
                pass_fds=[hold],
                check=True,
            )
        os.close(hold)
        _bring_up(decided, alive, say)
    finally:
        os.close(alive)


def _bring_up(decided: Decided, alive: int, say: Say) -> None:
    layout = decided.plan.layout
    _wait(lambda: _base_missing(layout), 60, lambda: _why_not(layout, alive))
    if not decided.plan.on_kubernetes:
        _offer_images(decided, say)
    say("waiting for nodes, agents and the watcher")
    # A node that was drained before the last `down` is drained still; that is for the person to decide.
    _wait(lambda: [text for text in unready(decided) if " is drain" not in text], 60, lambda: _why_not(layout, alive))


def _offer_images(decided: Decided, say: Say) -> None:
    running = state.running(decided.plan.layout)
    assert running
    say(f"offering {images.SAMPLE}")
    images.offer_sample(decided, running.pid)
    images.make_pause(decided, running.pid)
    if decided.plan.test_image:
        say(f"offering {images.TEST} (made with debootstrap the first time: about a minute)")
        images.offer_test(decided, running.pid)


def _base_missing(layout: Layout) -> list[str]:
    running = state.running(layout)
    if not running:
        return ["the supervisor has not begun"]
    names = [name for name, daemon in running.daemons.items() if not daemon.ready]
    return [f"{name} does not answer" for name in names if not name.startswith(("agent-", "watch"))]


def unready(decided: Decided) -> list[str]:
    """What does not work yet, or no more, as short sentences; empty when all is well."""
    layout = decided.plan.layout
    running = state.running(layout)
    if not running:
        return ["the cluster is not up"]
    problems = [
        f"{name} does not run ({daemon.last_end})" for name, daemon in running.daemons.items() if not daemon.ready
    ]
    command = ["sinfo", "--noheader", "--Node", "--format=%N %T", "--partition=main"]
    environment = {"PATH": machine.search_path(), "SLURM_CONF": str(layout.slurm_conf)}
    asked = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if asked.returncode:
        return [*problems, f"Slurm does not answer: {asked.stderr.strip()}"]
    for line in asked.stdout.splitlines():
        name, _, word = line.partition(" ")
        if word not in ("idle", "mixed", "allocated", "completing"):
            problems.append(f"{name} is {word}")
    return problems


def _why_not(layout: Layout, alive: int) -> str | None:
    """Why waiting is in vain, or None."""
    if not select.select([alive], [], [], 0)[0]:
        return None
    tail = (layout.log / "supervisor.out").read_text(encoding="utf-8", errors="replace").splitlines()[-3:]
    return f"the supervisor ended ({' / '.join(tail)})"


def _wait(missing: Callable[[], list[str]], seconds: float, in_vain: Callable[[], str | None]) -> None:
    deadline = time.monotonic() + seconds
    while problems := missing():
        reason = in_vain()
        if reason is None and time.monotonic() > deadline:
            reason = f"not ready after {seconds:.0f} s: {'; '.join(problems)}"
        if reason:
            raise SetupError(
                f"The cluster did not come up: {reason}.", "See its logs in `log` below the cluster's folder."
            )
        time.sleep(0.05)


def _stop(layout: Layout) -> Stopped:
    """SIGTERM and the time for an orderly end, then SIGKILL, which ends every process of the namespace."""
    running = state.running(layout)
    if running:
        for number, seconds in ((signal.SIGTERM, 90.0), (signal.SIGKILL, 10.0)):
            deadline = time.monotonic() + seconds
            with contextlib.suppress(ProcessLookupError):
                os.kill(running.pid, number)
            while state.running(layout) and time.monotonic() < deadline:
                time.sleep(0.05)
            if not state.running(layout):
                break
    if layout.state.exists():
        # Killed, so podman's store still lists containers that are dead; the images come again from the registry.
        shutil.rmtree(layout.containers, ignore_errors=True)
    left: list[str] = []
    decided = plan.read(layout)
    if decided and decided.plan.on_kubernetes:  # after the agents: they would take it for a fault
        left = kubernetes.remove(decided)
    sweep(layout)
    return Stopped(running is not None, tuple(left))


def run_inside(layout: Layout, command: list[str], *, root: bool, folder: Path | None = None) -> int:
    """Replace this process by a command inside the cluster's namespaces."""
    _require_root("local shell")
    running, decided = state.running(layout), plan.read(layout)
    if not running or not decided:
        raise SetupError(f"No cluster is up in {layout.folder}.", "Start it with `slurmk8s local up`.")
    person = None if root else pwd.getpwnam(decided.user)
    where = str(folder or "/mnt/nas")
    os.execvpe(  # noqa: S606 - it replaces us, so that signals and the terminal are its own
        "nsenter", namespace.enter(running.pid, command, person, where), namespace.environment(layout, person)
    )
