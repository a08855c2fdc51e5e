"""What one person does to the watcher, by rights that everybody has, is nobody else's trouble."""

import contextlib
import os
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from intake_bed import ALICE, BOB, Intake, as_person, person_options

from slurmk8s.slurm.clerks import Clerks
from slurmk8s.slurm.client import Identity
from slurmk8s.slurm.execute import Done, Order

WaitFor = Callable[..., Any]

HOLDS_A_LEASE = """
import fcntl, os, signal, sys, time
signal.signal(signal.SIGIO, signal.SIG_IGN)
file = os.open(sys.argv[1], os.O_RDWR)
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("held", flush=True)
time.sleep(600)
"""
TRACES = """
import ctypes, sys, time
SEIZE = 0x4206
print(ctypes.CDLL(None).ptrace(SEIZE, int(sys.argv[1]), None, None), flush=True)
time.sleep(600)
"""


@contextlib.contextmanager
def helped_by(code: str, *arguments: str, **options: Any) -> Iterator[str]:
    """A process that does this, and its first line."""
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, text=True, **options
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def programs(intake: Intake, **ours: str) -> Path:
    """Slurm's programs, some of them as a person's meddling makes them look; `$folder` is theirs to write to."""
    folder = intake.folder / "bin"
    folder.mkdir()
    for program in ("sbatch", "scontrol", "squeue", "scancel", "sinfo", "sacctmgr"):
        if program in ours:
            text = f'#!/bin/sh\nfolder={folder}\n{ours[program]}\nexec /usr/bin/{program} "$@"\n'
            (folder / program).write_text(text)
            (folder / program).chmod(0o755)
        else:
            (folder / program).symlink_to(f"/usr/bin/{program}")
    folder.chmod(0o777)
    intake.settings["bin_folder"] = folder
    return folder


def test_a_file_that_cannot_be_opened_waits_alone(ready: Intake, name: str, wait_for: WaitFor) -> None:
    """Who holds a lease on a file makes every other open of it fail for a while."""
    held = ready.jobs / "submit" / f"a-{name}"
    ready.drop(held.name)
    with helped_by(HOLDS_A_LEASE, str(held), **person_options(ALICE)) as said:
        assert said == "held"
        ready.start()
        ready.drop(f"b-{name}", user=BOB)
        wait_for(lambda: len(ready.job_ids(f"b-{name}")) == 1, "bob's job", seconds=20)
        assert held.exists()
    wait_for(lambda: len(ready.job_ids(held.name)) == 1, "alice's job")


@pytest.mark.parametrize("end", ["kill -9 $$", "echo 'scontrol: error: Socket timed out' >&2; exit 1"])
def test_a_release_that_its_person_stops_holds_up_nobody_else(
    ready: Intake, name: str, wait_for: WaitFor, end: str
) -> None:
    programs(
        ready,
        scontrol=f'[ "$1" = release ] && [ "$(id -un)" = {ALICE} ] && mkdir $folder/called 2>/dev/null && {{ {end}; }}',
    )
    ready.start()
    ready.drop(f"a-{name}")
    wait_for(lambda: f"a-{name}.waiting.txt" in ready.names("submit"), "a note that it waits")
    ready.drop(f"b-{name}", user=BOB)
    wait_for(lambda: f"b-{name}.waiting.txt" in ready.names("submit") or ready.job_ids(f"b-{name}"), "bob's turn")
    assert f"b-{name}.waiting.txt" not in ready.names("submit")
    wait_for(lambda: ready.names("submit") == [], "both answers", seconds=60)
    assert len(ready.job_ids(f"a-{name}")) == len(ready.job_ids(f"b-{name}")) == 1


