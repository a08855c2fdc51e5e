"""Needs nothing. The index: what it holds, what it survives, who may read it."""

import contextlib
import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slurmk8s.results import entry, history, index, steps
from slurmk8s.results.entry import Entry
from slurmk8s.results.find import find
from slurmk8s.results.history import Known, Span
from slurmk8s.results.index import Index

ADMINS, ADMIN, STRANGER = 54400, 54401, 54322


@pytest.fixture
def indexed(root: Path) -> Path:
    """A results folder with an index, as the watcher makes it."""
    (root / ".index").mkdir()
    (root / ".index").chmod(0o1733)
    return root


def lines(root: Path, person: Any) -> list[Path]:
    return sorted((root / ".index" / str(person.uid)).glob("*.jsonl"))


def one_day(summary: dict, day: int, **changes: object) -> dict:
    """A summary of a job that ended on that day of November 2023."""
    ended = 1698796800.0 + day * 86400
    times = {**summary["times"], "submitted": ended - 100, "started": ended - 60, "ended": ended}
    return {**summary, "times": times, **changes}


def test_an_attempt_is_in_the_index_when_it_starts_and_when_it_ends(
    indexed: Path, person: Any, make_summary: Any
) -> None:
    person.ask(op="prepare", attempt=0, name="train", submitted=1700000000.0)
    index = Index(str(indexed), person.uid)
    (begun,) = index.entries()
    assert (begun.job_id, begun.name, begun.state, begun.runs) == (12, "train", "running", True)
    assert not list(index.entries(running=False))
    person.ask(op="prepare", attempt=0, name="train", submitted=1700000000.0)
    assert lines(indexed, person)[0].read_bytes().count(b'"running"') == 1
    person.ask(op="finish", attempt=0, summary=make_summary())
    ended = list(index.entries(running=False))
    assert [(each.state, each.exit_code, each.gpus, each.files) for each in ended] == [("completed", 0, 1, 0)]
    assert ended[0].queued == 4.0
    assert ended[0].gpu_hours == pytest.approx(585 / 3600)


def test_what_an_attempt_used_is_kept_where_it_was_measured(make_summary: Any) -> None:
    cards = [{"utilisation": 40.0}, {"utilisation": None}, {"utilisation": 80.0}]
    usage = {"cpu_seconds": 12.5, "memory_peak_bytes": 2**30, "gpus": cards}
    found = entry.of_summary({**make_summary(), "usage": usage}, 0)
    assert (found.cpu_seconds, found.memory_peak, found.gpu_use) == (12.5, 2**30, 0.6)
    assert entry.of_summary(make_summary(), 0).gpu_use is None


def test_a_site_without_an_index_has_no_list_either_and_loses_nothing(
    root: Path, person: Any, make_summary: Any
) -> None:
    reply = person.ask(op="finish", attempt=0, summary=make_summary())
    assert reply["ok"]
    assert "unlisted" not in reply
    assert sorted(path.name for path in root.iterdir()) == ["12"]


def test_asked_twice_it_is_told_once(indexed: Path, person: Any, make_summary: Any) -> None:
    for _ in range(2):
        person.ask(op="finish", attempt=0, summary=make_summary())
    assert len(list(Index(str(indexed), person.uid).entries())) == 1


def test_a_worker_killed_at_any_step_and_asked_again_leaves_the_same_index(
    indexed: Path, person: Any, make_summary: Any, course: Any
) -> None:
    for number, step in enumerate(steps.FINISH, 1):
        told = {"summary": make_summary(job_id=number), "course": course}
        request = {"op": "finish", "job_id": number, "attempt": 0, **told}
        assert person.ask_and_die(step, **request) is None, step
        assert person.ask(**request)["ok"]
        found = list(Index(str(indexed), person.uid).entries())
        assert [(one.state, step) for one in found] == [("completed", step)] * number


