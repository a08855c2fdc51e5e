"""The NAS as a share on which root is nobody: the journey is the same, since nothing on it is done as root."""

import contextlib
import json
import os
import pwd
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nas
import pytest

DEBIAN = "nas-hub.local:5407/debian:test"
SERVICE = "slurmk8s-service"
"""Whose account owns slurm-jobs/ on the NAS."""


def body(text: str, directives: str = "") -> str:
    return f"#!/bin/bash\n#SBATCH --mem=256M\n{directives}\n#K8S_IMAGE={DEBIAN}\n{text}\n"


def service_account() -> pwd.struct_passwd:
    """Made if it is missing and left for the next run."""
    try:
        return pwd.getpwnam(SERVICE)
    except KeyError:
        subprocess.run(["useradd", "--system", "--no-create-home", SERVICE], check=True)
        return pwd.getpwnam(SERVICE)


@pytest.fixture(scope="module")
def share(runtime: Any) -> Iterator[nas.Share]:
    """As an admin sets it up on the NAS itself, where root is root; one for each runtime."""
    folder = Path(tempfile.mkdtemp(prefix="slurmk8s-squashed-", dir="/var/tmp"))
    folder.chmod(0o755)
    back, local = folder / "back", folder / "local"
    for path in (back, local, local / "nas", back / "results", back / "slurm-jobs"):
        path.mkdir()
    (back / "results").chmod(0o1777)
    service = service_account()
    os.chown(back / "slurm-jobs", service.pw_uid, service.pw_gid)
    with nas.mounted(back, local / "nas", root_squash=True) as share:
        yield share
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def squashed(bring_up: Callable[..., Any], runtime: Any, share: nas.Share) -> Iterator[Any]:
    with bring_up(runtime, share, {"nas.service_user": SERVICE}, nodes=1, test_image=True) as cluster:
        yield cluster


def owners(folder: Path) -> set[int]:
    """Of everything in it; a temporary file may go while we look."""
    found = {folder.stat().st_uid}
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            found.add(path.lstat().st_uid)
    return found


