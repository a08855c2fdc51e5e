"""Pods that are made to fail, in a namespace that goes away with them."""

import json
import secrets
import time
import urllib.request
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from slurmk8s.errors import SlurmK8sError
from slurmk8s.kube.client import Kube
from slurmk8s.kube.faults import Refused
from slurmk8s.pod.kubernetes_refusals import refusal
from slurmk8s.pod.kubernetes_words import end_fault, start_fault

Json = dict[str, Any]
INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


class Stage:
    """A namespace, and the pods in it. All are pinned to one node, as jobs are, so the kubelet decides about them."""

    def __init__(self, kube: Kube, image: str, node: str, labels: dict[str, str] | None = None) -> None:
        self.kube, self.image, self.node = kube, image, node
        self.namespace = f"failures-{secrets.token_hex(4)}"
        self.pods = f"/api/v1/namespaces/{self.namespace}/pods"
        self.version = ""
        """Where a watch of everything that happens here begins."""
        self._labels = labels or {}

    def __enter__(self) -> Self:
        self.kube.create("/api/v1/namespaces", {"metadata": {"name": self.namespace, "labels": self._labels}})
        account = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/default"
        wait(lambda: self.kube.find(account), "the namespace is ready")
        self.version = self.kube.listing(self.pods)[1]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kube.delete(f"/api/v1/namespaces/{self.namespace}")  # Kubernetes does the rest; nobody waits for it

    def manifest(self, name: str, script: str = "sleep 600", **changes: Any) -> Json:
        """A pod like a job's. `changes` with a name of the container's go there, others into the pod."""
        container = {"name": "job", "image": self.image, "command": ["/bin/sh", "-c", script]}
        spec = {"nodeName": self.node, "restartPolicy": "Never", "terminationGracePeriodSeconds": 1}
        for key, value in changes.items():
            part = container if key in ("image", "command", "resources", "volumeMounts", "workingDir") else spec
            part[key] = value
        return {"metadata": {"name": name}, "spec": {**spec, "containers": [container]}}

    def pod(self, name: str, script: str = "sleep 600", **changes: Any) -> str:
        """Make it; gives its name."""
        self.kube.create(self.pods, self.manifest(name, script, **changes))
        return name

    def refused(self, name: str, **changes: Any) -> SlurmK8sError:
        """Why the server does not take it."""
        return refused(self.kube, self.namespace, self.manifest(name, **changes))

    def look(self, name: str) -> Json | None:
        """As it is now."""
        return self.kube.find(f"{self.pods}/{name}")

    def events(self, pod: Json) -> list[Json]:
        """What was told about it."""
        path = f"/api/v1/namespaces/{self.namespace}/events"
        return self.kube.items(path, fieldSelector=f"involvedObject.uid={pod['metadata']['uid']}")

    def until(self, name: str, condition: Callable[[Json], object], seconds: float = 60) -> Json:
        """The pod, when it has come so far."""

        def asked() -> Json | None:
            pod = self.look(name)
            return pod if pod and condition(pod) else None

        return wait(asked, f"the pod {name} has come so far: {self.look(name)}", seconds)

    def running(self, name: str) -> Json:
        """The pod, when its container runs."""
        return self.until(name, lambda pod: "running" in state(pod))

    def start_fault(self, name: str, seconds: float = 60, reason: str | None = None) -> SlurmK8sError:
        """What keeps it from starting, as soon as it is known; `reason`: the kubelet's, to wait for."""

        def asked() -> SlurmK8sError | None:
            pod = self.look(name)
            if pod is None or reason not in (None, state(pod).get("waiting", {}).get("reason")):
                return None
            return start_fault(pod, self.events(pod))

        return wait(asked, f"it is known why {name} does not start: {self.look(name)}", seconds)

    def end_fault(self, name: str, seconds: float = 90) -> SlurmK8sError:
        """Why it has ended or is ending, as soon as it is known."""

        def asked() -> SlurmK8sError | None:
            pod = self.look(name)
            assert pod is not None, f"{name} went away without a reason"
            return end_fault(pod)

        return wait(asked, f"it is known why {name} ended: {self.look(name)}", seconds)


def wait(condition: Callable[[], Any], what: str, seconds: float = 60) -> Any:
    """The condition's value, when it is something."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.1)
    return value


def state(pod: Json) -> Json:
    """The container's state; empty while nothing is told."""
    statuses = pod["status"].get("containerStatuses") or [{}]
    found: Json = statuses[0].get("state") or {}
    return found


def refused(kube: Kube, namespace: str, manifest: Json) -> SlurmK8sError:
    """Why the server does not take that pod."""
    try:
        kube.create(f"/api/v1/namespaces/{namespace}/pods", manifest)
    except Refused as answer:
        return refusal(answer, manifest["spec"]["containers"][0]["image"], namespace, 1000)
    raise AssertionError("the pod was not refused")


def push_index(registry: str, repository: str, manifest: bytes, digest: str, architecture: str) -> None:
    """Offer an image list that has one image, for another machine, as `REPOSITORY:latest`."""
    entry = {"mediaType": MANIFEST, "digest": digest, "size": len(manifest)}
    entry["platform"] = {"architecture": architecture, "os": "linux"}
    body = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]}).encode()
    request = urllib.request.Request(f"http://{registry}/v2/{repository}/manifests/latest", data=body, method="PUT")
    request.add_header("Content-Type", INDEX)
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30).close()
