"""Needs nothing but coreutils. checksums.txt, checked by the real sha256sum."""

import hashlib
import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def finished(person: Any, make_summary: Any) -> Callable[..., Any]:
    """Make a bundle whose job has ended, with these shell lines run in its folder before."""

    def make(script: str = "true") -> Any:
        person.ask(op="prepare", attempt=0)
        person.sh(script)
        assert person.ask(op="finish", attempt=0, summary=make_summary())["ok"]
        return person

    return make


def sha256sum(folder: Path) -> subprocess.CompletedProcess[bytes]:
    command = ["sha256sum", "--strict", "--quiet", "-c", "checksums.txt"]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False)


def test_sha256sum_accepts_every_name_a_file_can_have(finished: Any) -> None:
    odd = [
        b"new\nline",
        b"back\\slash",
        b"car\rriage",
        b"tail\r",
        b" lead",
        b"*star",
        b"\xff\xfe",
        "한글".encode(),
        b"\\",
    ]
    person = finished("mkdir -p outputs/deep/er; echo x > outputs/deep/er/file")
    for name in odd:
        path = os.fsencode(person.folder / "outputs") + b"/" + name
        with open(path, "wb") as file:
            file.write(name)
        os.chown(path, person.uid, person.uid)
    reply = person.ask(op="checksums", attempt=0, processes=3)
    assert (reply["complete"], reply["checksums"]) == (True, "complete")
    done = sha256sum(person.folder)
    assert done.returncode == 0, done.stderr
    # Byte for byte what the program itself writes, in our order.
    lines = (person.folder / "checksums.txt").read_bytes().splitlines(keepends=True)
    names = [b"stdout.log", b"stderr.log", *(b"outputs/" + name for name in sorted(odd)), b"outputs/deep/er/file"]
    command = [b"sha256sum", b"--", *names]
    assert b"".join(lines) == subprocess.run(command, cwd=person.folder, capture_output=True, check=True).stdout


def test_the_summaries_say_complete_and_the_totals(finished: Any) -> None:
    person = finished("printf 12345 > outputs/a; printf 123 > stdout.log")
    reply = person.ask(op="checksums", attempt=0)
    stored = json.loads((person.folder / "summary.json").read_bytes())
    assert reply["summary"] == stored
    assert (stored["complete"], stored["checksums"]) == (True, "complete")
    assert stored["outputs"] == {"files": 1, "bytes": 5, "skipped_count": 0, "skipped": []}
    assert "slurmk8s verify 12" in (person.folder / "job_summary.txt").read_text()
    assert not (person.folder / ".checksums.partial").exists()


def test_links_pipes_and_what_they_lead_to_are_not_hashed(finished: Any, root: Path) -> None:
    (root / "secret").write_text("x")
    person = finished(f"ln -s {root}/secret outputs/a; ln -s / outputs/b; mkfifo outputs/c; echo d > outputs/d")
    reply = person.ask(op="checksums", attempt=0)
    assert reply["complete"]
    assert reply["summary"]["outputs"]["skipped"] == ["outputs/a", "outputs/b", "outputs/c"]
    listed = [line.split("  ")[1] for line in (person.folder / "checksums.txt").read_text().splitlines()]
    assert listed == ["stdout.log", "stderr.log", "outputs/d"]


def test_a_tree_deeper_than_a_path_may_be_long_is_hashed(finished: Any) -> None:
    person = finished("true")
    code = """
import os
os.chdir(FOLDER)
for _ in range(1500):
    os.mkdir("deep")
    os.chdir("deep")
open("bottom", "w").close()
""".replace("FOLDER", repr(str(person.folder / "outputs")))
    assert person.python(code).returncode == 0
    reply = person.ask(op="checksums", attempt=0)
    assert (reply["complete"], reply["summary"]["outputs"]["files"]) == (True, 1)
    # rm copes with such a tree, shutil.rmtree of this Python does not
    subprocess.run(["rm", "-rf", str(person.folder)], check=True)


def test_unreadable_files_and_folders_are_named_and_the_bundle_is_not_complete(finished: Any) -> None:
    person = finished("echo a > outputs/a; echo b > outputs/b; chmod 0 outputs/b; mkdir outputs/d; chmod 0 outputs/d")
    reply = person.ask(op="checksums", attempt=0)
    assert reply["ok"]
    assert reply["complete"] is False
    assert reply["unreadable"] == ["outputs/b", "outputs/d/"]
    assert reply["checksums"] == "failed: outputs/b and 1 more were not readable"
    assert "outputs/a" in (person.folder / "checksums.txt").read_text()


def test_a_job_that_took_its_own_logs_and_outputs_away_still_has_a_summary_that_says_so(
    person: Any, make_summary: Any
) -> None:
    person.ask(op="prepare", attempt=0)
    person.sh("rm stderr.log; mv stdout.log ../kept; ln -s ../kept stdout.log; rmdir outputs; ln -s / outputs")
    assert person.ask(op="finish", attempt=0, summary=make_summary())["summary"]["outputs"]["files"] == 0
    reply = person.ask(op="checksums", attempt=0)
    assert (reply["ok"], reply["complete"]) == (True, False)
    assert reply["missing"] == ["stdout.log", "stderr.log", "outputs/"]
    assert reply["checksums"] == "failed: stdout.log and 2 more were gone"
    assert (person.folder / "checksums.txt").read_bytes() == b""


