"""An archive unpacks to a bundle that verifies, and nothing is removed before that is certain."""

import asyncio
import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from slurmk8s.after import archive as archiving
from slurmk8s.after import child
from slurmk8s.after.item import Owner
from slurmk8s.errors import ClusterFault, PersonFault, SlurmK8sError
from slurmk8s.results import files, sums
from slurmk8s.results.verify import verify as verify_bundle
from slurmk8s.results.walk import walk

STRANGE = b"outputs/st\xc3\xa4ng\xff \\ \n name"


@pytest.fixture
def bundle(nas: Path, owner: Owner) -> Path:
    """A complete one, with what people put into theirs."""
    folder = nas / "results" / "7"
    (folder / "outputs" / "deep").mkdir(parents=True)
    (folder / "attempt-0").mkdir()
    (folder / "stdout.log").write_text("hello\n")
    (folder / "stderr.log").write_text("")
    (folder / "summary.json").write_text("{}")
    (folder / "job_summary.txt").write_text("Completed.\n")
    (folder / "attempt-0" / "stdout.log").write_text("earlier\n")
    (folder / "outputs" / "deep" / "model.bin").write_bytes(os.urandom(300_000))
    (folder / "outputs" / ("x" * 200)).write_text("long name")
    with open(os.fsencode(folder) + b"/" + STRANGE, "wb") as file:
        file.write(b"strange")
    (folder / "outputs" / "latest").symlink_to("deep/model.bin")
    (folder / "outputs" / "away").symlink_to("/etc/shadow")
    os.mkfifo(folder / "outputs" / "pipe")
    names = [b"stdout.log", b"stderr.log", b"outputs/deep/model.bin", b"outputs/" + b"x" * 200, STRANGE]
    lines = [sums.line(hashlib.sha256(_bytes(folder, name)).hexdigest(), name) for name in names]
    (folder / "checksums.txt").write_bytes(b"".join(lines))
    subprocess.run(["chown", "-Rh", f"{owner.uid}:{owner.gid}", folder], check=True)
    return folder


def _bytes(folder: Path, name: bytes) -> bytes:
    with open(os.fsencode(folder) + b"/" + name, "rb") as file:
        return file.read()


@pytest.fixture
def archive(nas: Path, owner: Owner) -> Callable[..., dict[str, Any]]:
    """Ask for it as the agent does."""

    def ask(**changes: Any) -> dict[str, Any]:
        request = {
            "results": str(nas / "results"), "job_id": 7, "folder": None, "remove": False, "level": 3, "threads": 1,
            "zstd": "/usr/bin/zstd", **changes,
        }  # fmt: skip
        return asyncio.run(child.ask("slurmk8s.after.archive", request, owner, 60, 8192))

    return ask


def unpacked(archive: Path, folder: Path) -> Path:
    """As a person does it."""
    folder.mkdir()
    subprocess.run(["tar", "--zstd", "-xf", archive, "-C", folder], check=True)
    return folder / "7"


def verify(folder: Path) -> None:
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "checksums.txt"], cwd=folder, check=True)


def test_what_is_unpacked_verifies_and_is_all_there(archive: Any, bundle: Path, nas: Path, owner: Owner) -> None:
    before = sorted(path.name for path in bundle.rglob("*"))
    reply = archive()
    path = nas / "results" / "7.tar.zst"
    assert reply == {"ok": True, "archive": str(path), "removed": False}
    assert (path.stat().st_uid, path.stat().st_mode & 0o777) == (owner.uid, 0o600)
    found = unpacked(path, nas / "there")
    verify(found)
    assert sorted(path.name for path in found.rglob("*")) == [name for name in before if name != "pipe"]
    assert os.readlink(found / "outputs" / "away") == "/etc/shadow"
    assert sorted(path.name for path in bundle.rglob("*")) == before
    assert not list((nas / "results").glob(".7*"))


