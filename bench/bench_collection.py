"""Collection: the checksums of a bundle against `find | xargs -P sha256sum`, and what a job's end costs its node.

- Throughput: the worker, as the agent starts it, and coreutils on the same files in turn in the same minute; very many
  small files, and large ones. Both read from the page cache, so that the programs are compared and not the disk.
- How hashing is shared out: processes (ours) against threads and against one, on the small files.
- Memory: the worker's peak with 100,000 files, and with one file of 20 GB (a hole: it is read, but fills no disk).
- The node: from the body's end until Slurm has the node back, ours against a plain job with an empty Epilog.
"""

import functools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import measure  # found only now

from slurmk8s.agent.person import require_readable_program
from slurmk8s.local import images
from slurmk8s.local.plan import Plan
from slurmk8s.results import files
from slurmk8s.results.hashers import Way, batches, hash_all
from slurmk8s.results.hashing import hash_file
from slurmk8s.results.summary import Summary, Times
from slurmk8s.results.walk import Folder, walk

MANY, EACH = 100_000, 2048
LARGE, LARGE_BYTES = 8, 128 << 20
SPARSE_BYTES = 20 << 30
PROCESSES = 2
ROUNDS = 5
END_ROUNDS = 10
PERSON = 54321
# As the agent starts it; the kernel's own figure tells what it held, whatever process it was started from.
WORKER = (
    "import sys; from slurmk8s.results.worker import main; main(); sys.stderr.write(open('/proc/self/status').read())"
)
SUMMARY = Summary(
    cluster="bench",
    job_id=1,
    array=None,
    name="bench",
    user="bench",
    uid=PERSON,
    account="",
    partition="main",
    attempt=0,
    node="node1",
    nodes=("node1",),
    image="image",
    image_digest=None,
    workdir="/",
    command="the job file's own body",
    gpus=(),
    cpus=1,
    memory_mb=1,
    times=Times(),
    state="completed",
    exit_code=0,
    signal=None,
    cause="Completed.",
    fault="none",
)


class Bundle:
    """A results folder of somebody's with one job in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.peak_kib = 0
        """The most memory that its worker held."""
        root.mkdir(parents=True)
        root.chmod(0o1777)
        self._ask("prepare")
        self.outputs = root / "1" / "outputs"

    def _ask(self, operation: str, **fields: object) -> dict[str, object]:
        request = {"op": operation, "root": str(self.root), "job_id": 1, "attempt": 0, **fields}
        done = subprocess.run(
            [sys.executable, "-I", "-c", WORKER],
            input=json.dumps(request).encode(),
            capture_output=True,
            check=True,
            user=PERSON,
            group=PERSON,
            extra_groups=[],
        )
        reply: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
        assert reply["ok"], reply
        self.peak_kib = max(self.peak_kib, int(done.stderr.split(b"VmHWM:")[1].split()[0]))
        return reply

    def end(self) -> None:
        """The job is over; nothing is hashed yet."""
        (self.root / "1" / "checksums.txt").unlink(missing_ok=True)
        (self.root / "1" / "summary.json").unlink(missing_ok=True)
        self._ask("finish", summary=SUMMARY.to_json())

    def ours(self) -> float:
        """Seconds for all checksums, with the worker's own start and both summaries."""
        self.end()
        before = time.perf_counter()
        assert self._ask("checksums", processes=PROCESSES)["complete"]
        return time.perf_counter() - before

    def theirs(self, at_a_time: int) -> float:
        """Seconds of coreutils."""
        line = f"find . -type f -print0 | xargs -0 -n {at_a_time} -P {PROCESSES} sha256sum > /dev/null"
        before = time.perf_counter()
        subprocess.run(["nice", "-n", "10", "sh", "-c", line], cwd=self.outputs, check=True)
        return time.perf_counter() - before


