"""What runs the pods of a local cluster, in the words of the tests: podman, or the test cluster's Kubernetes."""

import contextlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.cluster import Cluster as Testbed
from testbed.shared import Shared

from slurmk8s.local import images

if TYPE_CHECKING:
    from cluster import Cluster

PODMAN, KUBERNETES = "podman", "kubernetes"
BOTH = (PODMAN, KUBERNETES)


@dataclass(frozen=True)
class Podman:
    """Below the local cluster's own supervisor."""

    name: str = PODMAN

    def plan(self, wanted: dict[str, Any]) -> dict[str, Any]:
        """Fields of the plan."""
        return wanted

    def pods(self, cluster: "Cluster") -> list[str]:
        """Names of all pods."""
        return sorted(cluster.podman("pod", "ls", "--noheading", "--format", "{{.Name}}").split())

    def all_pods(self, cluster: "Cluster") -> list[str]:
        """Also those that are none of ours."""
        return self.pods(cluster)

    def mark(self, cluster: "Cluster", job_id: int) -> str:
        """What the control groups of a job's pod are named after."""
        return cluster.podman("container", "inspect", "--format={{.Id}}", f"slurm-job-{job_id}-job").strip()

    def push(self, cluster: "Cluster", tar: Path, reference: str) -> None:
        """Offer a root file system as an image."""
        images.offer(cluster.decided, cluster.pid, tar, reference)

    def play(self, cluster: "Cluster", manifest: str) -> None:
        """Start a pod that no agent made."""
        cluster.run("podman", "kube", "play", "--network=none", "-", user="root", inside=True, input=manifest)

    def remove(self, cluster: "Cluster", name: str) -> None:
        """Remove it."""
        cluster.podman("pod", "rm", "--force", "--time=0", name)

    @contextlib.contextmanager
    def without_registry(self, cluster: "Cluster") -> Iterator[None]:
        """No registry answers: the configuration's mirror points at a port where nothing listens."""
        conf = cluster.layout.etc / "registries.conf"
        conf.write_text(re.sub(r"localhost:\d+|127\.0\.0\.1:\d+", "127.0.0.1:1", conf.read_text()))
        yield

    def mark_logs(self) -> None:
        """All logs are the local cluster's own."""

    def evidence(self, cluster: "Cluster") -> Iterator[tuple[str, str]]:
        """What a person would look at."""
        yield "podman ps", cluster.podman("ps", "--all", "--pod", check=False)


@dataclass(frozen=True)
class Kubernetes:
    """On the same machine, and not below the supervisor."""

    shared: Shared
    name: str = KUBERNETES

    @property
    def testbed(self) -> Testbed:
        """The machine room."""
        assert self.shared.own
        return self.shared.own

    def plan(self, wanted: dict[str, Any]) -> dict[str, Any]:
        """Fields of the plan; the test cluster's registry has the images already."""
        return {**wanted, "backend": KUBERNETES, "kubeconfig": self.shared.kubeconfig, "test_image": False}

    def items(self, what: str, *arguments: str) -> list[dict[str, Any]]:
        """Objects as kubectl gets them."""
        found: list[dict[str, Any]] = json.loads(self.shared.kubectl("get", what, "-o", "json", *arguments))["items"]
        return found

    def pods(self, cluster: "Cluster") -> list[str]:
        """Names of all pods of jobs of this local cluster."""
        selector = f"--selector=app=slurm-job,slurmk8s/cluster={cluster.layout.cluster}"
        return sorted(pod["metadata"]["name"] for pod in self.items("pods", "-A", selector))

    def all_pods(self, cluster: "Cluster") -> list[str]:
        """Also those that are none of ours."""
        found = self.items("pods", f"--namespace={self.namespace(cluster)}")
        return sorted(pod["metadata"]["name"] for pod in found)

    def pod(self, cluster: "Cluster", job_id: int) -> dict[str, Any] | None:
        """A job's pod."""
        selector = f"--selector=job-id={job_id},slurmk8s/cluster={cluster.layout.cluster}"
        found = self.items("pods", "-A", selector)
        return found[0] if found else None

    def mark(self, cluster: "Cluster", job_id: int) -> str:
        """What the control groups of a job's pod are named after."""
        pod = self.pod(cluster, job_id)
        assert pod
        return str(pod["metadata"]["uid"])

    def push(self, _cluster: "Cluster", tar: Path, reference: str) -> None:
        """Offer a root file system as an image."""
        self.testbed.push(tar, reference.partition("/")[2])

    def namespace(self, cluster: "Cluster") -> str:
        """Of the person's pods."""
        return f"{cluster.layout.cluster}-user-{cluster.uid}"

    def play(self, cluster: "Cluster", manifest: str) -> None:
        """Start a pod that no agent made, on the first node, as an admin may."""
        node = cluster.decided.nodes["node1"].kube
        pinned = manifest.replace("spec:\n", f"spec:\n  nodeName: {node}\n  terminationGracePeriodSeconds: 1\n")
        self.shared.kubectl("create", f"--namespace={self.namespace(cluster)}", "-f", "-", text=pinned)

    def remove(self, cluster: "Cluster", name: str) -> None:
        """Remove it."""
        self.shared.kubectl("delete", "pod", f"--namespace={self.namespace(cluster)}", name)

    @contextlib.contextmanager
    def without_registry(self, _cluster: "Cluster") -> Iterator[None]:
        """The registry does not run."""
        self.testbed.stop("registry")
        try:
            yield
        finally:
            self.testbed.start("registry")

    def mark_logs(self) -> None:
        """Of the kubelets and the rest."""
        self.testbed.mark_logs()

    def evidence(self, _cluster: "Cluster") -> Iterator[tuple[str, str]]:
        """What a person would look at."""
        yield from self.shared.evidence()
