"""The files that the kernel knows, by their handles: as on an NFS server a file is neither a path nor kept open."""

import contextlib
import errno
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass

from . import system
from .protocol import ROOT_NODE


@dataclass
class Node:
    """One file or folder."""

    number: int
    key: bytes
    handle: system.FileHandle | None
    kept: int | None
    """Where the file system behind has no handles (overlayfs): a descriptor, one per file."""
    parent: "Node | None"
    name: bytes
    """Where it was last looked up; for fault patterns only."""
    lookups: int = 0
    """How often the kernel was told of it."""

    def path(self, *names: bytes) -> str:
        """Of this, or of something of that name in it, below the mount, as far as is known."""
        parts = [os.fsdecode(name) for name in names]
        node: Node | None = self
        while node is not None and node.parent is not None:
            parts.append(os.fsdecode(node.name))
            node = node.parent
        return "/".join(reversed(parts))


class Nodes:
    """All of them. `reach` needs root's rights in the calling thread."""

    def __init__(self, back: str) -> None:
        self._lock = threading.Lock()
        self._anchor = os.open(back, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._by_number: dict[int, Node] = {}
        self._by_key: dict[bytes, Node] = {}
        self._next = ROOT_NODE
        self.met(self._anchor, None, b"")

    def __getitem__(self, number: int) -> Node:
        return self._by_number[number]

    def met(self, descriptor: int, parent: Node | None, name: bytes) -> Node:
        """The node of an open file, which the kernel is about to be told of once more."""
        handle, key = _identity(descriptor)
        with self._lock:
            node = self._by_key.get(key)
            if node is None:
                kept = None if handle else os.open(f"/proc/self/fd/{descriptor}", os.O_PATH | os.O_CLOEXEC)
                node = Node(self._next, key, handle, kept, parent, name)
                self._next += 1
                self._by_key[key] = self._by_number[node.number] = node
            if node.number != ROOT_NODE:
                node.parent, node.name = parent, name
            node.lookups += 1
            return node

    def forget(self, number: int, times: int) -> None:
        """The kernel does not know it any more, so often."""
        with self._lock:
            node = self._by_number.get(number)
            if node is None or number == ROOT_NODE:
                return
            node.lookups -= times
            if node.lookups > 0:
                return
            del self._by_number[number]
            del self._by_key[node.key]
            if node.kept is not None:
                os.close(node.kept)

    @contextlib.contextmanager
    def reach(self, node: Node) -> Iterator[int]:
        """An O_PATH descriptor of it; ESTALE when it is gone, by whomever."""
        if node.kept is not None:
            yield node.kept
            return
        assert node.handle is not None
        descriptor = system.open_handle(self._anchor, node.handle, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def _identity(descriptor: int) -> tuple[system.FileHandle | None, bytes]:
    try:
        handle = system.handle_of(descriptor)
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            raise
        status = os.fstat(descriptor)
        return None, f"{status.st_dev}:{status.st_ino}".encode()
    return handle, handle.key()
