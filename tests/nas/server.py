"""The process behind the mount: threads that answer the kernel, and a control channel on standard input."""

import collections
import contextlib
import errno
import json
import os
import resource
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass

from . import protocol, system
from .callers import Caller, Callers
from .calls import NOTHING, Call, Reply, Times
from .faults import Fault, Faults
from .operations import Operations

THREADS = 12
"""As many operations can hang at the same time."""
REMEMBERED = 10_000


@dataclass(frozen=True)
class Settings:
    """How the share behaves from the start."""

    back: str
    mount: str
    root_squash: bool
    attribute_seconds: float
    skew_seconds: float


class Server:
    """One mount."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.faults = Faults()
        self.roots: collections.deque[str] = collections.deque(maxlen=REMEMBERED)
        """What root tried to change."""
        times = Times(settings.attribute_seconds, settings.skew_seconds)
        callers = Callers(root_squash=settings.root_squash)
        self.operations = Operations(settings.back, callers, times, self._forget_attributes)
        self._handlers: dict[str, Callable[[Call], Reply]] = {
            name: getattr(self.operations, name)
            for name in protocol.OPERATIONS.values()
            if hasattr(self.operations, name)
        }
        self._device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)

    def mount(self) -> None:
        """Appear, and answer from now on."""
        system.mount(self._device, self.settings.mount)
        for _ in range(THREADS):
            threading.Thread(target=self._serve, daemon=True).start()

    def unmount(self) -> None:
        """Disappear."""
        with contextlib.suppress(OSError):  # somebody else did it
            system.unmount(self.settings.mount)

    def _serve(self) -> None:
        buffer = bytearray(protocol.REQUEST_BYTES)
        while True:
            try:
                size = os.readv(self._device, [buffer])
            except OSError as error:
                if error.errno == errno.ENODEV:  # unmounted
                    return
                if error.errno in (errno.EINTR, errno.EAGAIN, errno.ENOENT):
                    continue
                raise
            self._take(bytes(memoryview(buffer)[:size]))

    def _take(self, request: bytes) -> None:
        _, opcode, unique, number, uid, gid, pid, _ = protocol.IN_HEADER.unpack_from(request)
        body = request[protocol.IN_HEADER.size :]
        operation = protocol.OPERATIONS.get(opcode, "")
        if operation in protocol.UNANSWERED:
            self._told(operation, number, body)
            return
        try:
            reply = self._answer(operation, unique, number, body, Caller(uid, gid, pid))
        except OSError as error:
            self._send(unique, -(error.errno or errno.EIO))
        except Exception:  # noqa: BLE001 - the caller must not hang for ever; the log tells
            traceback.print_exc()
            self._send(unique, -errno.EIO)
        else:
            if not self._send(unique, 0, reply.data):
                self.operations.undo(reply)

    def _answer(self, operation: str, unique: int, number: int, body: bytes, caller: Caller) -> Reply:
        if operation == "init":
            return Reply(protocol.init_reply(body))
        if operation == "destroy":
            return NOTHING
        handler = self._handlers.get(operation)
        if handler is None:
            raise OSError(errno.ENOSYS, operation)
        call = Call(operation, unique, self.operations.nodes[number], body, caller)
        if caller.uid == 0 and (operation in protocol.CHANGING or protocol.opens_to_write(operation, body)):
            self.roots.append(f"{operation} {self._paths(call)[0]}")
        fault = self.faults.befalls(operation, self._paths(call), unique) if self.faults.any else None
        if fault is None or fault.error is None:
            return handler(call)
        if fault.done or operation in ("release", "releasedir"):
            self.operations.undo(handler(call))
        raise OSError(fault.error, os.strerror(fault.error))

    def _told(self, operation: str, number: int, body: bytes) -> None:
        """What wants no answer."""
        if operation == "interrupt":
            self.faults.interrupt(protocol.NODE.unpack_from(body)[0])
        elif operation == "forget":
            self.operations.nodes.forget(number, protocol.NODE.unpack_from(body)[0])
        else:
            for forgotten, times in protocol.FORGET_ONE.iter_unpack(body[8:]):
                self.operations.nodes.forget(forgotten, times)

    def _paths(self, call: Call) -> list[str]:
        """What an operation concerns, below the mount: one path, or the old and the new one."""
        nodes, node, body, operation = self.operations.nodes, call.node, call.body, call.operation
        if operation in ("lookup", "unlink", "rmdir", "symlink"):
            return [node.path(protocol.name(body))]
        if operation in ("mkdir", "mknod", "create"):
            layout = {"mkdir": protocol.MKDIR, "mknod": protocol.MKNOD, "create": protocol.CREATE}[operation]
            return [node.path(protocol.name(body[layout.size :]))]
        if operation in ("rename", "rename2"):
            layout = protocol.NODE if operation == "rename" else protocol.RENAME2
            old, new = protocol.two_names(body[layout.size :])
            return [node.path(old), nodes[layout.unpack_from(body)[0]].path(new)]
        if operation == "link":
            existing = nodes[protocol.NODE.unpack_from(body)[0]]
            return [node.path(protocol.name(body[protocol.NODE.size :])), existing.path()]
        return [node.path()]

    def _send(self, unique: int, error: int, data: bytes = b"") -> bool:
        """Answer; whether the kernel still wanted it."""
        size = protocol.OUT_HEADER.size + len(data)
        try:
            os.write(self._device, protocol.OUT_HEADER.pack(size, error, unique) + data)
        except OSError as failed:
            if failed.errno in (errno.ENOENT, errno.ENODEV):  # interrupted, or unmounted
                return False
            raise
        return True

    def _forget_attributes(self, number: int) -> None:
        if not self.settings.attribute_seconds:
            return
        body = protocol.INVALID_INODE.pack(number, -1, 0)
        size = protocol.OUT_HEADER.size + len(body)
        with contextlib.suppress(OSError):  # the kernel does not have it
            os.write(self._device, protocol.OUT_HEADER.pack(size, protocol.NOTIFY_INVALID_INODE, 0) + body)

    def command(self, line: str) -> object:
        """One line of the control channel."""
        name, given = json.loads(line)
        if name == "fault":
            return self.faults.add(Fault(**given))
        if name == "clear":
            self.faults.clear(given)
            return None
        if name == "met":
            return self.faults.met(given)
        if name == "roots":
            return list(self.roots)
        raise ValueError(name)


def main(arguments: str) -> None:
    """Serve until standard input ends: whoever started us wants no more, or is dead."""
    os.umask(0)  # the client's kernel has applied the caller's
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    sys.setswitchinterval(0.0005)
    server = Server(Settings(**json.loads(arguments)))

    def end(*_: object) -> None:
        server.unmount()
        os._exit(0)  # whatever a thread still waits for

    signal.signal(signal.SIGTERM, end)  # a time limit ends the tests' whole process group
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C too, but the tests unmount when they have cleaned up
    server.mount()
    print(json.dumps("mounted"), flush=True)
    for line in sys.stdin:
        print(json.dumps(server.command(line)), flush=True)
    end()


def settings_text(settings: Settings) -> str:
    """What `main` is called with."""
    return json.dumps(asdict(settings))
