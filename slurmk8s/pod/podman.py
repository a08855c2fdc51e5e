"""The podman backend: one machine, no cluster. Takes the same manifest as Kubernetes, by `podman kube play`."""

import asyncio
import json
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from slurmk8s import config, labels
from slurmk8s.errors import ClusterFault, NodeFault, SlurmK8sError
from slurmk8s.labels import PodName
from slurmk8s.pod.backend import PodState, Started
from slurmk8s.pod.manifest import Pod, render
from slurmk8s.pod.podman_words import create_fault, last_line, pull_fault

# Generous: under a burst of jobs podman's own locks queue up. Beyond it podman is taken for dead.
COMMAND_SECONDS = 120
SECONDS_TO_LOOK = 20
GONE = "no such pod"
INVOCATION_ID = os.environ.get("INVOCATION_ID", uuid.uuid4().hex)


class Podman:
    """Pods of one cluster and node in one podman store."""

    def __init__(self, settings: config.Podman, images: config.Images, cluster: str, node: str, work: Path) -> None:
        self._settings = settings
        self._images = images
        self._own = {labels.CLUSTER: cluster, labels.NODE: node}
        self._work = work
        self._pulls: dict[str, asyncio.Lock] = {}
        # podman does better with a few at a time than with thirty that wait for its locks.
        self._turns = asyncio.Semaphore(4)

    async def serve(self) -> None:
        """Nothing: podman is asked each time."""
        await asyncio.Event().wait()

    async def pull(self, image: str, tell: Callable[[str], None]) -> str:
        """Pull unless the image is here; `latest` is looked up again each time, as Kubernetes does."""
        async with self._pulls.setdefault(image, asyncio.Lock()):
            digest = await self._digest(image)
            if digest and not image.endswith(":latest"):
                return digest
            try:
                # With a copy here a hung registry is not worth waiting for.
                await self._pull(image, tell, SECONDS_TO_LOOK if digest else self._images.pull_seconds)
            except ClusterFault as fault:
                if not digest:
                    raise
                tell(f"{fault} The copy of the image on this node is used.")
            return await self._digest(image) or ""

    async def _pull(self, image: str, tell: Callable[[str], None], seconds: float) -> None:
        registry = image.split("/", 1)[0]
        process = await self._start("pull", "--quiet", image)
        assert process.stderr is not None
        said: list[str] = []
        try:
            async with asyncio.timeout(seconds):
                async for raw in process.stderr:
                    line = raw.decode("utf-8", "replace").strip()
                    said.append(line)
                    if "retrying in" in line.lower():  # podman tries three times itself; people hear it at once
                        tell(f"The registry {registry} does not answer; trying again.")
                await process.wait()
        except TimeoutError:
            raise ClusterFault(f"The registry {registry} did not answer within {seconds:.0f} s.") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0:
            raise pull_fault(image, registry, "\n".join(said))

    async def _digest(self, image: str) -> str | None:
        code, out, _ = await self._podman("image", "inspect", "--format", "{{.Digest}}", image)
        return out.strip() if code == 0 else None

    async def create(self, pod: Pod) -> None:
        """Play the manifest. A pod of this name from an earlier attempt, or one that never started, goes first."""
        there = await self._find(pod.name)
        if there and there.running and there.labels.get(labels.ATTEMPT) == pod.labels[labels.ATTEMPT]:
            return
        if there:
            await self._delete(pod.name)
        path = self._work / f"{pod.name}.yaml"
        path.write_text(render(pod), encoding="utf-8")
        async with self._turns:
            code, out, err = await self._podman("kube", "play", "--network", self._settings.network, str(path))
        if code != 0:
            await self._delete(pod.name)
            raise create_fault(pod.image, out + "\n" + err)

    async def started(self, name: PodName, image: str, tell: Callable[[str], None]) -> Started:  # noqa: ARG002 - see below
        """`kube play` returns when the container runs."""
        return Started()

    async def find(self, name: PodName) -> PodState | None:
        """Ask for the pod's one container."""
        return await self._find(str(name))

    async def _find(self, name: str) -> PodState | None:
        container = f"{name}-{labels.CONTAINER}"
        code, out, err = await self._podman("container", "inspect", container)
        if code != 0:
            if "no such" in err.lower():
                return None
            raise NodeFault(f"podman does not say whether {name} exists: {last_line(err)}.")
        return _state(name, json.loads(out)[0])

    async def pods(self) -> list[PodState]:
        """The pods that carry our cluster's and node's labels."""
        filters = [word for key, value in self._own.items() for word in ("--filter", f"label={key}={value}")]
        code, out, err = await self._podman("pod", "ps", "--format", "json", *filters)
        if code != 0:
            raise NodeFault(f"podman cannot list its pods: {last_line(err)}.")
        return [PodState(entry["Name"], entry.get("Labels") or {}) for entry in json.loads(out or "[]") or []]

    async def start_fault(self, name: PodName, image: str) -> SlurmK8sError:
        """runc has already handed over when the kernel refuses the shell, so the reason is in the container's log."""
        _, out, err = await self._podman("logs", "--tail", "5", f"{name}-{labels.CONTAINER}")
        fault = create_fault(image, out + "\n" + err)
        # These are the container's own words, so they can end its own job and nothing more.
        return SlurmK8sError(fault.sentence) if isinstance(fault, NodeFault) else fault

    async def wait(self, name: PodName) -> PodState | None:
        """Wait on the launcher's own pid: no polling, and an end is known at once."""
        state = await self.find(name)
        if state is None or not state.running or state.pid is None:
            return state
        try:
            pidfd = os.pidfd_open(state.pid)
        except ProcessLookupError:
            return await self._ended(name)
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        loop.add_reader(pidfd, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(pidfd)
            os.close(pidfd)
        return await self._ended(name)

    async def _ended(self, name: PodName) -> PodState | None:
        """The state after the process has died: conmon writes it a moment later."""
        state = await self.find(name)
        for _ in range(50):
            if state is None or not state.running:
                break
            await asyncio.sleep(0.1)
            state = await self.find(name)
        return state

    async def processes(self, name: PodName) -> list[int]:
        """The launcher."""
        state = await self.find(name)
        return [state.pid] if state and state.pid else []

    async def delete(self, name: PodName, marks: tuple[str, ...] = ()) -> None:  # noqa: ARG002 - podman knows them
        """Its container goes with it."""
        await self._delete(str(name))

    async def _delete(self, name: str) -> None:
        """Kill first: `pod rm` alone waits for each container's own stop."""
        await self._podman("pod", "kill", name)
        code, _, err = await self._podman("pod", "rm", "--force", "--time", "0", name)
        if code != 0 and GONE not in err.lower():
            raise NodeFault(f"The pod {name} cannot be removed: {last_line(err)}.")
        (self._work / f"{name}.yaml").unlink(missing_ok=True)

    async def _podman(self, *arguments: str) -> tuple[int, str, str]:
        process = await self._start(*arguments)
        try:
            async with asyncio.timeout(COMMAND_SECONDS):
                out, err = await process.communicate()
        except TimeoutError:
            process.kill()
            await process.wait()
            raise NodeFault(f"podman does not answer: `podman {' '.join(arguments[:2])}` hung.") from None
        return process.returncode or 0, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")

    async def _start(self, *arguments: str) -> asyncio.subprocess.Process:
        try:
            return await asyncio.create_subprocess_exec(
                self._settings.program,
                *arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=environment(self._settings),
                cwd=self._work,  # conmon leaves a file named `oom` where it was started
                start_new_session=True,  # conmon must not die with the agent's process group
            )
        except OSError as error:
            raise NodeFault(f"podman cannot be run: {error}.", "Install podman on this node.") from None


def environment(settings: config.Podman) -> dict[str, str]:
    """What podman is started with: nothing of our own environment, and the store that jobs run from."""
    variables = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/root",
        # As systemd gives to a service: without it podman 4 puts each container's monitor into the pod's own
        # cgroup, and removing the pod then waits three seconds for it.
        "INVOCATION_ID": INVOCATION_ID,
    }
    for variable, path in (
        ("CONTAINERS_CONF", settings.containers_conf),
        ("CONTAINERS_STORAGE_CONF", settings.storage_conf),
        ("CONTAINERS_REGISTRIES_CONF", settings.registries_conf),
    ):
        if path:
            variables[variable] = str(path)
    return variables


def _state(name: str, container: dict[str, Any]) -> PodState:
    state = container["State"]
    running = state["Status"] in ("running", "paused", "stopping")
    ended = state["Status"] in ("exited", "stopped")
    return PodState(
        name=name,
        labels=container["Config"].get("Labels") or {},
        running=running,
        pid=state.get("Pid") or None,
        exit_code=state["ExitCode"] if ended else None,
        out_of_memory=bool(state.get("OOMKilled")),
    )
