"""A wrong image is the person's matter: one sentence, no node suffers. A registry that is down is nobody's fault."""

import io
import json
import os
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_journey import ALPINE, body


def rootfs(path: Path, files: dict[str, bytes], busybox: bool) -> Path:
    """A root file system as a tar."""
    with tarfile.open(path, "w") as tar:
        for folder in ("bin", "etc", "tmp", "proc", "sys", "dev"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            tar.addfile(entry)
        if busybox:
            tar.add("/bin/busybox", "bin/busybox")
            for applet in ("sh", "id", "cat", "echo", "sleep"):
                link = tarfile.TarInfo(f"bin/{applet}")
                link.type, link.linkname = tarfile.SYMTYPE, "busybox"
                tar.addfile(link)
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o755
            tar.addfile(entry, io.BytesIO(data))
    return path


def ends_with(cluster: Any, job_id: int, *words: str) -> dict[str, Any]:
    """The job fails with one sentence, told in all the places that people look at; the next job runs."""
    fields = cluster.wait(job_id, 30)
    summary = cluster.summary(job_id)
    assert fields["JobState"] == "FAILED"
    assert summary["state"] == "failed"
    assert summary["fault"] == "person"
    logs = cluster.run("slurmk8s", "logs", str(job_id))
    slurms = (cluster.layout.nas / "work" / f"slurm-{job_id}.out").read_text()
    for word in words:
        for place in (summary["cause"], cluster.stderr(job_id), logs.stderr, slurms):
            assert word in place, place
    assert slurms.count(summary["cause"]) == 1
    assert cluster.run("sinfo", "--noheader", "--list-reasons").stdout == ""
    after = cluster.sbatch(body("echo next", image=ALPINE))
    assert cluster.wait(after)["JobState"] == "COMPLETED"
    assert cluster.pods() == []
    return summary


def test_an_image_that_does_not_exist_ends_the_job_at_once(cluster: Any) -> None:
    image = "nas-hub.local:5407/no/such:thing"
    job_id = cluster.sbatch(body("echo never", image=image))
    ends_with(cluster, job_id, image, "does not exist")


def test_a_tag_that_does_not_exist_ends_the_job_at_once(cluster: Any) -> None:
    job_id = cluster.sbatch(body("echo never", image="nas-hub.local:5407/alpine:never"))
    ends_with(cluster, job_id, "alpine:never", "does not exist")


def test_an_image_without_a_shell_ends_the_job_at_once(cluster: Any, tmp_path: Path) -> None:
    image = cluster.push_image(rootfs(tmp_path / "bare.tar", {"bin/program": b"\x7fELF"}, busybox=False), "bare:1")
    job_id = cluster.sbatch(body("echo never", image=image))
    ends_with(cluster, job_id, image, "/bin/sh")


def test_an_image_whose_shell_is_for_another_processor_ends_the_job_at_once(cluster: Any, tmp_path: Path) -> None:
    elf = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\xb7\x00" + bytes(44)  # aarch64
    image = cluster.push_image(rootfs(tmp_path / "arm.tar", {"bin/sh": elf}, busybox=False), "arm:1")
    job_id = cluster.sbatch(body("echo never", image=image))
    ends_with(cluster, job_id, image)


def test_an_images_own_group_file_grants_nothing(cluster: Any, tmp_path: Path) -> None:
    """The image names the person in a group of the NAS; the kernel must not believe it."""
    secret = 54321
    name = cluster.user
    files = {
        "etc/passwd": f"root:x:0:0::/:/bin/sh\n{name}:x:{cluster.uid}:{cluster.uid}::/:/bin/sh\n".encode(),
        "etc/group": f"root:x:0:\nsecretlab:x:{secret}:{name},{cluster.uid}\n".encode(),
    }
    image = cluster.push_image(rootfs(tmp_path / "groups.tar", files, busybox=True), "groups:1")
    folder = cluster.layout.nas / "secretlab"
    folder.mkdir()
    os.chown(folder, 0, secret)
    folder.chmod(0o770)
    job_id = cluster.sbatch(body("id -G; cat /proc/self/status; echo x > /mnt/nas/secretlab/taken", image=image))
    cluster.wait(job_id)
    groups = cluster.stdout(job_id).splitlines()[0].split()
    own = subprocess.run(["id", "-G", name], capture_output=True, text=True, check=True).stdout.split()
    assert sorted(groups) == sorted(own)
    assert str(secret) not in cluster.stdout(job_id).split()
    assert list(folder.iterdir()) == []


def test_the_persons_own_groups_are_there(cluster: Any) -> None:
    name = "slurmk8s-testgroup"
    subprocess.run(["groupadd", "--force", name], check=True)
    subprocess.run(["usermod", "--append", "--groups", name, cluster.user], check=True)
    try:
        job_id = cluster.sbatch(body("id -Gn"))
        cluster.wait(job_id)
        assert name in cluster.stdout(job_id).split()
    finally:
        subprocess.run(["gpasswd", "--delete", cluster.user, name], check=True)


def test_a_job_has_no_privilege_in_its_container(cluster: Any) -> None:
    job_id = cluster.sbatch(body("cat /proc/self/status"))
    cluster.wait(job_id)
    status = dict(line.split(":\t", 1) for line in cluster.stdout(job_id).splitlines() if ":\t" in line)
    assert {status[key] for key in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"
    assert status["Uid"].split() == [str(cluster.uid)] * 4


def test_an_image_from_elsewhere_is_refused(cluster: Any) -> None:
    refused = cluster.run(
        "sbatch", "--parsable", input=body("true", image="docker.io/library/alpine:latest"), check=False
    )
    assert refused.returncode != 0
    assert "nas-hub.local:5407" in refused.stderr


@pytest.mark.timeout(420)
def test_a_registry_that_is_down_is_told_at_once_retried_requeued_and_told_at_the_bound(
    new_cluster: Callable[..., Any],
) -> None:
    settings = {"images.pull_retry_seconds": 10, "agent.attempts": 2, "agent.requeue_delay_seconds": 0}
    down = new_cluster(nodes=1, config_overrides=settings)
    with down.runtime.without_registry(down):
        tried_twice(down)


def tried_twice(down: Any) -> None:
    job_id = down.sbatch(body("echo ran", image="nas-hub.local:5407/other:1"), "--output=/mnt/nas/results/down-%j.out")
    slurms = down.layout.results / f"down-{job_id}.out"
    down.wait_for(lambda: slurms.exists() and "does not answer" in slurms.read_text(), "a word on stderr", 20)
    down.wait_for(lambda: down.job(job_id).get("Restarts") == "1", "a requeue", 60)
    assert set(down.nodes().values()) <= {"idle", "completing", "allocated", "mixed"}
    first = down.results(job_id)
    down.wait_for((first / "summary.json").exists, "the first attempt's summary")
    assert json.loads((first / "summary.json").read_text())["state"] == "requeued"
    down.run("scontrol", "update", f"JobId={job_id}", "StartTime=now", user="root")  # Slurm waits two minutes
    fields = down.wait(job_id, 120)
    told = slurms.read_text() + down.log("agent_node1.log")
    down.wait_for(lambda: down.summary(job_id)["attempt"] == 1, f"the second attempt's summary; told was: {told}")
    summary = down.summary(job_id)
    assert fields["JobState"] == "FAILED"
    assert summary["fault"] == "cluster", told
    assert "does not answer" in summary["cause"], told
    assert "tried 2 times" in summary["cause"], told
    assert (first / "attempt-0" / "summary.json").exists()
    assert down.run("sinfo", "--noheader", "--list-reasons").stdout == ""
