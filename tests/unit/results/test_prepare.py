"""Needs nothing. The worker runs as an ordinary person, as on a NAS with root_squash."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def prepare(person: Any, attempt: int = 0, **more: Any) -> dict[str, Any]:
    return person.ask(op="prepare", attempt=attempt, modes={"folder": 457, "file": 384, "outputs": 448}, **more)


def test_a_new_bundle_has_logs_and_outputs_with_the_configured_modes(person: Any) -> None:
    reply = prepare(person)
    assert reply == {
        "ok": True,
        "folder": str(person.folder),
        "stdout": f"{person.folder}/stdout.log",
        "stderr": f"{person.folder}/stderr.log",
        "outputs": f"{person.folder}/outputs",
    }
    assert mode(person.folder) == 0o711
    assert mode(person.folder / "stdout.log") == mode(person.folder / "stderr.log") == 0o600
    assert mode(person.folder / "outputs") == 0o700
    assert {path.lstat().st_uid for path in [person.folder, *person.folder.iterdir()]} == {person.uid}


def test_modes_wider_than_the_umask_are_honoured(person: Any) -> None:
    person.ask(op="prepare", attempt=0, modes={"folder": 0o755, "file": 0o644, "outputs": 0o750})
    assert (mode(person.folder), mode(person.folder / "stdout.log")) == (0o755, 0o644)
    assert mode(person.folder / "outputs") == 0o750


def test_asked_again_nothing_changes(person: Any) -> None:
    prepare(person)
    person.sh("echo so far > stdout.log; echo kept > outputs/checkpoint; chmod 755 .")
    before = {path.name: path.lstat() for path in person.folder.iterdir()}
    assert prepare(person)["ok"]
    assert (person.folder / "stdout.log").read_text() == "so far\n"
    after = {path.name: path.lstat() for path in person.folder.iterdir()}
    assert {name: (s.st_ino, s.st_mtime_ns) for name, s in before.items()} == {
        name: (s.st_ino, s.st_mtime_ns) for name, s in after.items()
    }
    assert mode(person.folder) == 0o755  # the owner's own choice


def test_the_next_attempt_finds_outputs_and_the_earlier_logs_move(person: Any, make_summary: Any, course: Any) -> None:
    prepare(person)
    person.sh("echo first > stdout.log; echo oops > stderr.log; echo 7 > outputs/checkpoint")
    again = make_summary(state="requeued", cause="Requeued by its owner.")
    person.ask(op="finish", attempt=0, summary=again, course=course)
    person.ask(op="checksums", attempt=0)
    assert prepare(person, attempt=1)["ok"]
    earlier = person.folder / "attempt-0"
    names = ["checksums.txt", "job_summary.txt", "stderr.log", "stdout.log", "summary.json", "usage.svg"]
    assert sorted(path.name for path in earlier.iterdir()) == names
    assert (earlier / "stdout.log").read_text() == "first\n"
    assert (person.folder / "stdout.log").read_bytes() == b""
    assert (person.folder / "outputs/checkpoint").read_text() == "7\n"
    assert not (person.folder / "summary.json").exists()
    assert not (person.folder / "checksums.txt").exists()


def test_a_folder_of_somebody_else_is_refused(person: Any, root: Path) -> None:
    if os.geteuid() != 0:
        pytest.fail("run the tests as root: another person is needed to squat a folder")
    (root / "12").mkdir(mode=0o777)
    (root / "12").chmod(0o777)
    reply = prepare(person)
    assert (reply["ok"], reply["fault"]) == (False, "person")
    assert "belongs to uid 0" in reply["sentence"]
    assert list((root / "12").iterdir()) == []


@pytest.mark.parametrize("kind", ["link to own folder", "link to nowhere", "file", "closed folder"])
def test_anything_but_a_real_folder_of_ones_own_is_refused(person: Any, root: Path, kind: Any) -> None:
    own = root / "own"
    own.mkdir()
    os.chown(own, person.uid, person.uid)
    if kind == "file":
        (root / "12").write_text("x")
    elif kind == "closed folder":
        (root / "12").mkdir(mode=0o700)
    else:
        (root / "12").symlink_to(own if kind == "link to own folder" else "/nowhere")
    for reply in (prepare(person), person.ask(op="note", stderr="x")):
        assert (reply["ok"], reply["fault"]) == (False, "person")
        assert "was there before the job" in reply["sentence"]
    assert list(own.iterdir()) == []


@pytest.mark.parametrize("name", ["stdout.log", "stderr.log", "outputs"])
def test_a_link_in_the_folder_is_refused_and_not_written_through(person: Any, root: Path, name: Any) -> None:
    victim = root / "victim"
    victim.write_text("precious")
    victim.chmod(0o666)
    prepare(person)
    person.sh(f"rm -r {name}; ln -s {victim} {name}")
    reply = prepare(person)
    assert (reply["ok"], reply["fault"]) == (False, "person")
    assert name in reply["sentence"]
    assert victim.read_text() == "precious"


def test_a_link_at_attempt_0_is_refused(person: Any, root: Path) -> None:
    elsewhere = root / "elsewhere"
    elsewhere.mkdir()
    elsewhere.chmod(0o777)
    prepare(person)
    person.sh(f"echo first > stdout.log; ln -s {elsewhere} attempt-0")
    reply = prepare(person, attempt=1)
    assert (reply["ok"], reply["fault"]) == (False, "person")
    assert list(elsewhere.iterdir()) == []
    assert (person.folder / "stdout.log").read_text() == "first\n"


def test_a_note_is_not_written_through_a_hard_link(person: Any) -> None:
    prepare(person)
    person.sh("echo precious > ../mine; rm stderr.log; ln ../mine stderr.log")
    reply = person.ask(op="note", stderr="slurmk8s: the image does not exist")
    assert (reply["ok"], reply["fault"]) == (False, "person")
    assert (person.root / "mine").read_text() == "precious\n"


def test_a_pipe_in_place_of_a_log_does_not_hang(person: Any) -> None:
    prepare(person)
    person.sh("rm stderr.log; mkfifo stderr.log")
    assert person.ask(op="note", stderr="x")["fault"] == "person"
    assert prepare(person)["fault"] == "person"


def test_summaries_replace_links_instead_of_writing_through_them(person: Any, root: Path, make_summary: Any) -> None:
    victim = root / "victim"
    victim.write_text("precious")
    victim.chmod(0o666)
    prepare(person)
    person.sh(f"ln -s {victim} summary.json; ln -s {victim} job_summary.txt; ln -s {victim} checksums.txt")
    person.sh(f"ln -s {victim} .checksums.partial")
    assert person.ask(op="finish", attempt=0, summary=make_summary())["ok"]
    assert person.ask(op="checksums", attempt=0)["complete"]
    assert victim.read_text() == "precious"
    assert not any(path.is_symlink() for path in person.folder.iterdir())


def test_a_lost_marker_loses_nothing(person: Any, make_summary: Any) -> None:
    prepare(person)
    person.sh("echo so far > stdout.log; rm .slurmk8s.json")
    assert prepare(person)["ok"]
    assert (person.folder / "stdout.log").read_text() == "so far\n"
    person.sh("echo '{\"attempt\": -1}' > .slurmk8s.json")
    assert person.ask(op="finish", attempt=0, summary=make_summary())["ok"]


def test_an_older_job_of_the_same_number_is_set_aside(person: Any, make_summary: Any) -> None:
    """Slurm's ids start again when its state is lost; the new job must not mix with the old one's files."""
    prepare(person, submitted=1000.0)
    person.sh("echo old > stdout.log; echo old > outputs/model")
    person.ask(op="finish", attempt=0, summary=make_summary())
    assert prepare(person, submitted=2000.0)["ok"]
    assert (person.root / "12.earlier-1/stdout.log").read_text() == "old\n"
    assert (person.root / "12.earlier-1/outputs/model").read_text() == "old\n"
    assert list((person.folder / "outputs").iterdir()) == []
    assert prepare(person, submitted=2000.0)["ok"]
    assert not (person.root / "12.earlier-2").exists()


def test_a_new_job_that_is_refused_before_its_prepare_leaves_an_older_one_of_its_number_alone(
    person: Any, make_summary: Any, snapshot: Any
) -> None:
    prepare(person, submitted=1000.0)
    person.ask(op="finish", attempt=0, submitted=1000.0, summary=make_summary(name="old"))
    assert person.ask(op="checksums", attempt=0, submitted=1000.0)["complete"]
    before = snapshot(person.folder)
    new = {"attempt": 0, "submitted": 2000.0}
    assert person.ask(op="note", stderr="slurmk8s: The image is refused.", **new)["ok"]
    refused = make_summary(name="new", state="failed", exit_code=None, cause="The image is refused.")
    told = person.ask(op="finish", summary=refused, **new)["summary"]
    assert (told["name"], told["state"], told["exit_code"], told["complete"]) == ("new", "failed", None, False)
    assert person.ask(op="checksums", **new)["complete"]
    assert (person.folder / "stderr.log").read_text() == "slurmk8s: The image is refused.\n"
    assert snapshot(person.root / "12.earlier-1") == before
    assert not (person.root / "12.earlier-2").exists()


def test_the_summary_of_an_older_job_of_the_same_number_is_not_read_as_the_new_ones(
    person: Any, make_summary: Any
) -> None:
    prepare(person, submitted=1000.0)
    person.ask(op="finish", attempt=0, submitted=1000.0, summary=make_summary())
    assert person.ask(op="read_summary", attempt=0, submitted=1000.0)["summary"] is not None
    assert person.ask(op="read_summary", attempt=0, submitted=2000.0)["summary"] is None


def test_a_requeued_job_is_not_taken_for_another_though_its_submit_time_changed(person: Any, make_summary: Any) -> None:
    prepare(person, submitted=1000.0)
    person.sh("echo 7 > outputs/checkpoint")
    person.ask(op="finish", attempt=0, summary=make_summary(state="requeued"))
    assert prepare(person, attempt=1, submitted=2000.0)["ok"]
    assert (person.folder / "outputs/checkpoint").exists()


def test_a_late_request_for_an_attempt_that_is_over_is_refused(person: Any) -> None:
    prepare(person, attempt=1)
    reply = prepare(person, attempt=0)
    assert not reply["ok"]
    assert "attempt 1 already has" in reply["sentence"]


def test_a_missing_or_closed_results_folder_is_the_clusters_fault(person: Any, root: Path) -> None:
    reply = person.ask(op="prepare", root=f"{root}/not-mounted", attempt=0)
    assert (reply["ok"], reply["fault"]) == (False, "cluster")
    root.chmod(0o755)
    if os.geteuid() == 0:
        reply = prepare(person)
        assert (reply["ok"], reply["fault"]) == (False, "cluster")
        assert "chmod 1777" in reply["hint"]


def test_root_writes_no_results(person: Any, root: Path) -> None:
    if os.geteuid() != 0:
        pytest.fail("run the tests as root: what root may not do is tested")
    request = json.dumps({"op": "prepare", "root": str(root), "job_id": 12, "attempt": 0}).encode()
    code = f"import sys; sys.path.insert(0, {person.package!r}); from slurmk8s.results.worker import main; main()"
    done = subprocess.run([sys.executable, "-I", "-c", code], input=request, capture_output=True, check=True)
    assert json.loads(done.stdout)["ok"] is False
    assert list(root.iterdir()) == []
