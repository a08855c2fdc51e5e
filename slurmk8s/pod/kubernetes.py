"""The kubernetes backend: the pod goes to the API server, pinned to this node; its kubelet does the rest.

Nothing is kept on disk: what an agent must know after a restart is in the cluster. While the API server is away, a
running job runs on; nothing is taken for gone, and whoever waits goes on waiting.
"""

import asyncio
import time
from collections.abc import Callable

from loguru import logger

from slurmk8s import labels
from slurmk8s.config import Config
from slurmk8s.errors import ClusterFault, NodeFault, SlurmK8sError
from slurmk8s.kube.faults import Conflict, KubeUnreachable, Refused
from slurmk8s.labels import PodName
from slurmk8s.pod import kubernetes_state as says
from slurmk8s.pod import kubernetes_words as words
from slurmk8s.pod import mkinst
from slurmk8s.pod.backend import PodState, Started
from slurmk8s.pod.kubernetes_api import Pods
from slurmk8s.pod.kubernetes_death import Death
from slurmk8s.pod.kubernetes_refusals import refusal
from slurmk8s.pod.kubernetes_state import Json
from slurmk8s.pod.manifest import Pod, files, manifest
from slurmk8s.pod.processes import pids_of

SECONDS_FOR_NAME = 60.0
"""How long the same job's pod on another node may take to go: that node's Epilog is about to remove it."""
SECONDS_BETWEEN_LOOKS = 10.0
"""The watch tells; if it tells nothing for that long, the server is asked."""
SECONDS_WITHOUT_KUBELET = 15.0
"""A kubelet that works looks at a pod within a second; after that long a person hears of it."""
SECONDS_UNTIL_KUBELET_IS_DEAD = 300.0
"""After an API server's outage a healthy kubelet takes up to two minutes to listen again: no reason to drain a node."""


