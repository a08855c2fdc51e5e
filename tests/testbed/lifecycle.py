"""Bring a test cluster up, and take it down so that nothing is left of it."""

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import build, certificates, cgroups, gpus, images, leftovers, network, node
from .cluster import Cluster
from .layout import Layout
from .network import TestbedError

Say = Callable[[str], None]
NEEDS = {
    "etcd": "etcd-server",
    "docker-registry": "docker-registry",
    "runc": "runc",
    "openssl": "openssl",
    "ip": "iproute2",
    "busybox": "busybox-static",
    "mount": "mount",
}

INOTIFY = 30
"""Instances that one cluster uses; the kernel's default allows 128 for each user."""


def up(folder: Path, say: Say) -> Cluster:
    """A cluster in that folder, ready for pods. One that runs there already is taken; a broken one is cleared first."""
    _require()
    programs = build.binaries(say)
    with _locked(folder):
        layout = Layout(folder)
        cluster = Cluster(folder)
        if layout.marker.exists():
            if _whole(cluster):
                if layout.bin.readlink() != programs:
                    say(f"the cluster in {folder} runs with older programs; take it down first to renew them")
                return cluster
            say(f"clearing what an earlier cluster left in {folder}")
            leftovers.clear(layout)
        elif any(folder.iterdir()):
            raise TestbedError(f"{folder} is not empty and not a test cluster's. Name another folder with --folder.")
        _require_inotify()
        began = time.monotonic()
        try:
            _bring_up(cluster, programs)
        except BaseException:
            say(f"did not come up; the logs stay in {layout.log} until `down`")
            raise
        say(f"up after {time.monotonic() - began:.1f} s")
    return cluster


def down(folder: Path) -> bool:
    """Remove everything of it. False if there was none."""
    if not folder.exists():
        return False
    with _locked(folder):
        layout = Layout(folder)
        if not layout.marker.exists():
            if any(folder.iterdir()):
                raise TestbedError(f"{folder} is not a test cluster's; nothing was removed.")
            folder.rmdir()
            return False
        leftovers.clear(layout)
        shutil.rmtree(folder)
    return True


def _bring_up(cluster: Cluster, programs: Path) -> None:
    layout = cluster.layout
    layout.marker.touch()
    for folder in (layout.log, layout.processes):
        folder.mkdir()
    layout.bin.symlink_to(programs)
    network.create(layout)
    cgroups.create(layout)
    certificates.create(layout)
    node.write_hosts(layout.hosts, layout.registry_address)
    for one in layout.nodes:
        one.folder.mkdir()
        gpus.create(one)
        node.prepare(one)
    _write_registry(layout)
    for name in ("etcd", "registry", "kube-apiserver", *(f"containerd-{one.name}" for one in layout.nodes)):
        cluster.start(name, wait=False)
    with ThreadPoolExecutor() as pool:
        offered = pool.submit(_offer_images, cluster)
        cluster.wait_ready("kube-apiserver")
        for name in cluster.components:
            if name != "metrics-server":  # it ends at once if it does not have its rights
                cluster.start(name, wait=False)
        objects = (Path(__file__).parent / "objects.yaml").read_text(encoding="utf-8")
        cluster.kubectl("apply", "--server-side", "-f", "-", text=objects.replace("ADDRESS", layout.address))
        cluster.start("metrics-server", wait=False)
        cluster.wait_nodes()
        cluster.wait_for(lambda: _has_account(cluster), "the default namespace has its service account")
        offered.result()


def _offer_images(cluster: Cluster) -> None:
    layout = cluster.layout
    cluster.wait_ready("registry")
    images.offer_all(layout)
    for one in layout.nodes:
        # Now: a pod must start while the registry is away.
        cluster.wait_for(one.socket.exists, f"containerd of {one.name} listens")
        pull = [str(layout.bin / "ctr"), "--address", str(one.socket), "--namespace", "k8s.io", "images", "pull"]
        subprocess.run([*pull, "--hosts-dir", str(layout.hosts), node.PAUSE], check=True, capture_output=True)


def _write_registry(layout: Layout) -> None:
    config = {
        "version": "0.1",
        "storage": {"filesystem": {"rootdirectory": str(layout.folder / "registry")}, "delete": {"enabled": True}},
        "http": {"addr": layout.registry_address},
        "log": {"accesslog": {"disabled": True}},
    }
    (layout.folder / "registry.yaml").write_text(json.dumps(config), encoding="utf-8")


def _has_account(cluster: Cluster) -> bool:
    """Without it a pod is refused."""
    return cluster.ask(f"{cluster.layout.server}/api/v1/namespaces/default/serviceaccounts/default") is not None


def _whole(cluster: Cluster) -> bool:
    return all(cluster.pid(name) for name in cluster.components) and cluster.nodes_ready()


def _require() -> None:
    if os.geteuid() != 0:
        raise TestbedError("A test cluster needs root: containers, bridges, mounts. Use sudo.")
    missing = [package for program, package in NEEDS.items() if not shutil.which(program)]
    missing += [] if Path("/usr/lib/cni/bridge").exists() else ["containernetworking-plugins"]
    if missing:
        raise TestbedError(f"Debian packages are missing: {' '.join(sorted(missing))}. Run `make deps`.")


def _require_inotify() -> None:
    """Kubernetes watches its own files. Without this the kubelets end with `too many open files`."""
    allowed = int(Path("/proc/sys/fs/inotify/max_user_instances").read_text(encoding="ascii"))
    used = 0
    for folder in Path("/proc").glob("[0-9]*/fd"):
        with contextlib.suppress(OSError):  # a process that has just ended
            if folder.stat().st_uid == 0:
                used += sum(os.readlink(path) == "anon_inode:inotify" for path in folder.iterdir())
    if used + INOTIFY > allowed:
        raise TestbedError(
            f"A test cluster takes {INOTIFY} inotify instances, and {used} of root's {allowed} are in use. "
            "Take another cluster down, or set fs.inotify.max_user_instances higher with sysctl."
        )


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One `up` or `down` at a time. The folder itself is the lock, so that none is left lying about."""
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            try:
                same = os.path.samestat(os.fstat(handle), os.stat(folder))
            except FileNotFoundError:  # another's `down` removed it while we waited
                same = False
            if same:
                yield
                return
        finally:
            os.close(handle)
