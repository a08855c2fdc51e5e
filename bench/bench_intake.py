"""What the intake costs: throughput against bare sbatch, an idle watcher, memory over many drops.

- Throughput: a burst of files into submit/ of a running watcher, until each has its receipt. Baselines, in turn with it
  in the same minute on the same Slurm, as the same person: `bare loop`, the same files by `xargs -P 4 -n 1 sbatch`; and
  `held loop`, the same with `--hold`, then `scontrol release` of 48 jobs at a time. The second is what never running a
  job twice takes of anybody: each job costs Slurm two requests instead of one.
- Idle: CPU time of a watcher on a folder with 10,000 entries that are no drops, beside one on an empty folder.
- Memory: a watcher's resident size after each quarter of 20,000 drops.

Jobs wait for a time far ahead, so that none runs and only submitting is measured. Needs root.
"""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import measure  # found only now

from slurmk8s.local.plan import Plan

BURST, ROUNDS, OLD, DROPS = 1000, 5, 10_000, 20_000
IDLE_SECONDS = 60
SIDE_BY_SIDE, RELEASED_AT_ONCE = 4, 48
PROMISED_RATIO, PROMISED_IDLE = 1.2, 0.5
JOB = "#!/bin/sh\n#SBATCH --mem=50M\n#SBATCH --begin=now+30days\ntrue\n"
BAD = "#!/bin/sh\n#SBATCH --mem=8\ntrue\n"
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Watched:
    """A watcher on a local cluster."""

    cluster: measure.Local
    pid: int

    @property
    def jobs(self) -> Path:
        """The folder with submit/ and the rest."""
        return self.cluster.nas / "slurm-jobs"

    def cpu_seconds(self) -> float:
        """Of the watcher and all programs that it has started and waited for."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / TICKS

    def megabytes(self) -> float:
        """What it and its processes for bursts hold; pages that they share count once."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        return sum(_kilobytes(pid) for pid in (str(self.pid), *children)) / 1024


@contextlib.contextmanager
def watching(cluster: measure.Local) -> Iterator[Watched]:
    """Start a watcher; it is gone afterwards."""
    entered, environment = cluster.inside(sys.executable, "-m", "slurmk8s", "watch", root=True)
    log = (cluster.work / "watcher.log").open("wb")
    with log:
        process = subprocess.Popen(entered, env=environment, stdout=log, stderr=log)
    pid = process.pid
    try:
        pid = measure.until(lambda: _watcher(process.pid), "the watcher")
        measure.until((cluster.nas / "slurm-jobs" / "submit" / "README.txt").exists, "the watcher's folders")
        yield Watched(cluster, pid)
    finally:
        os.kill(pid, signal.SIGTERM)
        process.wait()


def _watcher(pid: int) -> int | None:
    """What was entered is a chain of programs; the watcher is the first Python, its own processes come below it."""
    while not Path(f"/proc/{pid}/cmdline").read_bytes().startswith(sys.executable.encode()):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        if not children:
            return None
        pid = int(children[0])
    return pid


def _kilobytes(pid: str) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def write(cluster: measure.Local, folder: Path, names: list[str], texts: tuple[str, ...]) -> None:
    """The person's files."""
    folder.mkdir(exist_ok=True)
    for number, name in enumerate(names):
        path = folder / name
        path.write_text(texts[number % len(texts)])
        os.chown(path, cluster.person.pw_uid, cluster.person.pw_gid)


def drop(watched: Watched, names: list[str], texts: tuple[str, ...] = (JOB,)) -> float:
    """Put files into submit/ at once; the seconds until all have an answer."""
    source = watched.jobs.parent / "prepared"
    write(watched.cluster, source, names, texts)
    answered = _answers(watched)
    begun = time.perf_counter()
    for name in names:
        (source / name).rename(watched.jobs / "submit" / name)
    measure.until(lambda: _answers(watched) == answered + len(names), "all answers", seconds=1200, every=0.05)
    return time.perf_counter() - begun


