"""Brings images to nodes ahead of jobs, by one short pod per node and image: the kubelet pulls as it will for a job.

What counts is that the image has come. Whether its container can then start is no matter here: an image need not have
/bin/true.
"""

import contextlib
import itertools
import re
import secrets
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from slurmk8s import labels
from slurmk8s.config import Config
from slurmk8s.errors import ClusterFault, SetupError, SlurmK8sError
from slurmk8s.kube.client import Kube
from slurmk8s.kube.faults import KubeUnreachable, NotFound, Refused
from slurmk8s.ops.images import WAITING, Stage, Task, moves
from slurmk8s.pod.kubernetes_state import duration
from slurmk8s.pod.kubernetes_text import container
from slurmk8s.pod.kubernetes_words import start_fault
from slurmk8s.pod.manifest import Pod, manifest

RUN = "slurmk8s/prepull"
"""Label: one call of the command."""
NOBODY = 65534
SECONDS_BETWEEN_LOOKS = 0.5
SECONDS_WITHOUT_SERVER = 60
YOUNG = "error looking up service account"
PULLED_IN = re.compile(r'Successfully pulled image "[^"]*" in (\S+)')


class NotYet(ClusterFault):
    """The namespace is not ready for pods."""


def pod_of(task: Task, name: str, run: str, config: Config) -> Pod:
    """The pod that has its kubelet pull: unprivileged, nothing mounted, gone at once."""
    target, image = task
    return Pod(
        name=name,
        namespace=config.kubernetes.system_namespace,
        hostname="prepull",
        labels={labels.APP: labels.PREPULL_VALUE, labels.CLUSTER: config.cluster, RUN: run},
        image=image,
        container=labels.CONTAINER,
        uid=NOBODY,
        gid=NOBODY,
        groups=(),
        resources={},
        environment={},
        volumes=(),
        priority=None,
        grace_seconds=1,
        pull_policy="Always" if moves(image) else "IfNotPresent",
        command=("/bin/true",),
        node=target.node,
        tolerations=({"operator": "Exists"},),  # it uses nothing, so no taint is about it
        pull_secrets=config.kubernetes.pull_secrets,
    )