def test_the_original_goes_only_after_the_archive_was_read_back(archive: Any, bundle: Path, nas: Path) -> None:
    target = nas / "archives"
    target.mkdir()
    target.chmod(0o1777)
    assert archive(folder=str(target), remove=True)["removed"] is True
    assert sorted(path.name for path in bundle.iterdir()) == ["archived.txt", "job_summary.txt", "summary.json"]
    assert str(target / "7.tar.zst") in (bundle / "archived.txt").read_text()
    verify(unpacked(target / "7.tar.zst", nas / "there"))
    assert Path("/etc/shadow").exists()
    # Asked again, after a crash perhaps: the good archive is not made anew from what is left.
    assert archive(folder=str(target), remove=True)["removed"] is True
    verify(unpacked(target / "7.tar.zst", nas / "again"))


def test_a_folder_that_is_not_there_or_closed_is_named(archive: Any, bundle: Path, nas: Path) -> None:
    closed = nas / "archives"
    closed.mkdir(mode=0o755)
    for target in (closed, closed / "alice"):
        with pytest.raises(ClusterFault, match=re.escape(f"The folder for archives, {target}, is not there")):
            archive(folder=str(target), remove=True)
    assert (bundle / "stdout.log").exists()


def test_verify_reads_the_archive_in_place_of_what_it_holds(
    archive: Any, bundle: Path, nas: Path, owner: Owner
) -> None:
    (bundle / "attempt-0" / "checksums.txt").write_bytes(
        sums.line(hashlib.sha256(b"earlier\n").hexdigest(), b"stdout.log") + sums.line("0" * 64, b"outputs/handed on")
    )
    (bundle / "outputs" / "checksums.txt").write_text("the job's own\n")
    os.chown(bundle / "attempt-0" / "checksums.txt", owner.uid, owner.gid)
    archive(remove=True)
    path = nas / "results" / "7.tar.zst"
    verdict = verify_bundle(bundle)
    assert (verdict.archive, verdict.matched, verdict.extra) == (str(path), 6, ["outputs/checksums.txt"])
    assert [name for name, found in verdict.problems.items() if found] == ["extra"]

    (nas / "results").rename(nas / "mounted elsewhere")
    assert verify_bundle(nas / "mounted elsewhere" / "7").matched == 6
    (nas / "mounted elsewhere").rename(nas / "results")

    there = unpacked(path, nas / "there")
    (there / "stdout.log").write_text("changed\n")
    (there / "outputs" / "deep" / "model.bin").unlink()
    (there / "outputs" / "checksums.txt").unlink()
    subprocess.run(["tar", "--zstd", "-cf", path, "-C", nas / "there", "7"], check=True)
    verdict = verify_bundle(bundle)
    assert {name: found for name, found in verdict.problems.items() if found} == {
        "changed": ["stdout.log"],
        "missing": ["outputs/deep/model.bin"],
    }
    os.truncate(path, path.stat().st_size // 2)
    verdict = verify_bundle(bundle)
    assert (verdict.ok, verdict.unreadable) == (False, [str(path)])
    assert re.search("zstd failed|cannot be read", verdict.reason)
    path.unlink()
    verdict = verify_bundle(bundle)
    assert (verdict.ok, verdict.missing) == (False, [str(path)])


def test_a_file_that_no_longer_is_what_it_was_is_not_archived(archive: Any, bundle: Path, nas: Path) -> None:
    (bundle / "outputs" / "deep" / "model.bin").write_bytes(b"changed")
    with pytest.raises(PersonFault, match=r"outputs/deep/model\.bin is no longer what checksums\.txt says"):
        archive(remove=True)
    assert not (nas / "results" / "7.tar.zst").exists()
    assert (bundle / "stdout.log").exists()
    (bundle / "outputs" / "deep" / "model.bin").unlink()
    with pytest.raises(PersonFault, match="no longer in the bundle"):
        archive(remove=True)
    (bundle / "checksums.txt").unlink()
    with pytest.raises(PersonFault, match=r"no checksums\.txt"):
        archive(remove=True)


def test_a_files_name_reaches_nobodys_terminal_as_it_is(archive: Any, bundle: Path, owner: Owner) -> None:
    name = b"outputs/\x1b]0;owned\x07\xff"
    with open(os.fsencode(bundle) + b"/" + name, "wb") as file:
        os.fchown(file.fileno(), owner.uid, owner.gid)
    with open(bundle / "checksums.txt", "ab") as file:
        file.write(sums.line("0" * 64, name))
    shown = re.escape(r"outputs/\x1b]0;owned\x07\xff")
    with pytest.raises(PersonFault, match=f"^{shown} is no longer what"):
        archive()
    os.unlink(os.fsencode(bundle) + b"/" + name)
    with pytest.raises(PersonFault, match=f"^{shown} is in checksums"):
        archive()


def test_no_folder_is_too_deep_to_be_removed(archive: Any, bundle: Path, nas: Path, owner: Owner) -> None:
    folder = os.open(bundle / "outputs", os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("d", dir_fd=folder)
        os.chown("d", owner.uid, owner.gid, dir_fd=folder)
        inner = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)
    try:
        assert archive(remove=True)["removed"] is True
        assert not (bundle / "outputs").exists()
    finally:
        subprocess.run(["rm", "-rf", bundle], check=True)  # rmtree, which clears up after us, does not go so deep


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (": > checksums.txt; echo forged > stdout.log", r"stdout\.log is not in checksums\.txt"),
        ("sed -i /stderr/d checksums.txt", r"stderr\.log is not in checksums\.txt"),
        ("echo junk >> checksums.txt", r"Line 6 of checksums\.txt is none"),
        ("truncate -s 400M checksums.txt", r"Line 6 of checksums\.txt is none"),
    ],
)
def test_a_bundle_whose_list_was_tampered_with_is_not_archived(
    archive: Any, bundle: Path, nas: Path, script: str, reason: str
) -> None:
    subprocess.run(["sh", "-c", script], cwd=bundle, check=True)
    shutil.chown(bundle / "checksums.txt", bundle.stat().st_uid)  # sed makes it anew
    with pytest.raises(PersonFault, match=reason):
        archive(remove=True)
    assert not (nas / "results" / "7.tar.zst").exists()
    assert (bundle / "stdout.log").exists()


