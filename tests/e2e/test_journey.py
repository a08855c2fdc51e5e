"""A job file goes through Slurm into a container and comes back as results."""

import json
import re
import subprocess
from typing import Any

ALPINE = "nas-hub.local:5407/alpine:latest"
DEBIAN = "nas-hub.local:5407/debian:test"

# Section 6.2 of the guide, its sleep shortened.
GUIDE = """\
#!/bin/bash
#SBATCH --job-name=test
#SBATCH --cpus-per-task=1
#SBATCH --mem=1G
#SBATCH --time=00:05:00
#SBATCH --output=/mnt/nas/results/test-%j.out
#K8S_IMAGE=nas-hub.local:5407/alpine:latest

echo "Test started at $(date)"
sleep 1
echo "Test completed at $(date)"
"""


def body(text: str, image: str = DEBIAN, shebang: str = "#!/bin/bash", directives: str = "") -> str:
    return f"{shebang}\n#SBATCH --mem=256M\n{directives}\n#K8S_IMAGE={image}\n{text}\n"


def slurms_file(cluster: Any, job_id: int) -> list[str]:
    return list((cluster.layout.results / f"test-{job_id}.out").read_text().splitlines())


def check_guide(cluster: Any, job_id: int) -> dict[str, Any]:
    fields = cluster.wait(job_id)
    summary = cluster.summary(job_id)
    folder = cluster.results(job_id)
    assert fields["JobState"] == "COMPLETED"
    assert fields["ExitCode"] == "0:0"
    lines = cluster.stdout(job_id).splitlines()
    assert [line.split(" at ")[0] for line in lines] == ["Test started", "Test completed"]
    # A job as short as this may be over before its use was measured twice, and one point is no picture.
    assert {path.name for path in folder.iterdir() if not path.name.startswith(".")} - {"usage.svg"} == {
        "stdout.log",
        "stderr.log",
        "job_summary.txt",
        "summary.json",
        "checksums.txt",
        "outputs",
    }
    # This image has no bash: one warning, and it is not part of the body's own output.
    assert cluster.stderr(job_id) == "slurmk8s: this image has no bash; its sh runs the script instead\n"
    assert [line for line in slurms_file(cluster, job_id) if line.startswith("Test")] == lines
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "checksums.txt"], cwd=folder, check=True)
    return summary


def test_the_guides_job_gives_the_same_results_by_drop_and_by_sbatch(cluster: Any) -> None:
    cluster.drop("test_job.sh", GUIDE)
    by_sbatch = cluster.sbatch(GUIDE)
    by_drop = cluster.dropped_job("test_job.sh")
    one, two = check_guide(cluster, by_sbatch), check_guide(cluster, by_drop)
    same = ("name", "user", "uid", "image", "image_digest", "state", "exit_code", "cause", "cpus", "memory_mb", "gpus")
    assert {key: one[key] for key in same} == {key: two[key] for key in same}
    assert one["state"] == "completed"
    assert one["cpus"] == 1
    assert one["memory_mb"] == 1024
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", one["image_digest"])
    assert two["workdir"] == "/workspace"
    for phase in ("queued", "pulling", "running"):
        assert one["durations"][phase] is not None
    assert cluster.pods() == []


def test_what_a_job_writes_in_its_workspace_is_in_outputs(cluster: Any) -> None:
    cluster.drop(
        "writes.sh", body("echo 42 > answer.txt; mkdir -p deep/er; echo x > deep/er/f; echo $SLURMK8S_OUTPUTS")
    )
    job_id = cluster.dropped_job("writes.sh")
    cluster.wait(job_id)
    summary = cluster.summary(job_id)
    outputs = cluster.results(job_id) / "outputs"
    assert (outputs / "answer.txt").read_text() == "42\n"
    assert (outputs / "deep/er/f").read_text() == "x\n"
    assert summary["outputs"]["files"] == 2
    assert cluster.stdout(job_id) == f"/mnt/nas/results/{job_id}/outputs\n"
    assert (outputs / "answer.txt").stat().st_uid == cluster.uid


LOUD = r"""
python3 - <<'P'
import sys
out = sys.stdout.buffer
for number in range(1_000_000):
    out.write(b"line %d\n" % number)
out.write(b"x" * (1 << 20) + b"\n")
out.write(bytes(range(256)))
out.write(b"no newline at the end")
out.flush()
sys.stderr.buffer.write(b"err" * 100_000)
P
"""