def test_a_file_that_keeps_changing_is_noticed(finished: Any) -> None:
    person = finished("echo a > outputs/a")
    target = person.folder / "outputs/growing"
    writer = subprocess.Popen(["/bin/sh", "-c", f"while :; do echo x >> {target}; done"])
    try:
        deadline = time.monotonic() + 10
        while not target.exists():
            assert time.monotonic() < deadline
        target.chmod(0o644)
        # Large enough that it grows while it is read.
        with target.open("ab") as file:
            file.truncate(64 << 20)
        reply = person.ask(op="checksums", attempt=0)
    finally:
        writer.kill()
        writer.wait()
    assert reply["changing"] == ["outputs/growing"]
    assert reply["checksums"] == "failed: outputs/growing was still changing"
    assert reply["complete"] is False
    again = person.ask(op="checksums", attempt=0)
    assert again["complete"] is True


def test_what_was_hashed_before_a_crash_is_not_hashed_again(finished: Any) -> None:
    person = finished("for i in 1 2 3 4; do echo $i > outputs/$i; done")
    # The names of the digests are believed only with the right size, time and inode: these are right, so a
    # wrong digest shows that it was taken over.
    forged = "0" * 64
    lines = b""
    for name in ("stdout.log", "stderr.log", "outputs/1", "outputs/2"):
        found = (person.folder / name).stat()
        lines += f"{found.st_size} {found.st_mtime_ns} {found.st_ino} {forged}  {name}\n".encode()
    found = (person.folder / "outputs/3").stat()
    lines += f"{found.st_size} {found.st_mtime_ns - 1} {found.st_ino} {forged}  outputs/3\n".encode()
    found = (person.folder / "outputs/4").stat()
    lines += f"{found.st_size} {found.st_mtime_ns} {found.st_ino} {forged}  outp".encode()
    partial = person.folder / ".checksums.partial"
    partial.write_bytes(lines)
    os.chown(partial, person.uid, person.uid)
    reply = person.ask(op="checksums", attempt=0)
    assert reply["complete"]
    assert reply["summary"]["outputs"]["files"] == 4
    listed = dict(reversed(line.split("  ")) for line in (person.folder / "checksums.txt").read_text().splitlines())
    assert list(listed) == ["stdout.log", "stderr.log", "outputs/1", "outputs/2", "outputs/3", "outputs/4"]
    assert [name for name, digest in listed.items() if digest == forged] == list(listed)[:4]
    assert listed["outputs/3"] == hashlib.sha256(b"3\n").hexdigest()


def test_two_workers_at_one_bundle_do_not_mix(finished: Any) -> None:
    person = finished("echo a > outputs/a")
    code = """
import json, subprocess, sys
sys.path.insert(0, {package!r})
from slurmk8s.results.request import parse
from slurmk8s.results.worker import answer
data = sys.stdin.buffer.read()
def at(step):
    if step == "data durable":
        print(json.dumps(answer(parse(data))))
print(json.dumps(answer(parse(data), at)))
"""
    request = {"op": "checksums", "root": str(person.root), "job_id": 12, "attempt": 0}
    done = person.python(code, json.dumps(request).encode())
    second, first = (json.loads(line) for line in done.stdout.splitlines())
    assert (second["ok"], second["fault"]) == (False, "cluster")
    assert first["complete"]
    assert sha256sum(person.folder).returncode == 0


def test_a_bundle_started_again_while_it_is_hashed_is_refused_and_then_hashed_where_it_went(finished: Any) -> None:
    person = finished("echo first > stdout.log")
    code = """
import json, sys
sys.path.insert(0, {package!r})
from slurmk8s.results.request import parse
from slurmk8s.results.worker import answer
hash, prepare = json.loads(sys.stdin.read())
def at(step):
    if step == "data durable":
        assert answer(parse(json.dumps(prepare).encode()))["ok"]
print(json.dumps(answer(parse(json.dumps(hash).encode()), at)))
"""
    where = {"root": str(person.root), "job_id": 12}
    requests = [{"op": "checksums", **where, "attempt": 0}, {"op": "prepare", **where, "attempt": 1}]
    done = person.python(code, json.dumps(requests).encode())
    assert json.loads(done.stdout)["fault"] == "cluster", done.stderr
    assert not (person.folder / "checksums.txt").exists()
    assert person.ask(op="checksums", attempt=0)["complete"]
    assert sha256sum(person.folder / "attempt-0").returncode == 0


def test_without_a_summary_there_is_nothing_to_complete(person: Any) -> None:
    reply = person.ask(op="checksums", attempt=0)
    assert (reply["ok"], reply["fault"]) == (False, "person")
    assert list(person.root.iterdir()) == []


def test_memory_does_not_grow_with_the_number_of_files(finished: Any) -> None:
    person = finished("true")
    peak = """
import json, resource, sys
sys.path.insert(0, {package!r})
from slurmk8s.results.request import parse
from slurmk8s.results.worker import answer
reply = answer(parse(sys.stdin.buffer.read()))
print(json.dumps([reply["complete"], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))
"""

    def peak_with(folders: int) -> int:
        person.sh(f"for d in $(seq {folders}); do mkdir outputs/$d; (cd outputs/$d && seq 500 | split -l 1 -a 4); done")
        request = {"op": "checksums", "root": str(person.root), "job_id": 12, "attempt": 0}
        complete, kilobytes = json.loads(person.python(peak, json.dumps(request).encode()).stdout)
        assert complete
        person.sh('rm -r outputs/*; rm checksums.txt; sed -i \'s/"complete": true/"complete": false/\' summary.json')
        return kilobytes

    few, many = peak_with(1), peak_with(20)
    assert many - few < 4096
