"""A job as Slurm tells it and a record as the agent keeps it, to be changed by each test."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from slurmk8s.agent.record import Record, Store
from slurmk8s.config import Config
from slurmk8s.slurm.client import Job

RECORD = Record(
    job_id=7,
    attempt=0,
    name="train",
    user="alice",
    uid=1000,
    gid=1001,
    groups=(1001, 2000),
    account="vision",
    partition="gpu",
    nodes=("node1",),
    array=None,
    may_requeue=True,
    time_limit="01:00:00",
    cpus=4,
    memory_mb=8192,
    gpus=(),
    image="nas-hub.local:5407/pytorch:2.0",
    workdir="/workspace",
    script=None,
    priority=None,
    shm_bytes=None,
    mounts=(),
    submitted=1700000000.0,
    started=1700000004.5,
)
JOB = Job(
    job_id=7,
    name="train",
    user="alice",
    uid=1000,
    gid=1001,
    partition="gpu",
    account="vision",
    state="COMPLETED",
    reason="None",
    exit_code="0:0",
    comment="slurmk8s",
    admin_comment="",
    restarts=0,
    requeue=True,
    batch_host="node1",
    nodes=("node1",),
    work_folder="/home/alice",
    stdout="",
    stderr="",
    time_limit="01:00:00",
    submitted=None,
    started=None,
    ended=None,
    array_job_id=None,
    array_task_id=None,
)


@pytest.fixture
def record() -> Callable[..., Record]:
    return lambda **changes: replace(RECORD, **changes)


@pytest.fixture
def job() -> Callable[..., Job]:
    return lambda **changes: replace(JOB, **changes)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "state")


@pytest.fixture
def settings(tmp_path: Path) -> Config:
    data: dict[str, Any] = {
        "nas": {"root": str(tmp_path / "nas"), "require_mountpoint": False},
        "agent": {
            "run_folder": str(tmp_path / "run"),
            "state_folder": str(tmp_path / "state"),
            "reap_seconds": 0.001,
        },
        "log_folder": str(tmp_path / "log"),
    }
    return Config.model_validate(data)
