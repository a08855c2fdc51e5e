"""What must hold for every bundle, however its job ended: it is complete, it verifies, and it is its owner's alone."""

import contextlib
import json
import stat
import subprocess
from pathlib import Path
from typing import Any

FILES = ("stdout.log", "stderr.log", "job_summary.txt", "summary.json", "checksums.txt")
READ_ALL = 'for path; do if [ -d "$path" ]; then ls "$path"; else cat "$path"; fi && echo "could: $path"; done'


def check_bundle(cluster: Any, job_id: int) -> dict[str, Any]:
    """The summary of a bundle in which nothing is missing."""
    summary: dict[str, Any] = cluster.summary(job_id)
    check_files(cluster, job_id)
    verified = cluster.run("slurmk8s", "verify", str(job_id), inside=True, check=False)
    assert verified.returncode == 0, verified.stdout
    return summary


def check_files(cluster: Any, job_id: int) -> None:
    """The files are there and say the same, their digests are right, and nobody else can read them."""
    folder = cluster.results(job_id)
    # A worker's own files go last.
    cluster.wait_for(lambda: not [path for path in folder.rglob(".*") if path.name != ".slurmk8s.json"], "no leftovers")
    for attempt in (folder, *folder.glob("attempt-*")):
        assert [name for name in FILES if not (attempt / name).is_file()] == []
        summary = json.loads((attempt / "summary.json").read_text(encoding="utf-8"))
        text = (attempt / "job_summary.txt").read_text(encoding="utf-8")
        assert text.startswith(summary["cause"])
        assert summary["checksums"] in text
        assert stat.S_IMODE(attempt.stat().st_mode) == 0o711
        assert {stat.S_IMODE(path.stat().st_mode) for path in attempt.iterdir() if path.is_file()} == {0o600}
    assert stat.S_IMODE((folder / "outputs").stat().st_mode) == 0o700
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "checksums.txt"], cwd=folder, check=True)
    assert owners(folder) == {cluster.uid}
    assert cluster.share.changes_by_root() == [], "nothing on the NAS is done as root, nor tried"
    _closed_to_others(cluster, job_id)


def _closed_to_others(cluster: Any, job_id: int) -> None:
    """Tried by somebody else, file by file."""
    seen = cluster.layout.results / str(job_id)
    every = [seen / path.relative_to(cluster.results(job_id)) for path in cluster.results(job_id).rglob("*")]
    tried = cluster.run("sh", "-c", READ_ALL, "sh", seen, *every, user=cluster.other_user, check=False)
    assert tried.stdout == ""
    assert tried.stderr.count("Permission denied") == len(every) + 1
    logs = cluster.run("slurmk8s", "logs", str(job_id), user=cluster.other_user, inside=True, check=False)
    assert (logs.returncode, logs.stdout) == (2, "")


def owners(folder: Path) -> set[int]:
    """Of everything in it; a temporary file may go while we look."""
    found = {folder.stat().st_uid}
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            found.add(path.lstat().st_uid)
    return found