def test_a_line_that_a_crash_cut_short_spoils_no_other(indexed: Path, person: Any, make_summary: Any) -> None:
    person.ask(op="finish", attempt=0, summary=make_summary())
    (file,) = lines(indexed, person)
    whole = file.read_bytes()
    for length in range(1, len(whole) - 2, 7):
        file.write_bytes(whole[:length])
        person.ask(op="finish", attempt=0, summary=make_summary())
        assert [each.job_id for each in Index(str(indexed), person.uid).entries()] == [12]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{}",
        b"[]",
        b'[NaN, 1, 0, "failed"]',
        b'[1e999, 1, 0, "failed"]',
        b'[1700000000, "1", 0, "failed"]',
        b'[1700000000, 0, 0, "failed"]',
        b'[1700000000, true, 0, "failed"]',
        b'[1700000000, 1, 0, ["failed"]]',
        b'[1700000000, 1, 0, "failed", 7]',
        b'[1e15, 1, 0, "failed"]',
        b'[1700000000, 1000000000000000000, 0, "failed"]',
        b'[1700000000, 1, 1%s, "failed"]' % (b"0" * 30),
        b'[1700000000, 1, 0, "\\u001b[2J"]',
        b'[1700000000, 1, 0, "failed", "\\u001b[2J"]',
        b'[1700000000, 1, 0, "failed", "7_3\\n"]',
        b"[" * 100000,
        b"\xff\xfe",
    ],
)
def test_what_is_no_line_is_passed_over(line: bytes) -> None:
    assert entry.decode(line) is None


def test_a_task_of_an_array_and_the_largest_job_id_are_kept() -> None:
    for one in (Entry(1.7e9, 12, 0, "running", "7_0"), Entry(1.7e9, 10**18 - 1, 3, "node_fail", f"{2**63 - 1}_12")):
        assert entry.decode(entry.encode(one)) == one


@pytest.mark.parametrize("ended", [1e15, -1.0])
def test_an_end_that_is_no_date_gives_way_to_the_time_of_the_bundle(ended: float, make_summary: Any) -> None:
    summary = make_summary()
    summary["times"]["ended"] = ended
    assert entry.of_summary(summary, 1.7e9).at == 1.7e9


def test_lines_of_an_older_and_of_a_newer_version_are_read() -> None:
    assert entry.decode(b'[1700000000, 7, 0, "failed"]') == Entry(1700000000, 7, 0, "failed")
    newer = json.dumps([*Entry(1700000000.0, 7, 0, "failed"), "a field to come"]).encode()
    assert entry.decode(newer) == Entry(1700000000.0, 7, 0, "failed")


def test_a_very_long_name_and_cause_stay_within_one_write() -> None:
    long = Entry(1.0, 1, 0, "failed", name="학" * 5000, cause="x" * 60000, image="y" * 9000)
    line = entry.encode(long)
    assert len(line) < 4096
    found = entry.decode(line)
    assert found is not None
    assert found.name.endswith("학…")


def test_months_are_read_only_as_far_as_they_are_needed(indexed: Path, person: Any, make_summary: Any) -> None:
    for job_id, day in ((1, 0), (2, 40), (3, 80)):
        person.ask(op="finish", job_id=job_id, attempt=0, summary=one_day(make_summary(), day, job_id=job_id))
    assert [file.name[:7] for file in lines(indexed, person)] == ["2023-11", "2023-12", "2024-01"]
    index = Index(str(indexed), person.uid)
    lines(indexed, person)[0].unlink()
    lines(indexed, person)[1].write_bytes(b"\x00 rubbish")
    assert next(index.entries(since=1698796800.0 + 35 * 86400)).job_id == 2


def test_entries_of_several_machines_come_in_the_order_of_time(indexed: Path, person: Any, make_summary: Any) -> None:
    for job_id, day in ((1, 3), (2, 1), (3, 2)):
        person.ask(op="finish", job_id=job_id, attempt=0, summary=one_day(make_summary(), day, job_id=job_id))
        (own,) = (each for each in lines(indexed, person) if ".machine" not in each.name)
        own.rename(own.with_name(f"2023-11.machine{job_id}.jsonl"))
    assert [each.job_id for each in Index(str(indexed), person.uid).entries()] == [1, 3, 2]


def test_workers_of_one_machine_at_the_same_time_lose_no_line(indexed: Path, person: Any, make_summary: Any) -> None:
    code = (
        "import sys; sys.path.insert(0, {package!r})\n"
        "from slurmk8s.results.entry import Entry; from slurmk8s.results.index import add\n"
        f"for n in range(200): add({str(indexed)!r}, [Entry(1.7e9 + n, int(sys.argv[1]) * 1000 + n, 0, 'failed')])\n"
    )
    command = ["/usr/bin/env", "python3", "-I", "-c", code.replace("{package!r}", repr(person.package))]
    as_person = {"user": person.uid, "group": person.uid, "extra_groups": []} if os.geteuid() == 0 else {}
    workers = [subprocess.Popen([*command, str(number)], cwd="/", umask=0o077, **as_person) for number in (1, 2, 3)]
    assert [worker.wait(60) for worker in workers] == [0, 0, 0]
    assert len(list(Index(str(indexed), person.uid).entries())) == 600


