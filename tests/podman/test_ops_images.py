"""The site's images by `make -C images`, and `slurmk8s image` on one machine: real podman, a real registry."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from slurmk8s.local import confs
from slurmk8s.local.layout import Layout

ROOT = Path(__file__).resolve().parents[2]
BASE = "localhost/slurmk8s-test-base:1"


@dataclass(frozen=True)
class Registry:
    """A real registry; podman reaches it by the guide's name, too."""

    port: int
    conf: Path

    @property
    def name(self) -> str:
        """Its host and port."""
        return f"localhost:{self.port}"

    def get(self, path: str) -> Any:
        """An answer of its API."""
        with urllib.request.urlopen(f"http://{self.name}/v2/{path}", timeout=10) as answer:
            return json.load(answer)


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = Path(tempfile.mkdtemp(prefix="slurmk8s-registry-", dir="/var/tmp"))
    (folder / "registry.yml").write_text(confs.registry_config(Layout(folder), port))
    (folder / "registries.conf").write_text(confs.registries_conf(port))
    command = ["docker-registry", "serve", str(folder / "registry.yml")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    found = Registry(port, folder / "registries.conf")
    try:
        deadline = time.monotonic() + 20
        while not answers(found):
            assert time.monotonic() < deadline, "the registry does not answer"
            time.sleep(0.03)
        yield found
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder)


def answers(registry: Registry) -> bool:
    with contextlib.suppress(OSError):
        registry.get("_catalog")
        return True
    return False


@pytest.fixture(scope="module")
def pushed(podman: Any, registry: Registry) -> str:
    """What `make build push` says, with a local image in the place of Debian's."""
    podman.run("tag", podman.image, BASE)
    done = make(podman, "build", "push", f"REGISTRY={registry.name}", "IMAGES=base", f"BASE={BASE}", "PACKAGES=")
    assert done.returncode == 0, done.stderr
    # As on any other node: not here yet.
    podman.run("rmi", "--force", f"{registry.name}/base:1", f"{registry.name}/base:latest")
    return done.stdout


def make(podman: Any, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["make", "-C", str(ROOT / "images"), "TOOL=podman", "INSECURE=1", *arguments]
    return subprocess.run(command, env=podman.environment, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def slurmk8s(podman: Any, registry: Registry, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """`slurmk8s(*arguments)`, configured for this store and this registry."""
    config = tmp_path / "config.toml"
    settings = podman.config.model_copy(update={"registries_conf": registry.conf})
    lines = [f"{key} = {json.dumps(str(value))}" for key, value in settings.model_dump(exclude_none=True).items()]
    config.write_text("\n".join(["[podman]", *lines, ""]))

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "slurmk8s", *arguments],
            env={"PATH": os.environ["PATH"], "SLURMK8S_CONFIG": str(config)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


def test_the_base_image_is_built_and_pushed_with_its_tag_and_latest(registry: Registry, pushed: str) -> None:
    assert sorted(registry.get("base/tags/list")["tags"]) == ["1", "latest"]
    assert f"== pushing {registry.name}/base:1" in pushed


def test_a_tool_that_is_not_there_is_told_before_anything_is_built(podman: Any) -> None:
    done = make(podman, "build", "TOOL=nerdctl-safe-that-is-not-here")
    assert done.returncode == 2
    assert "install one, or name it: TOOL=" in done.stderr
    assert "building" not in done.stdout


def test_prepull_pulls_once_and_then_says_present(pushed: str, slurmk8s: Any, podman: Any) -> None:
    podman.run("rmi", "--force", "nas-hub.local:5407/base:1", check=False)
    first = slurmk8s("image", "prepull", "base:1")
    assert first.returncode == 0, first.stderr
    here = socket.gethostname().partition(".")[0]
    *_, last, summary = first.stdout.splitlines()
    assert last.startswith(f"{here}: nas-hub.local:5407/base:1: pulled in ")
    assert summary.startswith("1 pulled, in ")
    again = slurmk8s("image", "prepull", "nas-hub.local:5407/base:1")
    assert f"{here}: nas-hub.local:5407/base:1: present\n" in again.stdout


def test_what_was_pulled_is_what_was_built(pushed: str, slurmk8s: Any, podman: Any) -> None:
    assert slurmk8s("image", "prepull", "base:1").returncode == 0
    (shown,) = json.loads(podman.run("image", "inspect", "nas-hub.local:5407/base:1"))
    assert shown["Config"]["WorkingDir"] == "/workspace"
    assert {"PYTHONUNBUFFERED=1", "LANG=C.UTF-8"} <= set(shown["Config"]["Env"])
    assert podman.run("run", "--rm", "--network=none", "nas-hub.local:5407/base:1", "pwd").strip() == "/workspace"


def test_an_image_that_does_not_exist_fails_with_the_backends_sentence(pushed: str, slurmk8s: Any) -> None:
    done = slurmk8s("image", "prepull", "base:1", "no-such:1")
    assert done.returncode == 1
    assert "failed: The image nas-hub.local:5407/no-such:1 does not exist in nas-hub.local:5407." in done.stdout
    assert ", 1 failed, in " in done.stdout


def test_an_image_from_elsewhere_is_refused_before_anything_is_asked(slurmk8s: Any) -> None:
    done = slurmk8s("image", "prepull", "quay.io/evil:1")
    assert (done.returncode, done.stdout) == (2, "")
    assert "quay.io/evil:1 is not from an allowed registry" in done.stderr


def test_the_list_shows_the_sites_images_with_their_size(pushed: str, slurmk8s: Any) -> None:
    assert slurmk8s("image", "prepull", "base:1").returncode == 0
    header, *rows = slurmk8s("image", "list").stdout.splitlines()
    assert header.split() == ["NODE", "IMAGE", "SIZE"]
    names = [row.split()[1] for row in rows]
    assert "nas-hub.local:5407/base:1" in names
    assert BASE not in names
    assert BASE in slurmk8s("image", "list", "--all").stdout


def test_another_node_cannot_be_asked_about(slurmk8s: Any) -> None:
    done = slurmk8s("image", "list", "--node", "node17")
    assert done.returncode == 2
    assert "sees its own machine only" in done.stderr
