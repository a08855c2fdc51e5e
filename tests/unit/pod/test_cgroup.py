"""Needs nothing: control groups as kernels show them, in sample folders."""

from pathlib import Path

import pytest

from slurmk8s.pod import cgroup

MEMORY_1 = "cache 900\nrss 10\nshmem 1\ntotal_cache 90000\ntotal_rss 4096000\ntotal_shmem 512000\n"
MEMORY_2 = "anon 4096000\nfile 90000000\nkernel 77\nshmem 512000\nfile_mapped 5\n"


def process(proc: Path, pid: int, *lines: str) -> None:
    (proc / str(pid)).mkdir(parents=True)
    (proc / str(pid) / "cgroup").write_text("".join(f"{line}\n" for line in lines))


def version_1(root: Path, folder: str, cpu: str = "cpuacct") -> None:
    for controller, name, text in ((cpu, "cpuacct.usage", "2500000000\n"), ("memory", "memory.stat", MEMORY_1)):
        (root / controller / folder).mkdir(parents=True)
        (root / controller / folder / name).write_text(text)


def version_2(root: Path, folder: str) -> None:
    (root / folder).mkdir(parents=True)
    (root / folder / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 2000000\nsystem_usec 500000\n")
    (root / folder / "memory.stat").write_text(MEMORY_2)


def figures(proc: Path, root: Path) -> cgroup.Reading | None:
    group = cgroup.of_process(proc, root, 42)
    return cgroup.read(group) if group else None


USED = cgroup.Reading(2.5, 4608000)


def test_version_2_counts_what_processes_hold_and_no_page_cache(tmp_path: Path) -> None:
    process(tmp_path / "proc", 42, "0::/kubepods.slice/pod1/cri-1.scope")
    version_2(tmp_path / "sys", "kubepods.slice/pod1/cri-1.scope")
    assert figures(tmp_path / "proc", tmp_path / "sys") == USED


@pytest.mark.parametrize("mount", ["cpuacct", "cpu,cpuacct"])
def test_version_1_counts_the_same(tmp_path: Path, mount: str) -> None:
    process(tmp_path / "proc", 42, "4:memory:/libpod_parent/x", f"2:{mount}:/libpod_parent/x", "1:name=systemd:/")
    version_1(tmp_path / "sys", "libpod_parent/x", mount)
    assert figures(tmp_path / "proc", tmp_path / "sys") == USED


def test_where_both_are_mounted_the_one_that_counts_is_read(tmp_path: Path) -> None:
    process(tmp_path / "proc", 42, "4:memory:/x", "2:cpuacct:/x", "0::/x")
    version_1(tmp_path / "sys", "x")
    (tmp_path / "sys" / "unified" / "x").mkdir(parents=True)
    assert figures(tmp_path / "proc", tmp_path / "sys") == USED


@pytest.mark.parametrize("folder", ["/", "", "/..", "/../..", "/a/../../b"])
def test_the_whole_machine_is_never_taken_for_a_container(tmp_path: Path, folder: str) -> None:
    process(tmp_path / "proc", 42, f"0::{folder}")
    version_2(tmp_path / "sys", "elsewhere")
    (tmp_path / "sys" / "cpu.stat").write_text("usage_usec 1\n")
    (tmp_path / "sys" / "memory.stat").write_text(MEMORY_2)
    assert cgroup.of_process(tmp_path / "proc", tmp_path / "sys", 42) is None


def test_an_agent_in_a_namespace_of_its_own_finds_what_is_outside(tmp_path: Path) -> None:
    process(tmp_path / "proc", 42, "0::/../../kubelet/container")
    version_2(tmp_path / "sys", "kubelet/container")
    assert figures(tmp_path / "proc", tmp_path / "sys") == USED


def test_a_process_or_group_that_is_gone_tells_nothing(tmp_path: Path) -> None:
    assert cgroup.of_process(tmp_path, tmp_path, 42) is None
    process(tmp_path / "proc", 42, "0::/x")
    assert cgroup.of_process(tmp_path / "proc", tmp_path / "sys", 42) is None
    version_2(tmp_path / "sys", "x")
    group = cgroup.of_process(tmp_path / "proc", tmp_path / "sys", 42)
    assert group is not None
    (tmp_path / "sys" / "x" / "memory.stat").unlink()
    assert cgroup.read(group) is None


def test_a_group_that_does_not_count_memory_tells_nothing(tmp_path: Path) -> None:
    process(tmp_path / "proc", 42, "0::/x")
    version_2(tmp_path / "sys", "x")
    (tmp_path / "sys" / "x" / "memory.stat").write_text("")
    assert figures(tmp_path / "proc", tmp_path / "sys") is None
