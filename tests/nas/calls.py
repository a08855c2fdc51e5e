"""One question of the kernel and the answer to it."""

from dataclasses import dataclass

from .callers import Caller
from .nodes import Node


@dataclass(frozen=True)
class Call:
    """What the kernel asks for."""

    operation: str
    unique: int
    node: Node
    """The file, or the folder with the name in the body."""
    body: bytes
    caller: Caller


@dataclass(frozen=True)
class Reply:
    """What is sent, and what the kernel holds on to once it has it."""

    data: bytes = b""
    node: Node | None = None
    descriptor: int | None = None


NOTHING = Reply()


@dataclass(frozen=True)
class Times:
    """What a client believes of times."""

    attributes: float
    """Seconds for which the client may answer from its cache, as NFS's actimeo; opening a file asks anew."""
    skew: float
    """Seconds by which the server's clock is ahead."""

    @property
    def skew_ns(self) -> int:
        """The same in nanoseconds."""
        return int(self.skew * 1e9)
