"""Work on the NAS, done as the job's user by the results worker. Root itself never touches a path there."""

import asyncio
import contextlib
import json
import pwd
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from loguru import logger

from slurmk8s.agent.record import Record
from slurmk8s.config import Config
from slurmk8s.errors import ClusterFault, NasFull, NodeFault, PersonFault, SetupError, SlurmK8sError
from slurmk8s.mountpoint import is_mountpoint
from slurmk8s.results.progress import Progress, Tell
from slurmk8s.results.request import Modes
from slurmk8s.results.summary import Summary, from_json
from slurmk8s.results.usage import Course

_FAULTS: dict[str, type[SlurmK8sError]] = {
    "person": PersonFault,
    "cluster": ClusterFault,
    "full": NasFull,
    "node": NodeFault,
}


# A summary and some names; asyncio's own limit for a line is less.
LONGEST_ANSWER = 16 << 20


class Bundles:
    """Asks the worker for one thing after another."""

    def __init__(self, config: Config) -> None:
        self._nas = config.nas
        self._root = str(config.nas.results_folder)
        settings = config.results
        self._modes = asdict(Modes(settings.folder_mode, settings.file_mode, settings.outputs_mode))
        self._processes = settings.checksum_processes
        self._rate = settings.checksum_mib_per_second
        self._in_bundle = config.uses_claims

    def folder(self, job_id: int) -> Path:
        """The bundle's folder."""
        return Path(self._root) / str(job_id)

    async def prepare(self, record: Record) -> None:
        """Make the folder, the logs and outputs/; an earlier attempt's files move aside."""
        array = {"job_id": record.array[0], "task_id": record.array[1]} if record.array else None
        extra: dict[str, Any] = {
            "name": record.name,
            "array": array,
            "handover": self._in_bundle,
        }
        await self._ask(record, "prepare", **extra)

    async def note(self, record: Record, sentence: str) -> None:
        """Put our own words into the job's stderr.log."""
        await self._ask(record, "note", stderr=f"slurmk8s: {sentence}\n")

    async def finish(self, record: Record, summary: dict[str, object], course: Course | None) -> None:
        """Write the summaries, draw what was used, and put the job on its owner's lists."""
        reply = await self._ask(record, "finish", summary=summary, course=asdict(course) if course else None)
        if reply.get("unlisted"):  # `slurmk8s results --reindex` makes up for it
            logger.warning(f"job {record.job_id}: not in the index of results: {reply['unlisted']}")

    async def summary(self, record: Record) -> Summary | None:
        """What the attempt's summary says now, if it has one."""
        summary = (await self._ask(record, "read_summary"))["summary"]
        return None if summary is None else from_json(summary)

    async def checksums(self, record: Record, tell: Tell = lambda _: None) -> Summary:
        """Hash the bundle and complete the summaries; what the summary now says."""
        rate = self._rate << 20 if self._rate else None
        reply = await self._ask(record, "checksums", tell, processes=self._processes, bytes_per_second=rate)
        return from_json(reply["summary"])

    async def _ask(
        self,
        record: Record,
        operation: str,
        tell: Tell = lambda _: None,
        **fields: Any,  # noqa: ANN401 - JSON
    ) -> dict[str, Any]:
        if self._nas.require_mountpoint and not await asyncio.to_thread(is_mountpoint, self._nas.root):
            # A bundle written now would lie hidden on the system disk once the NAS is back.
            raise ClusterFault(f"The NAS is not mounted at {self._nas.root}.")
        request = {
            "op": operation,
            "root": self._root,
            "job_id": record.job_id,
            "attempt": record.attempt,
            "submitted": _submitted(record),
        }
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-m",
            "slurmk8s.results.worker",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            user=record.uid,
            group=record.gid,
            extra_groups=list(record.groups),
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
            cwd="/",
            limit=LONGEST_ANSWER,
        )
        question = json.dumps({**request, "modes": self._modes, **fields}).encode()
        try:
            out, err = await _converse(process, question, tell)
        finally:  # it is the person's process, who may have stopped it: it must not outlive its question
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
        status = process.returncode
        if status is not None and status < 0:  # the work is as it was: asked again, the worker goes on
            raise ClusterFault(f"The results worker was ended by {signal.Signals(-status).name} at {operation}.")
        if status != 0:
            raise SlurmK8sError(f"The results worker failed at {operation}: {err.decode('utf-8', 'replace').strip()}")
        reply: dict[str, Any] = json.loads(out)
        if not reply["ok"]:
            raise _FAULTS.get(reply["fault"], SlurmK8sError)(reply["sentence"], reply.get("hint", ""))
        return reply


def _submitted(record: Record) -> float | None:
    """What tells the job from an older one of its number.

    Slurm gives a job that goes back to the queue its new time of submission before it counts the attempt: one that is
    later than the attempt's own start says nothing of this attempt.
    """
    if record.submitted is None or (record.started is not None and record.submitted > record.started):
        return None
    return record.submitted


async def _converse(process: asyncio.subprocess.Process, question: bytes, tell: Tell) -> tuple[bytes, bytes]:
    """Ask, hear how far it is, and return its answer and what it complained of."""
    assert process.stdin
    assert process.stdout
    assert process.stderr
    complaint = asyncio.ensure_future(process.stderr.read())
    try:
        with contextlib.suppress(ConnectionError):  # it has died; its status tells
            process.stdin.write(question)
            await process.stdin.drain()
        process.stdin.close()
        last = b""
        async for line in process.stdout:
            last = line
            if line.startswith(b'{"progress":'):
                tell(Progress(**json.loads(line)["progress"]))
        await process.wait()
        return last, await complaint
    finally:
        complaint.cancel()


def require_readable_program() -> None:
    """Jobs run this very Python as their own user: one in root's home, or made under a narrow umask, is no use."""
    nobody = {"user": 65534, "group": 65534, "extra_groups": []}
    command = [sys.executable, "-I", "-c", "import slurmk8s.results.worker, slurmk8s.run.step"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", **nobody)  # type: ignore[call-overload]
    except PermissionError as error:
        reason = str(error)
    else:
        if done.returncode == 0:
            return
        reason = done.stderr.strip().rpartition("\n")[2]
    raise SetupError(
        f"An ordinary user cannot run {sys.executable}, and jobs must: {reason}.",
        "Install slurmk8s where everybody can read it, with the system's Python: see docs/install.md.",
    )


def home(account: pwd.struct_passwd) -> str:
    """Where a person's home is in a pod."""
    return account.pw_dir if account.pw_dir.startswith("/") else "/"


def account(uid: int) -> pwd.struct_passwd:
    """The account behind a uid on this node."""
    try:
        return pwd.getpwuid(uid)
    except KeyError:
        raise NodeFault(f"This node has no account with uid {uid}.", "Check its user directory (LDAP, sssd).") from None
