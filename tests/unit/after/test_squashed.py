"""On a NAS where root is nobody it still works, since nothing there is done as root; a full one hurts nothing."""

import asyncio
import errno
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nas as network
import pytest

from slurmk8s.after import child
from slurmk8s.after.item import Owner
from slurmk8s.errors import ClusterFault, PersonFault
from slurmk8s.results import sums

EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.fixture
def share(nas: Path, owner: Owner) -> Iterator[network.Share]:
    """A NAS with a complete bundle of the person's, closed to everybody else."""
    (nas / "mount").mkdir()
    with network.mounted(nas / "results", nas / "mount", root_squash=True) as share:
        bundle = share.back / "7"
        (bundle / "outputs").mkdir(parents=True)
        for name in ("stdout.log", "stderr.log", "outputs/empty"):
            (bundle / name).write_text("")
        (bundle / "outputs" / "model").write_bytes(bytes(range(256)) * 4096)
        model = subprocess.run(["sha256sum", bundle / "outputs" / "model"], capture_output=True, check=True).stdout[:64]
        lines = [sums.line(EMPTY, name) for name in (b"stdout.log", b"stderr.log", b"outputs/empty")]
        (bundle / "checksums.txt").write_bytes(b"".join([*lines, sums.line(model.decode(), b"outputs/model")]))
        subprocess.run(["chown", "-R", f"{owner.uid}:{owner.gid}", bundle], check=True)
        subprocess.run(["chmod", "-R", "go=", bundle], check=True)
        yield share


@pytest.fixture
def archive(share: network.Share, owner: Owner) -> Callable[..., dict[str, Any]]:
    def ask(*, remove: bool) -> dict[str, Any]:
        request = {"results": str(share.path), "job_id": 7, "folder": None, "remove": remove}
        request |= {"level": 1, "threads": 1, "zstd": "/usr/bin/zstd"}
        return asyncio.run(child.ask("slurmk8s.after.archive", request, owner, 60, 8192))

    return ask


def test_archives_and_lists_need_no_root(share: network.Share, archive: Any, owner: Owner) -> None:
    assert archive(remove=True)["removed"] is True
    assert sorted(path.name for path in (share.back / "7").iterdir()) == ["archived.txt"]
    request = {"results": str(share.path), "array": 40, "node": "node1", "tasks": [[1, 41, "failed"]], "claim": True}
    reply = asyncio.run(child.ask("slurmk8s.after.array", request, owner, 60))
    assert (reply["tasks"], reply["ours"]) == ([[1, 41, "failed"]], True)
    other = asyncio.run(child.ask("slurmk8s.after.array", {**request, "node": "node2", "tasks": []}, owner, 60))
    assert (other["tasks"], other["ours"]) == ([[1, 41, "failed"]], False)
    assert share.changes_by_root() == []


@pytest.mark.parametrize(
    ("operation", "number", "fault"),
    [
        ("write", errno.ENOSPC, ClusterFault),
        ("write", errno.EDQUOT, PersonFault),
        ("read", errno.EIO, ClusterFault),
        ("rename", errno.EIO, ClusterFault),
    ],
)
def test_a_nas_in_trouble_costs_the_archive_and_not_the_bundle(
    share: network.Share, archive: Any, operation: str, number: int, fault: type[Exception]
) -> None:
    planned = share.fault(operation, ".7.tar.zst*", number)
    with pytest.raises(fault):
        archive(remove=True)
    assert planned.met() >= 1
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "checksums.txt"], cwd=share.back / "7", check=True)
    assert sorted(path.name for path in share.back.iterdir()) == ["7"]
    share.clear()
    assert archive(remove=True)["removed"] is True