def main() -> None:
    require_readable_program()
    with measure.folder() as folder:
        small = Bundle(folder / "small")
        for number in range(MANY):
            inner = small.outputs / str(number // 1000)
            if number % 1000 == 0:
                inner.mkdir()
                inner.chmod(0o755)
            path = inner / str(number)
            path.write_bytes(b"%16d" % number * (EACH // 16))
            path.chmod(0o644)
        compare("small files", small, MANY * EACH, at_a_time=500)
        ways(small.root / "1")
        large = Bundle(folder / "large")
        for number in range(LARGE):
            (large.outputs / str(number)).write_bytes(os.urandom(1 << 20) * (LARGE_BYTES >> 20))
            (large.outputs / str(number)).chmod(0o644)
        compare("large files", large, LARGE * LARGE_BYTES, at_a_time=1)
        sparse = Bundle(folder / "sparse")
        os.truncate(os.open(sparse.outputs / "weights", os.O_CREAT | os.O_WRONLY, 0o644), SPARSE_BYTES)
        seconds = sparse.ours()
        print(f"one of {SPARSE_BYTES >> 30} GiB: {(SPARSE_BYTES >> 20) / seconds:.0f} MiB/s")
        for name, bundle in (("small files", small), ("large files", large), ("one large file", sparse)):
            print(f"{name}: the worker held {bundle.peak_kib >> 10} MiB at the most")
    node()


def compare(what: str, bundle: Bundle, size: int, at_a_time: int) -> None:
    taken: dict[str, list[float]] = {"ours": [], "sha256sum": []}
    for _ in range(ROUNDS):
        taken["ours"].append(bundle.ours())
        taken["sha256sum"].append(bundle.theirs(at_a_time))
    for name, values in taken.items():
        speed = (size >> 20) / measure.middle(values)
        print(f"{what}: {name:9} {measure.spread(values)}   {speed:6.0f} MiB/s   n {ROUNDS}")
    print(f"{what}: ours / sha256sum = {measure.middle(taken['ours']) / measure.middle(taken['sha256sum']):.2f}")


def ways(bundle: Path) -> None:
    """The same work by other means."""

    def sized(folder: Folder) -> Iterator[tuple[bytes, int]]:
        return ((name, EACH) for name in folder.names)

    def by_processes(base: int, processes: int) -> int:
        work = (batch for folder in walk(base, b"outputs") for batch in batches(folder.path, sized(folder)))
        return sum(len(hashed) for hashed in hash_all(base, work, Way(processes)))

    def by_threads(base: int, threads: int) -> int:
        def one(path: bytes, names: tuple[bytes, ...]) -> int:
            with files.folder(b"/proc/self/fd/%d/%s" % (base, path)) as inner:
                return len([hash_file(inner, name, name) for name in names])

        work = (batch for folder in walk(base, b"outputs") for batch in batches(folder.path, sized(folder)))
        with ThreadPoolExecutor(threads) as pool:
            return sum(pool.map(lambda batch: one(batch.path, batch.names), work))

    how: dict[str, Callable[[int], int]] = {
        "one process": functools.partial(by_processes, processes=1),
        "processes": functools.partial(by_processes, processes=PROCESSES),
        "threads": functools.partial(by_threads, threads=PROCESSES),
    }
    taken: dict[str, list[float]] = {name: [] for name in how}
    with files.folder(str(bundle)) as base:
        for _ in range(ROUNDS):
            for name, way in how.items():
                before = time.perf_counter()
                assert way(base) == MANY
                taken[name].append(time.perf_counter() - before)
    for name, values in taken.items():
        print(f"small files by {name:11} {measure.spread(values)}")


def node() -> None:
    """From the body's last line until `sinfo` shows the node idle."""
    with measure.folder() as folder, measure.local(Plan(folder=folder / "local")) as cluster:
        stamp = cluster.work / "stamp"

        def batch(k8s: str) -> float:
            (cluster.work / "job.sh").write_text(f'#!/bin/sh\n{k8s}\n: >"$1"\n')
            command = ["sbatch", "--quiet", "--mem=100M", "--output=/dev/null"]
            cluster.run_inside(*command, "/mnt/nas/work/job.sh", "/mnt/nas/work/stamp")
            ended = measure.written(stamp)
            measure.until(lambda: cluster.slurm("sinfo", "--noheader", "--format=%T").split() == ["idle"], "idle")
            return time.time() - ended

        kinds = {"ours": f"#K8S_IMAGE={images.SAMPLE}", "plain job": ""}
        taken: dict[str, list[float]] = {name: [] for name in kinds}
        for k8s in kinds.values():
            batch(k8s)  # the first pull is not what is measured
        for _ in range(END_ROUNDS):
            for name, k8s in kinds.items():
                taken[name].append(batch(k8s))
    for name, values in taken.items():
        print(f"node busy after the body: {name:9} {measure.spread(values)}   n {END_ROUNDS}")
    more = measure.middle(taken["ours"]) - measure.middle(taken["plain job"])
    print(f"node busy after the body: ours - plain = {more:+.2f} s")


if __name__ == "__main__":
    main()
