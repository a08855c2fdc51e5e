"""Who has jobs of ours in the queue, and which nodes Slurm cannot reach: what the head node asks every few seconds."""

from slurmk8s.slurm import records, stamp
from slurmk8s.slurm.programs import Programs

NOT_RESPONDING = "*"
"""Behind a node's state, in sinfo's notation."""


def stamped_owners(programs: Programs) -> dict[int, str]:
    """Login names by uid of everybody who has a pending or running container job."""
    word = records.divider()
    fields = ",".join(f"{name}:{word}" for name in ("UserID", "UserName", "admin_comment"))
    values = programs.ask("squeue", "--all", "--noheader", f"--Format={fields}").split(word)
    # The newline after each row comes out in front of the next one's first value.
    rows = zip(values[0:-1:3], values[1:-1:3], values[2:-1:3], strict=True)
    return {int(uid.lstrip("\n")): user for uid, user, comment in rows if stamp.is_stamped(comment)}


def unreachable_nodes(programs: Programs) -> set[str]:
    """The nodes that are down, or that do not respond."""
    lines = programs.ask("sinfo", "--all", "--noheader", "--Node", "--format=%N %T").splitlines()
    states = (line.split() for line in lines if line.strip())
    return {name for name, state in states if state.startswith("down") or state.endswith(NOT_RESPONDING)}
