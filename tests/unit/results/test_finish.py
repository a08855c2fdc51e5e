"""Needs nothing. Notes and summaries at the end of an attempt."""

import json
import shlex
import subprocess
from typing import Any

import pytest


def test_a_finished_attempt_has_both_summaries_with_outputs_measured(person: Any, make_summary: Any) -> None:
    person.ask(op="prepare", attempt=0)
    person.sh("mkdir -p outputs/a; printf 12345 > outputs/a/b; printf 12 > outputs/c; ln -s c outputs/link")
    reply = person.ask(op="finish", attempt=0, summary=make_summary())
    stored = json.loads((person.folder / "summary.json").read_bytes())
    assert reply == {"ok": True, "summary": stored}
    assert stored["outputs"] == {"files": 2, "bytes": 7, "skipped_count": 1, "skipped": ["outputs/link"]}
    assert (stored["checksums"], stored["complete"]) == ("pending", False)
    assert stored["durations"] == {"accepting": None, "queued": 4.0, "pulling": 41.0, "running": 543.0}
    text = (person.folder / "job_summary.txt").read_text()
    assert text.startswith("The job completed.\n")
    assert "2 files, 7 bytes" in text
    assert str(person.folder) in text


def test_a_job_that_never_got_a_folder_has_a_bundle_all_the_same(person: Any, make_summary: Any) -> None:
    """Every ending leaves one: here no prepare ever arrived."""
    reply = person.ask(op="finish", attempt=0, summary=make_summary(state="failed", cause="The image does not exist."))
    assert reply["ok"]
    assert (person.folder / "stdout.log").exists()
    assert person.ask(op="checksums", attempt=0)["complete"]


def test_a_note_is_one_line_at_the_end_of_stderr(person: Any) -> None:
    person.ask(op="prepare", attempt=0)
    person.sh("printf 'body\\n' > stderr.log")
    assert person.ask(op="note", stderr="slurmk8s: 이미지 does not exist\n") == {"ok": True}
    assert (person.folder / "stderr.log").read_text() == "body\nslurmk8s: 이미지 does not exist\n"


def test_the_cause_is_written_once(person: Any, make_summary: Any) -> None:
    person.ask(op="prepare", attempt=0)
    first = make_summary(state="out_of_memory", exit_code=137, signal="SIGKILL", cause="Out of memory.", fault="person")
    first["image_digest"] = None
    person.ask(op="finish", attempt=0, summary=first)
    reply = person.ask(op="finish", attempt=0, summary=make_summary(state="cancelled", cause="Cancelled."))
    stored = reply["summary"]
    assert (stored["state"], stored["cause"], stored["exit_code"]) == ("out_of_memory", "Out of memory.", 137)
    assert stored["image_digest"] is not None  # what was not known at first is filled in
    assert (person.folder / "job_summary.txt").read_text().startswith("Out of memory.")


def test_a_complete_bundle_stays_complete_when_finished_again(person: Any, make_summary: Any, snapshot: Any) -> None:
    person.ask(op="finish", attempt=0, summary=make_summary())
    person.ask(op="checksums", attempt=0)
    before = snapshot(person.folder)
    person.ask(op="finish", attempt=0, summary=make_summary())
    assert snapshot(person.folder) == before


def test_the_late_end_of_an_earlier_attempt_goes_to_its_own_folder(person: Any, make_summary: Any) -> None:
    person.ask(op="prepare", attempt=0)
    person.sh("echo first > stdout.log")
    person.ask(op="prepare", attempt=1)
    person.sh("echo second > stdout.log; echo x > outputs/x")
    assert person.ask(op="finish", attempt=0, summary=make_summary(state="requeued"))["ok"]
    assert person.ask(op="checksums", attempt=0)["complete"]
    assert not (person.folder / "summary.json").exists()
    stored = json.loads((person.folder / "attempt-0/summary.json").read_bytes())
    assert (stored["complete"], stored["outputs"]) == (True, None)
    assert b"outputs" not in (person.folder / "attempt-0/checksums.txt").read_bytes()


