"""What an error of the file system means for people, and whose fault it is, since that decides what happens next."""

import errno

from slurmk8s.errors import ClusterFault, NasFull, NodeFault, PersonFault, SlurmK8sError

_RETRIED = "It is tried again."

# errno: (class, what happened, what next); "{doing}" is filled in.
_MEANINGS: dict[int, tuple[type[SlurmK8sError], str, str]] = {
    errno.ENOSPC: (NasFull, "The NAS is full, so slurmk8s cannot {doing}.", "Free space on it. " + _RETRIED),
    errno.EDQUOT: (
        PersonFault,
        "Your quota on the NAS is used up, so slurmk8s cannot {doing}.",
        "Delete what you no longer need, then submit the job again.",
    ),
    errno.EROFS: (
        ClusterFault,
        "The NAS is mounted read-only here, so slurmk8s cannot {doing}.",
        "Ask the admin to mount it read-write. " + _RETRIED,
    ),
    errno.ESTALE: (
        ClusterFault,
        "The NAS no longer knows the folder (stale file handle), so slurmk8s cannot {doing}.",
        "Ask the admin whether the share was moved or must be mounted again. " + _RETRIED,
    ),
    errno.EIO: (
        ClusterFault,
        "The NAS reports an input/output error, so slurmk8s cannot {doing}.",
        "Ask the admin to look at the NAS and its disks. " + _RETRIED,
    ),
    errno.EACCES: (
        PersonFault,
        "The NAS denies access, so slurmk8s cannot {doing} as you.",
        "Check who owns the folder and its mode with `ls -ld`.",
    ),
    errno.EPERM: (
        PersonFault,
        "The NAS does not permit it, so slurmk8s cannot {doing} as you.",
        "Check who owns the folder and its mode with `ls -ld`.",
    ),
    errno.ELOOP: (
        PersonFault,
        "A symbolic link stands where slurmk8s needs a real file or folder, so it cannot {doing}.",
        "Remove the link; slurmk8s never writes through one.",
    ),
    errno.EMFILE: (NodeFault, "This node has too many open files, so slurmk8s cannot {doing}.", ""),
    errno.ENFILE: (NodeFault, "This node has too many open files, so slurmk8s cannot {doing}.", ""),
    errno.ENOMEM: (NodeFault, "This node has no memory left, so slurmk8s cannot {doing}.", ""),
}
# At a job's end nothing can be submitted again: what is owed waits for room.
_AT_THE_END: dict[int, tuple[type[SlurmK8sError], str, str]] = {
    errno.EDQUOT: (
        NasFull,
        "The person's quota on the NAS is used up, so slurmk8s cannot {doing}.",
        "It is tried again when something was deleted.",
    ),
}
# ENOTCONN is what a FUSE mount says when its program has died.
_NO_ANSWER = (errno.ETIMEDOUT, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENOTCONN)


def explain(error: OSError, doing: str, *, ended: bool = False) -> SlurmK8sError:
    """The fault that stands for this error. `doing` completes "so slurmk8s cannot …"; `ended`: the job is over."""
    number = error.errno or 0
    meanings = {**_MEANINGS, **_AT_THE_END} if ended else _MEANINGS
    if number in meanings:
        fault, sentence, hint = meanings[number]
        return fault(sentence.format(doing=doing), hint)
    if number in _NO_ANSWER:
        return ClusterFault(f"The NAS does not answer ({error.strerror}), so slurmk8s cannot {doing}.", _RETRIED)
    # Unknown is never the person's fault, and never drains a node.
    return ClusterFault(f"The NAS answered “{error.strerror or error}”, so slurmk8s cannot {doing}.", _RETRIED)
