"""The tests' own NAS: files, folders, links and times are as on any file system, and nothing tells of other clients."""

import ctypes
import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from nas_bed import KIM, act_as
from watchdog.events import FileSystemEventHandler
from watchdog.observers import Observer

import nas

MANY = 2000


@pytest.fixture
def share(folder: Path) -> Iterator[nas.Share]:
    (folder / "back").mkdir()
    (folder / "mount").mkdir()
    with nas.mounted(folder / "back", folder / "mount") as share:
        yield share


def test_files_are_the_same_on_both_sides(share: nas.Share) -> None:
    (share.path / "one").write_bytes(b"from the client")
    (share.back / "two").write_bytes(b"from behind")
    assert (share.back / "one").read_bytes() == b"from the client"
    assert (share.path / "two").read_bytes() == b"from behind"
    assert sorted(os.listdir(share.path)) == ["one", "two"]
    large = os.urandom(3_000_001)
    (share.path / "large").write_bytes(large)
    with (share.path / "large").open("ab") as file:
        file.write(b"end")
    assert (share.back / "large").read_bytes() == large + b"end"
    (share.path / "one").write_bytes(b"new")
    assert (share.back / "one").read_bytes() == b"new"
    shutil.copy(share.path / "large", share.path / "copy")
    assert (share.path / "copy").stat().st_size == len(large) + 3


def test_links_counts_and_odd_files(share: nas.Share) -> None:
    one = share.path / "one"
    one.write_text("x")
    os.link(one, share.path / "two")
    assert one.stat().st_nlink == 2
    assert one.stat().st_ino == (share.path / "two").stat().st_ino
    with pytest.raises(FileExistsError):
        os.link(one, share.path / "two")
    one.unlink()
    assert (share.path / "two").stat().st_nlink == 1
    (share.path / "link").symlink_to("two")
    assert (share.path / "link").read_text() == "x"
    assert os.readlink(share.path / "link") == "two"
    os.link(share.path / "link", share.path / "link2", follow_symlinks=False)
    assert (share.path / "link2").is_symlink()
    with pytest.raises(OSError, match="Too many levels"):
        os.open(share.path / "link", os.O_RDONLY | os.O_NOFOLLOW)
    with pytest.raises(NotADirectoryError):
        os.open(share.path / "two", os.O_RDONLY | os.O_DIRECTORY)
    os.mkfifo(share.path / "pipe")
    assert stat.S_ISFIFO((share.path / "pipe").stat().st_mode)


def test_names_of_any_bytes(share: nas.Share) -> None:
    names = {b"a b", b"-rf", b"new\nline", "한글".encode(), b"\xff\xfe", b"x" * 255}
    for name in names:
        with open(os.path.join(os.fsencode(share.path), name), "wb"):
            pass
    assert set(os.listdir(os.fsencode(share.path))) == names == set(os.listdir(os.fsencode(share.back)))


def test_modes_owners_and_times(share: nas.Share) -> None:
    file = share.path / "file"
    file.write_text("12345")
    file.chmod(0o640)
    os.chown(file, KIM.uid, KIM.gid)
    os.utime(file, ns=(1, -5_000_000_001))
    found = (share.back / "file").stat()
    assert (stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid) == (0o640, KIM.uid, KIM.gid)
    assert (file.stat().st_atime_ns, file.stat().st_mtime_ns) == (1, -5_000_000_001)
    os.utime(file)
    assert abs(file.stat().st_mtime - time.time()) < 60
    os.truncate(file, 2)
    assert file.read_text() == "12"
    assert act_as(KIM, "umask 027; mkdir -m 1755 x 2>/dev/null || echo no", share) == "no\n"
    with file.open("r+") as opened:
        opened.truncate(1)
        os.fchmod(opened.fileno(), 0o600)
        os.fsync(opened.fileno())
        file.unlink()
        assert os.fstat(opened.fileno()).st_nlink == 0
        assert opened.read() == "1"


def test_renames(share: nas.Share) -> None:
    (share.path / "a").mkdir()
    (share.path / "a" / "file").write_text("x")
    (share.path / "b").mkdir()
    os.rename(share.path / "a" / "file", share.path / "b" / "file")
    os.rename(share.path / "b", share.path / "c")
    assert (share.back / "c" / "file").read_text() == "x"
    (share.path / "other").write_text("y")
    libc = ctypes.CDLL(None, use_errno=True)
    old, new = os.fsencode(share.path / "other"), os.fsencode(share.path / "c" / "file")
    assert libc.renameat2(-100, old, -100, new, 1) == -1  # RENAME_NOREPLACE
    assert (share.path / "c" / "file").read_text() == "x"
    os.rename(share.path / "other", share.path / "c" / "file")
    assert (share.path / "c" / "file").read_text() == "y"
    with pytest.raises(OSError, match="not empty"):
        (share.path / "c").rmdir()
    shutil.rmtree(share.path / "c")
    assert sorted(os.listdir(share.back)) == ["a"]


