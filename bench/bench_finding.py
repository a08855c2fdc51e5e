"""Finding jobs among 100,000 bundles: `slurmk8s results`, `status` and `report`, beside what people type today.

Baselines: `ls results | wc -l`, which reads the names of the bundles and nothing of any; `squeue --me` of a real Slurm;
and `jq` over every summary.json, which is how a report was made by hand. They take turns, so that a busy machine slows
all of them. The bundles are made up, but whole as far as these commands look: folder, marker, summary, index.
"""

import os
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import measure  # found only now
from measure import middle, spread

from slurmk8s.local.plan import Plan
from slurmk8s.results import entry
from slurmk8s.results.index import FOLDER
from slurmk8s.results.marker import Marker
from slurmk8s.results.summary import Outputs, Summary, Times

BUNDLES = int(os.environ.get("BUNDLES", "100000"))
ROUNDS = 5
DAYS = 365
WAITING = 40
NAMES = ("train-resnet", "학습-bert", "eval", "prepare-data", "sweep")
ENDS = (
    ("completed", 0, "Completed: the body ended with exit code 0.", "none"),
    ("failed", 1, "The body ended with exit code 1.", "person"),
    ("out_of_memory", 137, "Out of memory: it was killed at its limit of 65536 MiB; ask for more.", "person"),
    ("timeout", 143, "Stopped at its time limit of 04:00:00: ask for more with #SBATCH --time.", "person"),
    ("cancelled", None, "Cancelled before it had ended (scancel).", "none"),
)


def summaries(uid: int) -> Iterator[Summary]:
    """A year of somebody's jobs."""
    chance = random.Random(1)
    now = time.time()
    for number in range(BUNDLES):
        submitted = now - DAYS * 86400 * (1 - number / BUNDLES) - 7200
        started = submitted + chance.expovariate(1 / 600)
        state, code, cause, fault = chance.choices(ENDS, (80, 10, 4, 3, 3))[0]
        yield Summary(
            cluster="bench",
            job_id=number + 1,
            array=None,
            name=f"{chance.choice(NAMES)}-{number % 1000}",
            user=f"person{uid}",
            uid=uid,
            account="vision",
            partition=chance.choice(("gpu", "cpu")),
            attempt=0,
            node="node1",
            nodes=("node1",),
            image="nas-hub.local:5407/pytorch:2.0",
            image_digest="sha256:" + "ab" * 32,
            workdir="/workspace",
            command="the job file's own body",
            gpus=("0", "1"),
            cpus=8,
            memory_mb=65536,
            times=Times(submitted, started, body_started=started + 1, ended=started + chance.expovariate(1 / 3600)),
            state=state,
            exit_code=code,
            signal=None,
            cause=cause,
            fault=fault,
            outputs=Outputs(3, 123456),
            checksums="complete",
            complete=True,
        )


def make_bundles(root: Path, uid: int) -> None:
    """As the worker leaves them, without its fsync."""
    index: dict[str, list[bytes]] = {}
    own = root / FOLDER / str(uid)
    own.mkdir(parents=True)
    for summary in summaries(uid):
        bundle = root / str(summary.job_id)
        bundle.mkdir(mode=0o711)
        (bundle / "summary.json").write_bytes(summary.encode())
        (bundle / ".slurmk8s.json").write_bytes(Marker(0, summary.times.submitted, summary.name, None).encode())
        for path in (bundle, bundle / "summary.json", bundle / ".slurmk8s.json"):
            os.chown(path, uid, uid)
        line = entry.of_summary(summary.to_json(), 0)
        index.setdefault(time.strftime("%Y-%m", time.gmtime(line.at)), []).append(b"\n" + entry.encode(line))
    for month, lines in index.items():
        (own / f"{month}.node1.jsonl").write_bytes(b"".join(lines))
    (own / "whole").touch()
    for path in (*own.iterdir(), own):
        os.chown(path, uid, uid)


def main() -> None:
    with measure.folder() as place, measure.local(Plan(folder=place / "local", services=False)) as cluster:
        root, person = cluster.nas / "results", cluster.person
        before = time.perf_counter()
        make_bundles(root, person.pw_uid)
        print(f"{BUNDLES:,} bundles, made in {time.perf_counter() - before:.0f} s")
        for number in range(WAITING):
            command = ["sbatch", "--quiet", "--mem=100M", "--output=/dev/null", f"--job-name=job-{number}"]
            cluster.slurm(*command, "--wrap", "sleep 3600")
        ways = {
            "ls | wc -l": ["sh", "-c", f"ls {root} | wc -l"],
            "squeue --me": ["squeue", "--me"],
            "slurmk8s --version": ["slurmk8s", "--version"],
            "results": ["slurmk8s", "results"],
            "results --name": ["slurmk8s", "results", "--name", "bert-77"],
            "results --state": ["slurmk8s", "results", "--state", "timeout", "--since", "90d"],
            "results JOB": ["slurmk8s", "results", str(BUNDLES // 2)],
            "status": ["slurmk8s", "status"],
            "report (30 days)": ["slurmk8s", "report"],
            "report (all)": ["slurmk8s", "report", "--since", "10y"],
        }
        taken: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(ROUNDS):
            for name, command in ways.items():
                taken[name].append(timed(cluster, command))
        names, queue = middle(taken["ls | wc -l"]), middle(taken["squeue --me"])
        for name, values in taken.items():
            ratios = f"{middle(values) / names:5.1f} x ls   {middle(values) / queue:5.1f} x squeue"
            print(f"{name:20} {spread(values, 'ms')}   {ratios}")
        every = f"find {root} -mindepth 2 -maxdepth 2 -name summary.json -print0"
        seconds = timed(cluster, ["sh", "-c", f"{every} | xargs -0 jq -c .state | sort | uniq -c"])
        ratio = seconds / middle(taken["report (all)"])
        print(f"{'find | jq':20} once {seconds:6.1f} s   {ratio:5.1f} x report (all)")


def timed(cluster: measure.Local, command: list[str]) -> float:
    """As the person calls it."""
    before = time.perf_counter()
    cluster.slurm(*command)
    return time.perf_counter() - before


if __name__ == "__main__":
    main()
