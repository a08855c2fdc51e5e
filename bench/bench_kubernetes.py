"""On Kubernetes: what a job costs over Slurm and a pod alone, ours beside the guide's own way in bash (baseline/).

In one run, in turn, on one test cluster, with the same image and body:
- `bare Slurm`: a plain batch script, with an empty Prolog and Epilog;
- `bare pod`: a pod made by one request to the API server, pinned to the node;
- `ours`: a file dropped into submit/;
- `the guide's`: the same file dropped into the submit/ of a Slurm with the scripts of baseline/.

Each of the three Slurms is a local cluster of its own with the same settings, so that the guide's way gains by ours
(batch_sched_delay=0) as well. Their Prologs are timed where they run. The test cluster is brought up and taken down,
unless KUBECONFIG or SLURMK8S_TESTBED names one (tests/testbed/shared.py). Needs root, inotify-tools and jq.
"""

import argparse
import contextlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).parent))
import guide  # found only now
import measure
from measure import Local
from testbed import shared

from slurmk8s import config
from slurmk8s.kube.client import Kube
from slurmk8s.kube.connection import connect
from slurmk8s.local.plan import Plan

ROUNDS, QUICK_ROUNDS = 15, 3
PROMISED_PROLOG, PROMISED_START = 0.030, 0.3
# The guide's `kubectl wait` must see the pod ready before it ends: the kubelet looks once a second.
BODY_SECONDS = 3
JOB = f"""\
#!/bin/sh
#SBATCH --job-name=bench
#SBATCH --cpus-per-task=1
#SBATCH --mem=100M
#SBATCH --time=00:05:00
#SBATCH --output=/dev/null
#K8S_IMAGE=@IMAGE@
: >/mnt/nas/work/first
sleep {BODY_SECONDS}
: >/mnt/nas/work/last
"""
EMPTY = "#!/bin/sh\nexit 0\n"
TIMED = """\
#!/bin/bash
begun=$EPOCHREALTIME
PROGRAM
code=$?
echo "$begun $EPOCHREALTIME" >>TIMES
exit $code
"""


@dataclass(frozen=True)
class Taken:
    """What one job took, in seconds."""

    first: float
    """From its drop or submission to the first line of its body."""
    idle: float = 0.0
    """From its body's end until Slurm has the node back."""
    prolog: float = 0.0


@dataclass(frozen=True)
class Bench:
    """The Kubernetes that is used, and a folder for what is made on the way."""

    folder: Path
    found: shared.Shared
    kube: Kube

    @property
    def node(self) -> str:
        """All pods run on this one."""
        return self.found.nodes[0]

    @property
    def job(self) -> str:
        """The job file."""
        return JOB.replace("@IMAGE@", self.found.image)

    @contextlib.contextmanager
    def slurm(self, name: str, prolog: str | Path, **settings: str) -> Iterator[Local]:
        """A local cluster with this Prolog, timed."""
        times, hook = self.folder / f"{name}.times", self.folder / f"{name}.prolog"
        hook.write_text(TIMED.replace("PROGRAM", str(prolog)).replace("TIMES", str(times)))
        hook.chmod(0o755)
        plan = Plan(
            folder=self.folder / name,
            backend="kubernetes",
            kubeconfig=self.found.kubeconfig,
            kube_nodes=(self.node,),
            services=name == "ours",
            slurm_overrides={"Prolog": str(hook), **settings},
        )
        with measure.local(plan) as cluster:
            yield cluster

    def follow(self, name: str, cluster: Local, before: float) -> Taken:
        """Wait for a job's first line, its last, and the idle node."""
        first = measure.written(cluster.work / "first")
        last = measure.written(cluster.work / "last")
        state = ("sinfo", "--noheader", "--partition=main", "--format=%T")
        measure.until(lambda: cluster.slurm(*state).strip() == "idle", "an idle node", every=0.02)
        now = time.time()
        times = self.folder / f"{name}.times"
        begun, ended = map(float, times.read_text().split())
        times.unlink()
        return Taken(first - before, now - last, ended - begun)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROUNDS} rounds instead of {ROUNDS}")
    rounds = QUICK_ROUNDS if parser.parse_args().quick else ROUNDS
    missing = [program for program in ("inotifywait", "jq") if not shutil.which(program)]
    if missing:
        sys.exit(f"bench: not installed: {', '.join(missing)}. Run: apt-get install inotify-tools jq")
    with shared.cluster() as found, measure.folder() as folder:
        bench = Bench(folder, found, connect(found.kubeconfig))
        with bare_slurm(bench) as bare, ours(bench) as (own, settle), guides(bench) as (theirs, namespace):
            ways: dict[str, Callable[[], Taken]] = {
                "bare Slurm": bare,
                "bare pod": lambda: bare_pod(bench, namespace),
                "ours": own,
                "the guide's": theirs,
            }
            load = os.getloadavg()[0]
            for way in ways.values():
                way()  # the first pull, namespace and import are not what is measured
            taken: dict[str, list[Taken]] = {name: [] for name in ways}
            for _ in range(rounds):
                for name, way in ways.items():
                    taken[name].append(way())
        report(taken, settle)
        print(f"{os.cpu_count()} CPUs; load average {load:.1f} before, {os.getloadavg()[0]:.1f} after")


