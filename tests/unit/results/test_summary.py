"""Needs nothing. The summary as JSON and as text."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmk8s.results import summary as summaries
from slurmk8s.results.strict import Malformed, load
from slurmk8s.results.summary import (
    FAULTS,
    STATES,
    ArrayTask,
    Outputs,
    Summary,
    Times,
    decode,
    from_json,
    keep_first,
)
from slurmk8s.results.summary_text import duration, printable, size, text
from slurmk8s.results.usage import CardUsage, Usage

SCHEMA = json.loads((Path(summaries.__file__).parent / "summary.schema.json").read_text())

words = st.text(max_size=20)
moment = st.none() | st.floats(0, 2e9)
whole = st.integers(0, 2**40)
number = st.floats(0, 1e9)
any_card = st.builds(CardUsage, words, words, st.none() | number, whole, whole, words)
any_usage = st.builds(
    Usage,
    samples=whole,
    cpu_seconds=number,
    cpu_cores=number,
    cpu_cores_high=number,
    cpu_trend=words,
    memory_peak_bytes=whole,
    memory_trend=words,
    gpus=st.lists(any_card, max_size=2).map(tuple),
    notes=st.lists(words, max_size=3).map(tuple),
)
any_summary = st.builds(
    Summary,
    cluster=words,
    job_id=st.integers(1, 2**40),
    array=st.none() | st.builds(ArrayTask, st.integers(1, 2**40), whole),
    name=words,
    user=words,
    uid=whole,
    account=words,
    partition=words,
    attempt=whole,
    node=words,
    nodes=st.lists(words, max_size=3).map(tuple),
    image=words,
    image_digest=st.none() | words,
    workdir=words,
    command=words,
    gpus=st.lists(words, max_size=3).map(tuple),
    cpus=whole,
    memory_mb=whole,
    times=st.builds(Times, moment, moment, moment, moment, moment, moment, moment),
    state=st.sampled_from(STATES),
    exit_code=st.none() | st.integers(0, 255),
    signal=st.none() | words,
    cause=words,
    fault=st.sampled_from(FAULTS),
    script_sha256=st.none() | words,
    usage=st.none() | any_usage,
    outputs=st.none() | st.builds(Outputs, whole, whole, whole, st.lists(words, max_size=3).map(tuple)),
    checksums=st.sampled_from(["pending", "complete"]) | words.map(lambda why: "failed: " + why),
    complete=st.booleans(),
)


@given(any_summary)
def test_every_summary_survives_its_file_and_fits_the_schema(summary: Summary) -> None:
    assert decode(summary.encode()) == summary
    jsonschema.validate(json.loads(summary.encode()), SCHEMA)


@given(any_summary)
def test_every_summary_has_a_text_that_is_safe_on_a_terminal(summary: Summary) -> None:
    shown = text(summary, "/mnt/nas/results/12")
    assert all(char == "\n" or char.isprintable() for char in shown)


@given(any_summary, any_summary)
def test_what_comes_later_never_changes_a_cause(first: Summary, later: Summary) -> None:
    kept = keep_first(first, later)
    if first.cause:
        assert (kept.cause, kept.state, kept.exit_code) == (first.cause, first.state, first.exit_code)
    assert keep_first(kept, later) == kept


@pytest.mark.parametrize(
    "change",
    [
        {"schema": 2},
        {"job_id": "12"},
        {"job_id": True},
        {"state": "ok"},
        {"fault": "god"},
        {"times": {}},
        {"nodes": "node1"},
        {"checksums": "perhaps"},
        {"complete": 1},
        {"surprise": 1},
        {"uid": -1},
        {"array": {"job_id": 1}},
        {"usage": {"samples": 1}},
        {"script_sha256": 5},
    ],
)
def test_anything_else_is_not_a_summary(make_summary: Any, change: dict[str, Any]) -> None:
    document = {**make_summary(), **change}
    with pytest.raises(Malformed):
        from_json(document)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, SCHEMA)


@pytest.mark.parametrize("data", [b"", b"[]", b"null", b"{", b"\xff", b"[" * 100000])
def test_any_bytes_are_refused_as_malformed(data: bytes) -> None:
    with pytest.raises(Malformed):
        decode(data)


def test_a_newer_schema_says_so(make_summary: Any) -> None:
    with pytest.raises(Malformed, match="a newer one wrote it"):
        from_json(make_summary(schema=2))


@pytest.fixture
def seoul() -> Iterator[None]:
    before = os.environ.get("TZ")
    os.environ["TZ"] = "KST-9"
    time.tzset()
    yield
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


def test_the_text_for_people(make_summary: Any, seoul: None) -> None:
    document = make_summary(
        array={"job_id": 10, "task_id": 2},
        name="학습",
        attempt=1,
        state="failed",
        exit_code=137,
        signal="SIGKILL",
        cause="The body was killed by SIGKILL.",
        fault="person",
        outputs={"files": 3, "bytes": 1932735283, "skipped_count": 1, "skipped": ["outputs/latest"]},
        checksums="complete",
        complete=True,
        script_sha256="cd" * 32,
        usage={
            "samples": 120,
            "cpu_seconds": 1086.0,
            "cpu_cores": 2.0,
            "cpu_cores_high": 2.4,
            "cpu_trend": "▄▄▅",
            "memory_peak_bytes": 1932735283,
            "memory_trend": "▁▂▂",
            "gpus": [
                {
                    "name": "0",
                    "model": "NVIDIA H100",
                    "utilisation": 71.6,
                    "memory_peak_bytes": 40 << 30,
                    "memory_bytes": 80 << 30,
                    "trend": "▆▇ ▆",
                }
            ],
            "notes": ["Used 1.8 of 8 GB of memory; ask for 4G next time with #SBATCH --mem=4G."],
        },
    )
    document["times"]["dropped"] = 1699999998.5
    digest = "sha256:" + "ab" * 32
    assert (
        text(from_json(document), "/mnt/nas/results/12")
        == f"""\
