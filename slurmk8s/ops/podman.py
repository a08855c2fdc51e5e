"""Images in this node's own podman store: the same two questions as for a cluster, for one machine."""

import asyncio
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from slurmk8s.config import Config
from slurmk8s.errors import NodeFault, PersonFault, SlurmK8sError
from slurmk8s.ops.images import WAITING, Held, Stage, Target, Task, is_ours, moves, tagged
from slurmk8s.pod.podman import Podman, environment
from slurmk8s.pod.podman_words import last_line

SECONDS_TO_LIST = 120
SECONDS_BETWEEN_SHOWS = 0.5


def require_root() -> None:
    """A person's own store is another one, which no job uses."""
    if os.geteuid() != 0:
        raise PersonFault("Only root may use the podman store that jobs run from.", "Call it with sudo.")


def held(config: Config, node: Target, everything: bool) -> list[Held]:
    """The store's images."""
    done = _podman(config, "images", "--format", "json")
    if done.returncode != 0:
        raise NodeFault(f"podman cannot list its images: {last_line(done.stderr)}.")
    return sorted(
        Held(node.name, name, int(entry.get("Size") or 0))
        for entry in _entries(done.stdout)
        for name in tagged(entry.get("Names") or entry.get("RepoDigests") or ())
        if everything or is_ours(name, config)
    )


def _entries(text: str) -> list[dict[str, Any]]:
    """One entry per image: podman prints one per name, each with all names."""
    found: dict[str, dict[str, Any]] = {}
    for entry in json.loads(text or "[]") or []:
        found.setdefault(entry["Id"], entry)
    return list(found.values())


def _podman(config: Config, *arguments: str) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(
            [config.podman.program, *arguments],
            env=environment(config.podman),
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            timeout=SECONDS_TO_LIST,
        )
    except subprocess.TimeoutExpired:
        raise NodeFault(f"podman does not answer: `podman {arguments[0]}` hung.") from None
    except OSError as error:
        raise NodeFault(f"podman cannot be run: {error}.", "Install podman on this node.") from None


class Prepull:
    """Pulls one image after the other, with the backend's own code and so with its words for what goes wrong."""

    def __init__(self, config: Config, node: Target, images: Sequence[str]) -> None:
        self.stages: dict[Task, Stage] = dict.fromkeys(((node, image) for image in images), WAITING)
        self._config = config

    def run(self, show: Callable[[], None]) -> None:
        """Bring every image here; `show` is called again and again meanwhile."""
        asyncio.run(self._run(show))

    async def _run(self, show: Callable[[], None]) -> None:
        with tempfile.TemporaryDirectory(prefix="slurmk8s-pull-") as folder:
            config = self._config
            backend = Podman(config.podman, config.images, config.cluster, "", Path(folder))
            for task in self.stages:
                work = asyncio.create_task(self._one(backend, task))
                begun = time.monotonic()
                while not (await asyncio.wait([work], timeout=SECONDS_BETWEEN_SHOWS))[0]:
                    self.stages[task] = Stage("pulling", time.monotonic() - begun, self.stages[task].sentence)
                    show()
                self.stages[task] = work.result()
                show()

    async def _one(self, backend: Podman, task: Task) -> Stage:
        image, begun = task[1], time.monotonic()

        def tell(sentence: str) -> None:
            self.stages[task] = Stage("pulling", time.monotonic() - begun, sentence)

        there = await asyncio.to_thread(_podman, self._config, "image", "exists", image)
        try:
            await backend.pull(image, tell)
        except SlurmK8sError as fault:
            return Stage("failed", sentence=str(fault))
        if there.returncode == 0 and not moves(image):
            return Stage("present")
        told = self.stages[task].sentence  # an older copy is used because the registry is down
        if told and there.returncode == 0:
            return Stage("failed", sentence=told)
        return Stage("pulled", time.monotonic() - begun)
