"""From sbatch to the first line of the body: ours, against Slurm's own turnaround plus the container's own start.

Baselines, run in turn with ours in the same minute on the same local cluster:
- `slurm`: a plain batch script under the same Slurm (sbatch to its first line);
- `podman`: the same image by `podman kube play` with the same sort of manifest (play to its first line).
"""

import pwd
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from slurmk8s.local import images, lifecycle, namespace, state
from slurmk8s.local.plan import Plan

ROUNDS = 12
STAMP = 'read up _ </proc/uptime; echo "$up" >"$1"'


def first_line(path: Path, before: float) -> float:
    """Seconds from `before` to what the body read from the same clock, once it is there."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if path.exists() and (text := path.read_text()).endswith("\n"):
            path.unlink()
            return float(text) - before
        time.sleep(0.01)
    raise AssertionError(f"{path} never appeared")


def uptime() -> float:
    return float(Path("/proc/uptime").read_text().split()[0])


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="slurmk8s-bench-", dir="/var/tmp"))
    folder.chmod(0o755)
    decided, _ = lifecycle.up(Plan(folder=folder), lambda _: None)
    layout = decided.plan.layout
    try:
        work = layout.nas / "work"
        work.mkdir()
        work.chmod(0o1777)

        running = state.running(layout)
        assert running
        person = pwd.getpwnam(decided.user)

        def inside(*command: str, root: bool = False) -> None:
            who = None if root else person
            environment = namespace.environment(layout, who) | (layout.podman_environment if root else {})
            entered = namespace.enter(running.pid, [*command], who, "/mnt/nas")
            subprocess.run(entered, env=environment, check=True, stdout=subprocess.DEVNULL)

        def batch(k8s: str) -> Callable[[], float]:
            def once() -> float:
                script = work / "job.sh"
                script.write_text(f"#!/bin/sh\n{k8s}\n{STAMP}\n")
                before = uptime()
                command = ["sbatch", "--quiet", "--mem=100M", "--output=/dev/null"]
                command += ["/mnt/nas/work/job.sh", "/mnt/nas/work/stamp"]
                inside(*command)
                seconds = first_line(work / "stamp", before)
                inside("sh", "-c", 'while [ -n "$(squeue --noheader)" ]; do sleep 0.05; done')
                return seconds

            return once

        def podman() -> float:
            manifest = work / "pod.yaml"
            manifest.write_text(
                "apiVersion: v1\nkind: Pod\nmetadata: {name: bench}\nspec:\n  restartPolicy: Never\n  containers:\n"
                f"  - {{name: job, image: {images.SAMPLE}, command: [sh, -c, '{STAMP}', sh, /work/stamp],\n"
                "     volumeMounts: [{name: work, mountPath: /work}]}\n"
                "  volumes: [{name: work, hostPath: {path: /mnt/nas/work, type: Directory}}]\n"
            )
            before = uptime()
            inside("podman", "kube", "play", "--quiet", f"--network={layout.cluster}", str(manifest), root=True)
            seconds = first_line(work / "stamp", before)
            inside("podman", "kube", "down", str(manifest), root=True)
            return seconds

        ways = {"ours": batch(f"#K8S_IMAGE={images.SAMPLE}"), "slurm": batch(""), "podman": podman}
        for way in ways.values():
            way()  # the first pull and the first import are not what is measured
        taken: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(ROUNDS):
            for name, way in ways.items():
                taken[name].append(way())
        middle = {name: statistics.median(values) for name, values in taken.items()}
        for name, values in taken.items():
            print(f"{name:7} p50 {middle[name]:.2f} s   min {min(values):.2f}   max {max(values):.2f}   n {ROUNDS}")
        together = middle["slurm"] + middle["podman"]
        more = middle["ours"] - together
        print(f"ours / (slurm + podman) = {middle['ours'] / together:.2f}   (difference {more:+.2f} s)")
    finally:
        lifecycle.down(layout, purge=True)
        subprocess.run(["rm", "-rf", folder], check=True)


if __name__ == "__main__":
    main()