def test_a_bundle_of_somebody_else_or_behind_a_link_is_refused(archive: Any, bundle: Path, nas: Path) -> None:
    shutil.move(bundle, nas / "elsewhere")
    bundle.symlink_to(nas / "elsewhere")
    with pytest.raises(PersonFault, match="not a folder of yours"):
        archive()
    bundle.unlink()
    bundle.mkdir()
    with pytest.raises(PersonFault, match="not a folder of yours"):
        archive()


def test_an_archive_of_somebody_else_is_not_overwritten(archive: Any, bundle: Path, nas: Path) -> None:
    (nas / "results" / "7.tar.zst").write_text("root's")
    with pytest.raises(PersonFault, match="does not permit"):
        archive(remove=True)
    assert (nas / "results" / "7.tar.zst").read_text() == "root's"
    assert (bundle / "stdout.log").exists()


def test_a_broken_or_missing_zstd_leaves_the_bundle_alone(archive: Any, bundle: Path, nas: Path) -> None:
    with pytest.raises(SlurmK8sError, match="Install zstd"):
        archive(zstd="/no/zstd", remove=True)
    with pytest.raises(ClusterFault, match="zstd failed"):
        archive(zstd="/bin/false", remove=True)
    lies = nas / "lies"  # writes an empty archive and says that all went well
    lies.write_text(
        "#!/bin/sh\ncase $* in *-d*) exec zstd -d -c ;; esac\ncat >/dev/null; tar cf - -T /dev/null | zstd -c\n"
    )
    lies.chmod(0o755)
    with pytest.raises(PersonFault, match="no longer in the bundle"):
        archive(zstd=str(lies), remove=True)
    assert (bundle / "stdout.log").exists()
    assert not list((nas / "results").glob("*.tar.zst*"))