def stage(pod: dict[str, Any], events: list[dict[str, Any]], waited: float) -> Stage:
    """How far the pull is, from the pod's status and the kubelet's words about it. `waited` is the pod's age."""
    told = [str(event.get("message") or "") for event in events if event.get("reason") == "Pulled"]
    seen = container(pod)
    state = seen.get("state") or {}
    if told or seen.get("imageID") or state.get("running"):
        if any("already present on" in message for message in told):
            return Stage("present")
        took = next((match[1] for message in told if (match := PULLED_IN.match(message))), None)
        return Stage("pulled", duration(took) if took else waited)
    fault = start_fault(pod, events)
    ended = (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded")
    if isinstance(fault, ClusterFault) and not ended:
        # A registry that is down may come back, and the kubelet tries again; what is wrong with an image stays wrong.
        return Stage("pulling", waited, fault.sentence)
    if fault is not None:
        return Stage("failed", sentence=fault.sentence)
    if ended:
        return Stage("failed", sentence="Its pod ended before the image had come.")
    begun = any(event.get("reason") == "Pulling" for event in events)
    return Stage("pulling" if begun else "waiting", waited)


class Prepull:
    """One call: the tasks, their pods and how far each is."""

    def __init__(self, kube: Kube, config: Config, tasks: Sequence[Task], at_once: int) -> None:
        self.stages: dict[Task, Stage] = {
            task: Stage("failed", sentence=task[0].fault) if task[0].fault else WAITING for task in tasks
        }
        self._kube = kube
        self._config = config
        self._at_once = at_once
        self._run = secrets.token_hex(4)
        self._begun: dict[Task, tuple[str, float]] = {}
        """The pod of each task under way, and when it was made."""
        self._made: list[str] = []
        self._numbers = itertools.count()
        self._path = f"/api/v1/namespaces/{config.kubernetes.system_namespace}/pods"
        self._events = f"/api/v1/namespaces/{config.kubernetes.system_namespace}/events"

    def run(self, show: Callable[[], None]) -> None:
        """Bring every image to its node; `show` is called after each look. Leaves no pod, however it ends."""
        answered = time.monotonic()
        self._sweep()
        try:
            while True:
                try:
                    self._begin()
                    self._look()
                    answered = time.monotonic()
                except (KubeUnreachable, NotYet):
                    if time.monotonic() - answered > SECONDS_WITHOUT_SERVER:
                        raise
                show()
                if all(stage.is_final for stage in self.stages.values()):
                    return
                time.sleep(SECONDS_BETWEEN_LOOKS)
        finally:
            self._clear()

    def _begin(self) -> None:
        """Make the next pods: a few nodes at a time, and one image after the other on each."""
        for task, known in self.stages.items():
            if len(self._begun) >= self._at_once:
                return
            if known.is_final or any(task[0] == other[0] for other in self._begun):
                continue
            name = f"prepull-{self._run}-{next(self._numbers)}"
            self._made.append(name)  # first: also one whose answer gets lost is cleared away
            body = manifest(pod_of(task, name, self._run, self._config))
            try:
                self._kube.create(self._path, body)
            except NotFound:
                raise SetupError(
                    f"Kubernetes has no namespace {self._config.kubernetes.system_namespace}.",
                    "Apply what `slurmk8s cluster rbac` prints.",
                ) from None
            except Refused as refused:
                # A controller makes a new namespace's account, and may be a moment late.
                raise NotYet(refused.sentence, refused.hint) if YOUNG in refused.message else refused from None
            self._begun[task] = (name, time.monotonic())

    def _look(self) -> None:
        found = self._kube.items(self._path, labelSelector=f"{RUN}={self._run}")
        pods = {pod["metadata"]["name"]: pod for pod in found}
        events = self._kube.items(self._events, fieldSelector="involvedObject.kind=Pod") if pods else []
        for task, (name, begun) in list(self._begun.items()):
            waited = time.monotonic() - begun
            if name not in pods:
                now = Stage("failed", sentence="Somebody deleted the pod that was pulling it.")
            else:
                about = [event for event in events if event["involvedObject"].get("name") == name]
                now = self._patience(stage(pods[name], about, waited), waited)
            self.stages[task] = now
            if now.is_final:
                self._delete(name)
                del self._begun[task]

    def _patience(self, now: Stage, waited: float) -> Stage:
        """Nothing is waited for without end: neither a registry that is down nor a pull that hangs."""
        images = self._config.images
        limit = images.pull_retry_seconds if now.sentence else images.pull_seconds
        if now.is_final or waited < limit:
            return now
        return Stage("failed", sentence=now.sentence or f"The pull did not end within {limit:.0f} s.")

    def _delete(self, name: str) -> None:
        self._kube.delete(f"{self._path}/{name}", gracePeriodSeconds=1)
        self._made.remove(name)

    def _clear(self) -> None:
        """Remove what is left, also of a call that was interrupted or failed."""
        left: SlurmK8sError | None = None
        for name in list(self._made):
            try:
                self._delete(name)
            except SlurmK8sError as error:
                left = error
        if left is not None:
            namespace = self._config.kubernetes.system_namespace
            raise ClusterFault(
                f"Pods of this call are left in the namespace {namespace}: {left.sentence}",
                f"Remove them later: `kubectl delete pods -n {namespace} -l {RUN}={self._run}`.",
            )

    def _sweep(self) -> None:
        """Remove what an earlier call left when it was killed."""
        with contextlib.suppress(SlurmK8sError):  # the next call will
            oldest = datetime.now(UTC) - timedelta(seconds=self._config.images.pull_seconds)
            mine = f"{labels.APP}={labels.PREPULL_VALUE},{labels.CLUSTER}={self._config.cluster}"
            for pod in self._kube.items(self._path, labelSelector=mine):
                if datetime.fromisoformat(pod["metadata"]["creationTimestamp"]) < oldest:
                    self._kube.delete(f"{self._path}/{pod['metadata']['name']}", gracePeriodSeconds=1)
