"""A handle on a running local cluster, in the words of the tests."""

import contextlib
import json
import os
import pwd
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import nas
from runtimes import Kubernetes, Podman
from waiting import until

from slurmk8s.local import images, namespace, state
from slurmk8s.local.layout import Layout
from slurmk8s.local.plan import Decided

Result = TypeVar("Result")
ENDED = {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED"}
TAKEN = {"NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "TIMEOUT"}
FINAL = ENDED | TAKEN


@dataclass(frozen=True)
class Cluster:
    """One local cluster. Paths are as seen from outside; in job files the NAS is /mnt/nas."""

    decided: Decided
    runtime: Podman | Kubernetes
    """What runs its pods."""
    other_user: str
    """A second account, for what one person must not do to another."""
    log_marks: dict[Path, int] = field(default_factory=dict)
    share: nas.Share | None = None
    """The NAS, where it is a mount of the test's own. Root reads results from behind it: on it root may be nobody."""

    @property
    def layout(self) -> Layout:
        """Every path of it."""
        return self.decided.plan.layout

    @property
    def user(self) -> str:
        """The person it serves."""
        return self.decided.user

    @property
    def uid(self) -> int:
        """Of that person."""
        return pwd.getpwnam(self.user).pw_uid

    @property
    def submit(self) -> Path:
        """Where files are dropped."""
        return self.layout.jobs / "submit"

    @property
    def processed(self) -> Path:
        """Where taken files and their receipts are."""
        return self.layout.jobs / "processed"

    @property
    def failed(self) -> Path:
        """Where refused files and their reasons are."""
        return self.layout.jobs / "failed"

    # -- running things ------------------------------------------------------------------------------------------

    def run(
        self,
        *command: str | Path,
        user: str | None = None,
        inside: bool = False,
        input: str | bytes | None = None,  # noqa: A002 - as in subprocess
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        check: bool = True,
        timeout: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as the person (or `user`, or "root"), from outside or inside the namespaces."""
        name = user or self.user
        account = pwd.getpwnam(name)
        environment = {**namespace.environment(self.layout, account), **(env or {})}
        arguments = [str(word) for word in command]
        where = str(cwd or ("/mnt/nas/work" if inside else self.layout.nas / "work"))
        if inside:
            person = None if name == "root" else account
            arguments = namespace.enter(self.pid, arguments, person, where)
            environment |= self.layout.podman_environment if name == "root" else {}
            who: dict[str, Any] = {}
        else:
            groups = os.getgrouplist(name, account.pw_gid)
            who = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": groups, "cwd": where}
        done = subprocess.run(
            arguments,
            env=environment,
            input=input.encode() if isinstance(input, str) else input,
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            timeout=timeout,
            check=False,
            **who,
        )
        result = subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        )
        if check and result.returncode:
            raise AssertionError(
                f"{shlex.join(map(str, command))} ended with {result.returncode}:\n{result.stdout}{result.stderr}"
            )
        return result

    def wait_for(self, condition: Callable[[], Result], what: str, seconds: float = 30) -> Result:
        """As `until` does."""
        return until(condition, what, seconds)

    # -- jobs ----------------------------------------------------------------------------------------------------

    def sbatch(self, script: str | bytes, *options: str, arguments: tuple[str, ...] = (), **how: Any) -> int:
        """Submit a script as the person, from a file of theirs, as people do; the job's id."""
        name = f"/tmp/slurmk8s-test-{os.getpid()}-{time.monotonic_ns()}.sh"
        path = Path(name)
        path.write_bytes(script.encode() if isinstance(script, str) else script)
        path.chmod(0o644)
        try:
            done = self.run("sbatch", "--parsable", *options, path, *arguments, **how)
        finally:
            path.unlink()
        return int(done.stdout.split(";")[0])

    def drop(self, name: str, script: str | bytes, user: str | None = None) -> Path:
        """Copy a job file into submit/ as the person, as a file manager does; its path."""
        data = script.encode() if isinstance(script, str) else script
        target = self.submit / name
        self.run("sh", "-c", 'cat > "$1"', "sh", target, user=user, input=data)
        return target

    def dropped_job(self, name: str, seconds: float = 30) -> int:
        """The id that the receipt of a dropped file names; fails with the reason if the drop was refused."""

        def look() -> int | None:
            refused = list(self.failed.glob(f"{name}*"))
            if refused:
                texts = "\n".join(path.read_text(errors="replace") for path in refused)
                raise AssertionError(f"{name} was refused:\n{texts}")
            found = [re.fullmatch(re.escape(name) + r"\.(\d+)", path.name) for path in self.processed.iterdir()]
            return next((int(match[1]) for match in found if match), None)

        return self.wait_for(look, f"a receipt for {name}", seconds) or 0

    def job(self, job_id: int) -> dict[str, str]:
        """`scontrol show job` as fields; empty when Slurm does not know it any more."""
        shown = self.run("scontrol", "show", "job", "-o", str(job_id), check=False).stdout
        return dict(
            re.findall(r"(?:^|\s)([A-Z][A-Za-z0-9:_/]*)=(.*?)(?=\s[A-Z][A-Za-z0-9:_/]*=|\s*$)", shown, re.MULTILINE)
        )

    def wait(self, job_id: int, seconds: float = 60) -> dict[str, str]:
        """The job's fields once it has ended and Slurm has its node back."""

        def ended() -> dict[str, str] | None:
            fields = self.job(job_id)
            return fields if fields.get("JobState", "").split("+")[0] in FINAL else None

        fields = self.wait_for(ended, f"the end of job {job_id}", seconds)
        assert fields
        # COMPLETING (the Epilog at work) is no longer shown beside a final state by -o; squeue tells.
        self.wait_for(
            lambda: not self.run("squeue", "--noheader", f"--jobs={job_id}", check=False).stdout.strip(),
            f"the Epilog of job {job_id}",
            seconds,
        )
        return fields

    def state(self, job_id: int) -> str:
        """JobState, or "" when Slurm does not know the job."""
        return self.job(job_id).get("JobState", "")

    def wait_state(self, job_id: int, word: str, seconds: float = 30) -> None:
        """Wait until the job's state is this word."""
        self.wait_for(lambda: self.state(job_id) == word, f"job {job_id} being {word}", seconds)

    # -- results -------------------------------------------------------------------------------------------------

    def results(self, job_id: int) -> Path:
        """The folder of a job's results."""
        return (self.share.back / "results" if self.share else self.layout.results) / str(job_id)

    def summary(self, job_id: int, seconds: float = 60) -> dict[str, Any]:
        """summary.json once the bundle is complete."""

        def complete() -> dict[str, Any] | None:
            path = self.results(job_id) / "summary.json"
            data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
            return data if data.get("complete") else None

        found = self.wait_for(complete, f"the summary of job {job_id}", seconds)
        assert found
        return found

    def stdout(self, job_id: int) -> str:
        """What is in stdout.log now."""
        return (self.results(job_id) / "stdout.log").read_text(encoding="utf-8", errors="replace")

    def stderr(self, job_id: int) -> str:
        """What is in stderr.log now."""
        return (self.results(job_id) / "stderr.log").read_text(encoding="utf-8", errors="replace")

    def cancel_all(self) -> None:
        """End whatever a failed test has left, and take its drained nodes back."""
        self.run("scancel", "--full", f"--user={self.user},{self.other_user}", user="root", check=False)
        for node, state_ in self.nodes().items():
            if state_.startswith("drain"):
                self.run("scontrol", "update", f"NodeName={node}", "State=RESUME", user="root", check=False)
        with contextlib.suppress(AssertionError):
            self.wait_for(lambda: not self.run("squeue", "--noheader").stdout.strip(), "an empty queue", 60)

    # -- the machine room ----------------------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        """The supervisor, as the host counts."""
        running = state.running(self.layout)
        assert running, "the cluster is down"
        return running.pid

    def daemon(self, name: str) -> int:
        """A daemon's process as the host counts (`agent-node1`, `watch`, `slurmctld` …), once it runs."""

        def look() -> int | None:
            running = state.running(self.layout)
            assert running, "the cluster is down"
            inner = running.daemons[name].pid
            return state.processes(running).get(inner) if inner else None

        return self.wait_for(look, f"{name} running") or 0

    def kill(self, name: str, number: int = signal.SIGKILL) -> int:
        """Send a daemon a signal; the process that got it."""
        pid = self.daemon(name)
        os.kill(pid, number)
        return pid

    def restarted(self, name: str, old: int, seconds: float = 30) -> int:
        """The daemon's new process after a kill."""
        return self.wait_for(lambda: (now := self.daemon(name)) != old and now, f"{name} started again", seconds) or 0

    def podman(self, *arguments: str, check: bool = True) -> str:
        """The output of podman, inside."""
        return self.run("podman", *arguments, user="root", inside=True, check=check).stdout

    def pods(self) -> list[str]:
        """Names of all pods of this cluster."""
        return self.runtime.pods(self)

    @property
    def kubernetes(self) -> Kubernetes:
        """For tests that are about Kubernetes."""
        assert isinstance(self.runtime, Kubernetes)
        return self.runtime

    def nodes(self) -> dict[str, str]:
        """State by node, as sinfo writes it."""
        lines = self.run("sinfo", "--noheader", "--Node", "--partition=main", "--format=%N %T").stdout.splitlines()
        return dict(line.split() for line in lines)

    def push_image(self, tar: Path, name: str) -> str:
        """Offer a root file system as an image; its full name."""
        reference = f"{images.REGISTRY}/{name}"
        self.runtime.push(self, tar, reference)
        return reference

    def log(self, name: str) -> str:
        """A log file's text by its name below log/."""
        return (self.layout.log / name).read_text(encoding="utf-8", errors="replace")

    def mark_logs(self) -> None:
        """Remember how long each log is: what a failing test shows begins here."""
        self.runtime.mark_logs()
        self.log_marks.clear()
        self.log_marks.update({path: path.stat().st_size for path in self.layout.log.iterdir() if path.is_file()})

    def evidence(self) -> Iterator[tuple[str, str]]:
        """What a person would look at first when something failed."""
        for command in (["sinfo", "--Node", "--long"], ["squeue", "--states=all", "--long"]):
            yield " ".join(command), self.run(*command, check=False).stdout
        if state.running(self.layout):
            yield from self.runtime.evidence(self)
        for path in sorted(self.layout.log.iterdir()):
            if path.is_file():
                with path.open("rb") as file:
                    file.seek(min(self.log_marks.get(path, 0), path.stat().st_size))
                    lines = file.read().decode(errors="replace").splitlines()
                if lines:
                    yield path.name, "\n".join(lines[-40:])
