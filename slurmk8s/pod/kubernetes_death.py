"""The end of a pod: gone from the API server, and no process of its containers alive on this node.

Both are needed. The API server forgets a pod that somebody deletes by force while its processes run on; and a kubelet
that has not confirmed a deletion may still be about to start the container.
"""

import asyncio
import time
from collections import deque

from loguru import logger

from slurmk8s.config import Config
from slurmk8s.errors import ClusterFault, NodeFault, SlurmK8sError
from slurmk8s.kube.faults import KubeUnreachable
from slurmk8s.kube.watch import Key
from slurmk8s.labels import PodName
from slurmk8s.pod import kubernetes_state as says
from slurmk8s.pod.backend import DeadButListed
from slurmk8s.pod.kubernetes_api import Pods
from slurmk8s.pod.processes import pids_of

SECONDS = 20.0
"""On top of the grace: the kubelet's own rounds, a slow runtime, an API server that restarts."""
SECONDS_FOR_PHASE = 2.0
SECONDS_FOR_PULL = 3.0
SECONDS_BETWEEN_LOOKS = 2.0
"""The watch tells; if it tells nothing, the server is asked."""


class Death:
    """How this agent's pods end."""

    def __init__(self, pods: Pods, config: Config, node: str) -> None:
        self._pods = pods
        self._config = config
        self._node = config.kubernetes.node_of(node)
        self._proc = config.kubernetes.proc
        self._asked: deque[str] = deque(maxlen=500)

    def is_ours(self, pod: says.Json) -> bool:
        """Whether this agent has asked for the pod's deletion: then nobody else is to be blamed for it."""
        return pod["metadata"]["uid"] in self._asked

    async def of(self, name: PodName, known: set[str]) -> None:
        """Return when the pod is dead and gone; `known` are marks of processes that must be dead as well."""
        begun = time.monotonic()
        deadline = begun + self._config.agent.kill_grace_seconds + SECONDS
        marks = known | await self._gone(name, deadline)
        while pids := await self._alive(marks):
            if time.monotonic() > deadline:
                raise self._immortal(name, pids)
            await asyncio.sleep(0.1)
        logger.debug(f"pod {name}: dead and gone after {time.monotonic() - begun:.2f} s")

    async def _gone(self, name: PodName, deadline: float) -> set[str]:
        """Have the API server and the kubelet agree that there is no such pod; what its processes are known by."""
        key = self._pods.key(name)
        pod = self._pods.watch.last(key)
        marks = says.marks(pod) if pod and self._pods.is_own(pod) else set()
        asked = ""
        patience = deadline
        while True:
            away: KubeUnreachable | None = None
            try:
                pod = await self._pods.look(name, fresh=bool(asked))
                if pod is not None:
                    marks |= says.marks(pod)
                if pod is None or pod["metadata"]["uid"] != asked:
                    if self._config.uses_claims:
                        await self._pods.delete_files(key)
                    if pod is None:
                        return marks
                    asked = await self._ask(name, pod)
                    patience = time.monotonic() + SECONDS_FOR_PULL
                elif time.monotonic() > patience and await self._is_pulling(pod):
                    raise DeadButListed(
                        f"{self._node} still pulls the image of the pod {name}, and removes the pod after that."
                    )
            except KubeUnreachable as fault:
                away = fault
            if time.monotonic() > deadline:
                raise await self._not_gone(name, pod, marks, away)
            await self._news(key)

    async def _is_pulling(self, pod: says.Json) -> bool:
        return not says.container_ids(pod) and says.pulling(await self._pods.events(pod))

    async def _ask(self, name: PodName, pod: says.Json) -> str:
        """Ask for the deletion; the uid of the pod that was meant.

        A kubelet removes a pod at once if it has told its last phase before; between the container's end and that it
        takes two more of its rounds.
        """
        patience = time.monotonic() + SECONDS_FOR_PHASE
        while says.terminated(pod) and says.phase(pod) not in says.ENDED and not says.deleting(pod):
            left = patience - time.monotonic()
            if left <= 0 or not await self._pods.watch.change(left):
                break
            pod = self._pods.watch.get(self._pods.key(name)) or pod
        uid = str(pod["metadata"]["uid"])
        self._asked.append(uid)
        await self._pods.delete(self._pods.key(name), uid)
        return uid

    async def _news(self, key: Key) -> None:
        """Wait until the watch tells something of that pod, or until it is time to ask."""
        before = self._pods.watch.get(key)
        if before is None and self._pods.watch.synced:  # it has just told the end, or not yet the beginning
            await asyncio.sleep(0.05)
            return
        until = time.monotonic() + SECONDS_BETWEEN_LOOKS
        while (left := until - time.monotonic()) > 0 and self._pods.watch.get(key) is before:
            await self._pods.watch.change(left)

    async def _alive(self, marks: set[str]) -> list[int]:
        return await asyncio.to_thread(pids_of, self._proc, marks)

    async def _not_gone(
        self, name: PodName, pod: says.Json | None, marks: set[str], away: KubeUnreachable | None
    ) -> SlurmK8sError:
        """Why the pod is still there when the time is over.

        A kubelet that does not confirm the end is no reason to drain the node: after an API server's outage a healthy
        one takes up to two minutes to listen again. What runs is what counts.
        """
        if away is not None and await self._alive(marks):
            return ClusterFault(f"The pod {name} cannot be ended: {away.sentence}", away.hint)
        if away is not None:
            return DeadButListed(f"The pod {name} is dead but cannot be removed: {away.sentence}", away.hint)
        if pids := await self._alive(says.container_ids(pod or {})):
            return self._immortal(name, pids)
        return DeadButListed(
            f"The pod {name} is dead, but the kubelet of {self._node} has not removed it yet.",
            f"If that lasts, see `systemctl status kubelet` on {self._node}.",
        )

    def _immortal(self, name: PodName, pids: list[int]) -> NodeFault:
        shown = ",".join(str(pid) for pid in pids[:8])
        return NodeFault(
            f"The pod {name} cannot be killed: {len(pids)} of its processes live on {self._node} (pid {shown}).",
            f"`ps -o pid,stat,wchan:32,cmd -p {shown}` shows what they wait for; a reboot ends them.",
        )
