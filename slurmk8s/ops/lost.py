"""Pods on a lost node: they would keep their name, and the job's next attempt elsewhere needs it.

A pod whose kubelet is silent stays in Kubernetes for ever: only the kubelet can confirm its end. It is removed by force
when *both* say that the node is away (Kubernetes has not heard of its kubelet, Slurm not of its slurmd) and Slurm no
longer runs the job there. Whoever cannot be asked has not said so.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from loguru import logger

from slurmk8s import labels
from slurmk8s.config import Config
from slurmk8s.kube.client import Kube
from slurmk8s.kube.faults import Conflict
from slurmk8s.kube.nodes import silent
from slurmk8s.slurm.client import Job
from slurmk8s.slurm.records import FINISHED

Json = dict[str, Any]
Jobs = Callable[[int], Job | None]
"""Asks Slurm for a job; None if it answers and does not know it."""


def lost(objects: Iterable[Json], nodes: set[str], job_of: Jobs) -> list[Json]:
    """Those of our objects on these nodes (Slurm's names) whose job is no longer there."""
    return [each for each in objects if _labels(each).get(labels.NODE) in nodes and _is_over(each, job_of)]


def _is_over(each: Json, job_of: Jobs) -> bool:
    text = _labels(each).get(labels.JOB_ID, "")
    if not text.isdecimal():
        return False
    job = job_of(int(text))
    if job is None:
        return True
    if job.completing:
        return False
    return job.state == "PENDING" or job.state in FINISHED or _labels(each)[labels.NODE] not in job.nodes


def _labels(each: Json) -> Mapping[str, str]:
    return each["metadata"].get("labels") or {}


@dataclass
class LostPods:
    """Looks again and again; removes what was lost in two looks running."""

    config: Config
    _suspects: set[str] = field(default_factory=set)

    def look(self, kube: Kube, unreachable: set[str], job_of: Jobs) -> None:
        """One look. `unreachable` are the nodes that Slurm cannot reach. Raises if one of the two does not answer."""
        away = self._silent_too(kube, unreachable)
        # A pod's files first: once its name is free, the next attempt needs theirs as well.
        found = [
            (kind, each)
            for kind in (("configmaps", "pods") if away else ())
            for each in lost(kube.items(f"/api/v1/{kind}", labelSelector=self._selector()), away, job_of)
        ]
        sure = [(kind, each) for kind, each in found if each["metadata"]["uid"] in self._suspects]
        self._suspects = {each["metadata"]["uid"] for _, each in found}
        for kind, each in sure:
            _remove(kube, kind, each)

    def _silent_too(self, kube: Kube, unreachable: set[str]) -> set[str]:
        nodes = silent(kube) if unreachable else set[str]()
        return {node for node in unreachable if self.config.kubernetes.node_of(node) in nodes}

    def _selector(self) -> str:
        return f"{labels.APP}={labels.APP_VALUE},{labels.CLUSTER}={self.config.cluster}"


def _remove(kube: Kube, kind: str, each: Json) -> None:
    name, namespace = each["metadata"]["name"], each["metadata"]["namespace"]
    path = f"/api/v1/namespaces/{namespace}/{kind}/{name}"
    try:
        kube.delete(path, gracePeriodSeconds=0, preconditions={"uid": each["metadata"]["uid"]})
    except Conflict:
        return  # another one by now
    if kind == "pods":
        logger.warning(
            f"Removed the pod {namespace}/{name}: neither Kubernetes nor Slurm can reach {_labels(each)[labels.NODE]}, "
            "and its job no longer runs there."
        )
