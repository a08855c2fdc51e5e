"""The books on a real cluster: with the figures that are printed a whole-node pod starts, with one more it does not.

These tests fill a node to the last CPU, so they have a cluster to themselves.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from testbed import lifecycle, shared
from testbed.cluster import Cluster
from testbed.layout import DEFAULT

from slurmk8s import config as configuration
from slurmk8s.kube.connection import connect
from slurmk8s.ops import audit as auditing
from slurmk8s.ops import books
from slurmk8s.ops.books import Amounts
from slurmk8s.slurm import nodes
from slurmk8s.slurm.programs import Programs

WaitFor = Callable[..., Any]

# As every cluster has some: for the network, for logs, for GPUs.
DAEMON_SET = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "agent", "namespace": "default"},
    "spec": {
        "selector": {"matchLabels": {"name": "agent"}},
        "template": {
            "metadata": {"labels": {"name": "agent"}},
            "spec": {
                "tolerations": [{"operator": "Exists"}],
                "terminationGracePeriodSeconds": 0,
                "containers": [
                    {
                        "name": "agent",
                        "command": ["sleep", "infinity"],
                        "resources": {"requests": {"cpu": "300m", "memory": "200Mi"}},
                    }
                ],
            },
        },
    },
}


@pytest.fixture(scope="module")
def quiet() -> Iterator[Cluster]:
    """A cluster that nobody else uses: a DaemonSet on both nodes, and node kube2 dedicated by a taint."""
    if os.environ.get(shared.GIVEN) and not os.environ.get(shared.OWN):
        pytest.skip(shared.OURS_ONLY)
    folder = Path(f"{DEFAULT}-run-books-{os.getpid()}")
    try:
        with shared._users(folder) as users:  # so that a killed run's is found and taken down
            users.append(os.getpid())
            cluster = lifecycle.up(folder, shared._say)
        wanted = json.loads(json.dumps(DAEMON_SET))
        wanted["spec"]["template"]["spec"]["containers"][0]["image"] = cluster.sample_image
        cluster.kubectl("create", "-f", "-", text=json.dumps(wanted))
        cluster.kubectl("taint", "node", "kube2", "slurmk8s=slurm:NoSchedule")
        cluster.kubectl("rollout", "status", "daemonset/agent", "--timeout=60s", seconds=90)
        yield cluster
    finally:
        with shared._users(folder) as users:
            users.clear()
            lifecycle.down(folder)


@dataclass
class Site:
    """A configuration and what Slurm is to say of its nodes."""

    folder: Path
    cluster: Cluster

    def slurm_says(self, **lines: str) -> None:
        """Nodes by Slurm's name, as `scontrol show node` prints them."""
        text = "".join(f"NodeName={name} State=IDLE Partitions=gpu {line}\n" for name, line in lines.items())
        scontrol = self.folder / "scontrol"
        scontrol.write_text(f"#!/bin/sh\ncat <<'END'\n{text}END\n")
        scontrol.chmod(0o755)

    @property
    def toml(self) -> Path:
        """The configuration."""
        path = self.folder / "config.toml"
        path.write_text(
            'cluster = "books"\nbackend = "kubernetes"\npriorities = ["low-priority"]\n'
            f'[slurm]\nbin_folder = "{self.folder}"\n'
            '[kubernetes]\nscratch = "1Gi"\n[kubernetes.nodes]\ngpu1 = "kube1"\ngpu2 = "kube2"\n'
        )
        return path

    def audit(self, *wanted: str) -> auditing.Audit:
        """Compare."""
        config = configuration.load(self.toml)
        return auditing.audit(config, Programs(config.slurm), connect(self.cluster.kubeconfig), wanted)

    def free(self, node: str) -> Amounts:
        """What all jobs together may have."""
        kube = connect(self.cluster.kubeconfig)
        pods = kube.items("/api/v1/pods", fieldSelector=f"spec.nodeName={node}")
        return books.of_node(kube.get(f"/api/v1/nodes/{node}"), pods, "books", "nvidia.com/gpu").free


