"""Tells slurmdbd what ended jobs have used, where there is a slurmdbd: `sacct` alone knows nothing of pods.

What is to be told is a file of its own, so that a database that is away only delays it, and no bundle waits for it.
"""

import contextlib
import json
import time
from functools import partial
from pathlib import Path

from loguru import logger

from slurmk8s import durable
from slurmk8s.agent import jobstats
from slurmk8s.agent.asking import ask
from slurmk8s.errors import ClusterFault, SlurmK8sError
from slurmk8s.results.summary import Summary
from slurmk8s.slurm.client import Slurm

SECONDS_TO_TRY = 3 * 86400.0
"""Then the database has been away for a weekend, or has never heard of the job."""


class Accounts:
    """What slurmdbd is still to be told. One writer: the agent."""

    def __init__(self, folder: Path, slurm: Slurm) -> None:
        self._folder = folder
        self._slurm = slurm
        self._has_database: bool | None = None
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    async def owe(self, summary: Summary, stamp: str) -> None:
        """Keep what is to be told of a job that will not start again."""
        if summary.starts_again or not await self._is_kept():
            return
        text = jobstats.encode(summary, stamp)
        if text is not None:
            name = str(summary.array or summary.job_id)  # the database would take an array's id for all its tasks
            path = self._folder / f"{summary.job_id}.{summary.attempt}.json"
            durable.write_json(path, {"job": name, "comment": text})

    async def pay(self) -> None:
        """Tell what can be told; the rest is tried again in the next round."""
        for path in sorted(self._folder.glob("*.json")):
            try:
                told = json.loads(path.read_text(encoding="utf-8"))
                done = await ask(partial(self._slurm.keep_usage, told["job"], told["comment"]))
            except ClusterFault as fault:
                logger.info(f"slurmdbd must wait for what jobs have used: {fault}")
                return
            except (SlurmK8sError, ValueError, KeyError) as error:
                logger.warning(f"{path.stem}: slurmdbd does not take what it has used: {error}")
                done = True
            if done or time.time() - path.stat().st_mtime > SECONDS_TO_TRY:
                path.unlink()

    async def _is_kept(self) -> bool:
        """Whether slurmdbd can be told: asked once, since a change of it restarts every daemon anyway."""
        if self._has_database is None:
            with contextlib.suppress(ClusterFault):
                self._has_database = await ask(self._slurm.takes_usage)
        return bool(self._has_database)
