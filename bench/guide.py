"""The guide's own way (baseline/) beside a local cluster: its scripts with this machine's paths, its watcher."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import measure
from measure import Local
from testbed.shared import Shared

from slurmk8s.kube.client import Kube

PROLOG, EPILOG, WATCHER = "slurm_k8s_prolog.sh", "slurm_k8s_epilog.sh", "job_watcher.sh"


def copy(folder: Path) -> Path:
    """The scripts, where the person of a local cluster can read them."""
    shutil.copytree(Path(__file__).parent / "baseline", folder)
    for path in folder.iterdir():
        path.chmod(0o755)
    return folder


def write_settings(scripts: Path, cluster: Local, kubernetes: Shared, node: str, namespaces: str) -> None:
    """Their paths here, and a credential for the person, whose job waits for its pod by kubectl."""
    credential, logs = scripts / "kubeconfig", scripts / "log"
    credential.touch(mode=0o600)
    credential.write_bytes(kubernetes.kubeconfig.read_bytes())
    logs.mkdir()
    for path in (credential, logs):
        os.chown(path, cluster.person.pw_uid, cluster.person.pw_gid)
    kubectl = str(kubernetes.own.layout.bin / "kubectl") if kubernetes.own else shutil.which("kubectl")
    values = {
        "NAS": "/mnt/nas",
        "NAS_ON_NODE": cluster.nas,
        "NODE": node,
        "NAMESPACES": namespaces,
        "LOGS": logs,
        "export KUBECONFIG": credential,
        "export PATH": f"{os.path.dirname(kubectl or '')}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    }
    (scripts / "settings.sh").write_text("".join(f"{name}='{value}'\n" for name, value in values.items()))


@contextlib.contextmanager
def namespace(kube: Kube, name: str) -> Iterator[None]:
    """What the guide lets an admin make for each person (8.1)."""
    path = f"/api/v1/namespaces/{name}"
    kube.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    try:
        measure.until(lambda: kube.find(f"{path}/serviceaccounts/default"), "a namespace that takes pods", every=0.1)
        yield
    finally:
        kube.delete(path)
        measure.until(lambda: kube.find(path) is None, f"the end of {name}", every=0.2)


@contextlib.contextmanager
def watcher(scripts: Path, cluster: Local) -> Iterator[None]:
    """The guide's watcher, as the person. Its inotifywait ends with the cluster's namespaces."""
    said = scripts / "watcher.out"
    command, environment = cluster.inside(str(scripts / WATCHER))
    with said.open("wb") as out:
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        measure.until(lambda: "Watches established" in said.read_text(), "the guide's watcher watches")
        yield
    finally:
        process.kill()
        process.wait()