def test_what_a_late_worker_wrote_into_the_next_attempts_folder_is_put_right(
    person: Any, make_summary: Any, course: Any
) -> None:
    """The next attempt took the folder over between two steps of the late one's finish."""
    race = """
import json, sys
sys.path.insert(0, {package!r})
from slurmk8s.results.request import parse
from slurmk8s.results.worker import answer
finish, prepare = json.loads(sys.stdin.read())
def at(step):
    if step == "outputs measured":
        assert answer(parse(json.dumps(prepare).encode()))["ok"]
print(json.dumps(answer(parse(json.dumps(finish).encode()), at)))
"""
    where = {"root": str(person.root), "job_id": 12}
    person.ask(op="prepare", attempt=0)
    finish = {"op": "finish", **where, "attempt": 0, "summary": make_summary(state="requeued"), "course": course}
    done = person.python(race, json.dumps([finish, {"op": "prepare", **where, "attempt": 1}]).encode())
    assert json.loads(done.stdout)["ok"], done.stderr
    assert not (person.folder / "summary.json").exists()
    assert not (person.folder / "usage.svg").exists()
    assert (person.folder / "attempt-0/usage.svg").exists()
    assert json.loads((person.folder / "attempt-0/summary.json").read_bytes())["attempt"] == 0


def test_read_summary_makes_nothing(person: Any, make_summary: Any) -> None:
    assert person.ask(op="read_summary") == {"ok": True, "summary": None}
    assert list(person.root.iterdir()) == []
    person.ask(op="finish", attempt=0, summary=make_summary())
    assert person.ask(op="read_summary")["summary"]["cause"] == "The job completed."
    person.ask(op="prepare", attempt=1)
    assert person.ask(op="read_summary")["summary"] is None
    assert person.ask(op="read_summary", attempt=0)["summary"]["attempt"] == 0


@pytest.mark.parametrize(
    ("words", "told"), [("No space left on device", "NAS was full"), ("Disk quota exceeded", "quota on the NAS")]
)
def test_a_failed_job_whose_last_words_are_of_a_full_nas_has_that_in_its_cause(
    person: Any, make_summary: Any, words: str, told: str
) -> None:
    person.ask(op="prepare", attempt=0)
    person.sh(f"echo 'dd: error writing: {words}' > stderr.log")
    failed = make_summary(state="failed", exit_code=1, cause="The body ended with exit code 1.", fault="person")
    cause = person.ask(op="finish", attempt=0, summary=failed)["summary"]["cause"]
    assert cause.startswith("The body ended with exit code 1. The ")
    assert told in cause
    assert person.ask(op="finish", attempt=0, summary=failed)["summary"]["cause"] == cause
    done = make_summary(job_id=13, cause="Completed.")
    assert person.ask(op="finish", job_id=13, attempt=0, summary=done)["summary"]["cause"] == "Completed."


def test_the_picture_of_what_was_used_is_the_persons_own(person: Any, make_summary: Any, course: Any) -> None:
    person.ask(op="prepare", attempt=0)
    person.sh("ln -s /etc/passwd usage.svg")
    assert person.ask(op="finish", attempt=0, summary=make_summary(), course=course)["ok"]
    picture = person.folder / "usage.svg"
    assert not picture.is_symlink()  # what stood there was replaced, not written through
    assert (picture.stat().st_uid, picture.stat().st_mode & 0o777) == (person.uid, 0o600)
    assert picture.read_text().startswith("<svg ")
    assert person.ask(op="checksums", attempt=0)["complete"]
    assert "usage.svg" not in (person.folder / "checksums.txt").read_text()


def test_without_measurements_there_is_no_picture(person: Any, make_summary: Any) -> None:
    person.ask(op="finish", attempt=0, summary=make_summary())
    assert not (person.folder / "usage.svg").exists()


HEAD = {"written_by": "head node", "state": "node_fail", "fault": "node", "exit_code": None, "cause": "n1 was lost."}


