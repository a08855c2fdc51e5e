"""The words of the kernel's FUSE protocol that we use: numbers and layouts, as in <linux/fuse.h>."""

import os
import struct

MAJOR, MINOR = 7, 31
LARGEST_WRITE = 256 * 1024
REQUEST_BYTES = LARGEST_WRITE + 4096
"""Room for the largest request."""
ROOT_NODE = 1

OPERATIONS = {
    1: "lookup",
    2: "forget",
    3: "getattr",
    4: "setattr",
    5: "readlink",
    6: "symlink",
    8: "mknod",
    9: "mkdir",
    10: "unlink",
    11: "rmdir",
    12: "rename",
    13: "link",
    14: "open",
    15: "read",
    16: "write",
    17: "statfs",
    18: "release",
    20: "fsync",
    25: "flush",
    26: "init",
    27: "opendir",
    28: "readdir",
    29: "releasedir",
    30: "fsyncdir",
    34: "access",
    35: "create",
    36: "interrupt",
    38: "destroy",
    42: "batch_forget",
    43: "fallocate",
    45: "rename2",
}
"""Others are answered with ENOSYS, and the kernel does without: no extended attributes, locks on this host only."""
UNANSWERED = {"forget", "batch_forget", "interrupt"}
CHANGING = {"setattr", "symlink", "mknod", "mkdir", "unlink", "rmdir", "rename", "rename2", "link", "create"}
"""Besides opening a file to write: as with NFS, what is written counts as the opener's, whoever got the descriptor."""

IN_HEADER = struct.Struct("<IIQQIIII")
OUT_HEADER = struct.Struct("<IiQ")
ATTRIBUTES = struct.Struct("<6Q10I")
ENTRY = struct.Struct("<4QII")
ATTRIBUTES_VALID = struct.Struct("<QII")
INIT_IN = struct.Struct("<IIII")
INIT_OUT = struct.Struct("<IIIIHHIIHHI28x")
GETATTR = struct.Struct("<IIQ")
SETATTR = struct.Struct("<II6Q8I")
MKNOD = struct.Struct("<IIII")
MKDIR = struct.Struct("<II")
NODE = struct.Struct("<Q")
RENAME2 = struct.Struct("<QII")
OPEN = struct.Struct("<II")
CREATE = struct.Struct("<IIII")
OPENED = struct.Struct("<QII")
HANDLE = struct.Struct("<Q")
READ = struct.Struct("<QQI")
WRITE = struct.Struct("<QQIIQII")
WRITTEN = struct.Struct("<II")
FSYNC = struct.Struct("<QI")
FALLOCATE = struct.Struct("<QQQI")
STATFS = struct.Struct("<5Q4I24x")
FORGET_ONE = struct.Struct("<QQ")
DIRENT = struct.Struct("<QQII")
INVALID_INODE = struct.Struct("<Qqq")

NOTIFY_INVALID_INODE = 2

ASYNC_READ, ATOMIC_TRUNCATE, BIG_WRITES, PARALLEL_FOLDERS, MAX_PAGES = 1 << 0, 1 << 3, 1 << 5, 1 << 18, 1 << 22

SET_MODE, SET_UID, SET_GID, SET_SIZE, SET_ATIME, SET_MTIME, SET_HANDLE = (1 << bit for bit in range(7))
SET_ATIME_NOW, SET_MTIME_NOW = 1 << 7, 1 << 8


def opens_to_write(operation: str, body: bytes) -> bool:
    """Whether a file is opened for more than reading."""
    return operation == "open" and bool(OPEN.unpack_from(body)[0] & os.O_ACCMODE)


def init_reply(body: bytes) -> bytes:
    """Agree on how to talk."""
    _, minor, readahead, offered = INIT_IN.unpack_from(body)
    flags = offered & (ASYNC_READ | ATOMIC_TRUNCATE | BIG_WRITES | PARALLEL_FOLDERS | MAX_PAGES)
    pages = LARGEST_WRITE // 4096
    return INIT_OUT.pack(MAJOR, min(minor, MINOR), readahead, flags, 64, 48, LARGEST_WRITE, 1, pages, 0, 0)


def attributes(status: os.stat_result, skew_ns: int) -> bytes:
    """A file's attributes, by a clock that is wrong by so much."""
    atime, atime_ns = divmod(status.st_atime_ns + skew_ns, 10**9)
    mtime, mtime_ns = divmod(status.st_mtime_ns + skew_ns, 10**9)
    ctime, ctime_ns = divmod(status.st_ctime_ns + skew_ns, 10**9)
    mask = 2**64 - 1  # a time before 1970 is a negative number in the same bits
    return ATTRIBUTES.pack(
        *(status.st_ino, status.st_size, status.st_blocks),
        *(atime & mask, mtime & mask, ctime & mask, atime_ns, mtime_ns, ctime_ns),
        *(status.st_mode, status.st_nlink, status.st_uid, status.st_gid, status.st_rdev & 0xFFFFFFFF),
        *(status.st_blksize, 0),
    )


def valid_for(seconds: float) -> tuple[int, int]:
    """Seconds and nanoseconds."""
    whole = int(seconds)
    return whole, int((seconds - whole) * 1e9)


def name(body: bytes) -> bytes:
    """The first of the names in a request's body."""
    return body.partition(b"\0")[0]


def two_names(body: bytes) -> tuple[bytes, bytes]:
    """The two names in a request's body."""
    first, second, _ = body.split(b"\0", 2)
    return first, second


def dirent(inode: int, following: int, kind: int, entry: bytes) -> bytes:
    """One entry of a folder, padded as the kernel wants it."""
    packed = DIRENT.pack(inode, following, len(entry), kind) + entry
    return packed + bytes(-len(packed) % 8)
