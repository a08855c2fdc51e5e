"""Each way that Slurm ends or stops a job reaches every process in the container. More endings: test_endings.py."""

import time
from typing import Any

import pytest
from test_journey import body

# A Python child of the body's shell, which writes down each signal it gets and goes on; after SIGTERM only if told to.
# By os.write: a second signal while print flushes the first would be the child's end.
CHILD = r"""
cat > /tmp/child.py <<'P'
import os, signal, sys, time
def hear(number, _):
    os.write(1, f"child {signal.Signals(number).name}\n".encode())
    if number == signal.SIGTERM and sys.argv[1:] != ["--stubborn"]:
        sys.exit()
for name in ("USR1", "USR2", "INT", "TERM", "HUP", "CONT"):
    signal.signal(getattr(signal, "SIG" + name), hear)
print("child up", flush=True)
beat = 0
while True:
    time.sleep(0.05)
    beat += 1
    if beat % 4 == 0:
        with open("/workspace/beat", "w") as f:
            f.write(str(beat))
P
trap 'echo shell USR1' USR1
trap 'echo shell USR2' USR2
trap 'echo shell TERM' TERM
# Else the shell may be gone, and the container with it, before the child has said anything.
trap 'echo shell INT' INT
trap 'echo shell HUP' HUP
python3 /tmp/child.py $STUBBORN &
child=$!
until wait $child; do kill -0 $child 2>/dev/null || break; done
"""


def start(cluster: Any, stubborn: str = "") -> int:
    job_id = cluster.sbatch(body(f"STUBBORN={stubborn}\n{CHILD}", directives="#K8S_WORKDIR=/workspace"))
    cluster.wait_for(lambda: log(cluster, job_id) and "child up" in log(cluster, job_id), "the child", 60)
    return int(job_id)


def log(cluster: Any, job_id: int) -> str:
    path = cluster.results(job_id) / "stdout.log"
    return path.read_text() if path.exists() else ""


def nothing_left(cluster: Any) -> None:
    cluster.wait_for(lambda: set(cluster.nodes().values()) == {"idle"}, "idle nodes", 60)
    cluster.wait_for(lambda: cluster.pods() == [], "no pod", 60)  # a busy kubelet may be a moment late


@pytest.mark.parametrize("name", ["USR2", "HUP", "INT"])
def test_scancel_s_reaches_every_process(cluster: Any, name: str) -> None:
    job_id = start(cluster)
    cluster.run("scancel", "-s", name, str(job_id))
    cluster.wait_for(lambda: f"child SIG{name}" in log(cluster, job_id), f"SIG{name} in the child")
    cluster.wait_for(lambda: f"shell {name}" in log(cluster, job_id), f"SIG{name} in the shell")
    cluster.run("scancel", "-s", "KILL", str(job_id))
    cluster.wait(job_id)
    nothing_left(cluster)


def test_a_signal_for_the_batch_script_reaches_the_bodys_shell_alone(cluster: Any) -> None:
    job_id = start(cluster)
    cluster.run("scancel", "--batch", "-s", "USR1", str(job_id))
    cluster.wait_for(lambda: "shell USR1" in log(cluster, job_id), "SIGUSR1 in the shell")
    cluster.run("scancel", "-s", "USR2", str(job_id))  # a later signal has arrived, so an earlier one would have too
    cluster.wait_for(lambda: "child SIGUSR2" in log(cluster, job_id), "SIGUSR2 in the child")
    assert "child SIGUSR1" not in log(cluster, job_id)
    cluster.run("scancel", str(job_id))
    cluster.wait(job_id)


def test_scancel_ends_the_job_with_sigterm_and_the_summary_says_so(cluster: Any) -> None:
    """Also one that goes on: Slurm's KillWait and our grace after it."""
    job_id = start(cluster, "--stubborn")
    cluster.run("scancel", str(job_id))
    cluster.wait_for(lambda: "child SIGTERM" in log(cluster, job_id), "SIGTERM in the child")
    fields = cluster.wait(job_id, 90)
    assert fields["JobState"] == "CANCELLED"
    summary = cluster.summary(job_id)
    assert summary["state"] == "cancelled"
    assert "scancel" in summary["cause"]
    assert log(cluster, job_id).count("child SIGTERM") == 1
    nothing_left(cluster)


def test_suspend_stops_every_process_and_resume_goes_on(cluster: Any) -> None:
    job_id = start(cluster)
    beat = cluster.results(job_id) / "outputs" / "beat"
    cluster.wait_for(beat.exists, "a heartbeat")
    cluster.run("scontrol", "suspend", str(job_id), user="root")
    cluster.wait_state(job_id, "SUSPENDED")

    def still() -> bool:
        before = beat.read_text()
        deadline = time.monotonic() + 1
        while time.monotonic() < deadline:
            if beat.read_text() != before:
                return False
        return True

    cluster.wait_for(still, "no heartbeat while suspended", 20)
    stopped_at = beat.read_text()
    cluster.run("scontrol", "resume", str(job_id), user="root")
    cluster.wait_for(lambda: beat.read_text() != stopped_at, "the heartbeat again")
    cluster.run("scancel", "-s", "KILL", str(job_id))
    cluster.wait(job_id)
    nothing_left(cluster)
