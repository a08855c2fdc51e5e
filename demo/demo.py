"""`make demo`: two job files travel from a NAS folder through Slurm into containers and come back as results."""

import json
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

SLURMK8S = Path(sys.executable).with_name("slurmk8s")
HERE = Path(__file__).parent
FILES = ("test_job.sh", "failing_job.sh")
SECONDS = 110
TERMINAL = sys.stdout.isatty()
BOLD, PLAIN = ("\033[1m", "\033[0m") if TERMINAL else ("", "")


@dataclass(frozen=True)
class Demo:
    """A local cluster and the person it serves."""

    folder: Path
    user: str

    def run(self, *command: str | Path) -> str:
        """Run a command as the person, as after `. env`; its output."""
        account = pwd.getpwnam(self.user)
        done = subprocess.run(
            ["sh", "-c", '. "$0"/env; exec "$@"', self.folder, *command],
            user=account.pw_uid,
            group=account.pw_gid,
            extra_groups=[],
            cwd=self.folder / "nas",
            env={"PATH": "/usr/bin:/bin", "HOME": account.pw_dir, "USER": self.user, "LANG": "C.UTF-8"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.stdout

    def show(self, *command: str | Path) -> None:
        """Run it where the reader sees both what is typed and what comes back."""
        short = " ".join(str(word).replace(str(self.folder), "$D") for word in command)
        print(f"{BOLD}$ {short}{PLAIN}")
        print(self.run(*command).rstrip(), end="\n\n")

    def job(self, name: str) -> int | None:
        """The id in the receipt of a dropped file."""
        found = [re.fullmatch(rf"{re.escape(name)}\.(\d+)", path.name) for path in (self.jobs / "processed").iterdir()]
        return next((int(match[1]) for match in found if match), None)

    @property
    def jobs(self) -> Path:
        """Where files are dropped."""
        return self.folder / "nas" / "slurm-jobs"

    def summary(self, job: int) -> dict[str, object]:
        """What is known of a job that has ended; empty while its bundle is not complete."""
        path = self.folder / "nas" / "results" / str(job) / "summary.json"
        data = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        return data if data.get("complete") else {}

    def stage(self, name: str) -> str:
        """How far a dropped file has come, in a few words."""
        job = self.job(name)
        if job is None:
            return "dropped, waiting to be taken"
        if summary := self.summary(job):
            return f"job {job} {summary['state']}, exit code {summary['exit_code']}, results complete"
        queue = self.run("squeue", "--noheader", f"--jobs={job}", "--format=%T on %N")
        said = self.folder / "nas" / "results" / str(job) / "stdout.log"
        last = said.read_text(encoding="utf-8", errors="replace").splitlines()[-1:] if said.exists() else []
        state = queue.strip().lower().removesuffix(" on") if "error" not in queue and queue.strip() else "ended"
        return f"job {job} {state}" + (f', says "{last[0]}"' if last else "")


def head(text: str) -> None:
    """A line that says what comes."""
    print(f"\n{BOLD}== {text}{PLAIN}", flush=True)


def main() -> int:
    """Up, drop, watch, show, down."""
    started, keep = time.monotonic(), bool(os.environ.get("KEEP"))
    folder = Path(tempfile.mkdtemp(prefix="slurmk8s-demo-", dir="/var/tmp"))
    try:
        head(f"A private Slurm, registry, agent and watcher in D={folder}")
        subprocess.run([SLURMK8S, "local", "up", "--dir", folder], stdout=subprocess.DEVNULL, check=True)
        demo = Demo(folder, json.loads((folder / "plan.json").read_text(encoding="utf-8"))["user"])
        good = play(demo, started)
    except BaseException:
        keep = False
        raise
    finally:
        if not keep:
            subprocess.run(
                [SLURMK8S, "local", "down", "--dir", folder, "--purge"], stdout=subprocess.DEVNULL, check=False
            )
            shutil.rmtree(folder, ignore_errors=True)
    farewell(demo, keep)
    print(f"\n{time.monotonic() - started:.0f} s in all.")
    return 0 if good else 1


def play(demo: Demo, started: float) -> bool:
    """The journey of the two files; whether it went as it should."""
    demo.show("sinfo")
    head(f"{demo.user} drops two job files: the guide's test job, and one that fails on purpose")
    for name in FILES:
        text = (HERE / name).read_bytes()
        print(f"{BOLD}$ cp {name} $D/nas/slurm-jobs/submit/{PLAIN}")
        drop(demo, name, text)
    print((HERE / FILES[0]).read_text(encoding="utf-8"))
    head("On their way")
    complete = follow(demo, started)
    jobs = [demo.job(name) for name in FILES]
    if not complete or None in jobs:
        print(f"Not complete after {SECONDS} s; the logs:")
        for log in sorted((demo.folder / "log").iterdir()):
            print(f"-- {log.name}\n" + "\n".join(log.read_text(errors="replace").splitlines()[-15:]))
        return False
    first, second = (str(job) for job in jobs)
    head("The receipt")
    demo.show("cat", demo.jobs / "processed" / f"{FILES[0]}.{first}.receipt.txt")
    head("What came back")
    demo.show("sh", "-c", f"cd results && find . | sort && cat test-{first}.out")
    demo.show("cat", f"results/{first}/job_summary.txt")
    demo.show("slurmk8s", "logs", second)
    demo.show("slurmk8s", "results")
    demo.show("slurmk8s", "verify", first)
    demo.show("slurmk8s", "verify", second)
    exits = [demo.summary(int(job)).get("exit_code") for job in (first, second)]
    return exits == [0, 7]


def drop(demo: Demo, name: str, data: bytes) -> None:
    """As the person; the clone itself may be where they cannot read."""
    account = pwd.getpwnam(demo.user)
    target = demo.jobs / "submit" / name
    who = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    subprocess.run(["sh", "-c", 'cat > "$0"', target], input=data, check=True, **who)  # type: ignore[call-overload]


def follow(demo: Demo, started: float) -> bool:
    """Print each stage as it is reached; whether all was complete in time."""
    seen: dict[str, str] = {}
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        for name in FILES:
            stage = demo.stage(name)  # before the check below, so that the last stage is printed too
            if seen.get(name) != stage:
                print(f"{time.monotonic() - started:5.1f} s  {name:<15} {stage}", flush=True)
                seen[name] = stage
        jobs = [demo.job(name) for name in FILES]
        if all(job and demo.summary(job) for job in jobs):
            return True
        time.sleep(0.3)
    return False


def farewell(demo: Demo, keep: bool) -> None:
    """How to go on."""
    if keep:
        head("It is still up")
        print(f"""\
Be {demo.user}:       sudo -u {demo.user} -i    (as root: su - {demo.user})
Use it:               . {demo.folder}/env
Drop your own job:    cp my_job.sh {demo.jobs}/submit/
See what happens:     squeue; slurmk8s results; slurmk8s logs -f JOB
Stop it for good:     sudo {demo.folder}/bin/slurmk8s local down --dir {demo.folder} --purge""")
    else:
        head("Nothing is left running")
        print(f"""\
Drop your own job:    make demo KEEP=1, which leaves it up and says where to copy the file, or
                      sudo {SLURMK8S} local up, and follow what it says.""")


if __name__ == "__main__":
    sys.exit(main())
