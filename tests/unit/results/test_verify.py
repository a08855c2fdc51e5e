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


def test_a_folder_that_is_none_is_told(root: Path) -> None:
    with pytest.raises(PersonFault, match="no results folder"):
        verify(root / "99")
    (root / "file").write_text("")
    os.symlink(root, root / "link")
    for name in ("file", "link"):
        with pytest.raises(PersonFault, match="not a results folder"):
            verify(root / name)
