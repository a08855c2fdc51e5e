"""What is to be done after jobs, on the node's disk: one file for each thing, whole and durable before it counts.

    coming/<job>.<attempt>.json                the summary is written, the checksums are not
    ready/<job>.<attempt>.json                 the bundle is complete
    todo/<job>.<attempt>.<uid>.<action>.json   one thing to be done
    given-up/…                                 what was tried for too long, for the admin to see

A step is a rename or a removal, so that a crash at any point leaves each thing in one place. One writer: the agent.
"""

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from slurmk8s import durable
from slurmk8s.after.item import Item, Owner, Summary, from_json
from slurmk8s.results.summary import HEAD

FOLDERS = ("coming", "ready", "todo", "given-up", "sent")
# Enough to see what is wrong; older ones make room.
MOST_GIVEN_UP = 200
# Slurm's own job ids do not come round sooner.
DAYS_TO_REMEMBER = 60


class Spool:
    """The spool of one node's agent."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def prepare(self) -> "Spool":
        """Make the folders and sweep what a killed agent left half written. For the agent alone: others only look."""
        for name in FOLDERS:
            (self.folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
            for left in (self.folder / name).glob("*.tmp"):
                left.unlink()
        for told in (self.folder / "sent").glob("array-*"):
            if told.stat().st_mtime < time.time() - DAYS_TO_REMEMBER * 86400:
                told.unlink()
        return self

    # The agent hands over in two steps, as the bundle grows.

    def expect(self, owner: Owner, summary: Summary) -> None:
        """A summary is written. Said twice, the first stays: a cause is written once."""
        path = self.folder / "coming" / f"{summary['job_id']}.{summary['attempt']}.json"
        if not path.exists():
            durable.write_json(
                path, Item("", summary["job_id"], summary["attempt"], owner, summary, time.time()).to_json()
            )

    def complete(self, job_id: int, attempt: int, added: Summary) -> Item | None:
        """The bundle is as complete as it will be; `added` is what was learnt on the way. None if said before."""
        coming = self.folder / "coming" / f"{job_id}.{attempt}.json"
        item = read(coming)
        if item is None:
            return None
        # A lost node may have come back and written its own account; what lies here is still the head node's.
        writer = {"written_by": HEAD} if item.summary.get("written_by") == HEAD else {}
        item = replace(item, summary={**item.summary, **added, **writer}, since=time.time())
        durable.write_json(self.folder / "ready" / coming.name, item.to_json())
        coming.unlink()
        return item

    # The runner takes it from there.

    def ready(self) -> Iterator[Item]:
        """Jobs whose bundles are complete, oldest first."""
        yield from (item for path in _by_age(self.folder / "ready") if (item := read(path)))

    def split(self, item: Item, actions: list[str]) -> None:
        """From one job to one file for each thing to be done. None of them is begun before all are there."""
        for action in actions:
            self.put(replace(item, action=action))
        (self.folder / "ready" / f"{item.job_id}.{item.attempt}.json").unlink()

    def put(self, item: Item) -> Item:
        """Keep a thing to be done, or what its last try met."""
        durable.write_json(self.folder / "todo" / item.name, item.to_json())
        return item

    def names(self) -> list[str]:
        """What is to be done, oldest first."""
        return [path.name for path in _by_age(self.folder / "todo")]

    def load(self, name: str) -> Item | None:
        """One of them."""
        return read(self.folder / "todo" / name)

    def done(self, item: Item) -> None:
        """It is done, or nobody wants it."""
        (self.folder / "todo" / item.name).unlink(missing_ok=True)

    def give_up(self, item: Item) -> None:
        """It will not be done; kept for the admin."""
        durable.write_json(self.folder / "given-up" / item.name, item.to_json())
        self.done(item)
        for old in _by_age(self.folder / "given-up")[:-MOST_GIVEN_UP]:
            old.unlink(missing_ok=True)

    def given_up(self) -> list[Item]:
        """What was given up, oldest first."""
        return [item for path in _by_age(self.folder / "given-up") if (item := read(path))]

    # Which arrays this node has told of, and when a person was written to, for the cap.

    def told(self, array: int) -> None:
        """The message about this array is in the spool."""
        durable.write_json(self.folder / "sent" / f"array-{array}", time.time())

    def was_told(self, array: int) -> bool:
        """Whether it was there before: a task that comes late makes no second one."""
        return (self.folder / "sent" / f"array-{array}").exists()

    def sent_times(self, uid: int) -> list[float]:
        """When this person was written to in the last hour."""
        try:
            times = json.loads((self.folder / "sent" / f"{uid}.json").read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return []
        return [float(when) for when in times if when > time.time() - 3600]

    def sent(self, uid: int) -> None:
        """A mail to this person has just gone."""
        durable.write_json(self.folder / "sent" / f"{uid}.json", [*self.sent_times(uid), time.time()])


def read(path: Path) -> Item | None:
    """An item; None if there is none, or it is of a version that nobody can read any more."""
    try:
        return from_json(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        with contextlib.suppress(OSError):
            path.rename(path.with_suffix(".unreadable"))
        return None


def _by_age(folder: Path) -> list[Path]:
    aged: list[tuple[float, str, Path]] = []
    for path in folder.glob("*.json"):
        with contextlib.suppress(FileNotFoundError):  # done meanwhile
            aged.append((path.stat().st_mtime, path.name, path))
    return [path for _, _, path in sorted(aged)]