def test_a_requeued_job_has_all_its_attempts_and_is_one_job(indexed: Path, person: Any, make_summary: Any) -> None:
    person.ask(op="finish", attempt=0, summary=one_day(make_summary(), 1, state="requeued"))
    person.ask(op="finish", attempt=1, summary=one_day(make_summary(), 2, attempt=1))
    index = Index(str(indexed), person.uid)
    assert [(each.attempt, each.state) for each in index.entries()] == [(1, "completed"), (0, "requeued")]
    (last,) = history.latest(history.recent(indexed, person.uid, Span()))
    assert last.entry.attempt == 1


def test_job_ids_that_start_again_are_two_jobs(indexed: Path, person: Any, make_summary: Any) -> None:
    for day in (1, 2):
        person.ask(op="prepare", attempt=0, submitted=1698796800.0 + day * 86400 - 100)
        person.ask(op="finish", attempt=0, summary=one_day(make_summary(), day, name=f"day {day}"))
    found = history.latest(history.recent(indexed, person.uid, Span(running=False)))
    assert [known.entry.name for known in found] == ["day 2", "day 1"]


def test_a_task_of_an_array_is_found_without_a_look_at_every_bundle(
    indexed: Path, person: Any, make_summary: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = {"job_id": 12, "task_id": 4}
    person.ask(op="prepare", job_id=17, attempt=0, array=task, name="sweep")
    monkeypatch.setattr("os.getuid", lambda: person.uid)
    monkeypatch.setattr("slurmk8s.results.find.bundles", lambda *_: pytest.fail("all bundles were listed"))
    found = find(indexed, "12_4")
    assert found is not None
    assert found.job_id == 17


def in_the_way_a_link(own: Path, target: Path) -> None:
    own.symlink_to(target)


def in_the_way_a_file(own: Path, _target: Path) -> None:
    own.write_text("mine")


def in_the_way_a_strangers_folder(own: Path, _target: Path) -> None:
    own.mkdir(mode=0o777)
    own.chmod(0o777)


@pytest.mark.parametrize("put", [in_the_way_a_link, in_the_way_a_file, in_the_way_a_strangers_folder])
def test_what_somebody_put_in_the_indexs_place_is_not_written_through_and_costs_no_job(
    put: Any, indexed: Path, person: Any, make_summary: Any, tmp_path: Path
) -> None:
    tmp_path.chmod(0o777)
    own = indexed / ".index" / str(person.uid)
    put(own, tmp_path)
    assert person.ask(op="prepare", attempt=0)["ok"]
    reply = person.ask(op="finish", attempt=0, summary=make_summary())
    assert reply["ok"]
    assert reply["unlisted"]
    assert (person.folder / "summary.json").exists()
    assert not list(tmp_path.iterdir())
    assert not own.is_dir() or own.is_symlink() or not list(own.iterdir())


def test_a_hard_link_in_the_index_is_not_written_to(indexed: Path, person: Any, make_summary: Any) -> None:
    person.ask(op="prepare", attempt=0)
    (file,) = lines(indexed, person)
    other = indexed / "other"
    os.link(file, other)
    before = other.read_bytes()
    month = time.strftime("%Y-%m", time.gmtime())
    summary = make_summary()
    summary["times"] = {**summary["times"], "ended": time.time()}
    assert file.name.startswith(month)
    assert "unlisted" in person.ask(op="finish", attempt=0, summary=summary)
    assert other.read_bytes() == before


@contextlib.contextmanager
def acting_as(uid: int, *groups: int) -> Iterator[None]:
    if os.geteuid() != 0:
        pytest.fail("run the tests as root: other people are needed")
    before = os.getgroups()
    os.setgroups(groups)
    os.setresgid(uid, uid, 0)
    os.setresuid(uid, uid, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)
        os.setgroups(before)


def test_an_index_is_its_owners_alone(indexed: Path, person: Any, make_summary: Any) -> None:
    person.ask(op="finish", attempt=0, summary=make_summary())
    for groups in ((), (ADMINS,)):
        with acting_as(STRANGER, *groups):
            assert not Index(str(indexed), person.uid).exists()
            with pytest.raises(PermissionError):
                os.listdir(indexed / ".index")
    with acting_as(person.uid):
        assert Index(str(indexed), person.uid).exists()


def test_members_of_the_group_of_an_index_with_the_set_group_id_bit_read_everybodys(
    indexed: Path, person: Any, make_summary: Any
) -> None:
    """No root anywhere: on a NAS that maps root to nobody this is how an admin gets figures."""
    os.chown(indexed / ".index", 0, ADMINS)
    (indexed / ".index").chmod(0o3773)
    person.ask(op="prepare", attempt=0)
    person.ask(op="finish", attempt=0, summary=make_summary())
    with acting_as(ADMIN, ADMINS):
        (known, *_) = history.of_everyone(indexed, Span(running=False))
        assert (known.uid, known.entry.name) == (person.uid, "train")
        with pytest.raises(PermissionError):
            lines(indexed, person)[0].open("ab")
        with pytest.raises(PermissionError):
            (person.folder / "summary.json").read_bytes()
    with acting_as(STRANGER):
        assert not Index(str(indexed), person.uid).exists()


def put_a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


def put_a_pipe(path: Path) -> None:
    os.mkfifo(path)


def put_a_folder(path: Path) -> None:
    path.mkdir()


def put_a_closed_file(path: Path) -> None:
    path.touch(mode=0)


def put_two_terabytes(path: Path) -> None:
    path.touch(mode=0o644)
    os.truncate(path, 2 << 40)


def put_a_very_long_line(path: Path) -> None:
    path.write_bytes(b"[" * (8 << 20))
    path.chmod(0o644)


@pytest.mark.parametrize(
    "put", [put_a_socket, put_a_pipe, put_a_folder, put_a_closed_file, put_two_terabytes, put_a_very_long_line]
)
def test_what_somebody_puts_into_their_index_keeps_no_admin_from_reading_it_and_the_others(
    put: Any, indexed: Path, person: Any, make_summary: Any
) -> None:
    os.chown(indexed / ".index", 0, ADMINS)
    (indexed / ".index").chmod(0o3773)
    person.ask(op="finish", attempt=0, summary=make_summary())
    theirs = indexed / ".index" / str(STRANGER)
    theirs.mkdir()
    theirs.chmod(0o755)
    (theirs / "2023-11.node1.jsonl").write_bytes(entry.encode(Entry(1.7e9, 99, 0, "failed")))
    (theirs / "2023-11.node1.jsonl").chmod(0o644)
    put(theirs / "2023-11.sock.jsonl")
    for path in (*theirs.iterdir(), theirs):
        os.chown(path, STRANGER, STRANGER)
    for who in (0, ADMIN):
        with acting_as(who, ADMINS):
            assert {(known.uid, known.entry.job_id) for known in history.of_everyone(indexed)} == {
                (person.uid, 12),
                (STRANGER, 99),
            }


def test_an_index_that_its_owner_takes_away_meanwhile_is_passed_over(indexed: Path, person: Any) -> None:
    person.ask(op="prepare", attempt=0)
    found = Index(str(indexed), person.uid).entries()
    (indexed / ".index" / str(person.uid)).rename(indexed / ".index" / "elsewhere")
    assert list(found) == []


def test_ones_own_index_that_cannot_be_read_is_said_to_be_so(indexed: Path, person: Any) -> None:
    person.ask(op="prepare", attempt=0)
    lines(indexed, person)[0].chmod(0)
    with acting_as(person.uid), pytest.raises(PermissionError):
        list(Index(str(indexed), person.uid).entries())


def test_of_more_lines_than_are_read_the_newest_are(
    indexed: Path, person: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    person.ask(op="prepare", attempt=0)
    (file,) = lines(indexed, person)
    many = [entry.encode(Entry(1.7e9 + number, number + 1, 0, "failed")) for number in range(1000)]
    file.write_bytes(b"\n" + b"\n".join(many))
    monkeypatch.setattr(index, "_MOST_BYTES", 100 * len(many[-1]))
    found = [each.job_id for each in Index(str(indexed), person.uid).entries()]
    assert found == list(range(1000, 1000 - len(found), -1))
    assert 40 < len(found) <= 100


def test_many_short_lines_are_not_all_kept(indexed: Path, person: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    person.ask(op="prepare", attempt=0)
    (file,) = lines(indexed, person)
    file.write_bytes(b"".join(b'[1, %d, 0, "failed"]\n' % number for number in range(1, 1000)))
    monkeypatch.setattr(index, "_MOST_BYTES", 10000)
    assert 0 < len(list(Index(str(indexed), person.uid).entries())) <= 10000 // 64


def test_a_line_that_names_somebody_elses_job_hides_nothing_of_theirs() -> None:
    forged = Known(Entry(at=2.0, job_id=7, attempt=9, state="failed"), 1001)
    honest = Known(Entry(at=1.0, job_id=7, attempt=0, state="completed"), 1002)
    assert list(history.latest([forged, honest])) == [forged, honest]
