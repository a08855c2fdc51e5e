"""slurmk8s-run as a Slurm step: hands the job over to the node's waiting pod and stays until the body has ended.

It is what Slurm signals and waits for, so it lives exactly as long as the body does and ends with its exit code.
"""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from slurmk8s.rendezvous import Rendezvous, exists
from slurmk8s.run import handover
from slurmk8s.run.link import AgentAway, Link, Patience

# Everything a person may send; the others are the kernel's own (SIGCHLD, SIGSEGV…) or cannot be caught.
FORWARDED = (
    "HUP",
    "INT",
    "QUIT",
    "USR1",
    "USR2",
    "ALRM",
    "TERM",
    "CONT",
    "TSTP",
    "WINCH",
    "URG",
    "IO",
    "VTALRM",
    "PROF",
)
SECONDS_WITHOUT_AGENT = 120
SECONDS_BETWEEN_CALLS = 1.0
# The agent gives a sign every ten.
SECONDS_OF_SILENCE = 30
SECONDS_TO_BE_REQUEUED = 120
SECONDS_BETWEEN_NEWS = 30
# An agent that is being replaced is back long before.
SECONDS_FOR_A_VERDICT = 120
# SIGTSTP to an orphaned process group does nothing by default, and Slurm stops us two seconds after it.
SECONDS_FROM_TSTP_TO_STOP = 1.0