@pytest.fixture
def site(quiet: Cluster, tmp_path: Path) -> Site:
    return Site(tmp_path, quiet)


def differing(found: auditing.NodeAudit) -> set[str]:
    return {check.what for check in found.checks if check.verdict == "differs"}


def start(cluster: Cluster, name: str, node: str, **asked: str) -> None:
    """A job's pod, as far as the kubelet's counting goes."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "slurm-job", "slurmk8s/cluster": "books"}},
        "spec": {
            "nodeName": node,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "job",
                    "image": cluster.sample_image,
                    "command": ["sleep", "infinity"],
                    "resources": {"limits": {key.replace("gpus", "nvidia.com/gpu"): asked[key] for key in asked}},
                }
            ],
        },
    }
    cluster.kubectl("create", "-f", "-", text=json.dumps(pod))


def phase(cluster: Cluster, name: str, wait_for: WaitFor) -> tuple[str, str]:
    """Its phase and the kubelet's one word, once it has decided."""

    def decided() -> dict[str, Any] | None:
        status: dict[str, Any] = json.loads(cluster.kubectl("get", "pod", name, "-o", "json"))["status"]
        return status if status["phase"] in ("Running", "Failed") else None

    status = wait_for(decided, f"the kubelet has decided about {name}", 60)
    return status["phase"], status.get("reason", "")


def test_a_whole_node_starts_at_the_printed_figures_and_with_one_more_it_does_not(
    site: Site, quiet: Cluster, wait_for: WaitFor
) -> None:
    free = site.free("kube2")
    assert free.millicores % 1000 == 700  # the DaemonSet's 300m
    whole = {"cpu": str(free.cpus), "memory": f"{free.memory_mb}Mi", "gpus": str(free.gpus)}
    attempts = {
        "whole": whole,
        "one-cpu-more": {**whole, "cpu": str(free.cpus + 1)},
        "one-mib-more": {**whole, "memory": f"{free.memory_mb + 1}Mi"},
    }
    seen = {}
    for name, asked in attempts.items():
        start(quiet, name, "kube2", **asked)
        seen[name] = phase(quiet, name, wait_for)
        assert site.free("kube2") == free  # a job's own pod does not change what jobs may have
        quiet.kubectl("delete", "pod", name, "--now")
    assert seen == {
        "whole": ("Running", ""),
        "one-cpu-more": ("Failed", "OutOfcpu"),
        "one-mib-more": ("Failed", "OutOfmemory"),
    }


def test_the_printed_line_is_what_makes_the_books_agree(site: Site) -> None:
    free = site.free("kube2")
    cpus, memory = free.cpus + 1, free.memory_mb + 200
    shape = f"CPUTot={cpus} Sockets={cpus} CoresPerSocket=1 Gres=gpu:2"
    site.slurm_says(gpu2=f"{shape} CPUEfctv={cpus} RealMemory={memory}")
    (found,) = site.audit("gpu2").nodes
    assert {"cpu", "memory"} <= differing(found)
    assert found.conf_line == f"NodeName=gpu2 RealMemory={free.memory_mb} CoreSpecCount=1"
    site.slurm_says(gpu2=f"{shape} CPUEfctv={cpus - 1} CoreSpecCount=1 RealMemory={free.memory_mb}")
    (found,) = site.audit().nodes
    assert differing(found) <= {"processes"}  # as the test cluster's kubelets are
    assert nodes.nodes(Programs(configuration.load(site.toml).slurm))["gpu2"].cpus_for_jobs == free.cpus
    assert found.conf_line == f"NodeName=gpu2 RealMemory={free.memory_mb} CoreSpecCount=1"


