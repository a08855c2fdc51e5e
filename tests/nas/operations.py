"""What the mount can do: each operation of the kernel, done on the folder behind with the caller's rights.

Everything about rights, sticky folders, links and full disks is what the file system behind says to that caller.
"""

import os
import stat
from collections.abc import Callable

from . import protocol, system
from .callers import Caller, Callers
from .calls import NOTHING, Call, Reply, Times
from .listing import Entry, listing
from .nodes import Node, Nodes

OPEN = os.O_CLOEXEC | os.O_NOCTTY
NOT_ON_SERVER = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_DIRECT | os.O_NOATIME | os.O_NONBLOCK
"""What the client's kernel has seen to, or what is no use behind."""


class Operations:
    """The file system."""

    def __init__(self, back: str, callers: Callers, times: Times, forget_attributes: Callable[[int], None]) -> None:
        self.nodes = Nodes(back)
        self.callers = callers
        self.times = times
        self._forget_attributes = forget_attributes
        self._listings: dict[int, list[Entry]] = {}

    def undo(self, reply: Reply) -> None:
        """The kernel never got it."""
        if reply.node:
            self.nodes.forget(reply.node.number, 1)
        if reply.descriptor is not None:
            os.close(reply.descriptor)

    # Names

    def lookup(self, call: Call) -> Reply:
        """What has this name."""
        return self._entry(call.node, protocol.name(call.body), call.caller)

    def mkdir(self, call: Call) -> Reply:
        """A folder."""
        mode, _ = protocol.MKDIR.unpack_from(call.body)
        name = protocol.name(call.body[protocol.MKDIR.size :])
        self._in_folder(call.node, call.caller, lambda folder: os.mkdir(name, mode, dir_fd=folder))
        return self._entry(call.node, name, call.caller)

    def mknod(self, call: Call) -> Reply:
        """A pipe, a socket or an empty file."""
        mode, device, _, _ = protocol.MKNOD.unpack_from(call.body)
        name = protocol.name(call.body[protocol.MKNOD.size :])
        self._in_folder(call.node, call.caller, lambda folder: os.mknod(name, mode, device, dir_fd=folder))
        return self._entry(call.node, name, call.caller)

    def symlink(self, call: Call) -> Reply:
        """A symbolic link."""
        name, target = protocol.two_names(call.body)
        self._in_folder(call.node, call.caller, lambda folder: os.symlink(target, name, dir_fd=folder))
        return self._entry(call.node, name, call.caller)

    def link(self, call: Call) -> Reply:
        """One more name for a file. The client's kernel has judged whose file may be linked; a server asks no more."""
        (old,) = protocol.NODE.unpack_from(call.body)
        name = protocol.name(call.body[protocol.NODE.size :])
        self.callers.become_server()
        with self.nodes.reach(self.nodes[old]) as source, self.nodes.reach(call.node) as folder:
            self.callers.become(call.caller)
            if not os.access(_magic(folder), os.W_OK | os.X_OK, effective_ids=True):
                raise PermissionError(13, "Permission denied")
            self.callers.become_server()
            os.link(_magic(source), name, dst_dir_fd=folder, follow_symlinks=True)
        return self._entry(call.node, name, call.caller)

    def unlink(self, call: Call) -> Reply:
        """Take a name away."""
        self._in_folder(call.node, call.caller, lambda folder: os.unlink(protocol.name(call.body), dir_fd=folder))
        return NOTHING

    def rmdir(self, call: Call) -> Reply:
        """Take an empty folder away."""
        self._in_folder(call.node, call.caller, lambda folder: os.rmdir(protocol.name(call.body), dir_fd=folder))
        return NOTHING

    def rename(self, call: Call) -> Reply:
        """Another name, perhaps in another folder."""
        (folder,) = protocol.NODE.unpack_from(call.body)
        return self._rename(call.node, self.nodes[folder], call.body[protocol.NODE.size :], 0, call.caller)

    def rename2(self, call: Call) -> Reply:
        """The same with flags."""
        folder, flags, _ = protocol.RENAME2.unpack_from(call.body)
        return self._rename(call.node, self.nodes[folder], call.body[protocol.RENAME2.size :], flags, call.caller)

    def _rename(self, node: Node, target: Node, names: bytes, flags: int, caller: Caller) -> Reply:
        old, new = protocol.two_names(names)
        self.callers.become_server()
        with self.nodes.reach(node) as source, self.nodes.reach(target) as folder:
            self.callers.become(caller)
            system.rename(source, old, folder, new, flags)
        return NOTHING

    # Attributes

    def getattr(self, call: Call) -> Reply:
        """How it looks."""
        self.callers.become_server()
        with self.nodes.reach(call.node) as descriptor:
            return self._attributes(os.fstat(descriptor))

    def setattr(self, call: Call) -> Reply:
        """Mode, owner, size, times."""
        wanted, _, handle, size, _, atime, mtime, _, atime_ns, mtime_ns, _, mode, _, uid, gid, _ = (
            protocol.SETATTR.unpack_from(call.body)
        )
        self.callers.become_server()
        with self.nodes.reach(call.node) as descriptor:
            self.callers.become(call.caller)
            path = _magic(descriptor)
            if wanted & (protocol.SET_UID | protocol.SET_GID):
                same = 2**32 - 1
                owner = uid if wanted & protocol.SET_UID else same
                system.change_owner(descriptor, owner, gid if wanted & protocol.SET_GID else same)
            if wanted & protocol.SET_MODE:
                os.chmod(path, stat.S_IMODE(mode))
            if wanted & protocol.SET_SIZE:
                os.truncate(handle if wanted & protocol.SET_HANDLE else path, size)
            if wanted & (protocol.SET_ATIME | protocol.SET_MTIME):
                now = wanted & protocol.SET_ATIME_NOW, wanted & protocol.SET_MTIME_NOW
                system.set_times(
                    path,
                    self._time(wanted & protocol.SET_ATIME, now[0], atime, atime_ns),
                    self._time(wanted & protocol.SET_MTIME, now[1], mtime, mtime_ns),
                )
            return self._attributes(os.fstat(descriptor))

    def _time(self, wanted: int, now: int, seconds: int, nanoseconds: int) -> tuple[int, int]:
        if not wanted:
            return 0, system.UTIME_OMIT
        if now:
            return 0, system.UTIME_NOW
        signed = seconds - 2**64 if seconds >= 2**63 else seconds
        return divmod(signed * 10**9 + nanoseconds - self.times.skew_ns, 10**9)

    def access(self, call: Call) -> Reply:
        """Whether the caller may: what the kernel asks at chdir and the like."""
        mask, _ = protocol.MKDIR.unpack_from(call.body)
        self.callers.become_server()
        with self.nodes.reach(call.node) as descriptor:
            self.callers.become(call.caller)
            if not os.access(_magic(descriptor), mask, effective_ids=True):
                raise PermissionError(13, "Permission denied")
        return NOTHING

    def readlink(self, call: Call) -> Reply:
        """Where a symbolic link leads."""
        self.callers.become_server()
        with self.nodes.reach(call.node) as descriptor:
            return Reply(os.readlink(b"", dir_fd=descriptor))

    def statfs(self, call: Call) -> Reply:
        """How full it is."""
        self.callers.become_server()
        with self.nodes.reach(call.node) as descriptor:
            now = os.statvfs(_magic(descriptor))
        space = now.f_blocks, now.f_bfree, now.f_bavail, now.f_files, now.f_ffree
        return Reply(protocol.STATFS.pack(*space, now.f_bsize, now.f_namemax, now.f_frsize, 0))

    # Files

    def open(self, call: Call) -> Reply:
        """Open a file that is there."""
        flags, _ = protocol.OPEN.unpack_from(call.body)
        self.callers.become_server()
        with self.nodes.reach(call.node) as path:
            self.callers.become(call.caller)
            descriptor = os.open(_magic(path), (flags & ~NOT_ON_SERVER) | OPEN)
        # As NFS does: what was cached counts until a file is opened.
        self._forget_attributes(call.node.number)
        return Reply(protocol.OPENED.pack(descriptor, 0, 0), descriptor=descriptor)

    def create(self, call: Call) -> Reply:
        """Make a file and open it."""
        flags, mode, _, _ = protocol.CREATE.unpack_from(call.body)
        name = protocol.name(call.body[protocol.CREATE.size :])
        wanted = (flags & ~NOT_ON_SERVER) | (flags & os.O_EXCL) | os.O_CREAT | os.O_NOFOLLOW | OPEN
        self.callers.become_server()
        with self.nodes.reach(call.node) as folder:
            self.callers.become(call.caller)
            descriptor = os.open(name, wanted, stat.S_IMODE(mode), dir_fd=folder)
        entry = self._met(descriptor, call.node, name)
        return Reply(entry.data + protocol.OPENED.pack(descriptor, 0, 0), entry.node, descriptor)

    def read(self, call: Call) -> Reply:
        """Bytes of an open file."""
        descriptor, offset, size = protocol.READ.unpack_from(call.body)
        return Reply(os.pread(descriptor, size, offset))

    def write(self, call: Call) -> Reply:
        """Bytes into an open file."""
        descriptor, offset, size, _, _, _, _ = protocol.WRITE.unpack_from(call.body)
        start = protocol.WRITE.size
        self.callers.become(call.caller)  # a quota is somebody's
        written = os.pwrite(descriptor, memoryview(call.body)[start : start + size], offset)
        return Reply(protocol.WRITTEN.pack(written, 0))

    def fallocate(self, call: Call) -> Reply:
        """Room for a file."""
        descriptor, offset, length, mode = protocol.FALLOCATE.unpack_from(call.body)
        self.callers.become(call.caller)
        system.allocate(descriptor, mode, offset, length)
        return NOTHING

    def flush(self, call: Call) -> Reply:  # noqa: ARG002 - it is one of them
        """At each close(2), where NFS tells late errors."""
        return NOTHING

    def fsync(self, call: Call) -> Reply:
        """Onto the disk."""
        descriptor, only_data = protocol.FSYNC.unpack_from(call.body)
        (os.fdatasync if only_data & 1 else os.fsync)(descriptor)
        return NOTHING

    def release(self, call: Call) -> Reply:
        """The last close."""
        os.close(protocol.HANDLE.unpack_from(call.body)[0])
        return NOTHING

    # Folders

    def opendir(self, call: Call) -> Reply:
        """Open a folder to list it."""
        self.callers.become_server()
        with self.nodes.reach(call.node) as path:
            self.callers.become(call.caller)
            descriptor = os.open(_magic(path), os.O_RDONLY | os.O_DIRECTORY | OPEN)
        self._forget_attributes(call.node.number)
        return Reply(protocol.OPENED.pack(descriptor, 0, 0), descriptor=descriptor)

    def readdir(self, call: Call) -> Reply:
        """The next entries. The list is made when it is read from its start, so that offsets stay what they were."""
        descriptor, offset, size = protocol.READ.unpack_from(call.body)
        if offset == 0 or descriptor not in self._listings:
            self._listings[descriptor] = listing(descriptor)
        found = bytearray()
        for number, (inode, kind, name) in enumerate(self._listings[descriptor][offset:], offset + 1):
            packed = protocol.dirent(inode, number, kind, name)
            if len(found) + len(packed) > size:
                break
            found += packed
        return Reply(bytes(found))

    def releasedir(self, call: Call) -> Reply:
        """Done with it."""
        (descriptor,) = protocol.HANDLE.unpack_from(call.body)
        self._listings.pop(descriptor, None)
        os.close(descriptor)
        return NOTHING

    fsyncdir = fsync

    def _in_folder(self, node: Node, caller: Caller, do: Callable[[int], None]) -> None:
        self.callers.become_server()
        with self.nodes.reach(node) as folder:
            self.callers.become(caller)
            do(folder)

    def _entry(self, parent: Node, name: bytes, caller: Caller) -> Reply:
        self.callers.become_server()
        with self.nodes.reach(parent) as folder:
            self.callers.become(caller)
            descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            return self._met(descriptor, parent, name)
        finally:
            os.close(descriptor)

    def _met(self, descriptor: int, parent: Node, name: bytes) -> Reply:
        node = self.nodes.met(descriptor, parent, name)
        # Names are never cached: each step of a path is asked for as the caller, who may not be allowed to take it.
        seconds, nanoseconds = protocol.valid_for(self.times.attributes)
        data = protocol.ENTRY.pack(node.number, 0, 0, seconds, 0, nanoseconds)
        return Reply(data + protocol.attributes(os.fstat(descriptor), self.times.skew_ns), node)

    def _attributes(self, status: os.stat_result) -> Reply:
        seconds, nanoseconds = protocol.valid_for(self.times.attributes)
        valid = protocol.ATTRIBUTES_VALID.pack(seconds, nanoseconds, 0)
        return Reply(valid + protocol.attributes(status, self.times.skew_ns))


def _magic(descriptor: int) -> bytes:
    """A path of what is open, whatever its name is by now."""
    return b"/proc/self/fd/%d" % descriptor
