"""Needs nothing. Which bundles go, and that nothing else does."""

import json
import os
import pwd
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from slurmk8s.config import Config
from slurmk8s.ops import housekeeping
from slurmk8s.results import steps
from slurmk8s.results.retention import DAY, Candidate, Rule, choose

NOW = 1_800_000_000.0
STRANGER = 54322


def bundle(number: int, days: float | None, size: int = 10, held: str = "") -> Candidate:
    return Candidate(str(number), number, "train", None if days is None else NOW - days * DAY, size, held)


def gone(rule: Rule, *candidates: Candidate) -> list[str]:
    return [removal.candidate.folder for removal in choose(candidates, rule, NOW)]


def test_without_limits_nothing_goes() -> None:
    assert gone(Rule(), bundle(1, 10_000)) == []


def test_what_is_older_goes_the_oldest_first() -> None:
    found = [bundle(1, 91), bundle(2, 89), bundle(3, 400)]
    assert gone(Rule(days=90), *found) == ["3", "1"]


def test_the_oldest_go_until_the_rest_is_small_enough() -> None:
    found = [bundle(number, days=number, size=10) for number in range(1, 6)]
    assert gone(Rule(total_bytes=30), *found) == ["5", "4"]
    assert gone(Rule(total_bytes=50), *found) == []


def test_what_is_young_stays_however_large() -> None:
    assert gone(Rule(total_bytes=1, spare_days=7), bundle(1, 6, size=100), bundle(2, 8)) == ["2"]


def test_what_is_held_stays_and_counts() -> None:
    found = [bundle(1, 50, held="it is not complete"), bundle(2, 40), bundle(3, None), bundle(4, -3)]
    assert gone(Rule(days=30), *found) == ["2"]
    assert gone(Rule(total_bytes=0, spare_days=1), *found) == ["2"]


WORKER = "import sys; sys.path.insert(0, {package!r}); from slurmk8s.results.worker import main; sys.exit(main())"


def prune(person: Any, *, dry_run: bool = False, days: float | None = 30, total: int | None = None) -> dict[str, Any]:
    request = {"op": "prune", "root": str(person.root), "days": days, "total_bytes": total, "spare_days": 1}
    done = person.python(WORKER, json.dumps({**request, "dry_run": dry_run}).encode())
    assert done.returncode == 0, done.stderr.decode()
    answer: dict[str, Any] = json.loads(done.stdout)
    assert answer["ok"], answer
    return answer


@pytest.fixture
def old(person: Any, make_summary: Any) -> Any:
    """Bundles 12 and 13 ended long ago, 14 yesterday; 15 runs, 16 starts again, 17 is not complete, 18 is kept."""
    ages = {12: 100.0, 13: 90.0, 14: 1.5, 15: 80.0, 16: 80.0, 17: 80.0, 18: 80.0}
    for job_id, days in ages.items():
        times = {**make_summary()["times"], "ended": time.time() - days * DAY}
        state = "requeued" if job_id == 16 else "completed"
        person.ask(op="prepare", job_id=job_id, attempt=0, name="train")
        if job_id == 15:
            continue
        person.run(["sh", "-c", f"echo {job_id} > {person.root}/{job_id}/outputs/number"])
        told = make_summary(job_id=job_id, times=times, state=state, uid=person.uid)
        person.ask(op="finish", job_id=job_id, attempt=0, summary=told)
        if job_id != 17:
            assert person.ask(op="checksums", job_id=job_id, attempt=0)["complete"]
    person.run(["touch", str(person.root / "18" / ".keep")])
    return person


def left(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir())


def test_a_dry_run_names_what_would_go_and_touches_nothing(old: Any) -> None:
    answer = prune(old, dry_run=True)
    assert [one["folder"] for one in answer["removed"]] == ["12", "13"]
    assert "kept for 30" in answer["removed"][0]["why"]
    assert dict(answer["held"]) == {
        "15": "its job has not ended",
        "16": "its job starts again",
        "17": "it is not complete",
        "18": "it holds .keep",
    }
    assert left(old.root) == ["12", "13", "14", "15", "16", "17", "18"]


def test_what_has_had_its_time_goes_and_all_else_stays(old: Any) -> None:
    answer = prune(old)
    assert [one["folder"] for one in answer["removed"]] == ["12", "13"]
    assert answer["failed"] == {}
    assert left(old.root) == ["14", "15", "16", "17", "18"]
    assert [one["folder"] for one in prune(old, days=None, total=0)["removed"]] == ["14"]


def test_links_lead_nowhere_and_closed_or_deep_folders_go_too(old: Any) -> None:
    outside = old.root / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    for path in (outside, outside / "precious"):
        os.chown(path, old.uid, old.uid)
    old.sh(
        "cd outputs; ln -s ../../outside link; ln ../../outside/precious hard; mkfifo pipe; mkdir -p closed/inner; "
        "echo x > closed/inner/file; chmod 0 closed/inner closed; mkdir -p read-only/in; touch read-only/in/f; "
        "chmod 500 read-only/in read-only"
    )
    deep = "import os\nos.chdir(FOLDER)\nfor _ in range(1500):\n    os.mkdir('deep'); os.chdir('deep')\n"
    assert old.python(deep.replace("FOLDER", repr(str(old.folder / "outputs")))).returncode == 0
    assert prune(old)["failed"] == {}
    assert "12" not in left(old.root)
    assert (outside / "precious").read_text() == "x"


def test_bundles_of_others_and_links_are_not_touched(old: Any) -> None:
    if os.geteuid() != 0:
        pytest.fail("run the tests as root: another person is needed")
    subprocess.run(["chown", "-R", str(STRANGER), str(old.root / "12")], check=True)
    os.rename(old.root / "13", old.root / "kept")
    os.symlink("kept", old.root / "13")
    assert prune(old)["removed"] == []
    assert {"12", "13", "kept"} <= set(left(old.root))
    assert (old.root / "kept" / "summary.json").exists()


