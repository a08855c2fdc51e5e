"""A private Slurm of two nodes on this machine, with our Lua and without our agent: for what concerns Slurm alone."""

import contextlib
import itertools
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

# Tests are not a package, so that the installed program is what they import.
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))
from intake_bed import Intake, person  # found only now
from slurm import accounting  # found only now
from waiting import until

from slurmk8s import config as configuration
from slurmk8s.local import machine
from slurmk8s.slurm import conf, lua_facts
from slurmk8s.slurm.client import Identity
from slurmk8s.slurm.commands import SlurmCommands

PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
DEFAULT_IMAGE = "nas-hub.local:5407/default:1"

# As slurmk8s-run gets it from the kernel: interpreter and its one argument in one word, then the script and its own.
RUN_PROGRAM = """#!/bin/sh
echo "run-program: [$1]"
interpreter=$1; shift
case $interpreter in
*" "*) exec "${interpreter%% *}" "${interpreter#* }" "$@" ;;
*) exec "$interpreter" "$@" ;;
esac
"""

EPILOG = """#!/bin/sh
while [ -e {folder}/hold-epilogs ]; do /bin/sleep 0.05; done
"""


class BareSlurm:
    """The running daemons and how to reach them."""

    def __init__(self, folder: Path, more: Sequence[str] = ()) -> None:
        self.folder = folder
        self.more = more
        """Further lines of slurm.conf; `{folder}` in them is the cluster's."""
        self.conf = folder / "slurm.conf"
        self.environment = {"PATH": PATH, "SLURM_CONF": str(self.conf), "LANG": "C.UTF-8"}
        self.commands = SlurmCommands(configuration.Slurm(conf=self.conf))
        self.run_program = folder / "run"
        self.outputs = folder / "outputs"
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}

    def write(self) -> None:
        """Everything the daemons read."""
        for name in ("state", "spool", "dev", "munge", "log", "outputs"):
            (self.folder / name).mkdir()
        self.outputs.chmod(0o1777)
        (self.folder / "munge" / "key").write_bytes(os.urandom(128))
        (self.folder / "munge" / "key").chmod(0o400)
        for number in range(2):
            os.mknod(self.folder / "dev" / f"nvidia{number}", stat.S_IFCHR | 0o666, os.makedev(195, number))
        for path, text in (
            (self.run_program, RUN_PROGRAM),
            (self.folder / "epilog", EPILOG.format(folder=self.folder)),
        ):
            path.write_text(text)
            path.chmod(0o755)
        for name in conf.LUA:
            shutil.copy(conf.files() / name, self.folder)
        site = configuration.parse({"partitions": {"boxed": {"image": DEFAULT_IMAGE}}}, "test")
        (self.folder / conf.FACTS).write_text(lua_facts.render(site, str(self.run_program)))
        (self.folder / "gres.conf").write_text(f"Name=gpu Type=tesla File={self.folder}/dev/nvidia[0-1]\n")
        self.conf.write_text(self.slurm_conf())

    def slurm_conf(self) -> str:
        """Our include, and around it what makes the cluster private and small."""
        host = socket.gethostname().partition(".")[0]
        ports = free_ports(3)
        ours = conf.settings() | {"Prolog": "", "Epilog": f"{self.folder}/epilog"}
        # Short, so that tests of an absent controller or of a job that must be killed do not wait long.
        ours |= {"KillWait": "2", "MessageTimeout": "5"}
        lines = [f"{key}={value}" for key, value in ours.items() if value]
        return "\n".join(
            [
                *lines,
                "ClusterName=bare",
                f"SlurmctldHost={host}(127.0.0.1)",
                f"SlurmctldPort={ports[0]}",
                "SlurmUser=root",
                "SlurmdUser=root",
                f"AuthInfo=socket={self.folder}/munge/socket",
                f"StateSaveLocation={self.folder}/state",
                f"SlurmdSpoolDir={self.folder}/spool/%n",
                f"SlurmctldPidFile={self.folder}/slurmctld.pid",
                f"SlurmdPidFile={self.folder}/slurmd-%n.pid",
                f"SlurmctldLogFile={self.folder}/log/slurmctld.log",
                f"SlurmdLogFile={self.folder}/log/slurmd-%n.log",
                "ProctrackType=proctrack/linuxproc",
                "TaskPlugin=task/none",
                "JobAcctGatherType=jobacct_gather/none",
                "MpiDefault=none",
                "ReturnToService=2",
                "SlurmdParameters=config_overrides",
                "GresTypes=gpu",
                *(
                    f"NodeName=node{number} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[number]} "
                    "CPUs=4 RealMemory=8000 Gres=gpu:tesla:2"
                    for number in (1, 2)
                ),
                "PartitionName=cpu Nodes=node[1-2] Default=YES MaxTime=1-00:30:00 DefMemPerNode=100",
                "PartitionName=boxed Nodes=node[1-2] MaxTime=INFINITE DefMemPerNode=100",
                "PartitionName=closed Nodes=node1 State=DOWN MaxNodes=1 Hidden=YES",
                *(line.format(folder=self.folder) for line in self.more),
                "",
            ]
        )

    def start(self, name: str, *command: str) -> None:
        """Start a daemon in the foreground, as our child: it is stopped by its own pid."""
        log = (self.folder / "log" / f"{name}.out").open("ab")
        self.daemons[name] = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment, cwd="/"
        )
        log.close()

    def start_all(self) -> None:
        """munged, slurmctld, both slurmd; returns when the nodes are idle."""
        self.start_munged()
        self.start_slurmctld()
        self.start_nodes()

    def start_munged(self) -> None:
        """Start munged and wait for its socket."""
        munge = self.folder / "munge"
        files = [f"--{name}-file={munge}/{name}" for name in ("key", "pid", "seed", "log")]
        self.start("munged", "munged", "--foreground", "--force", f"--socket={munge}/socket", *files)
        until((munge / "socket").exists, "munged listens")

    def start_nodes(self) -> None:
        """Start both slurmd and wait until the nodes are idle."""
        for node in ("node1", "node2"):
            self.start(node, "slurmd", "-D", "-N", node)
        self.until(
            lambda: self.run("sinfo", "-h", "-t", "idle", "-o", "%D", "-p", "cpu").strip() == "2", "two idle nodes"
        )

    def start_slurmctld(self) -> None:
        """Start slurmctld and wait for its first answer."""
        self.start("slurmctld", "slurmctld", "-D")
        self.until(lambda: " is UP" in self.run("scontrol", "ping", check=False), "slurmctld answers")

    def stop(self, name: str) -> None:
        """Stop one daemon and wait for its end."""
        daemon = self.daemons.pop(name)
        daemon.send_signal(signal.SIGCONT)
        daemon.terminate()
        try:
            daemon.wait(10)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()

    def stop_all(self) -> None:
        """Cancel what runs, so that no step outlives the test, then stop the daemons."""
        (self.folder / "hold-epilogs").unlink(missing_ok=True)
        try:
            if "slurmctld" in self.daemons:
                self.cancel_all()
        finally:
            for name in list(self.daemons)[::-1]:
                self.stop(name)

    def run(self, *command: str, stdin: str = "", check: bool = True) -> str:
        """Run a Slurm program by hand, as a person at a prompt would."""
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, env=self.environment, cwd="/", timeout=60, check=False
        )
        if check and done.returncode:
            pytest.fail(f"{command} ended with {done.returncode}: {done.stderr}")
        return done.stdout + done.stderr

    def cancel_all(self) -> None:
        """No job left, pending, running or completing."""
        ids = self.run("squeue", "-h", "-a", "-o", "%A").split()
        if ids:
            self.run("scancel", *ids, check=False)
            self.until(lambda: not self.run("squeue", "-h", "-a", "-o", "%A"), "no job left")

    def until(self, condition: Callable[[], object], what: str, seconds: float = 30) -> None:
        """Wait for a condition; if it does not come, say what Slurm shows."""
        try:
            until(condition, what, seconds)
        except AssertionError as failed:
            shown = [
                self.run(*command, check=False) for command in (("squeue", "-a"), ("sinfo", "-N", "-o", "%n %T %E"))
            ]
            ended = [name for name, daemon in self.daemons.items() if daemon.poll() is not None]
            raise AssertionError("\n".join([str(failed), *shown, f"ended: {ended}"])) from None

    def until_state(self, job_id: int, *states: str) -> None:
        """Wait until a job is in one of these states, as Slurm itself names them."""
        self.until(lambda: self.state(job_id) in states, f"job {job_id} {states}")

    def state(self, job_id: int) -> str:
        """The job's state as squeue prints it."""
        return self.run("squeue", "-h", "-t", "all", "-j", str(job_id), "-o", "%T", check=False).strip()


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now, and that stay free while a daemon is away."""
    return list(itertools.islice(machine.ports(uuid.uuid4().hex), count))


@contextlib.contextmanager
def private_slurm(*more: str) -> Iterator[BareSlurm]:
    """A cluster of its own, written and not started, with further lines of slurm.conf; stopped and removed after."""
    # Not pytest's own folder: it is closed to the people whose jobs run here.
    folder = Path(tempfile.mkdtemp(prefix="slurmk8s-bare-", dir="/tmp"))
    folder.chmod(0o755)
    slurm = BareSlurm(folder, more)
    try:
        slurm.write()
        yield slurm
    finally:
        slurm.stop_all()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def running_slurm() -> Iterator[BareSlurm]:
    with private_slurm() as slurm:
        slurm.start_all()
        yield slurm


@pytest.fixture(scope="module")
def full_slurm() -> Iterator[BareSlurm]:
    """A cluster that takes four jobs in all; it has no nodes running, so every job waits."""
    with private_slurm("MaxJobCount=5", "MinJobAge=2") as slurm:
        slurm.start_munged()
        slurm.start_slurmctld()
        yield slurm


@pytest.fixture(scope="module")
def lossy_slurm() -> Iterator[BareSlurm]:
    """A cluster that notices a lost node, and forgets an ended job, within seconds."""
    with private_slurm("SlurmdTimeout=6", "MinJobAge=10") as slurm:
        slurm.start_all()
        yield slurm


@pytest.fixture(scope="session")
def running_accounting(alice: Identity, bob: Identity) -> Iterator[BareSlurm]:
    """The cluster with slurmdbd, started once for all tests that need it (about five seconds)."""
    port = free_ports(1)[0]
    with private_slurm(*accounting.slurm_conf(port)) as slurm:
        slurm.start_munged()
        accounting.start(slurm, port, (alice.name, bob.name))
        slurm.start_slurmctld()
        slurm.start_nodes()
        yield slurm


@pytest.fixture
def accounting_slurm(running_accounting: BareSlurm) -> Iterator[BareSlurm]:
    """A cluster with slurmdbd and limits enforced, empty at the start of each test.

    `accounting_slurm.run("sacctmgr", "-i", …)` changes it and `run("sacct", …)` reads it. alice and bob belong to the
    account `lab`; a test that changes a limit puts it back by `accounting.reset(slurm)`, which is done here.
    """
    accounting.reset(running_accounting)
    yield running_accounting
    running_accounting.cancel_all()


@pytest.fixture
def bare_slurm(running_slurm: BareSlurm) -> Iterator[BareSlurm]:
    """The cluster, empty and idle at the start of each test."""
    yield running_slurm
    (running_slurm.folder / "hold-epilogs").unlink(missing_ok=True)
    running_slurm.cancel_all()


@pytest.fixture(scope="session")
def cluster(running_slurm: BareSlurm) -> BareSlurm:
    """The same cluster for tests that leave nothing in it: `cluster.environment` makes `sbatch --test-only` work."""
    return running_slurm


@pytest.fixture(scope="session")
def alice() -> Identity:
    return person("skt-alice")


@pytest.fixture(scope="session")
def bob() -> Identity:
    return person("skt-bob")


@pytest.fixture
def intake(bare_slurm: BareSlurm, alice: Identity, bob: Identity) -> Iterator[Intake]:
    folder = Path("/var/tmp") / f"slurmk8s-intake-{uuid.uuid4().hex[:8]}"  # pytest's own folders are closed to others
    folder.mkdir()
    intake = Intake(bare_slurm, folder)
    yield intake
    intake.stop()
    subprocess.run(["umount", "-l", str(intake.nas)], check=False, capture_output=True)
    bare_slurm.cancel_all()  # no job may write into the folder while it goes
    shutil.rmtree(folder)


@pytest.fixture
def ready(intake: Intake) -> Intake:
    """With its folders made."""
    assert intake.once().returncode == 0
    return intake


@pytest.fixture
def name() -> str:
    """A file name, and so a job name, that no other test uses."""
    return f"{uuid.uuid4().hex[:12]}.sh"


@pytest.fixture
def behind(intake: Intake) -> Iterator[Path]:
    """The NAS is a mount that is written from behind: no event ever comes, as with another NFS client's writes."""
    back = intake.folder / "back"
    back.mkdir()
    intake.results(back)
    subprocess.run(["rm", "-rf", str(intake.nas / "results")], check=True)
    subprocess.run(["bindfs", str(back), str(intake.nas)], check=True)
    intake.mounted = True
    assert intake.once().returncode == 0
    yield back
    subprocess.run(["umount", "-l", str(intake.nas)], check=False, capture_output=True)
