"""Running Slurm's own programs: argument lists, a clean environment, a time limit, and what a refusal means."""

import os
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from slurmk8s.config import Slurm as SlurmConfig
from slurmk8s.errors import NoAnswer, PersonFault, SlurmUnreachable
from slurmk8s.slurm.client import Identity
from slurmk8s.slurm.execute import Done, Errand, Order, execute_all

PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"

LONGEST_SAID = 2000
"""Characters that are passed on of what a program says."""

Execute = Callable[[Sequence[Errand], int], list[Done]]
"""What runs errands of one person, so many at a time."""

VERDICT = re.compile(
    r"(?:[a-z]+: )?(?:(?:error|fatal): )?"
    r"(?:Batch job submission failed: |Kill job error on job id \S+: |slurm_[a-z_]+(?: error)?: )?(.*)"
)
"""How Slurm's programs lead up to the reason of a failure. A value from a job file never stands directly after this,
so nobody can write an option that looks like a dead slurmctld and be tried again for ever."""

UNKNOWN_OUTCOME = (
    # slurmctld is down, starting or overloaded
    "Unable to contact slurm controller",
    "Slurm backup controller in standby",
    "Controller is in standby mode",
    "Process is shutting down",
    "Connection rejected by handler",
    "Connection refused",
    "Connection reset",
    "Connection timed out",
    "Communication connection failure",
    "Communication shutdown failure",
    "No route to host",
    "Network is unreachable",
    "Broken pipe",
    "Transport endpoint is not connected",
    "Zero Bytes were transmitted",
    "Message send failure",
    "Message receive failure",
    "Unexpected message received",  # all that `scontrol release` says of a dead or hung slurmctld
    "Socket timed out",
    "Resource temporarily unavailable",
    # this machine is in trouble, not the request
    "Too many open files",
    "Cannot allocate memory",
    "Munge ",
    "Protocol authentication error",
    "Protocol version",
    # slurm.conf cannot be read, or slurmctld serves it and is away
    "Could not establish a configuration source",
    "Unable to process configuration file",
)
"""Reasons after which nobody knows whether the request was carried out: seen, or in Slurm's list of errors."""


class Programs:
    """Slurm's command-line clients, as configured. `execute`: what starts them."""

    def __init__(self, config: SlurmConfig, execute: Execute = execute_all) -> None:
        self.config = config
        self.execute = execute

    def environment(self, identity: Identity | None = None) -> dict[str, str]:
        """Nothing of our own environment gets in: an SBATCH_* or SLURM_* variable there would change every job."""
        folder = self.config.bin_folder
        conf = self.config.conf or os.environ.get("SLURM_CONF")
        environment = {"PATH": f"{folder}:{PATH}" if folder else PATH, "LANG": "C.UTF-8"}
        if conf:
            environment["SLURM_CONF"] = str(conf)
        if identity:
            environment |= {"HOME": identity.home, "USER": identity.name, "LOGNAME": identity.name}
        return environment

    def ask(self, *arguments: str) -> str:
        """The output of a query; times in it are Unix seconds."""
        done = self.run(arguments, environment=self.environment() | {"SLURM_TIME_FORMAT": "%s"})
        if done.returncode != 0:
            raise refusal(done)
        return text(done.stdout)

    def run(
        self,
        arguments: Sequence[str],
        stdin: bytes = b"",
        identity: Identity | None = None,
        environment: dict[str, str] | None = None,
        last_words: Sequence[str] = (),
    ) -> subprocess.CompletedProcess[bytes]:
        """Run one program to its end, as that person; SlurmUnreachable if it gave no answer.

        With `last_words` it is stopped once it has said one of them: what it would do next is not waited for.
        """
        order = self.order(arguments, identity, environment, last_words)
        return heard(order, self.execute([(order, stdin)], 1)[0])

    def order(
        self,
        arguments: Sequence[str],
        identity: Identity | None = None,
        environment: dict[str, str] | None = None,
        last_words: Sequence[str] = (),
    ) -> Order:
        """What is to be run."""
        return Order(
            (self.program(arguments[0]), *arguments[1:]),
            environment or self.environment(identity),
            self.config.command_seconds,
            identity.uid if identity else None,
            identity.gid if identity else None,
            identity.groups if identity else None,
            tuple(last_words),
        )

    def program(self, name: str) -> str:
        """Its path: in the configured folder, else for PATH to find."""
        return str(Path(self.config.bin_folder) / name) if self.config.bin_folder else name


