"""Needs nothing. What has happened to a bundle since its job ended."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from slurmk8s.errors import PersonFault
from slurmk8s.results.verify import verify


@pytest.fixture
def bundle(person: Any, make_summary: Any) -> Any:
    """A complete bundle and its owner."""
    person.ask(op="prepare", attempt=0)
    person.sh(
        "echo out > stdout.log; mkdir outputs/d; for i in 1 2 3; do echo $i > outputs/d/$i; done; ln -s d outputs/l"
    )
    person.ask(op="finish", attempt=0, summary=make_summary())
    assert person.ask(op="checksums", attempt=0)["complete"]
    return person


def test_an_untouched_bundle_is_ok(bundle: Any) -> None:
    verdict = verify(bundle.folder)
    assert verdict.ok
    assert verdict.to_json() == {
        "ok": True,
        "state": "complete",
        "reason": "",
        "archive": "",
        "matched": 5,
        "changed": [],
        "missing": [],
        "extra": [],
        "unreadable": [],
        "malformed": [],
    }


def test_changed_missing_extra_and_unreadable_files_are_named(bundle: Any) -> None:
    bundle.sh(
        "echo 4 >> outputs/d/1; rm outputs/d/2; echo x > outputs/d/new; chmod 0 outputs/d/3; echo x >> stdout.log"
    )
    code = """
