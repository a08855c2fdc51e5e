"""The hand-over folder inside a bundle, for pods that see the NAS and nothing of their node.

Made and removed as the job's user; the agent binds it by descriptor to where slurmk8s-run looks. One per attempt, so
that the pipes of an earlier one are never met.
"""

import os

from slurmk8s.results import files, paths

# As the agent makes them on a node (agent/meeting.py).
PIPES = ("go", "signals")


def make(bundle: int, attempt: int) -> None:
    """Make it; one that is there is the running pod's and stays."""
    name = paths.handover_name(attempt)
    if files.is_own_folder(bundle, name):
        return
    building = f"{name}.tmp"
    if files.lstat(bundle, building) is not None:
        _remove(bundle, building)
    os.mkdir(building, 0o700, dir_fd=bundle)
    with files.folder(building, bundle) as folder:
        for pipe in PIPES:
            os.mkfifo(pipe, 0o600, dir_fd=folder)
    os.rename(building, name, src_dir_fd=bundle, dst_dir_fd=bundle)


def remove(bundle: int, attempt: int) -> None:
    """Remove it, if there was one."""
    name = paths.handover_name(attempt)
    if files.lstat(bundle, name) is not None:
        _remove(bundle, name)


def _remove(bundle: int, name: str) -> None:
    """By rm: it follows no link and knows no depth at which it gives up; shutil.rmtree ends at a thousand folders."""
    import subprocess  # noqa: PLC0415 - 10 ms that a job's start must not pay

    where = f"/proc/self/fd/{bundle}"
    subprocess.run(["rm", "-rf", "--", f"./{name}"], cwd=where, check=False, stderr=subprocess.DEVNULL)