KILLED = """
import json, os, signal, sys
from slurmk8s.after.archive import archive
count = 0
def at(event, args):
    global count
    if event in ("os.rename", "os.remove", "os.rmdir", "open", "os.link"):
        path = args[0] if isinstance(args[0], (str, bytes)) else b""
        if os.fsencode(path).endswith(b".py") or os.fsencode(path).endswith(b".pyc"):
            return
        count += 1
        if count == int(sys.argv[1]):
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(at)
print(archive(json.loads(sys.argv[2])))
"""


def test_killed_at_any_step_the_files_are_in_one_place_or_both(
    bundle: Path, nas: Path, owner: Owner, everyones_python: Path
) -> None:
    """kill -9 before every file that is opened, renamed or removed; then once more to the end."""
    kept = nas / "kept"
    subprocess.run(["cp", "-a", bundle, kept], check=True)
    target = nas / "results" / "7.tar.zst"
    request = json.dumps(
        {"results": str(nas / "results"), "job_id": 7, "folder": None, "remove": True, "level": 1, "threads": 1,
         "zstd": "/usr/bin/zstd"}
    )  # fmt: skip

    def run(step: int) -> int:
        command = [str(everyones_python), "-I", "-c", KILLED, str(step), request]
        who: dict[str, Any] = {"user": owner.uid, "group": owner.gid, "extra_groups": []}
        return subprocess.run(command, check=False, capture_output=True, cwd="/", **who).returncode

    killed = 0
    for step in range(1, 400, 3):
        shutil.rmtree(bundle)
        subprocess.run(["cp", "-a", kept, bundle], check=True)
        target.unlink(missing_ok=True)
        if run(step) == 0:
            break
        killed += 1
        if not (bundle / "archived.txt").exists():
            verify(bundle)
        assert run(0) == 0
        there = nas / f"there-{step}"
        verify(unpacked(target, there))
        shutil.rmtree(there)
        assert not (bundle / "outputs").exists()
        assert not list((nas / "results").glob(".7*"))
    assert killed > 5


def test_it_does_not_outlive_its_agent(bundle: Path, nas: Path, owner: Owner, everyones_python: Path) -> None:
    """Else two would be at one archive after a restart."""
    hang = nas / "hang"
    hang.write_text(f"#!/bin/sh\necho $PPID $$ >{nas}/results/pid\nexec sleep 1000\n")
    hang.chmod(0o755)
    code = (
        "import asyncio; from slurmk8s.after import child; from slurmk8s.after.item import Owner\n"
        f"request = dict(results='{nas}/results', job_id=7, folder=None, remove=False, level=1, threads=1)\n"
        f"request['zstd'] = '{hang}'\n"
        f"asyncio.run(child.ask('slurmk8s.after.archive', request, Owner('x', {owner.uid}, {owner.gid}, ()), 60))"
    )
    path = nas / "results" / "pid"
    agent = subprocess.Popen([sys.executable, "-c", code])
    try:
        deadline = time.monotonic() + 20
        while not (path.exists() and path.read_text()):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        agent.send_signal(signal.SIGKILL)
        while Path(f"/proc/{path.read_text().split()[0]}").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        agent.kill()
        agent.wait()
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(path.read_text().split()[1]), signal.SIGKILL)


def test_a_folder_so_large_that_it_is_read_in_parts_is_in_the_archive_once(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archiving, "walk", partial(walk, window=2))
    request = {"zstd": "/usr/bin/zstd", "level": 1, "threads": 1}
    with files.folder(str(bundle.parent)) as root, files.folder(str(tmp_path)) as folder:
        archiving.make(root, "7", folder, "7.tar.zst", request)
    listed = subprocess.run(["tar", "--zstd", "-tf", tmp_path / "7.tar.zst"], check=True, capture_output=True).stdout
    names = listed.splitlines()
    assert len(names) == len(set(names)) > 10