@dataclass
class Step:
    """One run of the body on this node."""

    job_id: int
    meeting: Rendezvous
    link: Link
    command: list[str]
    patience: Patience = field(default_factory=lambda: Patience(SECONDS_WITHOUT_AGENT))
    fifos: list[int] = field(default_factory=list)
    handed_over: bool = False
    ending: int | None = None
    next_call: float = 0
    last_heard: float = 0
    next_news: float = 0
    stop_timer: threading.Timer | None = None
    verdict_by: float = 0

    def run(self) -> int:
        """Ask for the pod, hand over, wait; the body's exit code."""
        started = time.monotonic()
        while self.ending is None:
            self._talk(min(0.25, max(0.02, (time.monotonic() - started) / 100)))
            if self.handed_over and (code := self.meeting.read_exit()) is not None and self._is_final(code):
                return code
        return self.ending

    def _is_final(self, code: int) -> bool:
        """Whether the body's exit code is the job's. If Kubernetes ended the pod, the agent says what becomes of it."""
        if not self.meeting.was_ended_from_outside(code):
            return True
        self.verdict_by = self.verdict_by or time.monotonic() + SECONDS_FOR_A_VERDICT
        return time.monotonic() > self.verdict_by

    def _talk(self, seconds: float) -> None:
        """Wait a moment for the agent's news; (re)connect when it is away."""
        if (descriptor := self.link.fileno()) is None:
            if time.monotonic() < self.next_call:
                time.sleep(seconds)
                return
            self.next_call = time.monotonic() + SECONDS_BETWEEN_CALLS
            try:
                self.link.ask({"ask": "pod", "job_id": self.job_id})
                self.last_heard = time.monotonic()
            except AgentAway as error:
                self._agent_away(error)
            return
        try:
            if select.select([descriptor], [], [], seconds)[0]:
                for message in self.link.messages():
                    self.last_heard = time.monotonic()
                    self.patience.end()
                    self._hear(message)
            elif time.monotonic() - self.last_heard > SECONDS_OF_SILENCE:
                self.link.close()
                self._agent_away(AgentAway("it is silent"))
        except AgentAway as error:
            self._agent_away(error)

    def _agent_away(self, error: AgentAway) -> None:
        if self.handed_over:
            return  # the body runs and its exit code comes by the folder
        if self.patience.start():
            say(f"the node's agent does not answer ({error}); waiting for it")
        if self.patience.over:
            self._give_back("The node's agent did not answer.")

    def _hear(self, message: dict[str, Any]) -> None:
        match message.get("stage"):
            case "planned":
                self._hand_over()
            case "pulling":
                self._tell_pull(message)
            case "note":
                say(str(message.get("sentence")))
            case "refused" | "failed":
                if not message.get("noted"):
                    say(str(message.get("sentence")))
                self.ending = int(message.get("exit_code", 1))
            case "requeueing":
                if not message.get("noted"):
                    say(str(message.get("sentence")))
                self._await_requeue()
            case "gone":
                code = self.meeting.read_exit()
                self.ending = int(message.get("exit_code", 1)) if code is None else code

    def _tell_pull(self, message: dict[str, Any]) -> None:
        if time.monotonic() >= self.next_news:
            self.next_news = time.monotonic() + SECONDS_BETWEEN_NEWS
            say(f"pulling image {message.get('image')} … {float(message.get('seconds', 0)):.0f} s")

    def _hand_over(self) -> None:
        """Put script and command where the launcher finds them, and let it go. Safe to do again after a reconnect."""
        if self.handed_over:
            return
        plan = self.meeting.read_plan()
        if plan is None:
            return
        interpreter_line, script, *arguments = self.command
        slurm = json.loads(os.environ.get("SLURMK8S_BATCH", "{}"))
        variables = handover.environment(os.environ, slurm, plan["pass_through"])
        with open(script, "rb") as file:
            body = file.read()
        body = handover.original_script(body, interpreter_line)
        write(self.meeting.script, body, 0o700)
        if plan["script"]:
            command = handover.command_of_file(plan["script"], first_line(plan["script"]))
            if isinstance(command, str):
                say(command)
                self.ending = 1
                return
        else:
            command = [*handover.interpreter(interpreter_line), f"{plan['handover']}/{self.meeting.script.name}"]
        write(self.meeting.command, handover.command_file(variables, umask(), [*command, *arguments]), 0o600)
        # Held open for reading and writing: what is written waits there until the launcher comes to read.
        for path in (self.meeting.go, self.meeting.signals):
            self.fifos.append(os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
        os.write(self.fifos[0], b"go\n")
        self.handed_over = True
        self._note_digest(body, plan["script"])

    def _note_digest(self, body: bytes, named: str | None) -> None:
        """Say for the summary what runs. After the hand-over: the body does not wait for it."""
        import hashlib  # noqa: PLC0415 - nor for the import of this

        digest = hashlib.sha256(body).hexdigest()
        if named:
            try:
                with open(named, "rb") as file:
                    digest = hashlib.file_digest(file, "sha256").hexdigest()
            except OSError:  # a #K8S_SCRIPT that only the pod can see
                return
        write(self.meeting.sha256, f"{digest}\n".encode(), 0o600)

    def on_signal(self, number: int, _frame: object) -> None:
        """Pass a signal on to every process of the pod."""
        name = signal.Signals(number).name.removeprefix("SIG")
        if self.stop_timer:
            self.stop_timer.cancel()
            self.stop_timer = None
        if name == "TERM":
            if not exists(self.meeting.shell):  # no body yet that could answer
                self.ending = 128 + signal.SIGTERM
                return
            # In one call: the next signal may interrupt us at any point.
            os.close(os.open(self.meeting.terminated, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        self.meeting.send_signal("all", name)
        if name == "TSTP":
            self.stop_timer = threading.Timer(SECONDS_FROM_TSTP_TO_STOP, self.meeting.send_signal, ("all", "STOP"))
            self.stop_timer.daemon = True
            self.stop_timer.start()

    def _give_back(self, sentence: str) -> None:
        """Nothing can be started here: ask Slurm to start the job again, unless it has been tried enough."""
        slurm = json.loads(os.environ.get("SLURMK8S_BATCH", "{}"))
        scontrol = shutil.which("scontrol") or shutil.which("scontrol", path="/usr/bin:/usr/local/bin:/opt/slurm/bin")
        if scontrol is None or int(slurm.get("SLURM_RESTART_COUNT", "0")) >= 2:
            say(f"{sentence} The job has been started often enough: ask your administrator to look at the agent.")
            self.ending = 1
            return
        say(f"{sentence} The job goes back to the queue.")
        answer = subprocess.run([scontrol, "requeue", str(self.job_id)], capture_output=True, text=True, check=False)
        if answer.returncode != 0:  # --no-requeue, or Slurm itself is away
            say(f"It could not be requeued: {answer.stderr.strip()}")
            self.ending = 1
            return
        self._await_requeue()

    def _await_requeue(self) -> None:
        """Slurm ends us when it requeues the job; our own end before that would be the job's end."""
        deadline = time.monotonic() + SECONDS_TO_BE_REQUEUED
        while self.ending is None and time.monotonic() < deadline:
            time.sleep(0.1)
        if self.ending is None:
            self.ending = 1


def write(path: "os.PathLike[str]", data: bytes, mode: int) -> None:
    """Write a file of the hand-over folder, whole or not at all."""
    temporary = f"{os.fspath(path)}.tmp"
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode), "wb") as file:
        file.write(data)
    os.rename(temporary, path)


def umask() -> int:
    """The submitter's umask, which Slurm has set for us; it can only be read by setting it."""
    now = os.umask(0o077)
    os.umask(now)
    return now


def first_line(path: str) -> str | None:
    """The first line of a script on the NAS, if it can be read from here."""
    try:
        with open(path, "rb") as file:
            return file.readline(4096).decode("utf-8", "replace").rstrip("\r\n")
    except OSError:
        return None


def say(sentence: str) -> None:
    """One line for the person, on the job's stderr."""
    os.write(2, f"slurmk8s: {sentence}\n".encode())


def main(run_folder: str, command: list[str]) -> int:
    """Run as a step; the body's exit code."""
    node = os.environ.get("SLURMD_NODENAME", "")
    job_id = int(os.environ["SLURM_JOB_ID"])
    meeting = Rendezvous.of(run_folder, node, job_id)
    step = Step(job_id, meeting, Link(meeting.folder.parent.parent / "agent.sock"), command)
    for name in FORWARDED:
        signal.signal(getattr(signal, f"SIG{name}"), step.on_signal)
    code = step.run()
    sys.stderr.flush()
    return code