def _answers(watched: Watched) -> int:
    told = (name for folder in ("processed", "failed") for name in os.listdir(watched.jobs / folder))
    return sum(name.endswith((".receipt.txt", ".error.txt")) for name in told)


def by_sbatch(cluster: measure.Local, names: list[str], loop: str) -> float:
    """The same files by Slurm's programs alone."""
    folder = cluster.work / "bare"
    write(cluster, folder, names, (JOB,))
    listed = "\0".join(f"/mnt/nas/work/bare/{name}" for name in names)
    (cluster.work / "names").write_text(listed)
    entered, environment = cluster.inside("sh", "-c", loop)
    begun = time.perf_counter()
    subprocess.run(entered, env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun


_SUBMIT = f"xargs -0 -P {SIDE_BY_SIDE} -n 1 sbatch --parsable --output=/dev/null"
_RELEASE = f"xargs -n {RELEASED_AT_ONCE} sh -c 'IFS=,; exec scontrol release \"$*\"' sh"
LOOPS = {
    "bare loop": f"{_SUBMIT} </mnt/nas/work/names >/dev/null",
    "held loop": f"{_SUBMIT} --hold </mnt/nas/work/names | {_RELEASE}",
}


def throughput(cluster: measure.Local, count: int, rounds: int) -> None:
    taken: dict[str, list[float]] = {name: [] for name in (*LOOPS, "ours")}
    with watching(cluster) as watched:
        for number in range(rounds):
            names = [f"burst-{number}-{each}.sh" for each in range(count)]
            for name, loop in LOOPS.items():
                taken[name].append(by_sbatch(cluster, names, loop) / count)
                cluster.slurm("scancel", "--quiet", "--me")
            taken["ours"].append(drop(watched, names) / count)
            cluster.slurm("scancel", "--quiet", "--me")
    for name, values in taken.items():
        print(f"{name:10} {measure.spread(values, 'ms')} per job   n {rounds} x {count}")
    for name in LOOPS:
        ratio = measure.middle(taken["ours"]) / measure.middle(taken[name])
        print(f"ours / {name} = {ratio:.2f}   (promised: at most {PROMISED_RATIO})")


def idle(cluster: measure.Local, seconds: float) -> None:
    submit = cluster.nas / "slurm-jobs" / "submit"
    shares = {}
    for what, count in (("an empty folder", 0), (f"{OLD} old entries", OLD)):
        for number in range(count):
            (submit / f".old-{number}").touch()
        with watching(cluster) as watched:
            time.sleep(3)  # its first pass, and what it imports late, are not idling
            before = watched.cpu_seconds()
            time.sleep(seconds)
            shares[what] = 100 * (watched.cpu_seconds() - before) / seconds
    for what, share in shares.items():
        print(f"idle on {what}: {share:.2f} % of a core over {seconds:g} s")
    print(f"(promised with {OLD}: at most {PROMISED_IDLE} %)")


def memory(cluster: measure.Local, count: int) -> None:
    with watching(cluster) as watched:
        held = []
        for quarter in range(4):
            names = [f"memory-{quarter}-{each}.sh" for each in range(count // 4)]
            drop(watched, names, (JOB, BAD))
            cluster.slurm("scancel", "--quiet", "--me")
            held.append(f"{watched.megabytes():.1f} MB after {count // 4 * (quarter + 1)} drops")
    print("memory:", ", ".join(held))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer of everything, to see that it works")
    quick = parser.parse_args().quick
    settings = {"MinJobAge": "2", "MaxJobCount": "50000"}
    with measure.folder() as folder:
        # A settle time would only be added to ours.
        ours = {"intake.settle_seconds": 0.1, "intake.scan_seconds": 0.1}
        plan = Plan(folder=folder / "local", services=False, slurm_overrides=settings, config_overrides=ours)
        with measure.local(plan) as cluster:
            throughput(cluster, 100 if quick else BURST, 1 if quick else ROUNDS)
            idle(cluster, 10 if quick else IDLE_SECONDS)
            memory(cluster, 400 if quick else DROPS)


if __name__ == "__main__":
    main()
