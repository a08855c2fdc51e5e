"""Needs nothing. A person swaps anything in a bundle between any two file operations of the worker."""

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ATTACKER = Path(__file__).parent / "attacker.py"
BEGUN = [
    {"op": "prepare", "attempt": 0},
    {"write": {"stdout.log": "out\n", "outputs/a": "1\n", "outputs/d/b": "2\n"}},
]

USED = {
    "prepare": {"attempt-0", "outputs", ".handover-1.tmp", "summary.json", "stdout.log", ".slurmk8s.json"},
    "note": {"stderr.log"},
    "finish": {"outputs", ".handover-0", "stderr.log", "summary.json", "job_summary.txt", "usage.svg", "*.tmp"},
    "checksums": {"outputs", "outputs/d/b", "checksums.txt", ".checksums.partial", "summary.json", "*.tmp"},
    "prune": {"going", "summary.json", "outputs"},
}
RULE = {"days": 1, "total_bytes": None, "spare_days": 0}


@pytest.fixture
def root() -> Iterator[Path]:
    """In memory: thousands of bundles are made durable here."""
    folder = Path(tempfile.mkdtemp(prefix="slurmk8s-attack-", dir="/dev/shm"))
    folder.chmod(0o1777)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("operation", ["prepare", "note", "finish", "checksums", "prune"])
def test_nothing_outside_the_bundle_is_written_whatever_is_swapped_when(
    person: Any, make_summary: Any, course: Any, operation: str
) -> None:
    """Links to files and folders, hard links, fresh folders; at every name that is used and the bundle itself."""
    finish = {"op": "finish", "attempt": 0, "summary": make_summary(), "course": course}
    ended = {"op": "finish", "attempt": 0, "summary": make_summary(state="requeued"), "course": course}
    again = {"op": "prepare", "attempt": 1, "handover": True}
    setup = {
        "prepare": ([*BEGUN, ended, {"op": "checksums", "attempt": 0}], again),
        "note": (BEGUN, {"op": "note", "stderr": "words"}),
        "finish": ([*BEGUN, {"op": "prepare", "attempt": 0, "handover": True}], finish),
        "prune": ([*BEGUN, finish, {"op": "checksums", "attempt": 0}], {"op": "prune", "dry_run": False, **RULE}),
        "checksums": ([*BEGUN, finish], {"op": "checksums", "attempt": 0, "processes": 1}),
    }
    arguments = [person.package, str(person.root), json.dumps({operation: setup[operation]})]
    python = os.path.realpath(sys.executable)
    done = person.run([python, "-I", "-c", ATTACKER.read_text(encoding="utf-8"), *arguments])
    assert done.returncode == 0, done.stderr.decode()
    told = json.loads(done.stdout)
    assert "wrong" not in told, told["wrong"]
    operations, tried, names = told[operation]
    assert operations >= 5
    assert tried == operations * len(names) * 3
    assert set(names) >= {"", *USED[operation]}
