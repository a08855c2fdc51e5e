"""What the kubernetes backend asks the API server: on threads of its own, and only what the watch does not know."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TypeVar

from slurmk8s import labels
from slurmk8s.config import Config
from slurmk8s.errors import ClusterFault, SetupError, SlurmK8sError
from slurmk8s.kube.client import Kube
from slurmk8s.kube.faults import Conflict, KubeUnreachable, NotFound, Refused
from slurmk8s.kube.watch import Key, Watch
from slurmk8s.labels import PodName
from slurmk8s.pod.kubernetes_state import Json, trimmed

Answer = TypeVar("Answer")

GRACE_SECONDS = 1
"""The body has had its own grace before a pod is deleted. Never 0: the API server would forget a pod that runs."""


class Pods:
    """The pods of one agent: of its cluster, on its node."""

    def __init__(self, config: Config, node: str) -> None:
        self._settings = config.kubernetes
        self.kubeconfig = config.kubernetes.kubeconfig_of(node)
        self._own = {labels.APP: labels.APP_VALUE, labels.CLUSTER: config.cluster, labels.NODE: node}
        self._threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix="kubernetes")
        self._connecting = Lock()
        self._kube: Kube | None = None
        self._selector = ",".join(f"{key}={value}" for key, value in self._own.items())
        self.watch = Watch(self._connect, "/api/v1/pods", trimmed, labelSelector=self._selector)

    def key(self, name: PodName) -> Key:
        """Where the pod is."""
        return self._settings.namespace_of(name.uid), str(name)

    def is_own(self, pod: Json) -> bool:
        """Whether this agent made it; it touches no other."""
        has = pod["metadata"].get("labels") or {}
        return all(has.get(key) == value for key, value in self._own.items())

    async def serve(self) -> None:
        """Keep the watch going, until cancelled."""
        try:
            await self.watch.serve()
        finally:
            self._threads.shutdown(wait=False, cancel_futures=True)

    async def look(self, name: PodName, *, fresh: bool = False) -> Json | None:
        """The pod, None if the server says that this agent has none of that name. Raises KubeUnreachable if unknown."""
        key = self.key(name)
        known = self.watch.get(key)
        if known is not None and self.watch.synced and not fresh:
            return known
        found = await self.find(key)
        if found is None or not self.is_own(found):
            return None
        self.watch.note(key, found)
        return trimmed(found)

    async def find(self, key: Key) -> Json | None:
        """Whatever pod has that name, asked now."""
        return await self.ask(lambda kube: kube.find(_pod(key)))

    async def all(self) -> list[Json]:
        """Every pod of this agent."""
        if self.watch.synced:
            return self.watch.objects()
        return await self.ask(lambda kube: kube.items("/api/v1/pods", labelSelector=self._selector))

    async def create(self, manifest: Json) -> None:
        """Make the pod. What the server refuses is the caller's to understand."""
        path = f"/api/v1/namespaces/{manifest['metadata']['namespace']}/pods"
        await self._threaded(lambda kube: kube.create(path, manifest))

    async def create_files(self, key: Key, texts: dict[str, str], own: dict[str, str]) -> None:
        """Have the pod's ConfigMap with these texts, whatever an earlier attempt left there."""
        body: Json = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": key[1], "labels": own},
            "data": texts,
        }
        await self._threaded(lambda kube: kube.apply(_files(key), body))

    async def delete(self, key: Key, uid: str) -> None:
        """Ask for the deletion of that very pod, not of a later one with its name."""
        try:
            await self.ask(
                lambda kube: kube.delete(_pod(key), gracePeriodSeconds=GRACE_SECONDS, preconditions={"uid": uid})
            )
        except Conflict:
            return  # another one by now

    async def delete_files(self, key: Key) -> None:
        """Remove the ConfigMap if it is this agent's; the job's next attempt may already have put its own there."""

        def step(kube: Kube) -> None:
            there = kube.find(_files(key))
            if there is None or not self.is_own(there):
                return
            which = {name: there["metadata"][name] for name in ("uid", "resourceVersion")}
            kube.delete(_files(key), preconditions=which)

        try:
            await self.ask(step)
        except Conflict:
            return  # another agent's by now

    async def events(self, pod: Json) -> list[Json]:
        """What the kubelet has told about the pod, oldest first; nothing if it cannot be had: it only explains."""
        namespace, uid = pod["metadata"]["namespace"], pod["metadata"]["uid"]
        path = f"/api/v1/namespaces/{namespace}/events"
        try:
            found = await self.ask(lambda kube: kube.items(path, fieldSelector=f"involvedObject.uid={uid}"))
        except SlurmK8sError:
            return []
        return sorted(found, key=lambda event: event.get("lastTimestamp") or event.get("eventTime") or "")

    async def log(self, key: Key, lines: int) -> str:
        """The end of the container's output; empty if it cannot be had."""
        try:
            return await self.ask(
                lambda kube: kube.text(_pod(key) + "/log", container=labels.CONTAINER, tailLines=str(lines))
            )
        except SlurmK8sError:
            return ""

    async def ask(self, question: Callable[[Kube], Answer]) -> Answer:
        """A question that the server has no reason to refuse: if it does, the cluster is not set up."""
        try:
            return await self._threaded(question)
        except (NotFound, Conflict):
            raise
        except Refused as refused:
            raise ClusterFault(refused.sentence, refused.hint) from None

    async def _threaded(self, question: Callable[[Kube], Answer]) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: question(self._connect()))

    def _connect(self) -> Kube:
        """The connection, made when it is first needed: an agent starts before its cluster does."""
        with self._connecting:
            if self._kube is None:
                # Late: the library costs a quarter of a second, and only this backend needs it.
                from slurmk8s.kube.connection import connect  # noqa: PLC0415

                try:
                    self._kube = connect(self.kubeconfig, self._settings.request_seconds)
                except SetupError as error:
                    raise KubeUnreachable(error.sentence, "`slurmk8s cluster kubeconfig` makes it.") from None
            return self._kube


def _pod(key: Key) -> str:
    return f"/api/v1/namespaces/{key[0]}/pods/{key[1]}"


def _files(key: Key) -> str:
    return f"/api/v1/namespaces/{key[0]}/configmaps/{key[1]}"
