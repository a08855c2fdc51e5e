"""The podman backend with real pods: made once, found, waited for, killed, gone."""

import asyncio
import io
import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from slurmk8s import config, labels
from slurmk8s.errors import ClusterFault, NodeFault, PersonFault
from slurmk8s.labels import PodName
from slurmk8s.local import confs
from slurmk8s.local.layout import Layout
from slurmk8s.pod.manifest import HostPath, Pod, Volume
from slurmk8s.pod.podman import Podman

UID, GID, GROUP = 54321, 54322, 54323
IMAGE = "nas-hub.local:5407/backend:1"


def run(work: Coroutine[Any, Any, Any], seconds: float = 60) -> Any:
    """Run one coroutine of the backend."""

    async def limited() -> Any:
        async with asyncio.timeout(seconds):
            return await work

    return asyncio.run(limited())


@pytest.fixture(scope="session")
def image(podman: Any) -> str:
    """A tag that is not `latest`, so that nobody asks the registry."""
    podman.run("tag", podman.image, IMAGE)
    return IMAGE


@pytest.fixture
def told() -> Iterator[Path]:
    """The folder with the launcher, in a place that everyone may enter."""
    folder = Path(tempfile.mkdtemp(prefix="slurmk8s-told-", dir="/var/tmp"))
    folder.chmod(0o755)
    yield folder
    subprocess.run(["rm", "-rf", str(folder)], check=True)


NAME = PodName(7, UID)


@pytest.fixture
def backend(podman: Any, told: Path) -> Iterator[Podman]:
    yield Podman(podman.config, config.Images(), "lab", "node1", told)
    podman.run("pod", "rm", "--all", "--force", "--time=0", check=False)


@pytest.fixture
def make(told: Path, image: str) -> Callable[..., Pod]:
    """`make(script, **changes)`: a pod whose launcher is this script."""

    def pod(script: str, **changes: Any) -> Pod:
        folder = told / "told"
        folder.mkdir(exist_ok=True)
        (folder / "launcher.sh").write_text(script)
        own = {labels.CLUSTER: "lab", labels.NODE: "node1"}
        plain = Pod(
            name="slurm-job-7",
            hostname="slurm-job-7",
            labels={labels.APP: labels.APP_VALUE, labels.JOB_ID: "7", labels.ATTEMPT: "0", **own},
            image=image,
            container=labels.CONTAINER,
            uid=UID,
            gid=GID,
            groups=(GID, GROUP),
            resources={"cpu": "1", "memory": "64Mi"},
            environment={"NAME": "it's 한글 {{ x }} \n second"},
            volumes=(Volume("told", HostPath(str(folder)), "/slurmk8s/told", read_only=True),),
            priority=None,
            grace_seconds=5,
            pull_policy="Never",
        )
        return replace(plain, **changes)

    return pod


def logs(podman: Any, name: str = "slurm-job-7") -> str:
    return podman.run("logs", f"{name}-job")


def test_a_pod_runs_as_its_user_and_its_end_is_known(podman: Any, backend: Podman, make: Callable[..., Pod]) -> None:
    run(backend.create(make('id -u; id -g; id -G; printf "%s" "$NAME"; exit 7')))
    state = run(backend.wait(NAME))
    assert (state.running, state.exit_code, state.out_of_memory) == (False, 7, False)
    assert state.labels[labels.JOB_ID] == "7"
    uid, gid, groups, name = logs(podman).split("\n", 3)
    assert (uid, gid, set(groups.split())) == (str(UID), str(GID), {str(GID), str(GROUP)})
    assert name == "it's 한글 {{ x }} \n second"


def test_a_pod_can_do_nothing_that_its_user_could_not(podman: Any, backend: Podman, make: Callable[..., Pod]) -> None:
    run(backend.create(make("grep -E 'CapEff|CapBnd|NoNewPrivs|Seccomp:' /proc/self/status; : > /slurmk8s/told/x")))
    run(backend.wait(NAME))
    shown = dict(line.split(":\t") for line in logs(podman).splitlines() if ":\t" in line)
    assert shown == {"CapBnd": "0" * 16, "CapEff": "0" * 16, "NoNewPrivs": "1", "Seccomp": "2"}


def test_made_twice_is_one_pod(podman: Any, backend: Podman, make: Callable[..., Pod]) -> None:
    run(backend.create(make("sleep 1000")))
    first = run(backend.find(NAME))
    run(backend.create(make("sleep 1000")))
    second = run(backend.find(NAME))
    assert first == second
    assert first.running
    assert first.pid
    assert [pod.name for pod in run(backend.pods())] == ["slurm-job-7"]


def test_an_earlier_attempts_pod_is_replaced(podman: Any, backend: Podman, make: Callable[..., Pod]) -> None:
    run(backend.create(make("sleep 1000")))
    first = run(backend.find(NAME))
    again = make("sleep 1000")
    run(backend.create(replace(again, labels={**again.labels, labels.ATTEMPT: "1"})))
    second = run(backend.find(NAME))
    assert first.pid != second.pid
    assert second.labels[labels.ATTEMPT] == "1"
    assert not Path(f"/proc/{first.pid}").exists()