import json, sys
from pathlib import Path
sys.path.insert(0, {package!r})
from slurmk8s.results.verify import verify
print(json.dumps(verify(Path(sys.stdin.read())).to_json()))
"""
    # As the owner: root reads everything.
    verdict = json.loads(bundle.python(code, str(bundle.folder).encode()).stdout)
    assert verdict["ok"] is False
    assert verdict["changed"] == ["stdout.log", "outputs/d/1"]
    assert verdict["missing"] == ["outputs/d/2"]
    assert verdict["extra"] == ["outputs/d/new"]
    assert verdict["unreadable"] == ["outputs/d/3"]
    assert verdict["matched"] == 1


def test_a_file_that_became_a_link_to_its_like_is_changed(bundle: Any) -> None:
    bundle.sh("mv outputs/d/1 ../same; ln -s ../../../same outputs/d/1")
    assert verify(bundle.folder).changed == ["outputs/d/1"]


def test_a_folder_that_became_a_link_has_lost_its_files(bundle: Any) -> None:
    bundle.sh("mv outputs/d ../same; ln -s ../../same outputs/d")
    assert verify(bundle.folder).missing == ["outputs/d/1", "outputs/d/2", "outputs/d/3"]


def test_a_checksums_file_cannot_lead_outside_the_bundle(bundle: Any, root: Path) -> None:
    (root / "secret").write_text("x")
    digest = "0" * 64
    names = ["../secret", "/etc/passwd", "outputs/../../secret", "outputs//d", "summary.json"]
    bundle.sh("".join(f"echo '{digest}  {name}' >> checksums.txt; " for name in names) + "echo junk >> checksums.txt")
    assert verify(bundle.folder).malformed == [f"checksums.txt: line {number}" for number in range(6, 12)]


def test_without_checksums_the_state_is_pending(person: Any, make_summary: Any) -> None:
    person.ask(op="prepare", attempt=0)
    assert verify(person.folder).state == "pending"
    person.ask(op="finish", attempt=0, summary=make_summary())
    verdict = verify(person.folder)
    assert (verdict.state, verdict.ok) == ("pending", False)


def test_checksums_that_were_removed_are_missing_and_not_awaited(bundle: Any) -> None:
    bundle.sh("rm checksums.txt")
    verdict = verify(bundle.folder)
    assert (verdict.state, verdict.ok, verdict.problems["missing"]) == ("complete", False, ["checksums.txt"])
    assert verdict.problems["extra"] == []


def test_checksums_that_failed_are_not_ok(person: Any, make_summary: Any) -> None:
    person.ask(op="prepare", attempt=0)
    person.sh("echo x > outputs/x; chmod 0 outputs/x")
    person.ask(op="finish", attempt=0, summary=make_summary())
    person.ask(op="checksums", attempt=0)
    verdict = verify(person.folder)
    assert (verdict.state, verdict.ok, verdict.reason) == ("failed", False, "outputs/x was not readable")


def test_the_logs_of_earlier_attempts_are_verified_too(person: Any, make_summary: Any) -> None:
    person.ask(op="prepare", attempt=0)
    person.sh("echo first > stdout.log; echo 1 > outputs/checkpoint")
    person.ask(op="finish", attempt=0, summary=make_summary(state="requeued"))
    person.ask(op="checksums", attempt=0)
    person.ask(op="prepare", attempt=1)
    assert verify(person.folder).state == "pending"
    person.sh("echo 2 > outputs/checkpoint")
    person.ask(op="finish", attempt=1, summary=make_summary(attempt=1))
    person.ask(op="checksums", attempt=1)
    verdict = verify(person.folder)
    assert (verdict.ok, verdict.matched) == (True, 5)
    person.sh("echo forged > attempt-0/stdout.log")
    assert verify(person.folder).changed == ["attempt-0/stdout.log"]


def test_an_emptied_list_is_not_ok_whatever_became_of_the_files(bundle: Any) -> None:
    bundle.sh(": > checksums.txt; rm -r outputs/d; echo forged > stdout.log; rm stderr.log")
    verdict = verify(bundle.folder)
    assert (verdict.ok, verdict.matched) == (False, 0)
    assert verdict.malformed == ["checksums.txt: stdout.log is not in it", "checksums.txt: stderr.log is not in it"]


def test_an_earlier_attempt_that_was_complete_must_have_its_list(person: Any, make_summary: Any) -> None:
    person.ask(op="prepare", attempt=0)
    person.ask(op="finish", attempt=0, summary=make_summary(state="requeued"))
    person.ask(op="checksums", attempt=0)
    person.ask(op="prepare", attempt=1)
    person.ask(op="finish", attempt=1, summary=make_summary(attempt=1))
    person.ask(op="checksums", attempt=1)
    person.sh("sed -i /stdout/d attempt-0/checksums.txt")
    assert verify(person.folder).malformed == ["attempt-0/checksums.txt: stdout.log is not in it"]
    person.sh("rm attempt-0/checksums.txt attempt-0/stdout.log")
    assert verify(person.folder).missing == ["attempt-0/checksums.txt"]
    person.sh("rm -r attempt-0; ln -s outputs attempt-0")
    assert verify(person.folder).missing == ["attempt-0/"]


@pytest.mark.parametrize("made", ["mkdir checksums.txt", "ln -s stdout.log checksums.txt", "mkfifo checksums.txt"])
def test_what_stands_in_place_of_the_list_is_malformed(bundle: Any, made: str) -> None:
    bundle.sh(f"rm checksums.txt; {made}")
    verdict = verify(bundle.folder)
    assert (verdict.ok, verdict.malformed) == (False, ["checksums.txt: not a plain file"])


def test_names_that_no_file_can_have_are_malformed(bundle: Any) -> None:
    names = [b"outputs/a\0b", b"outputs/" + b"x" * 256, b"outputs/" + b"x" * 256 + b"/a"]
    with (bundle.folder / "checksums.txt").open("ab") as file:
        file.writelines(b"%s  %s\n" % (b"0" * 64, name) for name in names)
    verdict = verify(bundle.folder)
    assert (verdict.matched, verdict.malformed) == (5, [f"checksums.txt: line {number}" for number in (6, 7, 8)])


def test_a_file_listed_twice_must_be_what_both_lines_say(bundle: Any) -> None:
    bundle.sh('line="$(head -n 1 checksums.txt)"; echo "$line" >> checksums.txt')
    assert verify(bundle.folder).ok
    bundle.sh(f"echo '{'0' * 64}  stdout.log' >> checksums.txt")
    assert verify(bundle.folder).changed == ["stdout.log"]


def test_a_list_of_one_endless_line_or_of_nothing_but_nonsense_is_not_read_to_its_end(bundle: Any) -> None:
    bundle.sh("truncate -s 1T checksums.txt")
    assert verify(bundle.folder).malformed == ["checksums.txt: line 6"]
    bundle.sh("rm checksums.txt; yes | head -n 5000 > checksums.txt")
    assert len(verify(bundle.folder).malformed) == 1002


def test_folders_in_place_of_the_summaries_are_no_summaries(bundle: Any) -> None:
    bundle.sh("rm summary.json .slurmk8s.json; mkdir summary.json .slurmk8s.json archived.txt")
    assert verify(bundle.folder).ok


def test_a_folder_that_is_none_is_told(root: Path) -> None:
    with pytest.raises(PersonFault, match="no results folder"):
        verify(root / "99")
    (root / "file").write_text("")
    os.symlink(root, root / "link")
    for name in ("file", "link"):
        with pytest.raises(PersonFault, match="not a results folder"):
            verify(root / name)