@contextlib.contextmanager
def bare_slurm(bench: Bench) -> Iterator[Callable[[], Taken]]:
    """Nothing but Slurm."""
    empty = bench.folder / "empty.sh"
    empty.write_text(EMPTY)
    empty.chmod(0o755)
    with bench.slurm("bare", empty, Epilog=str(empty), JobSubmitPlugins='""') as cluster:
        script = cluster.work / "job.sh"
        script.write_text(bench.job)

        def once() -> Taken:
            before = time.time()
            cluster.slurm("sbatch", "--quiet", "--chdir=/", str(script))
            return bench.follow("bare", cluster, before)

        yield once


def bare_pod(bench: Bench, namespace: str) -> Taken:
    """One request, and no more than the body needs."""
    work = bench.folder / "pod"
    work.mkdir(exist_ok=True)
    name, pods = "bare", f"/api/v1/namespaces/{namespace}/pods"
    container = {
        "name": "job",
        "image": bench.found.image,
        "command": ["/bin/sh", "-c", ": >/work/first"],
        "volumeMounts": [{"name": "work", "mountPath": "/work"}],
    }
    volume = {"name": "work", "hostPath": {"path": str(work), "type": "Directory"}}
    spec = {"nodeName": bench.node, "restartPolicy": "Never", "containers": [container], "volumes": [volume]}
    before = time.time()
    bench.kube.create(pods, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
    first = measure.written(work / "first")
    bench.kube.delete(f"{pods}/{name}")
    measure.until(lambda: bench.kube.find(f"{pods}/{name}") is None, "the bare pod's end", every=0.1)
    return Taken(first - before)


@contextlib.contextmanager
def ours(bench: Bench) -> Iterator[tuple[Callable[[], Taken], float]]:
    """This project; and its settle time, which is by choice."""
    hook = bench.folder / "ours" / "bin" / "slurm_k8s_prolog.sh"
    with bench.slurm("ours", hook) as cluster:
        settle = config.load(cluster.decided.plan.layout.config).intake.settle_seconds

        def once() -> Taken:
            return bench.follow("ours", cluster, drop(cluster, bench.job))

        yield once, settle


@contextlib.contextmanager
def guides(bench: Bench) -> Iterator[tuple[Callable[[], Taken], str]]:
    """The scripts of baseline/, and a namespace for their pods."""
    scripts = guide.copy(bench.folder / "guide-scripts")
    hooks = {"Epilog": str(scripts / guide.EPILOG), "JobSubmitPlugins": '""'}
    with bench.slurm("guide", scripts / guide.PROLOG, **hooks) as cluster:
        names = f"{cluster.decided.plan.layout.cluster}-guide"  # others may use this Kubernetes as well
        namespace = f"{names}-{cluster.person.pw_uid}"
        guide.write_settings(scripts, cluster, bench.found, bench.node, names)
        with guide.namespace(bench.kube, namespace), guide.watcher(scripts, cluster):

            def once() -> Taken:
                return bench.follow("guide", cluster, drop(cluster, bench.job))

            yield once, namespace


def drop(cluster: Local, text: str) -> float:
    """Put a job file of the person's into submit/ in one step; when."""
    name = f"{time.time_ns()}.sh"
    file = cluster.work / name
    file.write_text(text)
    os.chown(file, cluster.person.pw_uid, cluster.person.pw_gid)
    before = time.time()
    file.rename(cluster.nas / "slurm-jobs" / "submit" / name)
    return before


def report(taken: dict[str, list[Taken]], settle: float) -> None:
    """Tables, and the two promises."""
    first = {name: [one.first for one in all_of] for name, all_of in taken.items()}
    first["ours"] = [value - settle for value in first["ours"]]
    floor = measure.middle(first["bare Slurm"]) + measure.middle(first["bare pod"])
    print(f"From the drop (bare: the request) to the body's first line; ours without its settle time of {settle:g} s")
    rows(first, floor, "bare Slurm + bare pod", "s")

    idle = {name: [one.idle for one in all_of] for name, all_of in taken.items() if name != "bare pod"}
    print("From the body's end to an idle node")
    rows(idle, measure.middle(idle["bare Slurm"]), "bare Slurm", "s")

    prolog = {name: [one.prolog for one in all_of] for name, all_of in taken.items() if name != "bare pod"}
    prolog = {"an empty one" if name == "bare Slurm" else name: values for name, values in prolog.items()}
    base = measure.middle(prolog["an empty one"])
    print("The Prolog (the guide's waits for its pod, ours does not)")
    rows(prolog, base, "an empty one", "ms")

    promise("Prolog over an empty one", measure.middle(prolog["ours"]) - base, PROMISED_PROLOG)
    promise("First line over bare Slurm + bare pod", measure.middle(first["ours"]) - floor, PROMISED_START)


def rows(taken: dict[str, list[float]], floor: float, called: str, unit: str) -> None:
    scale, digits = (1000, 1) if unit == "ms" else (1, 2)
    for name, values in taken.items():
        print(f"  {name:<12} {measure.spread(values, unit)}   n {len(values)}", end="")
        if name in ("ours", "the guide's"):
            middle = measure.middle(values)
            print(f"   {middle / floor:5.2f} x {called} ({scale * (middle - floor):+.{digits}f} {unit})", end="")
        print()
    ratio = measure.middle(taken["ours"]) / measure.middle(taken["the guide's"])
    print(f"  ours / the guide's = {ratio:.2f}\n")


def promise(what: str, seconds: float, promised: float) -> None:
    word = "kept" if seconds <= promised else "NOT KEPT"
    print(f"{what}: {seconds * 1000:.0f} ms, promised at most {promised * 1000:.0f} ms: {word}")


if __name__ == "__main__":
    main()