def test_what_is_not_there_is_deleted_and_found_as_none(backend: Podman) -> None:
    run(backend.delete(NAME))
    assert run(backend.find(NAME)) is None
    assert run(backend.wait(NAME)) is None


def test_deleting_kills_and_returns_when_all_is_dead(backend: Podman, make: Callable[..., Pod], told: Path) -> None:
    """Also a body that ignores SIGTERM, and its children."""
    run(backend.create(make("trap '' TERM; sleep 1000 & sleep 1000 & wait; wait")))
    pid = run(backend.find(NAME)).pid
    alive = members(os.readlink(f"/proc/{pid}/ns/pid"))
    assert len(alive) >= 3
    run(backend.delete(NAME))
    assert run(backend.find(NAME)) is None
    # By their pids: the namespace's number may by now be another pod's.
    assert [pid for pid in alive if Path(f"/proc/{pid}").exists()] == []
    assert list(told.glob("*.yaml")) == []
    run(backend.delete(NAME))


def members(namespace: str) -> list[str]:
    """Processes that live in a pid namespace."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(entry / "ns/pid") == namespace:
                found.append(entry.name)
        except OSError:
            continue
    return found


def test_only_this_clusters_and_nodes_pods_are_listed(backend: Podman, make: Callable[..., Pod]) -> None:
    plain = make("sleep 1000")
    for number, change in enumerate([{}, {labels.CLUSTER: "other"}, {labels.NODE: "node2"}]):
        name = f"slurm-job-{number}"
        run(backend.create(replace(plain, name=name, labels={**plain.labels, **change})))
    pods = run(backend.pods())
    assert [pod.name for pod in pods] == ["slurm-job-0"]
    assert pods[0].labels[labels.JOB_ID] == "7"


def test_a_body_out_of_memory_is_killed_and_counted_where_the_launcher_looks(
    podman: Any, backend: Podman, make: Callable[..., Pod]
) -> None:
    """Podman's own OOMKilled misses it on some machines; the container's own cgroup does not."""
    counters = "cat /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control 2>/dev/null"
    script = f"sh -c 'exec tail /dev/zero'; echo code $?; {counters}; exit 0"
    run(backend.create(make(script, resources={"cpu": "1", "memory": "32Mi"})))
    assert run(backend.wait(NAME)).exit_code == 0
    shown = dict(line.split() for line in logs(podman).splitlines())
    assert shown["code"] == "137"
    assert int(shown["oom_kill"]) >= 1


def test_shared_memory_is_the_folder_that_was_given(
    podman: Any, backend: Podman, make: Callable[..., Pod], told: Path
) -> None:
    shm = told / "shm"
    shm.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m,mode=1777", "none", str(shm)], check=True)
    try:
        fill = "dd if=/dev/zero of=/dev/shm/"
        pod = make(f"{fill}x bs=1k count=2900 && echo fits; {fill}y bs=1M count=9")
        run(backend.create(replace(pod, volumes=(*pod.volumes, Volume("shm", HostPath(str(shm)), "/dev/shm")))))
        assert run(backend.wait(NAME)).exit_code == 1
        assert "fits" in logs(podman)
    finally:
        run(backend.delete(NAME))
        subprocess.run(["umount", "-l", str(shm)], check=True)


def test_a_device_that_was_given_can_be_used_and_no_other(
    podman: Any, backend: Podman, make: Callable[..., Pod], told: Path
) -> None:
    device = told / "gpu0"
    os.mknod(device, 0o666 | 0o020000, os.makedev(1, 5))  # zeros
    os.chmod(device, 0o666)
    pod = make("head -c 3 /dev/gpu0 | od -An -tx1; ls /dev/gpu*")
    given = Volume("gpu-0", HostPath(str(device), "CharDevice"), "/dev/gpu0")
    run(backend.create(replace(pod, volumes=(*pod.volumes, given))))
    assert run(backend.wait(NAME)).exit_code == 0
    assert logs(podman).split() == ["00", "00", "00", "/dev/gpu0"]


def test_a_missing_folder_is_the_nodes_fault_and_leaves_nothing(
    podman: Any, backend: Podman, make: Callable[..., Pod]
) -> None:
    pod = make("echo never")
    with pytest.raises(NodeFault, match="is not there"):
        run(backend.create(replace(pod, volumes=(*pod.volumes, Volume("gone", HostPath("/no/such/folder"), "/gone")))))
    assert podman.run("pod", "ps", "--noheading") == ""


def rootfs(path: Path, files: dict[str, tuple[bytes, int]]) -> Path:
    with tarfile.open(path, "w") as tar:
        for folder in ("bin", "etc", "tmp", "proc", "sys", "dev"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        for name, (data, mode) in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), mode
            tar.addfile(entry, io.BytesIO(data))
    return path


AARCH64 = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\xb7\x00" + bytes(44)


@pytest.mark.parametrize(
    ("name", "files", "said"),
    [
        ("bare", {"bin/program": (b"\x7fELF", 0o755)}, "has no /bin/sh"),
        ("locked", {"bin/sh": (b"\x7fELF", 0o644)}, "has no /bin/sh"),
        ("arm", {"bin/sh": (AARCH64, 0o755)}, "not made for this machine's processor"),
    ],
)
def test_an_image_that_cannot_run_is_the_persons_matter(
    podman: Any,
    backend: Podman,
    make: Callable[..., Pod],
    tmp_path: Path,
    name: str,
    files: dict[str, tuple[bytes, int]],
    said: str,
) -> None:
    """Podman tells some of it at the start, and some only in the container's log."""
    image = f"nas-hub.local:5407/{name}:1"
    podman.add_image(rootfs(tmp_path / "image.tar", files), image)

    async def start() -> Exception:
        try:
            await backend.create(make("echo never", image=image))
        except PersonFault as fault:
            return fault
        state = await backend.wait(NAME)
        assert state is not None
        assert not state.running
        return await backend.start_fault(NAME, image)

    fault = run(start())
    assert isinstance(fault, PersonFault), fault
    assert said in str(fault)
    assert image in str(fault)


