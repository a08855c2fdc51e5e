"""Needs nothing. Completing an index from the bundles, and the list for file managers."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from slurmk8s.results import listing
from slurmk8s.results.entry import Entry
from slurmk8s.results.index import Index

REINDEX = (
    "import sys; sys.path.insert(0, {package!r})\n"
    "from pathlib import Path; from slurmk8s.results.reindex import reindex; import os\n"
    "print(reindex(Path(sys.stdin.read()), os.getuid()))"
)


def reindex(person: Any) -> int:
    done = person.python(REINDEX, str(person.root).encode())
    assert done.returncode == 0, done.stderr.decode()
    return int(done.stdout)


@pytest.fixture
def before(person: Any, make_summary: Any) -> Any:
    """Bundles of the time before the index: 12 with an earlier attempt, 13 failed, 14 running."""
    person.ask(op="prepare", attempt=0)
    person.ask(op="finish", attempt=0, summary=make_summary(state="requeued"))
    person.ask(op="prepare", attempt=1)
    person.ask(op="finish", attempt=1, summary=make_summary(attempt=1))
    person.ask(op="finish", job_id=13, attempt=0, summary=make_summary(job_id=13, state="failed", exit_code=7))
    person.ask(op="prepare", job_id=14, attempt=0, name="next", submitted=1700000000.0)
    (person.root / ".index").mkdir()
    (person.root / ".index").chmod(0o1733)
    return person


def test_a_scan_adds_what_the_index_lacks_and_nothing_twice(before: Any, make_summary: Any) -> None:
    index = Index(str(before.root), before.uid)
    assert not index.is_whole()
    assert reindex(before) == 4
    assert index.is_whole()
    found = {(each.job_id, each.attempt, each.state) for each in index.entries()}
    assert found == {(12, 0, "requeued"), (12, 1, "completed"), (13, 0, "failed"), (14, 0, "running")}
    assert reindex(before) == 0
    ended = make_summary(job_id=14)
    before.ask(op="finish", job_id=14, attempt=0, summary=ended)
    (file,) = (before.root / ".index" / str(before.uid)).glob("2023-11*")
    file.write_bytes(b"\n".join(line for line in file.read_bytes().split(b"\n") if b", 14," not in line))
    assert reindex(before) == 1


def test_a_scan_that_was_stopped_goes_on(before: Any) -> None:
    stopped = REINDEX.replace(
        "import os\n",
        "import os\nimport slurmk8s.results.index as i; i._AT_ONCE = 1\n"
        "def die(*_): os.kill(os.getpid(), 9)\nimport slurmk8s.results.reindex as r; r.say_whole = die\n",
    ).replace("print(reindex(", "print(r.reindex(")
    assert before.python(stopped, str(before.root).encode()).returncode == -9
    index = Index(str(before.root), before.uid)
    assert not index.is_whole()
    assert reindex(before) == 0
    assert index.is_whole()
    assert len(list(index.entries())) == 4


def test_jobs_whose_bundles_are_gone_stay_in_the_index(before: Any) -> None:
    reindex(before)
    before.sh("rm -rf ../13")
    assert reindex(before) == 0
    assert 13 in {each.job_id for each in Index(str(before.root), before.uid).entries()}


def listed(person: Any) -> str:
    data = (person.root / "alice.txt").read_bytes()
    assert data.startswith(b"\xef\xbb\xbf")  # for Notepad
    assert data.count(b"\n") == data.count(b"\r\n")
    return data.decode("utf-8-sig")


def test_a_file_manager_shows_the_newest_jobs_first(before: Any, make_summary: Any) -> None:
    before.ask(op="finish", job_id=14, attempt=0, summary=make_summary(job_id=14, name="학습\x1b[2J"))
    bad = make_summary(job_id=15, state="out_of_memory", cause="Out of memory.")
    before.ask(op="finish", job_id=15, attempt=0, summary=bad)
    before.ask(op="finish", job_id=14, attempt=0, summary=make_summary(job_id=14, name="학습\x1b[2J"))
    head, first, second, *rest = listed(before).splitlines()
    assert head.split() == ["ENDED", "FOLDER", "HOW", "RAN", "NAME", "WHY"]
    assert "  14        completed       9 min 45 s  학습\\x1b[2J " in first
    assert second.endswith("Out of memory.")
    assert not rest
    mode = (before.root / "alice.txt").stat().st_mode & 0o777
    assert mode == 0o600


def test_the_list_does_not_grow_for_ever() -> None:
    data = b""
    for number in range(1, listing.JOBS + 20):
        data = listing.with_job(data, Entry(1.7e9 + number, number, 0, "completed", name="x"))
    lines = data.decode("utf-8-sig").splitlines()
    assert len(lines) == listing.JOBS + 1
    assert f"  {listing.JOBS + 19} " in lines[1]


@pytest.mark.parametrize("user", ["../evil", ".hidden", "a/b", "", "a\nb", "x" * 300])
def test_no_user_name_leads_out_of_the_results_folder(before: Any, make_summary: Any, user: str) -> None:
    names = set(os.listdir(before.root))
    assert before.ask(op="finish", job_id=14, attempt=0, summary=make_summary(job_id=14, user=user))["ok"]
    assert set(os.listdir(before.root)) == names
    assert not (before.root.parent / "evil.txt").exists()


def test_somebody_elses_file_and_links_in_the_lists_place_stay_as_they_are(
    before: Any, make_summary: Any, tmp_path: Path
) -> None:
    tmp_path.chmod(0o755)
    target = tmp_path / "target"
    target.write_text("precious")
    os.chown(target, before.uid, before.uid)
    place = before.root / "alice.txt"
    place.symlink_to(target)
    reply = before.ask(op="finish", job_id=14, attempt=0, summary=make_summary(job_id=14))
    assert reply["ok"]
    assert "unlisted" in reply  # root's link in a sticky folder
    assert place.is_symlink()
    place.unlink()
    before.run(["ln", "-s", str(target), str(place)])
    assert "unlisted" not in before.ask(op="finish", job_id=14, attempt=0, summary=make_summary(job_id=14))
    assert not place.is_symlink()
    assert target.read_text() == "precious"
    assert json.loads((before.root / "14/summary.json").read_text())["job_id"] == 14
