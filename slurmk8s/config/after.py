"""The tables of the file that say what happens when a job's bundle is complete."""

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from slurmk8s.config.section import Section

End = Literal["completed", "failed", "cancelled", "timeout", "node_fail", "preempted", "out_of_memory"]
Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,31}$")]
Domain = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")]
EVERY_END: tuple[End, ...] = ("completed", "failed", "cancelled", "timeout", "node_fail", "preempted", "out_of_memory")
ADDRESS = re.compile(r"[A-Za-z0-9_%+][A-Za-z0-9._%+-]{0,63}@[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?", re.ASCII)


class Mail(Section):
    """E-mail to those who ask for it with `#SBATCH --mail-type`. Default: none is sent."""

    host: str | None = None
    """The mail server. Default none: slurmk8s sends no mail, and Slurm's own MailProg goes on as it does."""
    port: int = Field(25, ge=1, le=65535)
    """Its port. Default 25."""
    security: Literal["none", "starttls", "tls"] = "starttls"
    """How the connection is encrypted; `none` only for a server on this machine. Default starttls."""
    user: str | None = None
    """Login at the mail server. Default none: it knows this machine."""
    password_file: Path | None = None
    """File with the password, readable by root alone. Default none."""
    sender: str | None = None
    """Address that the mails come from. Default none: `slurmk8s@` and the domain."""
    domain: Domain | None = None
    """Domain of people whose `--mail-user` is a bare name, or who name none: `alice` means `alice@domain`. Required
    with a host."""
    allowed_domains: tuple[Domain, ...] = ()
    """Other domains that `--mail-user` may name. Default none: mail stays in the house. One that is not allowed goes to
    the person's own address instead, with a line that says so."""
    per_hour: int = Field(20, ge=1)
    """Mails that one person gets from one node in an hour; what comes above is put together in one. Default 20."""
    timeout_seconds: float = Field(60, gt=0)
    """Longest time that sending one may take. Unit: seconds. Default 60."""

    @model_validator(mode="after")
    def _has_a_domain(self) -> "Mail":
        if self.host and not self.domain:
            raise ValueError("a mail server needs `domain`: people are written to as name@domain")
        if self.sender is not None and not ADDRESS.fullmatch(self.sender):
            raise ValueError(f"sender {self.sender!r} is not an address such as slurm@example.org")
        return self

    @property
    def from_address(self) -> str:
        """What the mails come from."""
        return self.sender or f"slurmk8s@{self.domain}"


class Chat(Section):
    """A room in Slack, Mattermost, Discord, Telegram or any other service that apprise knows."""

    url_file: Path
    """File with the room's address as apprise writes it, one on each line (`slack://…`, `mmost://…`, `discord://…`,
    `tgram://…`), readable by root alone: whoever has the address can write there."""
    states: tuple[End, ...] = EVERY_END
    """Which ends are told. Default: all."""
    in_partitions: tuple[str, ...] = ()
    """Jobs of which partitions. Default: of all."""
    asked: bool = False
    """Only of jobs whose `#SBATCH --mail-type` asks for a word at that end. Default no."""
    timeout_seconds: float = Field(60, gt=0)
    """Longest time that sending one message may take. Unit: seconds. Default 60."""


class Command(Section):
    """A program of the site's own; it gets the job's summary.json on stdin."""

    run: tuple[str, ...] = Field(min_length=1)
    """The program, by its whole path, and its arguments. No shell reads it."""
    run_as: Literal["service", "person"] = "service"
    """Whose rights it has: `after.account`'s, or those of the job's owner. Default service."""
    states: tuple[End, ...] = EVERY_END
    """After which ends. Default: all."""
    in_partitions: tuple[str, ...] = ()
    """Jobs of which partitions. Default: of all."""
    timeout_seconds: float = Field(60, gt=0)
    """After this time it is killed, with what it has started. Unit: seconds. Default 60."""
    memory_mb: int = Field(1024, ge=16)
    """Most address space that one process of it may have. Unit: MiB. Default 1024."""
    attempts: int = Field(5, ge=1)
    """How often it is tried when it ends with another status than 0. Default 5, over half an hour."""

    @model_validator(mode="after")
    def _is_a_path(self) -> "Command":
        if not self.run[0].startswith("/"):
            raise ValueError(f"run names {self.run[0]!r}; give the program's whole path")
        return self


class Archive(Section):
    """One `.tar.zst` of each bundle, written as its owner, its checksums still valid after unpacking."""

    enabled: bool = False
    """Whether bundles are archived. Default no."""
    folder: Path | None = None
    """Where the archives go, `%u` for the login name; people must be able to write there. Default none: beside the
    bundle."""
    states: tuple[End, ...] = EVERY_END
    """After which ends. Default: all."""
    remove_original: bool = False
    """Whether logs and outputs are removed once the archive has been read back and every checksum was right; the
    summaries stay. Default no."""
    level: int = Field(3, ge=1, le=19)
    """How hard zstd tries. Default 3, its own: faster than most disks."""
    threads: int = Field(1, ge=1, le=64)
    """Cores that zstd may use on the node. Default 1: the node's next job has the others."""
    timeout_seconds: float = Field(6 * 3600, gt=0)
    """Longest time that one archive may take. Unit: seconds. Default six hours."""
    zstd: Path = Path("/usr/bin/zstd")
    """The zstd program. Default Debian's."""


class After(Section):
    """What happens when a bundle is complete. Nothing of it can change the bundle, except as `archive` says."""

    account: str = "nobody"
    """Account that senders and the service's commands run as. Default nobody: none of them needs a right."""
    give_up_hours: float = Field(48, gt=0)
    """How long a message or an archive is tried while its target does not take it. Unit: hours. Default 48: a weekend's
    outage of the mail server loses nothing."""
    mail: Mail = Mail()
    """E-mail to those who ask for it."""
    archive: Archive = Archive()
    """One archive of each bundle."""
    chats: dict[Name, Chat] = {}
    """Rooms that are told, by a name of yours. Needs the extra `notify`. Default: none."""
    commands: dict[Name, Command] = {}
    """Programs that are run, by a name of yours. Default: none."""

    @property
    def actions(self) -> tuple[str, ...]:
        """What is turned on, by name: `mail`, `archive`, `chat.<name>`, `command.<name>`."""
        return (
            *(["mail"] if self.mail.host else []),
            *(["archive"] if self.archive.enabled else []),
            *(f"chat.{name}" for name in self.chats),
            *(f"command.{name}" for name in self.commands),
        )