def test_an_image_that_is_here_is_not_asked_for(backend: Podman, image: str) -> None:
    notes: list[str] = []
    assert run(backend.pull(image, notes.append)).startswith("sha256:")
    assert notes == []


def wait_for_port(port: int) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.03)
    raise AssertionError("the registry does not listen")


@pytest.fixture(scope="module")
def registry(podman: Any) -> Iterator[Podman]:
    """A real registry with nothing in it, and a backend that asks it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = Path(tempfile.mkdtemp(prefix="slurmk8s-registry-", dir="/var/tmp"))
    layout = Layout(folder)
    (folder / "registry.yml").write_text(confs.registry_config(layout, port))
    (folder / "registries.conf").write_text(confs.registries_conf(port))
    command = ["docker-registry", "serve", str(folder / "registry.yml")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for_port(port)
        settings = podman.config.model_copy(update={"registries_conf": folder / "registries.conf"})
        yield Podman(settings, config.Images(), "lab", "node1", folder)
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder)


@pytest.mark.parametrize("name", ["none:1", "denied/timeout:unauthorized"])
def test_an_image_that_the_registry_has_not_is_the_persons_matter(registry: Podman, name: str) -> None:
    """At once: only a registry that does not answer is tried again."""
    image = f"nas-hub.local:5407/{name}"
    with pytest.raises(PersonFault) as caught:
        run(registry.pull(image, lambda _: None), 3)
    assert caught.value.sentence == f"The image {image} does not exist in nas-hub.local:5407."


def test_a_registry_that_is_down_is_the_clusters_fault_and_told_at_once(backend: Podman) -> None:
    notes: list[str] = []
    with pytest.raises(ClusterFault, match=r"nas-hub\.local:5407 does not answer"):
        run(backend.pull("nas-hub.local:5407/none:1", notes.append))
    assert set(notes) == {"The registry nas-hub.local:5407 does not answer; trying again."}


def test_a_copy_on_the_node_serves_while_the_registry_is_down(backend: Podman, podman: Any) -> None:
    notes: list[str] = []
    assert run(backend.pull(podman.image, notes.append)).startswith("sha256:")
    assert notes[-1].endswith("The copy of the image on this node is used.")


def test_a_podman_that_is_not_there_is_the_nodes_fault(podman: Any, tmp_path: Path) -> None:
    settings = podman.config.model_copy(update={"program": tmp_path / "podman"})
    backend = Podman(settings, config.Images(), "lab", "node1", tmp_path)
    with pytest.raises(NodeFault, match="podman cannot be run"):
        run(backend.find(NAME))


def test_a_podman_that_fails_is_not_an_empty_answer(podman: Any, tmp_path: Path) -> None:
    """Unknown changes nothing."""
    broken = tmp_path / "storage.conf"
    broken.write_text("[storage]\ndriver = 'nonsense'\n")
    settings = podman.config.model_copy(update={"storage_conf": broken})
    backend = Podman(settings, config.Images(), "lab", "node1", tmp_path)
    with pytest.raises(NodeFault):
        run(backend.pods())
    with pytest.raises(NodeFault):
        run(backend.find(NAME))


AGENT = """
import asyncio, os, pickle, signal, sys
from slurmk8s import config
from slurmk8s.pod.podman import Podman
settings, pod, work = pickle.loads(sys.stdin.buffer.read())
asyncio.run(Podman(settings, config.Images(), "lab", "node1", work).create(pod))
os.killpg(os.getpgid(0), signal.SIGKILL)
"""


def test_a_pod_outlives_the_agent_that_made_it(
    podman: Any, backend: Podman, make: Callable[..., Pod], told: Path
) -> None:
    """Killed with its whole process group; the next agent finds the pod and sees its end."""
    pod = make("sleep 1.5; exit 6")
    data = pickle.dumps((podman.config, pod, told))
    done = subprocess.run([sys.executable, "-c", AGENT], input=data, start_new_session=True, check=False)
    assert done.returncode == -signal.SIGKILL
    state = run(backend.find(NAME))
    assert state is not None
    assert state.running
    assert run(backend.wait(NAME)).exit_code == 6