def check_bundle(cluster: Any, job_id: int) -> dict[str, Any]:
    """The bundle is complete, right, and the person's alone."""
    summary: dict[str, Any] = cluster.summary(job_id)
    folder = cluster.results(job_id)
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "checksums.txt"], cwd=folder, check=True)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o711
    assert stat.S_IMODE((folder / "outputs").stat().st_mode) == 0o700
    assert owners(folder) == {cluster.uid}
    for name in ("stdout.log", "stderr.log", "job_summary.txt", "summary.json", "checksums.txt"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
    assert cluster.share.changes_by_root() == [], "nothing on it is done as root, nor tried"
    return summary


def test_a_job_leaves_its_whole_bundle(squashed: Any) -> None:
    job_id = squashed.sbatch(body("echo out; echo err >&2; echo 42 >answer.txt; mkdir -p deep/er; echo x >deep/er/f"))
    assert squashed.wait(job_id)["JobState"] == "COMPLETED"
    summary = check_bundle(squashed, job_id)
    assert summary["state"] == "completed"
    assert summary["outputs"]["files"] == 2
    assert (squashed.stdout(job_id), squashed.stderr(job_id)) == ("out\n", "err\n")
    assert (squashed.results(job_id) / "outputs" / "answer.txt").read_text() == "42\n"


def test_output_can_be_read_on_the_share_while_the_job_runs(squashed: Any) -> None:
    job_id = squashed.sbatch(body("echo first; until [ -e go ]; do sleep 0.1; done; echo second"))
    squashed.wait_for(
        lambda: (
            "first" in squashed.run("cat", squashed.layout.results / str(job_id) / "stdout.log", check=False).stdout
        ),
        "the first line",
        60,
    )
    squashed.run("touch", squashed.layout.results / str(job_id) / "outputs" / "go")
    squashed.wait(job_id)
    check_bundle(squashed, job_id)
    assert squashed.stdout(job_id) == "first\nsecond\n"


@pytest.mark.parametrize(("text", "state", "code"), [("exit 7", "FAILED", 7), ("kill -SEGV $$", "FAILED", 139)])
def test_a_job_that_fails_leaves_its_bundle(squashed: Any, text: str, state: str, code: int) -> None:
    job_id = squashed.sbatch(body(f"echo before >partial; {text}"))
    assert squashed.wait(job_id)["JobState"] == state
    summary = check_bundle(squashed, job_id)
    assert summary["exit_code"] == code
    assert (squashed.results(job_id) / "outputs" / "partial").exists()


def test_a_cancelled_job_leaves_its_bundle(squashed: Any) -> None:
    job_id = squashed.sbatch(body("echo begun; echo x >partial; sleep 600"))
    squashed.wait_for((squashed.results(job_id) / "outputs" / "partial").exists, "the body", 60)
    squashed.run("scancel", str(job_id))
    assert squashed.wait(job_id)["JobState"] == "CANCELLED"
    assert check_bundle(squashed, job_id)["state"] == "cancelled"
    assert squashed.stdout(job_id) == "begun\n"


def test_a_requeued_job_keeps_both_attempts(squashed: Any) -> None:
    text = 'echo attempt ${SLURM_RESTART_COUNT:-0}; echo x >>checkpoint; [ -n "$SLURM_RESTART_COUNT" ] || sleep 600'
    job_id = squashed.sbatch(body(text, "#SBATCH --requeue"))
    squashed.wait_for((squashed.results(job_id) / "outputs" / "checkpoint").exists, "the body", 60)
    squashed.run("scontrol", "requeue", str(job_id))
    squashed.wait_for(lambda: squashed.job(job_id).get("Restarts") == "1", "the requeue", 60)
    squashed.wait_for(lambda: squashed.state(job_id) == "PENDING", "the job pending", 60)
    squashed.run("scontrol", "update", f"JobId={job_id}", "StartTime=now", user="root")  # Slurm waits two minutes
    assert squashed.wait(job_id, 120)["JobState"] == "COMPLETED"
    check_bundle(squashed, job_id)
    earlier = squashed.results(job_id) / "attempt-0"
    assert (earlier / "stdout.log").read_text() == "attempt 0\n"
    assert json.loads((earlier / "summary.json").read_text())["state"] == "requeued"
    assert squashed.stdout(job_id) == "attempt 1\n"
    assert (squashed.results(job_id) / "outputs" / "checkpoint").read_text() == "x\nx\n"


def test_people_find_and_verify_their_results(squashed: Any) -> None:
    job_id = squashed.sbatch(body("echo hello; echo 1 >file"))
    squashed.wait(job_id)
    check_bundle(squashed, job_id)
    assert "hello" in squashed.run("slurmk8s", "logs", str(job_id), inside=True).stdout
    assert squashed.run("slurmk8s", "verify", str(job_id), inside=True).returncode == 0
    assert str(job_id) in squashed.run("slurmk8s", "results", inside=True).stdout
    squashed.run("sh", "-c", f"echo 2 >/mnt/nas/results/{job_id}/outputs/file", inside=True)
    changed = squashed.run("slurmk8s", "verify", str(job_id), inside=True, check=False)
    assert changed.returncode != 0
    assert "outputs/file" in changed.stdout + changed.stderr


def test_a_dropped_file_becomes_a_job(squashed: Any) -> None:
    squashed.drop("squashed.sh", body("echo dropped"))
    squashed.drop("wrong.sh", "#!/bin/bash\n#SBATCH --tme=3\nid\n")
    job_id = squashed.dropped_job("squashed.sh", 60)
    squashed.wait(job_id)
    check_bundle(squashed, job_id)
    assert squashed.stdout(job_id) == "dropped\n"
    squashed.wait_for((squashed.failed / "wrong.sh.error.txt").exists, "the reason")