def test_it_says_how_much_room_there_is(share: nas.Share) -> None:
    here, behind = os.statvfs(share.path), os.statvfs(share.back)
    assert (here.f_blocks, here.f_frsize, here.f_namemax) == (behind.f_blocks, behind.f_frsize, behind.f_namemax)


def test_thousands_of_small_files(share: nas.Share) -> None:
    for number in range(MANY):
        (share.back / f"{number}").write_bytes(b"x" * number)
    with os.scandir(share.path) as entries:
        sizes = {entry.name: entry.stat().st_size for entry in entries}
    assert sizes == {f"{number}": number for number in range(MANY)}
    assert sum(len(path.read_bytes()) for path in share.path.iterdir()) == sum(range(MANY))


def test_no_event_tells_of_what_another_client_writes(share: nas.Share) -> None:
    """Not even while the client's own writes cause events."""
    seen: list[str] = []

    class Remember(FileSystemEventHandler):
        def on_any_event(self, event: object) -> None:
            seen.append(str(getattr(event, "src_path", "")))

    observer = Observer()
    observer.schedule(Remember(), str(share.path))
    observer.start()
    try:
        (share.back / "behind").write_text("x")
        (share.path / "own").write_text("x")
        deadline = time.monotonic() + 30
        while not any(path.endswith("own") for path in seen) and time.monotonic() < deadline:
            time.sleep(0.01)
    finally:
        observer.stop()
        observer.join()
    assert any(path.endswith("own") for path in seen)
    assert not any(path.endswith("behind") for path in seen)
    assert (share.path / "behind").exists()


def test_a_removed_file_is_gone_and_an_open_folder_of_it_is_stale(share: nas.Share) -> None:
    (share.path / "folder").mkdir()
    opened = os.open(share.path / "folder", os.O_RDONLY | os.O_DIRECTORY)
    try:
        shutil.rmtree(share.back / "folder")
        with pytest.raises(OSError, match=r"Stale|No such file"):
            os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=opened)
        assert not (share.path / "folder").exists()
    finally:
        os.close(opened)


def test_cached_attributes_are_old_until_the_file_is_opened(folder: Path) -> None:
    (folder / "back").mkdir()
    (folder / "mount").mkdir()
    with nas.mounted(folder / "back", folder / "mount", attribute_seconds=600) as share:
        (share.back / "growing").write_bytes(b"1")
        folder_descriptor = os.open(share.path, os.O_RDONLY | os.O_DIRECTORY)
        watching = os.open(share.path / "growing", os.O_PATH)
        try:
            assert os.fstat(watching).st_size == 1
            (share.back / "growing").write_bytes(b"12")
            assert os.fstat(watching).st_size == 1
            with open("growing", "rb", opener=lambda name, flags: os.open(name, flags, dir_fd=folder_descriptor)) as f:
                assert os.fstat(f.fileno()).st_size == 2
        finally:
            os.close(watching)
            os.close(folder_descriptor)


def test_its_clock_can_be_wrong(folder: Path) -> None:
    (folder / "back").mkdir()
    (folder / "mount").mkdir()
    with nas.mounted(folder / "back", folder / "mount", skew_seconds=86_400) as share:
        (share.path / "file").write_text("x")
        assert (share.path / "file").stat().st_mtime - (share.back / "file").stat().st_mtime == pytest.approx(86_400)
        os.utime(share.path / "file", (1_000_000, 1_000_000))
        assert (share.path / "file").stat().st_mtime == 1_000_000


def test_nothing_is_left_when_whoever_mounted_it_is_killed(folder: Path) -> None:
    (folder / "back").mkdir()
    (folder / "mount").mkdir()
    program = (
        "import os, sys; from pathlib import Path\n"
        f"sys.path.insert(0, {str(Path(__file__).parents[1])!r}); import nas\n"
        f"with nas.mounted(Path({str(folder / 'back')!r}), Path({str(folder / 'mount')!r})) as share:\n"
        "    assert os.path.ismount(share.path); os.kill(os.getpid(), 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
    deadline = time.monotonic() + 30
    while os.path.ismount(folder / "mount") and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not os.path.ismount(folder / "mount")


def test_nothing_is_left_when_the_whole_process_group_is_ended(share: nas.Share) -> None:
    assert share._process is not None
    share._process.terminate()
    assert share._process.wait(30) == 0
    assert not os.path.ismount(share.path)
