"""Needs zstd. Archives that somebody has forged: none is taken for whole, and none takes the memory it asks for."""

import io
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slurmk8s.results.verify import verify

Made = Callable[[tarfile.TarFile], None]


@pytest.fixture
def forged(person: Any, make_summary: Any, root: Path) -> Callable[[Made], Path]:
    """Make the archive of a complete bundle; its path."""
    person.ask(op="prepare", attempt=0)
    person.ask(op="finish", attempt=0, summary=make_summary())
    assert person.ask(op="checksums", attempt=0)["complete"]

    def make(made: Made) -> Path:
        path, plain = root / "12.tar.zst", root / "plain.tar"
        with tarfile.open(plain, "w", format=tarfile.PAX_FORMAT) as tar:
            made(tar)
        subprocess.run(["zstd", "-q", "-f", plain, "-o", path], check=True)
        plain.unlink()
        shutil.chown(path, person.uid)
        person.sh(f"echo 'The files of this job are in {path}' > archived.txt")
        return path

    return make


def add(tar: tarfile.TarFile, name: str, data: bytes, **changes: Any) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in changes.items():
        setattr(info, key, value)
    tar.addfile(info, io.BytesIO(data))


def test_an_archive_without_a_list_or_with_an_empty_one_is_not_ok(forged: Any, root: Path) -> None:
    forged(lambda tar: add(tar, "12/stdout.log", b"x"))
    verdict = verify(root / "12")
    assert (verdict.ok, verdict.missing) == (False, ["checksums.txt"])
    forged(lambda tar: add(tar, "12/checksums.txt", b""))
    verdict = verify(root / "12")
    logs = ["checksums.txt: stdout.log is not in it", "checksums.txt: stderr.log is not in it"]
    assert (verdict.ok, verdict.malformed) == (False, logs)


def test_an_earlier_attempt_has_its_list_in_the_archive_if_its_summary_is_complete(forged: Any, root: Path) -> None:
    summary = (root / "12/summary.json").read_bytes()

    def made(tar: tarfile.TarFile) -> None:
        for name in ("checksums.txt", "stdout.log", "stderr.log"):
            add(tar, f"12/{name}", (root / "12" / name).read_bytes())
        add(tar, "12/attempt-0/summary.json", summary)
        add(tar, "12/attempt-1/summary.json", summary.replace(b'"complete": true', b'"complete": false'))

    forged(made)
    verdict = verify(root / "12")
    assert (verdict.matched, verdict.missing) == (2, ["attempt-0/checksums.txt"])


def test_a_file_of_an_archive_cannot_be_what_two_lines_say(forged: Any, root: Path) -> None:
    def made(tar: tarfile.TarFile) -> None:
        for name in ("stdout.log", "stderr.log"):
            add(tar, f"12/{name}", b"")
        add(tar, "12/checksums.txt", b"%s  stdout.log\n" % (b"0" * 64) + (root / "12/checksums.txt").read_bytes())

    forged(made)
    assert "stdout.log" in verify(root / "12").changed


def long_name(tar: tarfile.TarFile) -> None:
    assert tar.fileobj is not None
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 1 << 30
    tar.fileobj.write(info.tobuf(tarfile.GNU_FORMAT))
    tar.fileobj.seek(1 << 30, os.SEEK_CUR)
    add(tar, "12/a", b"")


def less_than_nothing(tar: tarfile.TarFile) -> None:
    assert tar.fileobj is not None
    for size in (0, -512):
        info = tarfile.TarInfo("12/a")
        info.size = size
        tar.fileobj.write(info.tobuf(tarfile.GNU_FORMAT))


def only_headers(tar: tarfile.TarFile) -> None:
    for _ in range(1500):
        add(tar, "12/a", b"long", type=tarfile.GNUTYPE_LONGNAME)


CHECK = """
import sys
from pathlib import Path
from slurmk8s.results.verify import verify
verdict = verify(Path(sys.argv[1]))
peak = Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]
print(peak, verdict.ok, verdict.unreadable + verdict.extra)
"""


def checked(folder: Path) -> tuple[int, str]:
    """The most memory it took in KiB, and what it said; by itself, so that no other test's memory counts.

    By the kernel's own figure: getrusage counts what the process that started it had held.
    """
    command = [sys.executable, "-c", CHECK, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    memory, _, said = done.stdout.strip().partition(" ")
    return int(memory), said


@pytest.mark.parametrize(
    "made",
    [
        long_name,
        less_than_nothing,
        only_headers,
        lambda tar: add(tar, "12/a", b"", pax_headers={"GNU.sparse.map": "x"}),
        lambda tar: add(tar, "12/a", b"", pax_headers={"GNU.sparse.map": "0,1", "GNU.sparse.size": str(1 << 60)}),
    ],
    ids=["a name of 1 GiB", "a negative size", "only headers", "a bad map", "a sparse file"],
)
def test_a_forged_archive_is_unreadable_and_takes_little_memory(forged: Any, root: Path, made: Made) -> None:
    path = forged(made)
    memory, said = checked(root / "12")
    assert said == f"False ['{path}']"
    assert memory < 150_000


def test_of_a_large_file_that_the_job_has_called_checksums_nothing_is_kept(forged: Any, root: Path) -> None:
    forged(lambda tar: add(tar, "12/outputs/checksums.txt", bytes(200 << 20)))
    memory, said = checked(root / "12")
    assert said == "False ['outputs/checksums.txt']"
    assert memory < 150_000