def test_output_is_complete_whatever_it_is(cluster: Any) -> None:
    job_id = cluster.sbatch(
        body(LOUD),
        "--output=/mnt/nas/results/loud-%j.out",
        "--error=/mnt/nas/results/loud-%j.err",
    )
    cluster.wait(job_id, 120)
    expected = b"".join(b"line %d\n" % number for number in range(1_000_000))
    expected += b"x" * (1 << 20) + b"\n" + bytes(range(256)) + b"no newline at the end"
    folder = cluster.results(job_id)
    assert (folder / "stdout.log").read_bytes() == expected
    assert (folder / "stderr.log").read_bytes() == b"err" * 100_000
    assert (cluster.layout.results / f"loud-{job_id}.out").read_bytes() == expected
    slurms = (cluster.layout.results / f"loud-{job_id}.err").read_bytes()
    # slurmk8s-run may have told there what the job waited for.
    assert re.sub(rb"(?m)^slurmk8s: .*\n", b"", slurms) == b"err" * 100_000


def test_output_can_be_read_on_the_nas_and_in_slurms_file_while_the_job_runs(cluster: Any) -> None:
    job_id = cluster.sbatch(
        body('echo early; while [ ! -e "$SLURMK8S_OUTPUTS/go" ]; do sleep 0.05; done; echo late'),
        "--output=/mnt/nas/results/live-%j.out",
    )
    log = cluster.results(job_id) / "stdout.log"
    cluster.wait_for(lambda: log.exists() and log.read_text() == "early\n", "output on the NAS while the job runs")
    slurm = cluster.layout.results / f"live-{job_id}.out"

    def copied() -> str:
        """Without our own lines: how long a pull takes is told there too."""
        lines = slurm.read_text().splitlines(keepends=True) if slurm.exists() else []
        return "".join(line for line in lines if not line.startswith("slurmk8s: "))

    cluster.wait_for(lambda: copied() == "early\n", "output in Slurm's file")
    shown = cluster.run("slurmk8s", "logs", str(job_id)).stdout
    assert shown == "early\n"
    cluster.run("touch", cluster.results(job_id) / "outputs" / "go")
    cluster.wait(job_id)
    assert log.read_text() == "early\nlate\n"
    assert copied() == "early\nlate\n"


def test_a_person_finds_reads_and_verifies_the_results_by_command(cluster: Any) -> None:
    job_id = cluster.sbatch(body("echo out; echo err >&2; echo data > file.txt", directives="#K8S_WORKDIR=/workspace"))
    cluster.wait(job_id)
    cluster.summary(job_id)
    assert f"{job_id}" in cluster.run("slurmk8s", "results").stdout
    shown = cluster.run("slurmk8s", "results", str(job_id)).stdout
    assert "file.txt" in shown
    assert "exit code 0" in shown
    logs = cluster.run("slurmk8s", "logs", str(job_id))
    assert (logs.stdout, logs.stderr) == ("out\n", "err\n")
    assert cluster.run("slurmk8s", "verify", str(job_id)).returncode == 0
    (cluster.results(job_id) / "outputs" / "file.txt").write_text("tampered\n")
    verdict = cluster.run("slurmk8s", "verify", "--json", str(job_id), check=False)
    assert verdict.returncode == 1
    assert "outputs/file.txt" in json.loads(verdict.stdout)["changed"]


def test_a_bad_drop_gets_its_reason_and_no_job(cluster: Any) -> None:
    cluster.drop("bad.sh", "#!/bin/bash\n#SBATCH --mem=8GB\n#K8S_IMAGES=alpine\necho hi\n")
    reason = cluster.failed / "bad.sh.error.txt"
    text = cluster.wait_for(lambda: reason.exists() and reason.read_text(encoding="utf-8-sig"), "a reason")
    assert "did you mean" in text.lower()
    assert "8GB" in text
    assert (cluster.failed / "bad.sh").exists()
    assert reason.stat().st_uid == cluster.uid


def test_receipts_name_the_job(cluster: Any) -> None:
    cluster.drop("polite.sh", body("true"))
    job_id = cluster.dropped_job("polite.sh")
    receipt = cluster.processed / f"polite.sh.{job_id}.receipt.txt"
    text = cluster.wait_for(lambda: receipt.exists() and receipt.read_text(encoding="utf-8-sig"), "a receipt")
    assert str(job_id) in text
    cluster.wait(job_id)