def test_a_node_that_comes_back_tells_in_place_of_the_head_node(person: Any, make_summary: Any) -> None:
    """With new checksums, whatever the head node had; and once only, however often it is asked."""
    person.ask(op="prepare", attempt=0)
    person.ask(op="finish", attempt=0, summary=make_summary(**HEAD))
    assert person.ask(op="checksums", attempt=0)["complete"]
    person.sh("printf late > outputs/late")
    for _ in range(2):
        told = person.ask(op="finish", attempt=0, summary=make_summary(exit_code=3, cause="It ended with 3."))
        assert told["summary"]["written_by"] == "node after head node"
        assert (told["summary"]["exit_code"], told["summary"]["cause"]) == (3, "It ended with 3.")
    assert not told["summary"]["complete"]
    assert person.ask(op="checksums", attempt=0)["complete"]
    assert "outputs/late" in (person.folder / "checksums.txt").read_text()


def test_what_the_node_has_told_is_not_replaced_by_the_head_node(person: Any, make_summary: Any) -> None:
    person.ask(op="prepare", attempt=0)
    first = person.ask(op="finish", attempt=0, summary=make_summary())["summary"]
    assert person.ask(op="finish", attempt=0, summary=make_summary(**HEAD))["summary"] == first


def test_of_a_body_that_died_with_its_node_the_head_nodes_cause_stays(person: Any, make_summary: Any) -> None:
    person.ask(op="prepare", attempt=0)
    person.ask(op="finish", attempt=0, summary=make_summary(**HEAD))
    duller = make_summary(state="failed", fault="node", exit_code=None, cause="Killed from outside.", image_digest="d")
    told = person.ask(op="finish", attempt=0, summary=duller)["summary"]
    assert (told["state"], told["cause"], told["image_digest"]) == ("node_fail", "n1 was lost.", "d")


@pytest.mark.parametrize("step", ["all hashed", "checksums.txt in place", "job_summary.txt in place"])
def test_a_summary_told_anew_while_its_files_are_hashed_is_kept(person: Any, make_summary: Any, step: str) -> None:
    """The head node hashes, and the lost node comes back: its account must not be overwritten at the end of that."""
    person.ask(op="prepare", attempt=0)
    person.ask(op="finish", attempt=0, summary=make_summary(**HEAD))
    node = person.folder / "node"
    anew = json.dumps({**make_summary(), "written_by": "node after head node"})
    person.sh(f"printf %s {shlex.quote(anew)} > {node.name}")
    code = WORKER_SWAPPED.replace("{folder!r}", repr(str(person.folder))).replace("{step!r}", repr(step))
    done = person.python(code, json.dumps({"root": str(person.root), "job_id": 12, "op": "checksums"}).encode())
    reply = json.loads(done.stdout)
    assert (reply["ok"], reply["fault"]) == (False, "cluster")
    assert json.loads((person.folder / "summary.json").read_text())["written_by"] == "node after head node"
    assert person.ask(op="checksums", attempt=0)["complete"]


WORKER_SWAPPED = """
import json, os, sys
sys.path.insert(0, {package!r})
from slurmk8s.results.request import parse
from slurmk8s.results.worker import answer
def at(step):
    if step == {step!r}:
        os.rename({folder!r} + "/node", {folder!r} + "/summary.json")
print(json.dumps(answer(parse(sys.stdin.buffer.read()), at)))
"""


def test_names_longer_than_a_summary_are_cut_to_their_end(person: Any, make_summary: Any) -> None:
    person.ask(op="prepare", attempt=0)
    code = """
import os
os.chdir(FOLDER)
for _ in range(300):
    os.mkdir("x" * 250)
    os.chdir("x" * 250)
for number in range(20):
    os.symlink("nowhere", f"link-{number}")
os.close(os.open("closed", os.O_CREAT, 0))
""".replace("FOLDER", repr(str(person.folder / "outputs")))
    assert person.python(code).returncode == 0
    told = person.ask(op="finish", attempt=0, summary=make_summary())["summary"]
    assert told["outputs"]["skipped"][0].endswith("xxx/link-0")
    hashed = person.ask(op="checksums", attempt=0)
    assert hashed["checksums"].endswith("xxx/closed was not readable")
    # What was written is read again, here and by everybody else.
    assert person.ask(op="read_summary", attempt=0)["summary"] == hashed["summary"]
    # rm copes with such a tree, shutil.rmtree of this Python does not
    subprocess.run(["rm", "-rf", str(person.folder)], check=True)
