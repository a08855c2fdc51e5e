"""Needs nothing. Many files, and a large one: memory stays flat. bench/bench_collection.py has a NAS's sizes."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

MANY = 24_000
# A hole, which takes no room on the disk but must be read like any other file.
LARGE = (512 << 20) + 12345
MORE_MIB = 6
PEAK = """
import json, resource, sys
sys.path.insert(0, {package!r})
from pathlib import Path
from slurmk8s.results import walk
from slurmk8s.results.request import parse
from slurmk8s.results.verify import verify
from slurmk8s.results.worker import answer
walk.walk.__defaults__ = (4096,)  # so that the folder below is more than what is held at a time
told = [answer(parse(sys.stdin.buffer.read()))["complete"]]
#VERIFY
# Its own from /proc: getrusage also counts what the process that started this one had.
own = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
peak = max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
print(json.dumps([*told, peak >> 10]))
"""
VERIFY = "verdict = verify(Path(FOLDER)); told += [verdict.ok, verdict.matched]"


@pytest.fixture
def hashed(person: Any, make_summary: Any) -> Any:
    """Hash and verify the bundle in one process: complete, verified, files that match, MiB at the most."""

    def run() -> list[Any]:
        assert person.ask(op="finish", attempt=0, summary=make_summary())["ok"]
        request = {"op": "checksums", "root": str(person.root), "job_id": 12, "attempt": 0}
        verified = VERIFY.replace("FOLDER", repr(str(person.folder)))
        done = person.python(PEAK.replace("#VERIFY", verified), json.dumps(request).encode())
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout)

    return run


def fill(outputs: Path, uid: int) -> None:
    """A folder with more files than are held at a time, and many folders with some."""
    flat = outputs / "flat"
    flat.mkdir()
    for number in range(16_000):
        (flat / f"{number}").touch()
    for number in range(16_000, MANY):
        folder = outputs / f"d{number // 100}"
        if number % 100 == 0:
            folder.mkdir()
        (folder / f"{number}").write_text(f"{number}\n")
    for folder in (flat, *outputs.glob("d*")):
        folder.chmod(0o755)
        os.chown(folder, uid, uid)


def test_very_many_files_take_no_more_memory_than_one(person: Any, hashed: Any) -> None:
    person.ask(op="prepare", attempt=0)
    *small, few_mib = hashed()
    assert small == [True, True, 2]
    person.run(["rm", "-r", str(person.folder)])
    person.ask(op="prepare", attempt=0)
    fill(person.folder / "outputs", person.uid)
    *large, many_mib = hashed()
    assert large == [True, True, MANY + 2]
    assert many_mib < few_mib + MORE_MIB, (few_mib, many_mib)
    person.run(["rm", "-r", str(person.folder)])


def test_a_very_large_file_takes_no_more_memory(person: Any, make_summary: Any) -> None:
    person.ask(op="prepare", attempt=0)
    person.sh(f"truncate -s {LARGE} outputs/weights")
    assert person.ask(op="finish", attempt=0, summary=make_summary())["ok"]
    request = {"op": "checksums", "root": str(person.root), "job_id": 12, "attempt": 0}
    done = person.python(PEAK, json.dumps(request).encode())
    complete, peak_mib = json.loads(done.stdout)
    assert complete
    assert json.loads((person.folder / "summary.json").read_bytes())["outputs"]["bytes"] == LARGE
    assert peak_mib < 64
