"""One thing to be done for one job, as it lies in the spool."""

from dataclasses import asdict, dataclass, fields
from typing import Any

Summary = dict[str, Any]
"""summary.json, as parsed. Read with care: its owner could have had a hand in the figures."""


@dataclass(frozen=True)
class Owner:
    """Whose job it was and what they asked for; from Slurm, by the agent."""

    user: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    mail_user: str = ""
    mail_types: tuple[str, ...] = ()


@dataclass(frozen=True)
class Item:
    """What is to be done, for whom."""

    action: str
    job_id: int
    attempt: int
    owner: Owner
    summary: Summary
    since: float
    tasks: tuple[tuple[int, int, str], ...] = ()
    """For the one message about a whole array: task, job id and state of each."""
    tries: int = 0
    problem: str = ""
    """What the last try met."""

    @property
    def name(self) -> str:
        """Its file in the spool."""
        return f"{self.job_id}.{self.attempt}.{self.owner.uid}.{self.action}.json"

    @property
    def array(self) -> int | None:
        """The array that the job is a task of."""
        array = self.summary.get("array")
        return int(array["job_id"]) if isinstance(array, dict) else None

    def to_json(self) -> dict[str, Any]:
        """As it stands on disk."""
        return asdict(self)


def from_json(document: dict[str, Any]) -> Item:
    """Read what `to_json` wrote; an agent of another version may have known more."""
    known = {field.name for field in fields(Item)}
    data = {name: value for name, value in document.items() if name in known}
    owner = {**data["owner"], "groups": tuple(data["owner"]["groups"])}
    owner["mail_types"] = tuple(owner.get("mail_types", ()))
    tasks = tuple((int(task), int(job), str(state)) for task, job, state in data.get("tasks", ()))
    return Item(**{**data, "owner": Owner(**owner), "tasks": tasks})
