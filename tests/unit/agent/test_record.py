"""What the agent knows survives it: whole or not at all."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from slurmk8s.agent.record import Record, Store


def test_a_record_comes_back_as_it_was(store: Store, record: Callable[..., Record]) -> None:
    """Tuples too, which JSON does not know."""
    full = record(array=(5, 2), gpus=(0, 3), mounts=("data",), digest="sha256:ab", made=True, name="한글 'x'\n")
    assert store.save(full) == full
    assert store.load(7) == full
    assert store.jobs() == [full]


def test_no_record_is_none(store: Store) -> None:
    assert store.load(7) is None
    assert store.jobs() == []


def test_only_root_reads_records(store: Store, tmp_path: Path, record: Callable[..., Record]) -> None:
    store.save(record())
    assert os.stat(tmp_path / "state/jobs/7.json").st_mode & 0o777 == 0o600
    assert os.stat(tmp_path / "state/jobs").st_mode & 0o777 == 0o700


def test_what_a_crash_left_half_written_is_swept(store: Store, tmp_path: Path, record: Callable[..., Record]) -> None:
    store.save(record())
    for name in ("jobs/8.tmp", "owed/8.0.tmp"):
        (tmp_path / "state" / name).write_text('{"job_id": ')
    again = Store(tmp_path / "state")
    assert [kept.job_id for kept in again.jobs()] == [7]
    assert list((tmp_path / "state").rglob("*.tmp")) == []


def test_a_full_disk_keeps_the_old_record(
    store: Store, tmp_path: Path, record: Callable[..., Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new one is written beside it: here onto a device that is always full."""
    store.save(record())
    (tmp_path / "state/jobs/7.json.tmp").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space"):
        store.save(record(name="new"))
    assert store.load(7) == record()


def test_a_job_that_is_over_is_owed_and_forgotten(store: Store, tmp_path: Path, record: Callable[..., Record]) -> None:
    store.save(record())
    (tmp_path / "state/hints/7").touch()
    store.owe(record(exit_code=0))
    assert store.load(7) is None
    assert store.hints() == set()
    assert list(store.owed()) == [record(exit_code=0)]
    store.update_owed(record(exit_code=0, summarised=True))
    assert list(store.owed()) == [record(exit_code=0, summarised=True)]
    store.paid(record())
    assert list(store.owed()) == []
    store.paid(record())


def test_each_attempt_is_a_debt_of_its_own(store: Store, record: Callable[..., Record]) -> None:
    store.owe(record(attempt=0))
    store.owe(record(attempt=1))
    assert {owed.attempt for owed in store.owed()} == {0, 1}
    assert store.still_owes(7, 1)
    assert not store.still_owes(7, 0)
    assert not store.still_owes(8, 1)
    store.update_owed(record(attempt=0, summarised=True))
    assert not store.still_owes(7, 1)


def test_the_oldest_debt_is_paid_first(store: Store, tmp_path: Path, record: Callable[..., Record]) -> None:
    for number, job_id in enumerate((9, 7, 8)):
        store.owe(record(job_id=job_id))
        os.utime(tmp_path / f"state/owed/{job_id}.0.json", (number, number))
    assert [owed.job_id for owed in store.owed()] == [9, 7, 8]


def test_hints_are_job_ids_and_nothing_else(store: Store, tmp_path: Path) -> None:
    for name in ("7", "12", "x", ".swp"):
        (tmp_path / "state/hints" / name).touch()
    assert store.hints() == {7, 12}


def test_forgetting_what_is_not_there_is_fine(store: Store) -> None:
    store.forget(7)


def test_a_record_of_a_newer_agent_is_still_read(store: Store, tmp_path: Path, record: Callable[..., Record]) -> None:
    """After a step back to the older version the running jobs must not be lost."""
    store.save(record())
    path = tmp_path / "state/jobs/7.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "colour": "blue"}))
    assert store.load(7) == record()
