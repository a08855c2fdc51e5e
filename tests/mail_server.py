"""A real mail server on a free port, for every kind of test."""

import contextlib
import email
import email.policy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.message import EmailMessage
from typing import Any

from aiosmtpd.controller import Controller


@dataclass
class MailServer:
    """What it got; while `refuse` is set, each mail is answered with that."""

    port: int = 0
    host: str = "127.0.0.1"
    got: list[EmailMessage] = field(default_factory=list)
    to: list[list[str]] = field(default_factory=list)
    refuse: str = ""
    look: Callable[[EmailMessage], None] = lambda _: None
    """Called with each mail before it is taken."""

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802 - aiosmtpd's name
        """Take a mail."""
        if self.refuse:
            return self.refuse
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        assert isinstance(message, EmailMessage)
        self.look(message)
        self.got.append(message)
        self.to.append(envelope.rcpt_tos)
        return "250 OK"

    @property
    def subjects(self) -> list[str]:
        """What they are about."""
        return [str(message["Subject"]) for message in self.got]


class AnyPort(Controller):
    """On a free port, which it learns when it is bound."""

    def _trigger_server(self) -> None:
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


@contextlib.contextmanager
def serving() -> Iterator[MailServer]:
    """One that runs."""
    server = MailServer()
    controller = AnyPort(server, hostname="127.0.0.1", port=0)
    controller.start()
    server.port = controller.port
    try:
        yield server
    finally:
        controller.stop()