def heard(order: Order, done: Done) -> "subprocess.CompletedProcess[bytes]":
    """What a program that has ended says; SlurmUnreachable if it gave no answer."""
    ended = subprocess.CompletedProcess(list(order.command), done.status or 0, done.stdout, done.stderr)
    if (fault := _unheard(order, done, ended)) is not None:
        fault.of_person = order.uid is not None
        raise fault
    return ended


def _unheard(order: Order, done: Done, ended: "subprocess.CompletedProcess[bytes]") -> SlurmUnreachable | None:
    name = Path(order.command[0]).name
    if done.trouble:
        return SlurmUnreachable(f"{readable(done.trouble)}.", "Check [slurm] bin_folder.")
    if done.status is None:
        return NoAnswer(
            f"{name} gave no answer within {order.seconds:g} seconds.",
            "Look at slurmctld's log; `scontrol ping` says whether it answers.",
        )
    if done.status < 0:
        return NoAnswer(f"{name} was killed by signal {-done.status} before it answered.")
    if done.status > 0 and outcome_unknown(ended):
        return SlurmUnreachable(
            f"{name} did not reach Slurm: {words(ended)}.", "`scontrol ping` says whether slurmctld answers."
        )
    return None


def readable(said: str) -> str:
    """Words for a log or a note: on one line, not long, and nothing that a terminal would obey."""
    shown = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in said)
    return shown if len(shown) <= LONGEST_SAID else shown[:LONGEST_SAID] + "…"


def text(output: bytes) -> str:
    """Slurm keeps whatever bytes people gave it; surrogates carry the ones that are not UTF-8 through."""
    return output.decode(errors="surrogateescape")


def words(done: "subprocess.CompletedProcess[bytes]") -> str:
    """What the program said on stderr, without its own name, on one line."""
    name = Path(done.args[0]).name
    said = done.stderr.decode(errors="replace")
    lines = [
        re.sub(rf"^(?:{re.escape(name)}: )?(?:(?:error|fatal): )?", "", line.strip()) for line in said.splitlines()
    ]
    lines = [line.rstrip(".") for line in lines if line]
    if len(lines) > 1 and lines[-1] == "Batch job submission failed: Unspecified error":
        lines.pop()  # job_submit.lua has said why
    return readable("; ".join(lines)) or f"status {done.returncode} without a word"


def outcome_unknown(done: "subprocess.CompletedProcess[bytes]") -> bool:
    """Whether the failure says nothing about the request. Remarks come first and the verdict last."""
    return says(done.stderr, UNKNOWN_OUTCOME)


def says(stderr: bytes | bytearray, verdicts: Sequence[str]) -> bool:
    """Whether the last line is one of these verdicts."""
    return verdict(stderr).startswith(tuple(verdicts))


def verdict(stderr: bytes | bytearray) -> str:
    """The reason of a failure: the last line, without what leads up to it."""
    # Only a newline ends a line: str.splitlines knows more, and a person may have put one of them into an image's name.
    lines = [line for line in stderr.decode(errors="replace").split("\n") if line.strip()]
    found = VERDICT.fullmatch(lines[-1].strip()) if lines else None
    return found[1] if found else ""


def refusal(done: "subprocess.CompletedProcess[bytes]") -> PersonFault:
    """Slurm understood and said no, in its own words."""
    return PersonFault(f"{Path(done.args[0]).name}: {words(done)}.")