The body was killed by SIGKILL.

Job         12 학습 (task 10_2), attempt 1
Person      alice (uid 54321), account vision
State       failed
Command     the job file's own body
Script      sha256 {digest.removeprefix("sha256:").replace("ab", "cd")}
Image       nas-hub.local:5407/pytorch:2.0
Digest      {digest}
Workdir     /workspace
Node        node1, partition gpu
Resources   4 CPUs, 8.0 GiB memory
GPUs        0
CPU used    2.00 of 4 on average (50 %)                       ▄▄▅
Memory used peak 1.8 GiB of 8.0 GiB (22 %)                    ▁▂▂
GPU 0 used  72 % busy on average, peak 40.0 GiB of 80.0 GiB   ▆▇ ▆
GPU-hours   0.16
Dropped     2023-11-15 07:13:18 KST
Accepted    2023-11-15 07:13:20 KST
Started     2023-11-15 07:13:24 KST  (queued for 4.0 s)
Image there 2023-11-15 07:14:05 KST  (pulled in 41 s)
Body began  2023-11-15 07:14:06 KST
Ended       2023-11-15 07:23:09 KST  (ran for 9 min 3 s)
Exit code   137 (SIGKILL)
Outputs     3 files, 1.8 GiB; 1 that is no regular file was skipped (outputs/latest)
Checksums   complete; check with `slurmk8s verify 12` or `sha256sum -c checksums.txt`

For the next time:
  - Used 1.8 of 8 GB of memory; ask for 4G next time with #SBATCH --mem=4G.

Everything is in /mnt/nas/results/12:
  stdout.log, stderr.log  what the job printed
  summary.json            this summary for programs
  usage.svg               what the job used over time, as a picture
  outputs/                what the job wrote in /workspace
"""
    )


def test_units_people_use() -> None:
    assert [size(n) for n in (0, 1023, 1024, 1536, 5 * 2**30, 3 * 2**50)] == [
        "0 bytes",
        "1023 bytes",
        "1.0 KiB",
        "1.5 KiB",
        "5.0 GiB",
        "3.0 PiB",
    ]
    assert [duration(n) for n in (0.04, 12.4, 185, 7810, 273600)] == [
        "0.0 s",
        "12 s",
        "3 min 5 s",
        "2 h 10 min",
        "3 d 4 h",
    ]


def test_control_characters_do_not_reach_a_terminal() -> None:
    assert printable("a\x1b[31mb\n한글\u202e") == "a\\x1b[31mb\\n한글\\u202e"


@pytest.mark.parametrize("value", [10**400, -(10**400), 2**62, 1.7e308, -1.7e308, float("inf"), float("nan")])
def test_a_number_too_large_to_reckon_with_is_malformed(value: float) -> None:
    with pytest.raises(Malformed, match="'ended' is not a number"):
        load(json.dumps({"ended": value}).encode(), "summary").number_or_none("ended")


def test_the_longest_times_that_are_taken_are_told() -> None:
    longest = float(2**62 - 2**10)
    assert load(json.dumps({"ended": longest}).encode(), "summary").number_or_none("ended") == longest
    assert duration(2 * longest).endswith(" h")
