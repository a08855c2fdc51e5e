"""The few system calls that Python's `os` does not have, or has only for the whole process."""

import ctypes
import os
import platform

AT_EMPTY_PATH, AT_FDCWD, AT_SYMLINK_NOFOLLOW = 0x1000, -100, 0x100
UTIME_NOW, UTIME_OMIT = (1 << 30) - 1, (1 << 30) - 2
MNT_DETACH = 2
MS_NOSUID, MS_NODEV = 2, 4
LONGEST_HANDLE = 128
_SETGROUPS = {"x86_64": 116, "aarch64": 159}

_libc = ctypes.CDLL(None, use_errno=True)
# Two microseconds of work: letting other threads run meanwhile would cost more.
_quick = ctypes.PyDLL(None, use_errno=True)


class FileHandle(ctypes.Structure):
    """A file for ever, as NFS servers name it: no path, no open descriptor."""

    _fields_ = (
        ("size", ctypes.c_uint),
        ("kind", ctypes.c_int),
        ("data", ctypes.c_ubyte * LONGEST_HANDLE),
    )

    def key(self) -> bytes:
        """What is equal for two handles of one file."""
        return bytes(self)[: FileHandle.data.offset + self.size]


class _Time(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


def handle_of(descriptor: int) -> FileHandle:
    """The handle of an open file."""
    handle = FileHandle(size=LONGEST_HANDLE)
    mount = ctypes.c_int()
    _done(_quick.name_to_handle_at(descriptor, b"", ctypes.byref(handle), ctypes.byref(mount), AT_EMPTY_PATH))
    return handle


def open_handle(anywhere: int, handle: FileHandle, flags: int) -> int:
    """Open a file by its handle; ESTALE if there is no such file any more. Needs root's rights."""
    return _done(_quick.open_by_handle_at(anywhere, ctypes.byref(handle), flags))


def set_file_rights(uid: int, gid: int, groups: tuple[int, ...]) -> None:
    """Do this thread's file work from now on as that user; what else the process may do stays."""
    array = (ctypes.c_uint32 * len(groups))(*groups)
    # The library's own setgroups would change every thread.
    _done(_quick.syscall(_SETGROUPS[platform.machine()], len(groups), array))
    _quick.setfsgid(gid)
    set_file_user(uid)


def set_file_user(uid: int) -> None:
    """As before, without touching the groups."""
    _quick.setfsuid(uid)
    if _quick.setfsuid(-1) != uid:  # the call itself tells no error
        raise PermissionError(f"this process may not do file work as user {uid}")


def set_times(path: bytes, atime: tuple[int, int], mtime: tuple[int, int]) -> None:
    """utimensat(2), with its "now" and "leave as it is"."""
    times = (_Time * 2)(_Time(*atime), _Time(*mtime))
    _done(_libc.utimensat(AT_FDCWD, path, times, 0))


def change_owner(descriptor: int, uid: int, gid: int) -> None:
    """fchownat(2) of the very thing that was opened, a symbolic link too."""
    _done(_libc.fchownat(descriptor, b"", uid, gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW))


def rename(source: int, old: bytes, target: int, new: bytes, flags: int) -> None:
    """renameat2(2)."""
    _done(_libc.renameat2(source, old, target, new, flags))


def allocate(descriptor: int, mode: int, offset: int, length: int) -> None:
    """fallocate(2)."""
    _done(_libc.fallocate(descriptor, mode, ctypes.c_long(offset), ctypes.c_long(length)))


def mount(device: int, where: str) -> None:
    """Mount what answers on this descriptor of /dev/fuse."""
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other"
    _done(_libc.mount(b"nas", os.fsencode(where), b"fuse.nas", MS_NOSUID | MS_NODEV, options.encode()))


def unmount(where: str) -> None:
    """Take it out of the tree, whoever still uses it."""
    _done(_libc.umount2(os.fsencode(where), MNT_DETACH))


def _done(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
