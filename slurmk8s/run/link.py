"""The conversation with the node's agent, as slurmk8s-run holds it: one question, then news until the pod is gone."""

import json
import socket
import time
from pathlib import Path
from typing import Any


class AgentAway(Exception):
    """The agent does not answer: it restarts, or it is not there."""


class Link:
    """A connection to the agent's socket that yields its messages."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._socket: socket.socket | None = None
        self._buffer = b""

    def ask(self, question: dict[str, Any]) -> None:
        """(Re)connect and ask; AgentAway when that is not possible now."""
        self.close()
        try:
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.settimeout(5)
            self._socket.connect(str(self._path))
            self._socket.sendall(json.dumps(question).encode() + b"\n")
            self._socket.setblocking(False)
        except OSError as error:
            self.close()
            raise AgentAway(str(error)) from None

    def fileno(self) -> int | None:
        """For a selector; None while not connected."""
        return self._socket.fileno() if self._socket else None

    def messages(self) -> list[dict[str, Any]]:
        """What has arrived; AgentAway when the connection has ended."""
        if self._socket is None:
            raise AgentAway("not connected")
        try:
            data = self._socket.recv(65536)
        except BlockingIOError:
            return []
        except OSError as error:
            self.close()
            raise AgentAway(str(error)) from None
        if not data:
            self.close()
            raise AgentAway("connection closed")
        self._buffer += data
        *lines, self._buffer = self._buffer.split(b"\n")
        return [json.loads(line) for line in lines if line]

    def close(self) -> None:
        """Forget the connection."""
        if self._socket:
            self._socket.close()
        self._socket, self._buffer = None, b""


class Patience:
    """How long the agent may be away before the job is given back to Slurm."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: float | None = None

    def start(self) -> bool:
        """The agent is away; True if that is news."""
        if self._since is None:
            self._since = time.monotonic()
            return True
        return False

    def end(self) -> None:
        """The agent answers."""
        self._since = None

    @property
    def over(self) -> bool:
        """Whether we have waited long enough."""
        return self._since is not None and time.monotonic() - self._since > self._seconds
