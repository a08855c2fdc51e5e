"""The launcher itself as PID 1 of a fresh PID namespace, under each sh that an image may have."""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import pytest

from slurmk8s.rendezvous import Rendezvous
from slurmk8s.run import handover

SHELLS = ("dash", "bash", "busybox")
# A child of the body's shell that tells each signal it gets, and ends with SIGTERM. By os.write: a second signal while
# print flushes the first would be a reentrant call, and the child's end.
TELLER = """
import os, signal, sys, time
for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, lambda number, _: os.write(1, f"child {signal.Signals(number).name}\\n".encode()))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
print("up", flush=True)
while True:
    time.sleep(0.02)
"""


@dataclass
class Pod:
    """One launcher in namespaces of its own, where /bin/sh is the sh to be tried."""

    folder: Path
    shell: str
    wait_for: Callable[..., object]
    process: subprocess.Popen[bytes] | None = None
    workdir: str = "/usr"
    go: int | None = None

    @property
    def meeting(self) -> Rendezvous:
        """The folder where it is handed over."""
        return Rendezvous(self.folder)

    @property
    def results(self) -> Path:
        """Where it writes."""
        return self.folder / "results"

    def start(
        self,
        script: str,
        *command: str,
        variables: dict[str, str] | None = None,
        arguments: tuple[str, ...] = (),
        missing: tuple[str, ...] = (),
    ) -> None:
        """Hand over as slurmk8s-run does. `missing`: programs that this image has not."""
        self.meeting.script.write_text(script)
        words = [*command, str(self.meeting.script), *arguments]
        self.meeting.command.write_bytes(handover.command_file(variables or {}, 0o027, words))
        text = resources.files("slurmk8s.run").joinpath("launcher.sh").read_text(encoding="utf-8")
        launcher = self.folder / "launcher.sh"
        launcher.write_text(text)
        shutil.copy(f"/usr/bin/{self.shell}", self.folder / "sh")
        mounts = [f'mount --bind "{self.folder}/sh" "$(readlink -f /bin/sh)"']
        if missing:
            layers = "lowerdir=/usr/bin,upperdir=/mnt/upper,workdir=/mnt/work"
            over = f"mount -t overlay -o {layers} none /usr/bin && rm {' '.join(missing)}"
            mounts = [f"mount -t tmpfs none /mnt && mkdir /mnt/upper /mnt/work && {over}", *mounts]
        # In the container's own cgroup namespace its own counters are at the root; the machine's here are not its.
        enter = " && ".join([*mounts, "mount -t tmpfs none /sys/fs/cgroup", f'exec /bin/sh "{launcher}"'])
        self.process = subprocess.Popen(
            ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "/usr/bin/env", "bash", "-c", enter],
            env={
                "PATH": "/usr/bin:/bin",
                "SLURMK8S_RESULTS": str(self.results),
                "SLURMK8S_WORKDIR": self.workdir,
                "SLURMK8S_HANDOVER": str(self.meeting.handover),
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        # As slurmk8s-run does: what is written waits there, and nobody hangs if the launcher never comes.
        self.go = os.open(self.meeting.go, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        os.write(self.go, b"go\n")

    def run(self, script: str, *command: str, **extra: object) -> int:
        """Start and wait for the end; by /bin/sh if no command is given."""
        self.start(script, *(command or ("/bin/sh",)), **extra)  # type: ignore[arg-type]
        return self.end()

    def end(self) -> int:
        """The launcher's own exit code, which must be the one that it reports."""
        assert self.process is not None
        said, _ = self.process.communicate(timeout=20)
        assert said == b""
        assert self.meeting.read_exit() == self.process.returncode
        assert not self.meeting.out_of_memory.exists()
        return self.process.returncode

    def see(self, text: str) -> None:
        """Wait until stdout has it."""
        self.wait_for(lambda: text in self.stdout, f"{text!r} in stdout", 10)

    @property
    def stdout(self) -> str:
        """The body's, so far."""
        path = self.results / "stdout.log"
        return path.read_text(errors="replace") if path.exists() else ""

    @property
    def stderr(self) -> str:
        """The same."""
        return (self.results / "stderr.log").read_text(errors="replace")


@pytest.fixture(params=SHELLS)
def pod(request: pytest.FixtureRequest, tmp_path: Path, wait_for: Callable[..., object]) -> Iterator[Pod]:
    pod = Pod(tmp_path / "job", request.param, wait_for)
    pod.meeting.handover.mkdir(parents=True)
    pod.results.mkdir()
    for fifo in (pod.meeting.go, pod.meeting.signals):
        os.mkfifo(fifo)
    yield pod
    if pod.go is not None:
        os.close(pod.go)
    if pod.process and pod.process.stdout and not pod.process.stdout.closed:
        pod.process.kill()  # --kill-child: the whole namespace goes with it
        pod.process.communicate()


@pytest.mark.parametrize("code", [0, 1, 7, 127, 137, 255])
def test_the_bodys_exit_code_is_reported(pod: Pod, code: int) -> None:
    assert pod.run(f"exit {code}") == code
    assert pod.meeting.read_problem() is None
    assert pod.stderr == ""


@pytest.mark.parametrize("name", ["KILL", "TERM", "USR1", "SEGV", "INT"])
def test_a_body_that_dies_of_a_signal_ends_with_128_and_its_number(pod: Pod, name: str) -> None:
    assert pod.run(f"ulimit -c 0; kill -s {name} $$") == 128 + getattr(signal, f"SIG{name}")


def test_stdout_and_stderr_are_separate_and_appended(pod: Pod) -> None:
    (pod.results / "stdout.log").write_text("before\n")
    assert pod.run("echo out; echo err >&2; printf 'no newline'") == 0
    assert (pod.stdout, pod.stderr) == ("before\nout\nno newline", "err\n")


def test_words_and_variables_arrive_as_they_were(pod: Pod) -> None:
    variables = {"LR": "0.1 'quoted'\nsecond line"}
    arguments = ("one two", "", "it's")
    assert pod.run('printf "%s|" "$LR" "$-" "$0" "$@"', "/bin/sh", "-e", variables=variables, arguments=arguments) == 0
    value, flags, name, *rest = pod.stdout.split("|")
    assert value == variables["LR"]
    assert "e" in flags
    assert name == str(pod.meeting.script)
    assert rest == [*arguments, ""]


@pytest.mark.parametrize("name", ["handover", "interpreter", "wanted", "word", "status", "key", "shell", "signal"])
def test_a_persons_variable_may_have_any_name(pod: Pod, name: str) -> None:
    """The launcher has variables too, in the very shell that exports the person's."""
    assert pod.run(f'echo "${name}"', "/usr/bin/env", "sh", variables={name: "mine"}) == 0
    assert pod.stdout == "mine\n"


def test_umask_and_folder_are_the_jobs(pod: Pod) -> None:
    assert pod.run("umask; pwd") == 0
    assert pod.stdout.split() == ["0027", "/usr"]


def test_a_folder_that_is_not_there_is_told_in_a_sentence(pod: Pod) -> None:
    pod.workdir = "/no/such folder"
    assert pod.run("echo never") == 1
    problem = pod.meeting.read_problem()
    assert problem is not None
    assert problem.startswith("The working folder /no/such folder cannot be entered in the container")
    assert (pod.stdout, pod.stderr) == ("", f"slurmk8s: {problem}\n")


@pytest.mark.parametrize(
    ("command", "missing"),
    [
        (("/opt/conda/bin/python", "-u"), "/opt/conda/bin/python"),
        (("/usr/bin/env", "python9"), "python9"),
        (("/usr/bin/env", "-S python9 -u"), "python9"),
        (("/usr/bin/env", "-S -i FOO=1 python9 -u"), "python9"),
        (("/usr/bin/env", "-S -u HOME python9"), "python9"),
        (("/usr/bin/env", "-Spython9"), "python9"),
    ],
)
def test_a_missing_interpreter_is_named(pod: Pod, command: tuple[str, ...], missing: str) -> None:
    assert pod.run("x", *command) == 127
    problem = pod.meeting.read_problem() or ""
    assert problem.startswith(f"The image has no {missing}, which the script's first line asks for: ")
    assert not pod.meeting.shell.exists()


def test_an_image_without_env_is_told_so(pod: Pod) -> None:
    assert pod.run("x", "/usr/bin/env", "sh", missing=("/usr/bin/env",)) == 127
    problem = pod.meeting.read_problem()
    assert problem is not None
    assert problem.startswith("The image has no /usr/bin/env")


@pytest.mark.parametrize(
    "command",
    [
        ("/usr/bin/env", "python3"),
        ("/usr/bin/env", "-S python3 -u"),
        ("/usr/bin/env", "-S -u HOME FOO=1 python3 -u"),
        ("/usr/bin/env", '-S"python3" -u'),
        ("/usr/bin/env", "-S 'python3' -u"),
        ("/usr/bin/python3", "-u"),
    ],
)
def test_env_finds_the_interpreter_as_it_does_anywhere(pod: Pod, command: tuple[str, ...]) -> None:
    assert pod.run("import sys; print('python', sys.version_info[0]); sys.exit(3)", *command) == 3
    assert (pod.stdout, pod.stderr) == ("python 3\n", "")


@pytest.mark.parametrize(
    "command",
    [
        ("/bin/bash",),
        ("/bin/bash", "-l"),
        ("/bin/bash", "--login"),
        ("/usr/bin/bash", "-e"),
        ("/usr/bin/env", "bash"),
        ("/usr/bin/env", "-S bash -eu"),
    ],
)
def test_an_image_without_bash_runs_the_script_by_its_sh(pod: Pod, command: tuple[str, ...]) -> None:
    assert pod.run('echo "$0 $1"; exit 4', *command, arguments=("one",), missing=("/usr/bin/bash",)) == 4
    assert pod.stdout == f"{pod.meeting.script} one\n"
    assert pod.stderr == "slurmk8s: this image has no bash; its sh runs the script instead\n"
    assert pod.meeting.read_problem() is None


def teller(pod: Pod) -> str:
    """A body whose shell and whose child both tell what they get."""
    (pod.folder / "teller.py").write_text(TELLER)
    traps = "".join(f"trap 'echo shell SIG{name}' {name}\n" for name in ("USR1", "USR2", "INT", "TERM"))
    return f"{traps}/usr/bin/python3 {pod.folder}/teller.py\necho ended $?\nexit 9\n"


@pytest.mark.parametrize("name", ["USR1", "INT"])
def test_a_signal_for_all_reaches_the_shell_and_its_child(pod: Pod, name: str) -> None:
    """SIGINT too, which a background job of a shell would ignore for ever."""
    pod.start(teller(pod), "/bin/bash")
    pod.see("up")
    assert pod.meeting.send_signal("all", name)
    pod.see(f"child SIG{name}")
    pod.meeting.send_signal("all", "TERM")
    assert pod.end() == 9
    assert {f"child SIG{name}", f"shell SIG{name}", "ended 5"} <= set(pod.stdout.splitlines())


def test_a_signal_for_the_shell_is_not_its_childs(pod: Pod) -> None:
    pod.start(teller(pod), "/bin/bash")
    pod.see("up")
    pod.meeting.send_signal("shell", "USR2")
    pod.meeting.send_signal("all", "USR1")
    pod.see("child SIGUSR1")
    pod.meeting.send_signal("all", "TERM")
    assert pod.end() == 9
    assert "shell SIGUSR2" in pod.stdout
    assert "child SIGUSR2" not in pod.stdout


def state_of(pod: Pod) -> str:
    """The state letter of the body's child, as the kernel shows it."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if str(pod.folder / "teller.py").encode() in (entry / "cmdline").read_bytes().split(b"\0")[:2]:
                return (entry / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
    return ""


def test_stop_and_continue_reach_every_process(pod: Pod) -> None:
    pod.start(teller(pod), "/bin/bash")
    pod.see("up")
    pod.meeting.send_signal("all", "STOP")
    pod.wait_for(lambda: state_of(pod) == "T", "a stopped child", 10)
    pod.meeting.send_signal("all", "CONT")
    pod.wait_for(lambda: state_of(pod) in ("S", "R"), "a running child", 10)
    pod.meeting.send_signal("all", "TERM")
    assert pod.end() == 9


def test_the_helper_survives_what_it_passes_on(pod: Pod) -> None:
    pod.start(teller(pod), "/bin/bash")
    pod.see("up")
    for name in ("USR1", "INT", "CONT", "STOP", "CONT", "USR2"):
        pod.meeting.send_signal("all", name)
    pod.see("child SIGUSR2")
    pod.meeting.send_signal("all", "KILL")
    assert pod.end() == 137


def test_nonsense_in_the_fifo_is_ignored(pod: Pod) -> None:
    pod.start("trap 'echo got' USR1; echo up; while :; do sleep 0.05; done", "/bin/sh")
    pod.see("up")
    mark = pod.folder / "mark"
    with pod.meeting.signals.open("w") as fifo:
        fifo.write(f"all $(touch {mark})\nall\n\nnobody TERM\nall NOSUCH\nall -9\nall 9 9\nshell USR1\n")
    pod.see("got")
    pod.meeting.send_signal("all", "KILL")
    assert pod.end() == 137
    assert not mark.exists()


def test_the_shells_pid_is_told_once_the_body_runs(pod: Pod) -> None:
    assert pod.run('read -r pid < "$(dirname "$0")/shell"; [ "$pid" = $$ ] && echo same') == 0
    assert pod.stdout == "same\n"


def test_processes_that_the_body_leaves_behind_do_not_delay_the_end(pod: Pod) -> None:
    """They die with PID 1, which ends as soon as the body has."""
    assert pod.run("sleep 1000 & exit 3") == 3