def test_the_real_kubelet_and_cluster_answer_every_point(site: Site, quiet: Cluster, wait_for: WaitFor) -> None:
    quiet.kubectl("run", "stranger", f"--image={quiet.sample_image}", "--", "sleep", "infinity")
    try:
        wait_for(lambda: "kube1" in quiet.kubectl("get", "pod", "stranger", "-o", "wide"), "it runs on kube1")
        one = "CPUTot=1 CPUEfctv=1 RealMemory=100"
        site.slurm_says(gpu1=f"{one} Gres=gpu:2", gpu2=f"{one} Gres=gpu:1", gpu3=one)
        found = site.audit()
    finally:
        quiet.kubectl("delete", "pod", "stranger", "--now")
    by_name = {node.name: {check.what: check for check in node.checks} for node in found.nodes}
    assert "unknown" not in {check.verdict for checks in by_name.values() for check in checks.values()}
    first, second = by_name["gpu1"], by_name["gpu2"]
    for what in ("ready", "cpu", "memory", "gpu", "pods", "labels", "cpu manager", "groups", "version"):
        assert first[what].verdict == "ok", first[what]
    assert (first["dedicated"].verdict, second["dedicated"].verdict) == ("differs", "ok")
    assert "slurmk8s=slurm:NoSchedule" in second["dedicated"].found
    assert first["alone"].found == "other pods run here: default/stranger"
    assert second["alone"].verdict == "ok"
    assert second["gpu"].found == "Slurm has 1 GPU; Kubernetes has 2 nvidia.com/gpu"
    assert by_name["gpu3"]["node"].found == "Kubernetes has no node gpu3"
    assert [(check.what, check.verdict) for check in found.cluster] == [("priority low-priority", "ok")]
    assert not found.agrees


def run(site: Site, *arguments: str, kubeconfig: Path | None = None) -> "subprocess.CompletedProcess[str]":
    own = {"KUBECONFIG": str(kubeconfig or site.cluster.kubeconfig), "SLURMK8S_CONFIG": str(site.toml)}
    return subprocess.run(
        [sys.executable, "-m", "slurmk8s", "cluster", "books", *arguments],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": os.environ.get("PYTHONPATH", ""), **own},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_prints_a_table_and_the_lines(site: Site) -> None:
    site.slurm_says(gpu1="CPUTot=64 CPUEfctv=64 Sockets=1 CoresPerSocket=64 RealMemory=100 Gres=gpu:2")
    done = run(site)
    assert done.returncode == 1, done.stderr
    assert "gpu1 (in Kubernetes kube1)\n" in done.stdout
    assert "  differs    cpu          Slurm gives jobs 64 CPUs; Kubernetes has 1.7 for them" in done.stdout
    assert "→ `kubectl taint node kube1 slurmk8s=slurm:NoSchedule` keeps other pods away." in done.stdout
    assert f"\n  NodeName=gpu1 RealMemory={site.free('kube1').memory_mb} CoreSpecCount=63\n" in done.stdout
    told = json.loads(run(site, "--json").stdout)
    assert told["agrees"] is False
    assert told["nodes"][0]["kubernetes_node"] == "kube1"
    assert "Slurm has no node gpu9" in run(site, "gpu9").stderr


def test_a_credential_of_few_rights_leaves_points_unknown(site: Site, quiet: Cluster, tmp_path: Path) -> None:
    """It may see nodes and pods, and neither the kubelet's configuration nor classes."""
    quiet.kubectl("create", "serviceaccount", "looker")
    quiet.kubectl("create", "clusterrole", "looker", "--verb=get,list", "--resource=nodes,pods")
    quiet.kubectl("create", "clusterrolebinding", "looker", "--clusterrole=looker", "--serviceaccount=default:looker")
    token = quiet.kubectl("create", "token", "looker").strip()
    wanted = json.loads(quiet.kubectl("config", "view", "--raw", "--minify", "-o", "json"))
    wanted["users"][0]["user"] = {"token": token}
    limited = tmp_path / "looker.kubeconfig"
    limited.write_text(json.dumps(wanted))
    site.slurm_says(gpu2="CPUTot=1 CPUEfctv=1 RealMemory=100 Gres=gpu:2")
    done = run(site, "gpu2", kubeconfig=limited)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "  not known  cpu manager  this credential may not read the kubelet's configuration" in done.stdout
    assert "not known  priority low-priority  this credential may not read PriorityClasses" in done.stdout
    assert done.stdout.endswith("The books agree.\n")