DYING = """
import os, signal, sys
sys.path.insert(0, {package!r})
from slurmk8s.results.request import parse
from slurmk8s.results.worker import answer
def at(step):
    if step == STEP:
        os.kill(os.getpid(), signal.SIGKILL)
print(answer(parse(sys.stdin.buffer.read()), at))
"""


@pytest.mark.parametrize("step", steps.PRUNE)
def test_killed_after_any_step_the_next_look_goes_on(old: Any, step: str) -> None:
    request = {"op": "prune", "root": str(old.root), "days": 30, "total_bytes": None, "spare_days": 1, "dry_run": False}
    done = old.python(DYING.replace("STEP", repr(step)), json.dumps(request).encode())
    assert done.returncode == -9, done.stderr.decode()
    assert any(name.startswith(".going-12.") for name in left(old.root))
    prune(old)
    assert left(old.root) == ["14", "15", "16", "17", "18"]


def test_root_looks_after_everybody_each_with_their_own_rights(
    old: Any, make_summary: Any, everyones_python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bundles of accounts that are no people stay."""
    if os.geteuid() != 0:
        pytest.fail("run the tests as root: another person is needed")
    for job_id, uid in ((12, STRANGER), (13, 99)):
        subprocess.run(["chown", "-R", f"{uid}:{uid}", str(old.root / str(job_id))], check=True)
    document = json.loads((old.root / "12" / "summary.json").read_text())
    (old.root / "12" / "summary.json").write_text(json.dumps({**document, "uid": STRANGER}))
    names = {old.uid: "kim", STRANGER: "lee"}
    accounts = {uid: pwd.struct_passwd((name, "x", uid, uid, "", "/", "/bin/sh")) for uid, name in names.items()}
    monkeypatch.setattr(pwd, "getpwuid", accounts.__getitem__)
    monkeypatch.setattr(os, "getgrouplist", lambda _name, gid: [gid])
    monkeypatch.setattr(sys, "executable", str(everyones_python))
    config = Config.model_validate(
        {
            "nas": {"root": str(old.root.parent), "results": old.root.name, "require_mountpoint": False},
            "results": {"retention": {"days": 30}},
        }
    )
    rule = housekeeping.rule_of(config.results.retention)
    assert rule is not None
    told: list[tuple[str, list[str], bool]] = []

    def tell(one: housekeeping.Told, is_plan: bool) -> None:
        assert not one.fault
        told.append((one.user, [removed["folder"] for removed in one.answer["removed"]], is_plan))

    assert housekeeping.keep_house(config, rule, dry_run=True, only=None, tell=tell)
    assert told == [("kim", [], True), ("lee", ["12"], True)]
    assert "12" in left(old.root)
    told.clear()
    assert housekeeping.keep_house(config, rule, dry_run=False, only=None, tell=tell)
    assert told == [("kim", [], True), ("kim", [], False), ("lee", ["12"], True), ("lee", ["12"], False)]
    assert left(old.root) == ["13", "14", "15", "16", "17", "18"]


def test_who_stops_their_own_worker_holds_up_nobody_else(
    old: Any, everyones_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() != 0:
        pytest.fail("run the tests as root: another person is needed")
    subprocess.run(["chown", "-R", f"{STRANGER}:{STRANGER}", str(old.root / "12")], check=True)
    worker = old.root.parent / "python"
    worker.write_text(f'#!/bin/sh\n[ "$(id -u)" != {old.uid} ] || kill -STOP $$\nexec {everyones_python} "$@"\n')
    worker.chmod(0o755)
    names = {old.uid: "kim", STRANGER: "lee"}
    accounts = {uid: pwd.struct_passwd((name, "x", uid, uid, "", "/", "/bin/sh")) for uid, name in names.items()}
    monkeypatch.setattr(pwd, "getpwuid", accounts.__getitem__)
    monkeypatch.setattr(os, "getgrouplist", lambda _name, gid: [gid])
    monkeypatch.setattr(sys, "executable", str(worker))
    monkeypatch.setattr(housekeeping, "SECONDS_FOR_ONE", 6.0)
    nas = {"root": str(old.root.parent), "results": old.root.name, "require_mountpoint": False}
    told: list[housekeeping.Told] = []
    well = housekeeping.keep_house(
        Config.model_validate({"nas": nas}), Rule(30), dry_run=False, only=None, tell=lambda one, _: told.append(one)
    )
    assert not well
    assert [(one.user, bool(one.fault)) for one in told] == [("kim", True), ("lee", False), ("lee", False)]
    assert "not done after 0.1 minutes, so their worker was ended and the others are next" in told[0].fault


def test_no_person_has_more_than_minutes() -> None:
    assert housekeeping.SECONDS_FOR_ONE <= 15 * 60


def test_a_site_without_a_rule_keeps_everything() -> None:
    assert housekeeping.rule_of(Config().results.retention) is None
    assert make_rule(gib_per_person=0.5) == Rule(None, 1 << 29, 7.0)


def make_rule(**retention: float) -> Rule | None:
    return housekeeping.rule_of(Config.model_validate({"results": {"retention": retention}}).results.retention)


def test_what_is_in_an_archive_takes_no_room(old: Any) -> None:
    before = prune(old, dry_run=True)["bytes"]
    old.run(["sh", "-c", f"cd {old.root}/12 && rm -r outputs && touch archived.txt"])
    assert prune(old, dry_run=True)["bytes"] == before - len("12\n")
