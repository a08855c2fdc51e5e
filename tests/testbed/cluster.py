"""A handle on a running test cluster: its API, its registry, and the machine room where tests pull plugs."""

import json
import os
import secrets
import signal
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from waiting import pauses

from . import images, processes
from .components import Component, components
from .layout import GPUS, NODES, REGISTRY, Layout
from .network import TestbedError
from .node import RESOURCE

TAIL = 60
"""Lines of a log that a failed test shows."""
CONTROLLERS = ("kube-controller-manager", "kube-scheduler")
SOON = 1.5
"""Seconds in which a controller that hears has done its work."""


@dataclass(frozen=True)
class Cluster:
    """One cluster, known by its folder alone: any process may make a handle on it."""

    folder: Path
    log_marks: dict[Path, int] = field(default_factory=dict)

    @property
    def layout(self) -> Layout:
        """Every path and address of it."""
        return Layout(self.folder)

    @property
    def kubeconfig(self) -> Path:
        """The admin's."""
        return self.layout.admin

    @property
    def nodes(self) -> tuple[str, ...]:
        """Their names."""
        return NODES

    @property
    def sample_image(self) -> str:
        """Busybox under the name that the guide's test job uses."""
        return f"{REGISTRY}/alpine:latest"

    def kubectl(self, *arguments: str, text: str | None = None, check: bool = True, seconds: float = 60) -> str:
        """The output of kubectl as admin; `text` goes to its standard input."""
        command = [str(self.layout.bin / "kubectl"), f"--kubeconfig={self.kubeconfig}", *arguments]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=seconds)
        if check and done.returncode:
            raise AssertionError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout if check else done.stdout + done.stderr

    def push(self, tar: bytes | Path, name: str, *, config: Mapping[str, Any] | None = None, **options: str) -> str:
        """Offer a root file system as an image; see images.push."""
        return images.push(self.layout, tar, name, config=config, **options)

    # -- the machine room ----------------------------------------------------------------------------------------

    @property
    def components(self) -> dict[str, Component]:
        """Every process: etcd, registry, kube-apiserver, containerd-kube1, kubelet-kube1, gpu-plugin-kube1, …"""
        return components(self.layout)

    def pid(self, name: str) -> int | None:
        """A component's process, if it runs."""
        if name not in self.components:
            raise KeyError(f"{name} is none of {', '.join(self.components)}")
        return processes.pid_of(name, self.layout.processes)

    def start(self, name: str, *, wait: bool = True) -> None:
        """Start a component unless it runs, and wait until it answers."""
        if self.pid(name) is None:
            found = self.components[name]
            log = self.layout.log / f"{name}.log"
            processes.start(name, found.command, found.environment, self.layout.processes, log)
        if wait:
            self.wait_ready(name)

    def stop(self, name: str) -> None:
        """An orderly end."""
        self.pid(name)
        processes.end(name, self.layout.processes)

    def kill(self, name: str) -> None:
        """kill -9, and see it dead. Nothing starts it again but `start`."""
        self.pid(name)
        processes.end(name, self.layout.processes, signal.SIGKILL)

    def restart(self, name: str) -> None:
        """An orderly end, then start."""
        self.stop(name)
        self.start(name)

    def pause(self, name: str) -> None:
        """SIGSTOP: it is there, and does not answer."""
        self._signal(name, signal.SIGSTOP)

    def resume(self, name: str) -> None:
        """SIGCONT."""
        self._signal(name, signal.SIGCONT)

    def mend(self) -> None:
        """Start and wake everything that does not run, until pods can start everywhere, in new namespaces too."""
        for name in self.components:
            if self.pid(name) is not None:
                self.resume(name)
        # A kubelet ends at once if its containerd is not ready for it, which no question to containerd tells.
        self.wait_for(self._all_started, "every component runs")
        self.wait_nodes()
        self.wait_controllers()

    def _all_started(self) -> bool:
        try:
            for name in self.components:
                self.start(name)
            return self.nodes_ready()
        except TestbedError:
            return False

    def _signal(self, name: str, number: int) -> None:
        pid = self.pid(name)
        if pid is None:
            raise TestbedError(f"{name} does not run.")
        os.kill(pid, number)

    # -- waiting -------------------------------------------------------------------------------------------------

    def wait_ready(self, name: str, seconds: float = 180) -> None:
        """Wait until a component answers; one that ended instead is told with the end of its log."""
        url = self.components[name].url
        if url:
            self.wait_for(lambda: self._alive(name) and self.ask(url) is not None, f"{name} answers at {url}", seconds)

    def _alive(self, name: str) -> bool:
        if self.pid(name) is None:
            raise TestbedError(f"{name} has ended. The end of its log:\n{self.tail(name, 15)}")
        return True

    def wait_for(self, condition: Callable[[], object], what: str, seconds: float = 180) -> None:
        """Poll a condition."""
        deadline = time.monotonic() + seconds
        for pause in pauses():
            if condition():
                return
            if time.monotonic() > deadline:
                raise TestbedError(f"Not within {seconds:g} s: {what}. Logs are in {self.layout.log}.")
            time.sleep(pause)

    def wait_nodes(self, seconds: float = 180) -> None:
        """Wait until both nodes are Ready and have their GPUs."""
        needed = [name for name in self.components if name.startswith(("kubelet-", "containerd-"))]
        what = "both nodes are Ready and have their GPUs"
        self.wait_for(lambda: all(self._alive(name) for name in needed) and self.nodes_ready(), what, seconds)

    def wait_controllers(self) -> None:
        """Wait until the controllers hear again: until then a new namespace has no service account, and so no pods.

        While the API server was away they asked more and more rarely, so that their next try may be a minute off. One
        that is started anew asks at once.
        """
        probe = f"mended-{secrets.token_hex(4)}"
        account = f"{self.layout.server}/api/v1/namespaces/{probe}/serviceaccounts/default"
        what = "a new namespace has its service account"
        self.kubectl("create", "namespace", probe)
        try:
            try:
                self.wait_for(lambda: self.ask(account) is not None, what, SOON)
            except TestbedError:
                for name in CONTROLLERS:
                    self.restart(name)
                self.wait_for(lambda: self.ask(account) is not None, what)
        finally:
            self.kubectl("delete", "namespace", probe, "--wait=false")

    def nodes_ready(self) -> bool:
        """Whether pods can start everywhere."""
        found = json.loads(self.ask(f"{self.layout.server}/api/v1/nodes") or '{"items": []}')["items"]
        return len(found) == len(self.nodes) and all(_ready(one["status"]) for one in found)

    def ask(self, url: str) -> bytes | None:
        """GET as admin; nothing if there is no good answer."""
        request = urllib.request.Request(url)
        handlers: list[Any] = [urllib.request.ProxyHandler({})]
        if url.startswith("https"):
            config = json.loads(self.kubeconfig.read_text(encoding="utf-8"))
            request.add_header("Authorization", f"Bearer {config['users'][0]['user']['token']}")
            context = ssl.create_default_context(cafile=str(self.layout.pki / "ca.crt"))
            handlers.append(urllib.request.HTTPSHandler(context=context))
        try:
            with urllib.request.build_opener(*handlers).open(request, timeout=5) as answer:
                body: bytes = answer.read()
                return body
        except OSError:  # urllib's errors are of this kind as well
            return None

    # -- evidence ------------------------------------------------------------------------------------------------

    def tail(self, name: str, lines: int = TAIL, offset: int = 0) -> str:
        """The end of a component's log."""
        path = self.layout.log / f"{name}.log"
        if not path.exists():
            return ""
        with path.open("rb") as file:
            file.seek(min(offset, path.stat().st_size))
            return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])

    def mark_logs(self) -> None:
        """Remember how long each log is: what a failing test shows begins here."""
        self.log_marks.clear()
        self.log_marks.update({path: path.stat().st_size for path in self.layout.log.iterdir()})

    def logs(self) -> Iterator[tuple[str, str]]:
        """What each process has written since `mark_logs`."""
        for path in sorted(self.layout.log.iterdir()):
            text = self.tail(path.stem, offset=self.log_marks.get(path, 0))
            if text:
                yield path.name, text


def _ready(status: dict[str, Any]) -> bool:
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions", []))
    return ready and status.get("allocatable", {}).get(RESOURCE) == str(GPUS)
