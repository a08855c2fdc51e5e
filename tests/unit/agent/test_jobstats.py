"""Needs nothing: what slurmdbd keeps of a job's use, in jobstats' own form."""

import base64
import gzip
import json
from typing import Any

import pytest

from slurmk8s.agent import jobstats
from slurmk8s.results.summary import Summary, Times
from slurmk8s.results.usage import CardUsage, Usage

STAMP = "slurmk8s/1:%23K8S_IMAGE%3Dpytorch"
USAGE = Usage(
    samples=720,
    cpu_seconds=3600.04,
    cpu_cores=1.0,
    cpu_cores_high=1.5,
    cpu_trend="",
    memory_peak_bytes=2 << 30,
    memory_trend="",
    gpus=(CardUsage("2", "NVIDIA H100", 37.5, 40 << 30, 80 << 30, ""),),
)


def summary(**changes: Any) -> Summary:
    fields: dict[str, Any] = {
        "cluster": "lab",
        "job_id": 12,
        "array": None,
        "name": "train",
        "user": "alice",
        "uid": 1000,
        "account": "",
        "partition": "gpu",
        "attempt": 0,
        "node": "node1",
        "nodes": ("node1",),
        "image": "x",
        "image_digest": None,
        "workdir": "/",
        "command": "",
        "gpus": ("2",),
        "cpus": 4,
        "memory_mb": 8192,
        "times": Times(started=1000.0, ended=4600.4),
        "state": "completed",
        "exit_code": 0,
        "signal": None,
        "cause": "",
        "fault": "none",
        "usage": USAGE,
    }
    return Summary(**{**fields, **changes})


def test_it_is_what_jobstats_writes_and_reads() -> None:
    comment = jobstats.encode(summary(), STAMP)
    assert comment is not None
    assert comment.startswith("JS1:H4s")  # what its own programs look for
    assert json.loads(gzip.decompress(base64.b64decode(comment[4:]))) == {
        "nodes": {
            "node1": {
                "cpus": 4,
                "total_time": 3600.0,
                "used_memory": 2 << 30,
                "total_memory": 8 << 30,
                "gpu_utilization": {"2": 37.5},
                "gpu_used_memory": {"2": 40 << 30},
                "gpu_total_memory": {"2": 80 << 30},
            }
        },
        "total_time": 3600,
        "gpus": 1,
        "slurmk8s": STAMP,
    }


def test_the_stamp_is_readable_from_both() -> None:
    comment = jobstats.encode(summary(), STAMP)
    assert comment is not None
    assert jobstats.stamp_in(comment) == STAMP
    assert jobstats.stamp_in(STAMP) == STAMP
    assert not set(comment) & set(" \n\"'\\|")  # one word for sacctmgr and sacct


def test_what_is_not_known_is_left_out() -> None:
    """reportseff divides by what is there."""
    bare = Usage(**{**vars(USAGE), "gpus": ()})
    found = jobstats.decode(jobstats.encode(summary(usage=bare, memory_mb=0), "") or "")
    assert found is not None
    assert found["nodes"] == {"node1": {"cpus": 4, "total_time": 3600.0}}


@pytest.mark.parametrize("changes", [{"usage": None}, {"times": Times(started=1.0, ended=1.5)}, {"times": Times()}])
def test_nothing_is_told_where_nothing_was_measured(changes: dict[str, Any]) -> None:
    assert jobstats.encode(summary(**changes), STAMP) is None


@pytest.mark.parametrize("comment", ["", "JS1:", "JS1:Short", "JS1:None", "JS1:H4sIxxxx", STAMP, "a note"])
def test_other_comments_hold_nothing_of_ours(comment: str) -> None:
    assert jobstats.decode(comment) is None
