"""Run one program with nothing of ours: another's rights, a clean environment, a time limit, bounded memory and output.

Nothing that it does can reach the agent: it gets its input on stdin, and its group of processes is killed when its time
is up or the agent goes.
"""

import asyncio
import contextlib
import json
import os
import pwd
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from slurmk8s.after.item import Owner
from slurmk8s.errors import ClusterFault, NodeFault, PersonFault, SetupError, SlurmK8sError
from slurmk8s.results.summary_text import printable

PYTHON = sys.executable
PATH = "/usr/local/bin:/usr/bin:/bin"
# util-linux's: code of ours between fork and exec is not safe in a process with threads. It dies with us, and is the
# first to go when memory is short: the agent itself is among the last, and would hand that on.
WRAPPERS = (
    *("/usr/bin/setpriv", "--pdeathsig", "KILL"),
    *("/usr/bin/choom", "-n", "500", "--"),
    *("/usr/bin/prlimit", "--core=0"),
)
MOST_OUTPUT = 64 << 10
# A program of ours lists an array's tasks, at some thirty bytes each; Slurm's own limit for an array is far above.
MOST_ANSWER = 8 << 20
SECONDS_TO_DIE = 5
# Address space, not memory in use: a Python with TLS and threads maps a lot and touches little.
OWN_MEMORY_MB = 2048
_FAULTS: dict[str, type[SlurmK8sError]] = {"person": PersonFault, "cluster": ClusterFault, "node": NodeFault}


@dataclass(frozen=True)
class Ended:
    """How it ended."""

    status: int | None
    """Exit status, negative for a signal; None if its time was up."""
    out: bytes
    err: bytes

    @property
    def said(self) -> str:
        """The end of what it said, on one line."""
        text = (self.err.strip() or self.out.strip())[-1000:].decode("utf-8", "replace")
        return printable(" ".join(text.split()))


def service(account: str) -> Owner:
    """The account without rights."""
    try:
        entry = pwd.getpwnam(account)
    except KeyError:
        raise SetupError(f"[after] account names {account}, which does not exist here.", "Make it.") from None
    return Owner(account, entry.pw_uid, entry.pw_gid, ())


async def run(
    command: Sequence[str],
    stdin: bytes,
    who: Owner,
    seconds: float,
    memory_mb: int,
    nice: int = 5,
    most_output: int = MOST_OUTPUT,
) -> Ended:
    """Run it to its end, or kill it."""
    process = await asyncio.create_subprocess_exec(
        *(*WRAPPERS, f"--as={memory_mb << 20}", "--", "/usr/bin/nice", "-n", str(nice), *command),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        user=who.uid,
        group=who.gid,
        extra_groups=list(who.groups),
        env={"PATH": PATH, "LANG": "C.UTF-8", "USER": who.user, "LOGNAME": who.user, "HOME": "/"},
        cwd="/",
        start_new_session=True,  # with what it starts it is one group, to be killed together
        umask=0o077,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    limits = ((process.stdout, most_output), (process.stderr, MOST_OUTPUT))
    readers = [asyncio.create_task(_read(stream, most)) for stream, most in limits]
    status: int | None = None
    try:
        async with asyncio.timeout(seconds):
            with contextlib.suppress(ConnectionError):  # it may not want its input
                process.stdin.write(stdin)
                await process.stdin.drain()
            process.stdin.close()
            status = await process.wait()
    except TimeoutError:
        pass
    finally:
        await _bury(process, readers)
    outputs = [reader.result() if reader.done() and not reader.cancelled() else b"" for reader in readers]
    return Ended(status, outputs[0], outputs[1])


async def _bury(process: asyncio.subprocess.Process, readers: "list[asyncio.Task[bytes]]") -> None:
    """Nothing of it is left, as far as it is in our hands.

    What has left the group may hold the pipes, and a process that waits for a dead NAS does not die: nobody waits.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(SECONDS_TO_DIE):
            await process.wait()
            await asyncio.wait(readers)
    for reader in readers:
        reader.cancel()
    process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001 - there is no other way to close its pipes


async def ask(
    module: str, request: dict[str, Any], who: Owner, seconds: float, memory_mb: int = OWN_MEMORY_MB
) -> dict[str, Any]:
    """One question to a program of ours, which answers as the results worker does; a refusal is raised as its fault."""
    data = json.dumps(request).encode()
    ended = await run([PYTHON, "-I", "-m", module], data, who, seconds, memory_mb, most_output=MOST_ANSWER)
    if ended.status is None:
        raise ClusterFault(f"It took longer than {seconds:g} seconds and was stopped.")
    if ended.status != 0:
        raise SlurmK8sError(f"{module} failed: {ended.said or f'status {ended.status}'}")
    try:  # a person's own process may say anything
        reply: dict[str, Any] = json.loads(ended.out)
        refused = not reply["ok"] and _FAULTS.get(reply["fault"], SlurmK8sError)(
            printable(str(reply["sentence"])), printable(str(reply["hint"]))
        )
    except (ValueError, TypeError, KeyError):
        raise SlurmK8sError(f"{module} gave an answer that makes no sense.") from None
    if refused:
        raise refused
    return reply


async def _read(stream: asyncio.StreamReader, most: int) -> bytes:
    """The last of what it says; it never waits for us to read."""
    kept = bytearray()
    while data := await stream.read(MOST_OUTPUT):
        kept += data
        del kept[:-most]
    return bytes(kept)
