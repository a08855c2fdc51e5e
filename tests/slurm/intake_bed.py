"""A NAS folder and watchers on it, for the tests of the intake with real Slurm."""

import os
import pwd
import subprocess
import sys
from pathlib import Path
from typing import Any

import slurmk8s
from slurmk8s.slurm.client import Identity

GOOD = b"#!/bin/bash\n#SBATCH --mem=50M\nid -un\n"
BAD = b"#!/bin/bash\n#SBATCH --mem=8\n#SBATCH --tme=3\nid\n"
ALICE, BOB = "skt-alice", "skt-bob"
WatchProcess = subprocess.Popen[bytes]


class Intake:
    """A NAS folder of its own and watchers on it, beside a Slurm that the tests share."""

    def __init__(self, slurm: Any, folder: Path) -> None:
        self.slurm = slurm
        self.folder = folder
        self.nas = folder / "nas"
        self.settings: dict[str, object] = {}
        self.variables: dict[str, str] = {}
        """Of the watcher's environment."""
        self.mounted = False
        self.started: list[WatchProcess] = []
        folder.chmod(0o755)
        self.nas.mkdir()
        self.results(self.nas)

    @staticmethod
    def results(nas: Path) -> None:
        """The folder that everybody may add to."""
        (nas / "results").mkdir()
        (nas / "results").chmod(0o1777)

    @property
    def jobs(self) -> Path:
        """The folder with submit/, processed/ and failed/."""
        return self.nas / "slurm-jobs"

    def names(self, folder: str) -> list[str]:
        """What people see there, our guide left out."""
        found = [path.name for path in (self.jobs / folder).iterdir()]
        return sorted(name for name in found if name != "README.txt" and not name.startswith("."))

    def environment(self, more: dict[str, str] | None = None) -> dict[str, str]:
        """Write the configuration and point to it."""
        config = self.folder / "config.toml"
        config.write_text(
            f"""
log_folder = "{self.folder}/log"
[agent]
state_folder = "{self.folder}/state"
[nas]
root = "{self.nas}"
require_mountpoint = {str(self.mounted).lower()}
{f'service_user = "{self.settings["service_user"]}"' if "service_user" in self.settings else ""}
[intake]
settle_seconds = 0.2
scan_seconds = 0.1
idle_scan_seconds = 0.3
identity = "{self.settings.get("identity", "owner")}"
language = "{self.settings.get("language", "en")}"
broken_copy_seconds = {self.settings.get("broken_copy_seconds", 300)}
retry_seconds = {self.settings.get("retry_seconds", 3)}
[intake.languages]
{self.settings.get("languages", "")}
[slurm]
conf = "{self.slurm.conf}"
command_seconds = 20
{f'bin_folder = "{self.settings["bin_folder"]}"' if "bin_folder" in self.settings else ""}
{self.settings.get("more", "")}
""",
            encoding="utf-8",
        )
        package = Path(slurmk8s.__file__).parents[1]
        own = {"SLURMK8S_CONFIG": str(config), "PYTHONPATH": str(package)}
        return os.environ | own | self.variables | (more or {})

    def once(self, crash_after: str | None = None, **options: Any) -> "subprocess.CompletedProcess[bytes]":
        """`slurmk8s watch --once`."""
        more = {"SLURMK8S_CRASH_AFTER": crash_after} if crash_after else {}
        prefix = options.pop("prefix", [])
        python = options.pop("python", sys.executable)
        command = [*prefix, python, "-m", "slurmk8s", "watch", "--once"]
        return subprocess.run(
            command, env=self.environment(more), check=False, timeout=60, stderr=subprocess.PIPE, **options
        )

    def start(self) -> WatchProcess:
        """`slurmk8s watch` as a service."""
        log = (self.folder / f"watcher-{len(self.started)}.log").open("wb")
        with log:
            process = subprocess.Popen(
                [sys.executable, "-m", "slurmk8s", "watch"], env=self.environment(), stdout=log, stderr=log
            )
        self.started.append(process)
        return process

    def stop(self) -> None:
        """Kill all watchers."""
        for process in self.started:
            process.kill()
            process.wait()

    def drop(
        self, name: str, data: bytes = GOOD, user: str = ALICE, folder: str = "", into: Path | None = None
    ) -> None:
        """Copy a file in as that person."""
        target = (into or self.jobs / "submit") / folder / name
        as_person(user, ["sh", "-c", 'cat >"$1"', "sh", os.fsencode(str(target))], data)

    @property
    def programs(self) -> Path:
        """Where the watcher finds Slurm's programs after `before_sbatch`."""
        return self.folder / "bin"

    def before_sbatch(self, commands: str) -> None:
        """Have these commands of sh run before each sbatch, as whoever submits; anybody may write beside it."""
        self.programs.mkdir()
        for program in ("scontrol", "squeue", "scancel", "sinfo", "sacctmgr", "sprio"):
            (self.programs / program).symlink_to(f"/usr/bin/{program}")
        sbatch = self.programs / "sbatch"
        sbatch.write_text(f'#!/bin/sh\n{commands}\nexec /usr/bin/sbatch "$@"\n')
        sbatch.chmod(0o755)
        self.programs.chmod(0o777)
        self.settings["bin_folder"] = self.programs

    def query(self, *arguments: str) -> str:
        """Ask Slurm."""
        environment = os.environ | {"SLURM_CONF": str(self.slurm.conf)}
        return subprocess.run(arguments, env=environment, check=True, capture_output=True, text=True).stdout

    def job_ids(self, name: str) -> list[int]:
        """All jobs of this name that were not cancelled, finished ones too."""
        lines = self.query("squeue", "-h", "--states=all", f"--name={name}", "-o", "%i %T").splitlines()
        return sorted(int(line.split()[0]) for line in lines if line.split()[1] != "CANCELLED")

    def submit_as(self, user: str, name: str, *options: str) -> int:
        """A held job of that person's, by sbatch."""
        command = ["sbatch", "--parsable", "--hold", f"--job-name={name}", "--output=/dev/null", *options]
        environment = {"PATH": os.environ["PATH"], "SLURM_CONF": str(self.slurm.conf)}
        done = subprocess.run(
            command, input=GOOD, env=environment, cwd="/", check=True, capture_output=True, **person_options(user)
        )
        return int(done.stdout)

    def state(self, job_id: int) -> str:
        """The job's state."""
        return self.query("squeue", "-h", "--states=all", f"--jobs={job_id}", "-o", "%T").strip()

    def show(self, job_id: int) -> str:
        """All that Slurm says about a job."""
        return self.query("scontrol", "show", "job", "-o", str(job_id))


def person(name: str) -> Identity:
    """A test account, made if it is missing and left for the next run."""
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        subprocess.run(["useradd", "--create-home", "--key", "UID_MIN=1000", name], check=True, capture_output=True)
        entry = pwd.getpwnam(name)
    groups = tuple(os.getgrouplist(name, entry.pw_gid))
    return Identity(name, entry.pw_uid, entry.pw_gid, groups, entry.pw_dir)


def as_person(user: str, command: list[Any], data: bytes = b"") -> None:
    """Do what a person would do."""
    subprocess.run(command, input=data, check=True, **person_options(user))


def person_options(user: str) -> dict[str, Any]:
    """For `subprocess`: to be that person."""
    entry = pwd.getpwnam(user)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