class Kubernetes:
    """Pods of one cluster and node, in their owners' namespaces."""

    def __init__(self, config: Config, node: str) -> None:
        self._config = config
        self._node = config.kubernetes.node_of(node)
        self._pods = Pods(config, node)
        self._death = Death(self._pods, config, node)

    async def serve(self) -> None:
        """The watch, until cancelled."""
        await self._pods.serve()

    async def pull(self, image: str, tell: Callable[[str], None]) -> str | None:  # noqa: ARG002 - the kubelet pulls
        """Nothing: the kubelet pulls when it has the pod."""
        return None

    async def create(self, pod: Pod) -> None:
        """Make the pod, and before it the files it reads. If the answer is lost, doing it again finds the pod."""
        name = PodName(int(pod.labels[labels.JOB_ID]), pod.uid, _rank(pod))
        key = self._pods.key(name)
        body, texts = manifest(pod), files(pod)
        deadline = time.monotonic() + SECONDS_FOR_NAME
        while True:
            try:
                if texts and not await self._pods.find(key):
                    await self._pods.create_files(key, texts, dict(pod.labels))
                await self._post(pod, body)
                return
            except Conflict as conflict:
                if conflict.reason != "AlreadyExists":  # two creates at once at the same quota
                    if time.monotonic() > deadline:
                        raise refusal(conflict, pod.image, key[0], pod.uid) from None
                    await asyncio.sleep(0.1)
                    continue
                there = await self._pods.find(key)
                if there is not None and self._is_it(there, pod):
                    return
                await self._make_room(name, there, deadline)
            except Refused as refused:
                raise refusal(refused, pod.image, key[0], pod.uid) from None

    async def _post(self, pod: Pod, body: Json) -> None:
        """By our own request, or by the site's own program, which is only asked when nothing has the name."""
        if self._config.kubernetes.mkinst is None:
            await self._pods.create(body)
            return
        key = body["metadata"]["namespace"], pod.name
        if await self._pods.find(key) is not None:
            raise Conflict(f"{pod.name} is there.", code=409, status={"reason": "AlreadyExists"})
        await mkinst.call(self._config, pod, self._pods.kubeconfig)
        there = await self._pods.find(key)
        if there is None or not self._pods.is_own(there):
            raise mkinst.not_made(self._config, pod)

    def _is_it(self, there: Json, pod: Pod) -> bool:
        same = (there["metadata"].get("labels") or {}).get(labels.ATTEMPT) == pod.labels[labels.ATTEMPT]
        return self._pods.is_own(there) and same and not says.deleting(there)

    async def _make_room(self, name: PodName, there: Json | None, deadline: float) -> None:
        """Another pod has the name: this agent's own goes now, another's is waited for.

        By looking, not by trying: a create that meets the name has been charged to the quota before, and is given back
        only when the quota is counted anew.
        """
        while there is not None:
            if self._pods.is_own(there):
                logger.info(f"pod {name}: an earlier attempt's is still here; removed")
                await self.delete(name)
                return
            if time.monotonic() > deadline:
                namespace, where = self._pods.key(name)[0], there.get("spec", {}).get("nodeName")
                raise ClusterFault(
                    f"There is another pod {name} in {namespace}, on {where}, and it does not go.",
                    f"If its job is over: `kubectl -n {namespace} delete pod {name}`.",
                )
            await asyncio.sleep(0.5)
            there = await self._pods.find(self._pods.key(name))

    async def started(self, name: PodName, image: str, tell: Callable[[str], None]) -> Started:  # noqa: ARG002 - in the pod
        """Wait for the kubelet: it pulls, mounts and starts. What it complains about is told, or ends the wait."""
        begun = time.monotonic()
        answered = begun  # while the API server is away, a kubelet cannot hear of the pod either
        trouble: float | None = None
        fresh = False
        while True:
            fault: SlurmK8sError | None
            try:
                pod = await self._pods.look(name, fresh=fresh)
                if pod is None:
                    raise self._vanished(name)
                fault = await self._in_the_way(pod, time.monotonic() - answered, tell)
            except KubeUnreachable as away:
                pod, fault = None, away
                answered = time.monotonic()
            if pod is not None and fault is None and (says.running(pod) or says.ended(pod)):
                return says.started(pod, await self._pods.events(pod))
            trouble = (trouble or time.monotonic()) if fault else None
            if fault is not None:
                if not self._may_pass(fault, pod, time.monotonic() - (trouble or 0)):
                    raise fault
                tell(f"{fault.sentence} Trying again.")
            if time.monotonic() - begun > self._config.images.pull_seconds:
                raise fault or self._too_slow(name)
            fresh = not await self._pods.watch.change(SECONDS_BETWEEN_LOOKS if self._pods.watch.synced else 1.0)

    async def _in_the_way(self, pod: Json, waited: float, tell: Callable[[str], None]) -> SlurmK8sError | None:
        """What keeps it from starting, None if only time does."""
        if says.ended(pod) or says.deleting(pod):
            return words.start_fault(pod, [])
        if not says.seen_by_kubelet(pod) and waited > SECONDS_WITHOUT_KUBELET:
            sentence = f"The kubelet of {self._node} does not start the pod {pod['metadata']['name']}."
            if waited > SECONDS_UNTIL_KUBELET_IS_DEAD:
                return NodeFault(sentence, f"See `systemctl status kubelet` on {self._node}.")
            tell(f"{sentence} Waiting for it.")
            return None
        # A kubelet that works has nothing to explain, and its events cost a request.
        events = await self._pods.events(pod) if says.complains(pod) or waited > SECONDS_BETWEEN_LOOKS else []
        return words.start_fault(pod, events)

    def _may_pass(self, fault: SlurmK8sError, pod: Json | None, lasted: float) -> bool:
        """Whether waiting may help: the kubelet tries again by itself, as long as it has not given the pod up."""
        if pod is None:
            return True  # the API server is away
        over = says.ended(pod) or says.deleting(pod) or not isinstance(fault, ClusterFault)
        return not over and lasted < self._config.images.pull_retry_seconds

    def _too_slow(self, name: PodName) -> ClusterFault:
        return ClusterFault(
            f"The pod {name} has not started on {self._node} within {self._config.images.pull_seconds:.0f} s.",
            f"`slurmk8s why {name.job_id}` shows what it waits for.",
        )

    async def find(self, name: PodName) -> PodState | None:
        """As the watch knows it, else as the server says."""
        pod = await self._pods.look(name)
        return says.state(pod, self._end_fault(pod)) if pod is not None else None

    async def pods(self) -> list[PodState]:
        """All of this agent."""
        return [says.state(pod) for pod in await self._pods.all()]

    async def start_fault(self, name: PodName, image: str) -> SlurmK8sError:  # noqa: ARG002 - in the pod
        """By the kubelet's word, else by the container's: runc has handed over when the kernel refuses the shell."""
        pod = await self._pods.look(name)
        if pod is None:
            return self._vanished(name)
        return words.stillborn(pod, await self._pods.log(self._pods.key(name), 5))

    async def wait(self, name: PodName) -> PodState | None:
        """Return when the container has ended, or the pod is gone: then as it was last seen, with the reason."""
        fresh = False
        while True:
            try:
                pod = await self._pods.look(name, fresh=fresh)
            except ClusterFault:  # unknown: the job runs on
                await self._pods.watch.change(1.0)
                continue
            if pod is None:
                last = self._pods.watch.last(self._pods.key(name))
                if last is None:
                    return None
                return says.state(last, None if self._death.is_ours(last) else self._vanished(name))
            if says.ended(pod):
                return says.state(pod, self._end_fault(pod))
            fresh = not await self._pods.watch.change(SECONDS_BETWEEN_LOOKS)

    async def processes(self, name: PodName) -> list[int]:
        """The container's own, not the sandbox's, which has nothing of it."""
        pod = await self._pods.look(name)
        return await asyncio.to_thread(pids_of, self._config.kubernetes.proc, says.container_ids(pod)) if pod else []

    async def delete(self, name: PodName, marks: tuple[str, ...] = ()) -> None:
        """Kill and remove it. The marks are an earlier agent's: it may have seen a pod that is gone since."""
        await self._death.of(name, set(marks))

    def _end_fault(self, pod: Json) -> SlurmK8sError | None:
        """Why it ended, if the kubelet or somebody ended it; None for its own end, or one that this agent brought."""
        return None if self._death.is_ours(pod) else words.end_fault(pod)

    def _vanished(self, name: PodName) -> SlurmK8sError:
        """The pod is gone, and not by us."""
        last = self._pods.watch.last(self._pods.key(name))
        return (last and words.end_fault(last)) or words.deleted(str(name))


def _rank(pod: Pod) -> int:
    """Which of the job's nodes, as its name says."""
    rest = pod.name.removeprefix(str(PodName(int(pod.labels[labels.JOB_ID]), pod.uid)))
    return int(rest[1:]) if rest else 0
