import os
import subprocess
import sys
from pathlib import Path

import pytest

from slurmk8s.pod.processes import pids_of

ID = "4d7c" * 16
UID = "0b6a0ad4-6f5e-4f4e-9a3e-d0f0c1c5b1aa"


def process(proc: Path, pid: int, group: str, state: str = "S", threads: int = 1) -> None:
    folder = proc / str(pid)
    (folder / "task").mkdir(parents=True)
    for thread in range(threads):
        (folder / "task" / str(pid + thread)).mkdir()
    (folder / "cgroup").write_text(f"1:name=systemd:{group}\n0::{group}\n")
    (folder / "stat").write_text(f"{pid} (a ) b) {state} 1 1 0\n")


@pytest.mark.parametrize(
    "group",
    [
        f"/kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice/cri-containerd-{ID}.scope",
        f"/kubepods/besteffort/pod{UID}/{ID}",
        f"/k8s.io/{ID}",
        f"/../../kubepods/pod{UID}/{ID}",
    ],
)
def test_a_container_is_found_under_every_name_of_its_group(tmp_path: Path, group: str) -> None:
    process(tmp_path, 7, group)
    process(tmp_path, 8, "/system.slice/slurmd.service")
    (tmp_path / "self").mkdir()
    assert pids_of(tmp_path, {ID}) == [7]
    assert pids_of(tmp_path, {UID, UID.replace("-", "_"), ID}) == [7]
    assert pids_of(tmp_path, {"beef" * 16}) == []


def test_a_zombie_is_dead_unless_other_threads_of_it_live(tmp_path: Path) -> None:
    process(tmp_path, 7, f"/k8s.io/{ID}", state="Z")
    process(tmp_path, 8, f"/k8s.io/{ID}", state="Z", threads=3)
    process(tmp_path, 9, f"/k8s.io/{ID}", state="D")
    assert pids_of(tmp_path, {ID}) == [8, 9]


def test_no_marks_find_nothing(tmp_path: Path) -> None:
    """An empty mark would be in every group's name."""
    process(tmp_path, 7, f"/k8s.io/{ID}")
    assert pids_of(tmp_path, set()) == []
    assert pids_of(tmp_path, {""}) == []


def test_a_process_that_ends_during_the_look_is_dead(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    process(tmp_path, 8, f"/k8s.io/{ID}")
    (tmp_path / "8" / "stat").unlink()
    assert pids_of(tmp_path, {ID}) == []


def test_the_kernels_own_folder_reads_the_same() -> None:
    """A real process, then a real zombie, found by the group that both share with us."""
    group = Path("/proc/self/cgroup").read_text().splitlines()[0].rpartition(":")[2]
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert child.pid in pids_of(Path("/proc"), {group})
    finally:
        child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead, and not yet waited for
    assert child.pid not in pids_of(Path("/proc"), {group})
    assert child.stdin is not None
    child.stdin.close()
    child.wait()
