"""What Kubernetes says about its nodes."""

from typing import Any

from slurmk8s.kube.client import Kube


def silent(kube: Kube) -> set[str]:
    """The nodes whose kubelet has not been heard of for so long that Kubernetes calls their state unknown.

    A kubelet that says itself that it is not ready is another matter: it is there, and its pods are its own.
    """
    return {node["metadata"]["name"] for node in kube.items("/api/v1/nodes") if readiness(node) == "Unknown"}


def readiness(node: dict[str, Any]) -> str:
    """`True`, `False` or `Unknown`, as Kubernetes has it; empty as long as it says nothing."""
    conditions = node.get("status", {}).get("conditions") or []
    return next((str(each["status"]) for each in conditions if each.get("type") == "Ready"), "")
