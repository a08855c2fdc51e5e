"""Needs nothing: what slurmdbd is told waits for it on disk. Slurm is played: its silence is what is tried here."""

import asyncio
import os
import sys
import time
from pathlib import Path

import pytest

from slurmk8s.agent import accounts
from slurmk8s.agent.accounts import Accounts
from slurmk8s.errors import PersonFault, SlurmUnreachable

sys.path.insert(0, str(Path(__file__).parent))
from test_jobstats import STAMP, summary  # found only now


class Slurm:
    """Takes what it is given, once it can."""

    def __init__(self, *answers: bool | Exception, database: bool = True) -> None:
        self.answers = list(answers)
        self.database = database
        self.told: list[str] = []

    def takes_usage(self) -> bool:
        """Whether there is a slurmdbd."""
        return self.database

    def keep_usage(self, job: str, comment: str) -> bool:
        """The next answer."""
        assert comment.startswith("JS1:")
        self.told.append(job)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_database_that_is_away_or_late_is_told_later(tmp_path: Path) -> None:
    slurm = Slurm(SlurmUnreachable("slurmdbd does not answer."), False, True)

    async def story() -> None:
        await Accounts(tmp_path, slurm).owe(summary(), STAMP)  # type: ignore[arg-type]
        for rest in (["12.0.json"], ["12.0.json"], []):
            await Accounts(tmp_path, slurm).pay()  # type: ignore[arg-type] # as after a restart
            assert left(tmp_path) == rest

    asyncio.run(story())
    assert slurm.told == ["12", "12", "12"]


def test_without_a_database_nothing_is_kept(tmp_path: Path) -> None:
    asyncio.run(Accounts(tmp_path, Slurm(database=False)).owe(summary(), STAMP))  # type: ignore[arg-type]
    assert left(tmp_path) == []


def test_one_that_refuses_does_not_keep_the_others_waiting(tmp_path: Path) -> None:
    slurm = Slurm(PersonFault("Nothing modified."), True)

    async def story() -> None:
        owed = Accounts(tmp_path, slurm)  # type: ignore[arg-type]
        await owed.owe(summary(), STAMP)
        await owed.owe(summary(job_id=13), STAMP)
        await owed.pay()

    asyncio.run(story())
    assert (slurm.told, left(tmp_path)) == (["12", "13"], [])


def test_what_no_database_ever_hears_of_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        owed = Accounts(tmp_path, Slurm(False))  # type: ignore[arg-type]
        await owed.owe(summary(), STAMP)
        old = time.time() - accounts.SECONDS_TO_TRY - 1
        os.utime(tmp_path / "12.0.json", (old, old))
        await owed.pay()

    asyncio.run(story())
    assert left(tmp_path) == []
