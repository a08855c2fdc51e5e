"""The process that keeps an array's list on the NAS: `python -I -m slurmk8s.after.array`, as the array's owner.

Tasks of one array run on several nodes, and one message shall tell of all. Each node's agent notes the tasks that ended
there as empty files in `results/.array-<id>/`; when the array is over, the first agent to make the file `told` sends
the message. The same agent may ask again: after a crash it finds its own name in it.
"""

import os
import re
import sys
from typing import Any

from slurmk8s.after.answering import answer
from slurmk8s.errors import PersonFault
from slurmk8s.results import faults, files
from slurmk8s.results.summary import STATES

TOLD = "told"
_NOTE = re.compile(r"(\d+)\.(\d+)\.([a-z_]+)", re.ASCII)


def array(request: dict[str, Any]) -> dict[str, Any]:
    """Note tasks, and tell which are noted; with `claim` also whether it is the asking node that tells people."""
    name = f".array-{int(request['array'])}"
    if os.geteuid() == 0:
        raise PersonFault("Results are never written as root.")
    try:
        with files.folder(request["results"]) as root:
            try:
                os.mkdir(name, 0o700, dir_fd=root)
            except FileExistsError:
                if not files.is_own_folder(root, name):
                    raise files.not_ours(name) from None
            with files.folder(name, root) as folder:
                for task, job, state in request["tasks"]:
                    files.create_empty(folder, f"{int(task)}.{int(job)}.{state}", 0o600)
                ours = claim(folder, str(request["node"])) if request["claim"] else False
                files.sync(folder)
                return {"tasks": noted(folder), "ours": ours}
    except OSError as error:
        raise faults.explain(error, f"keep the list of array {request['array']}") from None


def claim(folder: int, node: str) -> bool:
    """Whether this node is the one that tells; the first stays."""
    temporary = f".{TOLD}.{os.urandom(8).hex()}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | files.FILE_FLAGS, 0o600, dir_fd=folder)
    try:
        with open(descriptor, "wb") as file:
            file.write(node.encode())
            file.flush()
            os.fsync(descriptor)
        os.link(temporary, TOLD, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        pass
    finally:
        files.remove(folder, temporary)
    return files.read_small(folder, TOLD) == node.encode()


def noted(folder: int) -> list[tuple[int, int, str]]:
    """Every task that has ended: its number, its job id and how. The last attempt of a task counts."""
    with os.scandir(folder) as entries:
        found = [match for entry in entries if (match := _NOTE.fullmatch(entry.name))]
    known = {(int(match[1]), int(match[2])): match[3] for match in found if match[3] in STATES}
    return [(task, job, state) for (task, job), state in sorted(known.items())]


def main() -> int:
    """Answer one request."""
    os.umask(0o077)
    return answer(array)


if __name__ == "__main__":
    sys.exit(main())
