"""The NAS as a share on which root is nobody: the journey is the same, since nothing on it is done as root.

The endings of jobs are tried on it too: test_endings.py.
"""

from typing import Any

from bundles import check_bundle

DEBIAN = "nas-hub.local:5407/debian:test"


def body(text: str, directives: str = "") -> str:
    return f"#!/bin/bash\n#SBATCH --mem=256M\n{directives}\n#K8S_IMAGE={DEBIAN}\n{text}\n"


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
