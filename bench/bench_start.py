"""From sbatch to the first line of the body: ours, against Slurm's own turnaround plus the container's own start.

Baselines, run in turn with ours in the same minute on the same local cluster:
- `slurm`: a plain batch script under the same Slurm (sbatch to its first line);
- `podman`: the same image by `podman kube play` with the same sort of manifest (play to its first line).
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import measure  # found only now

from slurmk8s.local import images
from slurmk8s.local.plan import Plan

ROUNDS = 12
BODY = ': >"$1"'


def main() -> None:
    with measure.folder() as folder, measure.local(Plan(folder=folder / "local")) as cluster:
        layout, stamp = cluster.decided.plan.layout, cluster.work / "stamp"

        def batch(k8s: str) -> Callable[[], float]:
            def once() -> float:
                (cluster.work / "job.sh").write_text(f"#!/bin/sh\n{k8s}\n{BODY}\n")
                before = time.time()
                command = ["sbatch", "--quiet", "--mem=100M", "--output=/dev/null"]
                cluster.run_inside(*command, "/mnt/nas/work/job.sh", "/mnt/nas/work/stamp")
                seconds = measure.written(stamp) - before
                measure.until(lambda: not cluster.slurm("squeue", "--noheader"), "an empty queue", every=0.05)
                return seconds

            return once

        def podman() -> float:
            manifest = cluster.work / "pod.yaml"
            manifest.write_text(
                "apiVersion: v1\nkind: Pod\nmetadata: {name: bench}\nspec:\n  restartPolicy: Never\n  containers:\n"
                f"  - {{name: job, image: {images.SAMPLE}, command: [sh, -c, '{BODY}', sh, /work/stamp],\n"
                "     volumeMounts: [{name: work, mountPath: /work}]}\n"
                "  volumes: [{name: work, hostPath: {path: /mnt/nas/work, type: Directory}}]\n"
            )
            play = ["podman", "kube", "play", "--quiet", f"--network={layout.cluster}", str(manifest)]
            before = time.time()
            cluster.run_inside(*play, root=True)
            seconds = measure.written(stamp) - before
            cluster.run_inside("podman", "kube", "down", str(manifest), root=True)
            return seconds

        ways = {"ours": batch(f"#K8S_IMAGE={images.SAMPLE}"), "slurm": batch(""), "podman": podman}
        for way in ways.values():
            way()  # the first pull and the first import are not what is measured
        taken: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(ROUNDS):
            for name, way in ways.items():
                taken[name].append(way())
        for name, values in taken.items():
            print(f"{name:7} {measure.spread(values)}   n {ROUNDS}")
        middle = {name: measure.middle(values) for name, values in taken.items()}
        together = middle["slurm"] + middle["podman"]
        more = middle["ours"] - together
        print(f"ours / (slurm + podman) = {middle['ours'] / together:.2f}   (difference {more:+.2f} s)")


if __name__ == "__main__":
    main()
