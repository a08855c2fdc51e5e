"""Needs nothing. What the worker accepts, and what errors of the NAS mean."""

import errno
import json
import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmk8s.errors import ClusterFault, NasFull, NodeFault, PersonFault
from slurmk8s.results import faults
from slurmk8s.results.request import Checksums, Modes, Prepare, Target, parse
from slurmk8s.results.strict import Malformed

WHERE = {"root": "/mnt/nas/results", "job_id": 12}


def encoded(**request: Any) -> bytes:
    return json.dumps({**WHERE, **request}).encode()


def test_a_request_becomes_a_value() -> None:
    data = encoded(op="prepare", attempt=1, modes={"folder": 0o755, "file": 0o644, "outputs": 0o755})
    target = Target("/mnt/nas/results", 12, 1, Modes(0o755, 0o644, 0o755))
    assert parse(data) == Prepare(target, 1, "", None)
    assert target.folder == "/mnt/nas/results/12"
    assert parse(encoded(op="checksums")) == Checksums(Target("/mnt/nas/results", 12, None, Modes()), 2)


@pytest.mark.parametrize(
    "change",
    [
        {"op": "remove"},
        {"op": "prepare"},
        {"op": "prepare", "attempt": -1},
        {"op": "prepare", "attempt": 0, "job_id": "../etc"},
        {"op": "prepare", "attempt": 0, "job_id": 0},
        {"op": "prepare", "attempt": 0, "root": "results"},
        {"op": "prepare", "attempt": 0, "root": "/a\0b"},
        {"op": "prepare", "attempt": 0, "surprise": 1},
        {"op": "prepare", "attempt": 0, "modes": {"folder": 457}},
        {"op": "prepare", "attempt": 0, "modes": {"folder": 0, "file": 384, "outputs": 448}},
        {"op": "checksums", "processes": 0},
        {"op": "note"},
        {"op": "finish", "summary": {}},
    ],
)
def test_anything_else_is_malformed(change: dict[str, Any]) -> None:
    with pytest.raises(Malformed):
        parse(encoded(**change))


def test_a_summary_of_another_job_or_attempt_is_refused(make_summary: Any) -> None:
    with pytest.raises(Malformed, match="another job"):
        parse(encoded(op="finish", summary=make_summary(job_id=13)))
    with pytest.raises(Malformed, match="another job"):
        parse(encoded(op="finish", attempt=1, summary=make_summary()))


@given(st.binary(max_size=300))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    with pytest.raises(Malformed):
        parse(data)


def test_a_bad_request_is_told_on_stderr_with_a_status(person: Any) -> None:
    done = person.python(
        "import sys; sys.path.insert(0, {package!r}); from slurmk8s.results.worker import main; sys.exit(main())", b"{}"
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"bad request to the results worker" in done.stderr


@pytest.mark.parametrize(
    ("number", "kind", "words"),
    [
        (errno.ENOSPC, NasFull, "is full"),
        (errno.EDQUOT, PersonFault, "quota"),
        (errno.EROFS, ClusterFault, "read-only"),
        (errno.ESTALE, ClusterFault, "stale"),
        (errno.EIO, ClusterFault, "input/output"),
        (errno.ENOTCONN, ClusterFault, "does not answer"),
        (errno.EACCES, PersonFault, "denies access"),
        (errno.EMFILE, NodeFault, "too many open files"),
        (errno.EXDEV, ClusterFault, "cross-device"),
    ],
)
def test_each_error_of_the_nas_is_a_sentence_and_somebodys_fault(number: int, kind: Any, words: Any) -> None:
    fault = faults.explain(OSError(number, os.strerror(number)), "work in /mnt/nas/results/12")
    assert type(fault) is kind
    assert words in fault.sentence.lower()
    assert "cannot work in /mnt/nas/results/12" in fault.sentence


def test_a_quota_that_is_used_up_at_the_end_only_delays_what_is_owed() -> None:
    error = OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))
    assert isinstance(faults.explain(error, "write", ended=True), NasFull)
