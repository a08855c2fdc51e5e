"""A network file system for tests: a folder, seen through FUSE as a client sees a NAS.

What is written into the folder from behind causes no event in the mount, as with another NFS client's write. Root can
be squashed to nobody, attributes can be cached, the clock can be wrong, any operation can be slow or fail for a while,
and the mount can go and come back. Like an NFS server it keeps no names but file handles, does each operation with the
caller's own user, group and supplementary groups, and leaves every decision about rights to the file system behind.

    with nas.mounted(back, mount, root_squash=True) as share:
        share.fault("rename", "slurm-jobs/submit/*", errno.ENOENT, done=True, count=1)

It speaks the kernel's own protocol on /dev/fuse: the libraries for it either know only paths, which breaks openat
below a folder that the caller may not pass, or must be compiled.
"""

from .faults import Fault
from .share import Planned, Share, mounted

__all__ = ["Fault", "Planned", "Share", "mounted"]