@pytest.mark.parametrize(
    "words",
    [
        "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)",
        "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying",
        "sbatch: error: Batch job submission failed: System submissions disabled",
    ],
)
def test_what_one_persons_sbatch_says_about_slurm_is_told_to_that_person_alone(
    ready: Intake, name: str, wait_for: WaitFor, words: str
) -> None:
    folder = programs(
        ready, sbatch=f'[ "$(id -un)" = {ALICE} ] && {{ echo call >>$folder/calls; echo "{words}" >&2; exit 1; }}'
    )
    for number in range(5):
        ready.drop(f"a{number}-{name}")
    ready.start()
    notes = [f"a{number}-{name}.waiting.txt" for number in range(5)]
    wait_for(lambda: ready.names("submit") == notes, "notes that they wait")
    assert (folder / "calls").read_text() == "call\n"  # the others waited behind the first
    ready.drop(f"b-{name}", user=BOB)
    wait_for(lambda: f"b-{name}.waiting.txt" in ready.names("submit") or ready.job_ids(f"b-{name}"), "bob's turn")
    assert len(ready.job_ids(f"b-{name}")) == 1
    assert ready.names("submit") == notes


def test_a_folder_in_the_guides_place_keeps_no_claim_from_its_end(ready: Intake, name: str) -> None:
    ready.drop(name)
    ready.once(crash_after="claimed")
    (ready.jobs / "submit" / "README.txt").unlink()
    as_person(ALICE, ["mkdir", str(ready.jobs / "submit" / "README.txt")])
    assert ready.once().returncode == 0
    assert len(ready.job_ids(name)) == 1


def order(alice: Identity, *command: str, seconds: float = 1) -> Order:
    return Order(command, {"PATH": "/usr/bin:/bin"}, seconds, alice.uid, alice.gid, alice.groups)


def run(clerks: Clerks, order: Order, stdin: bytes = b"") -> Done:
    return clerks.run_all([(order, stdin)], 1)[0]


def hired(clerks: Clerks, alice: Identity) -> int:
    """The number of her clerk's process."""
    assert run(clerks, order(alice, "true")) == Done(0)
    [[clerk]] = clerks._idle.values()
    return clerk._process.pid


NO_ANSWER = Done(-signal.SIGKILL)


def test_a_clerk_that_is_stopped_in_the_middle_of_an_order_is_not_waited_for(alice: Identity) -> None:
    clerks = Clerks()
    with clerks.on_duty():
        pid = hired(clerks, alice)
        os.kill(pid, signal.SIGSTOP)

        def take_some() -> None:
            """Room for a page, where much more is to be sent."""
            with open(f"/proc/{pid}/fd/0", "rb", buffering=0) as pipe:
                pipe.read(4096)

        thread = threading.Thread(target=take_some)
        thread.start()
        assert run(clerks, order(alice, "cat"), bytes(4 << 20)) == NO_ANSWER
        thread.join()
        assert run(clerks, order(alice, "cat"), b"yes") == Done(0, b"yes")


@pytest.mark.parametrize(
    "forged",
    [
        struct.pack("!4I", 3, 100_000, 0, 0) + b"[" * 100_000,
        struct.pack("!4I", 3, 2, 16 << 20, 0) + b"[]",
        struct.pack("!I", 10_000),
        struct.pack("!4I", 3, 35, 0, 0) + b'[{"status":"0","trouble":"forged"} ]',
        b"\0\0",
    ],
    ids=["deep", "long", "many", "wrong", "short"],
)
def test_a_forged_answer_of_a_clerk_is_none(alice: Identity, forged: bytes) -> None:
    clerks = Clerks()
    with clerks.on_duty():
        pid = hired(clerks, alice)
        os.kill(pid, signal.SIGSTOP)
        pipe = os.open(f"/proc/{pid}/fd/1", os.O_WRONLY)
        writer = threading.Thread(target=os.write, args=(pipe, forged))
        writer.start()
        assert run(clerks, order(alice, "true")) == NO_ANSWER
        writer.join()
        os.close(pipe)


def test_a_clerk_that_is_traced_is_let_go_all_the_same(alice: Identity) -> None:
    """The kernel shows a dead process that is traced to its tracer first, whenever that likes to look."""
    clerks = Clerks()
    with contextlib.ExitStack() as duty:
        duty.enter_context(clerks.on_duty())
        with helped_by(TRACES, str(hired(clerks, alice))) as said:
            assert said == "0"
            leaving = threading.Thread(target=duty.close, daemon=True)
            leaving.start()
            leaving.join(20)
            assert not leaving.is_alive()
    with clerks.on_duty():
        assert run(clerks, order(alice, "true")) == Done(0)
