"""The intake's NAS as a share of the tests' own, and what must hold on it whatever went wrong."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from typing import Any

import nas
from intake_bed import Intake, person

SERVICE = "skt-service"
"""Whose account owns slurm-jobs/ on a share where root is nobody."""


@contextlib.contextmanager
def on_share(intake: Intake, **how: Any) -> Iterator[nas.Share]:
    """The intake's NAS as a share of its own, with its folders made."""
    back = intake.folder / "back"
    back.mkdir(exist_ok=True)
    intake.results(back)
    shutil.rmtree(intake.nas / "results")
    with nas.mounted(back, intake.nas, **how) as share:
        intake.mounted = True
        assert intake.once().returncode == 0
        yield share
        intake.stop()


def names(intake: Intake, folder: str) -> list[str]:
    """What lies there, our guide left out; seen from behind, where no fault is and root is root."""
    found = os.listdir(intake.folder / "back" / "slurm-jobs" / folder)
    return sorted(name for name in found if name != "README.txt")


def log_of(intake: Intake) -> str:
    """What the watchers said."""
    return (intake.folder / "log" / "job_watcher.log").read_text()


def answered(intake: Intake, good: int, bad: int = 0) -> bool:
    """Whether so many drops have their answers; hidden files are on their way to become some."""
    seen = [[name for name in names(intake, folder) if name[0] != "."] for folder in ("processed", "failed")]
    return [len(found) for found in seen] == [2 * good, 2 * bad]


def assert_one_answer_each(intake: Intake, good: list[str], bad: list[str]) -> None:
    """One job or one reason, and nothing half done anywhere."""
    jobs = {name: intake.job_ids(name) for name in good}
    assert {name: len(ids) for name, ids in jobs.items()} == dict.fromkeys(good, 1)
    files = [f"{name}.{ids[0]}" for name, ids in jobs.items()]
    assert names(intake, "processed") == sorted([*files, *(f"{name}.receipt.txt" for name in files)])
    assert names(intake, "failed") == sorted([*bad, *(f"{name}.error.txt" for name in bad)])
    assert [intake.job_ids(name) for name in bad] == [[]] * len(bad)
    assert names(intake, "submit") == []
    assert unfinished(intake) == []


def unfinished(intake: Intake) -> list[str]:
    """Claims that still wait for something other than a late second job, which is looked for a quarter of an hour."""
    found = []
    for claim in (intake.folder / "back" / "slurm-jobs" / ".intake" / "open").iterdir():
        with contextlib.suppress(FileNotFoundError):  # finished while we look
            if not {".told", ".doubt"} <= set(os.listdir(claim)):
                found.append(claim.name)
    return found


def complaints(intake: Intake) -> list[str]:
    """What the watchers found wrong."""
    return [line for line in log_of(intake).splitlines() if " WARNING " in line or " ERROR " in line]


@contextlib.contextmanager
def on_squashed_share(intake: Intake, **how: Any) -> Iterator[nas.Share]:
    """A share where root is nobody, set up as docs/dropping-jobs.md says."""
    service = person(SERVICE)
    intake.settings["service_user"] = SERVICE
    back = intake.folder / "back"
    (back / "slurm-jobs").mkdir(parents=True)
    os.chown(back / "slurm-jobs", service.uid, service.gid)
    with on_share(intake, root_squash=True, **how) as share:
        yield share
