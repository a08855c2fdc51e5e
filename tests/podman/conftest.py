"""A podman store of the tests' own with the sample image in it: nothing of the machine's podman is touched."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from slurmk8s.config import Podman
from slurmk8s.local import confs, images
from slurmk8s.local.layout import Layout


@dataclass(frozen=True)
class Store:
    """One podman store."""

    folder: Path
    environment: dict[str, str]
    image: str = images.SAMPLE

    @property
    def config(self) -> Podman:
        """The `[podman]` section that means this store."""
        return Podman(
            network="none",
            containers_conf=Path(self.environment["CONTAINERS_CONF"]),
            storage_conf=Path(self.environment["CONTAINERS_STORAGE_CONF"]),
            registries_conf=Path(self.environment["CONTAINERS_REGISTRIES_CONF"]),
        )

    def run(self, *arguments: str, check: bool = True, data: bytes | None = None) -> str:
        """The output of podman."""
        done = subprocess.run(
            ["podman", *arguments], env=self.environment, input=data, capture_output=True, timeout=60, check=False
        )
        if check and done.returncode:
            raise AssertionError(f"podman {' '.join(arguments)}: {done.stderr.decode(errors='replace')}")
        return done.stdout.decode(errors="replace")

    def add_image(self, tar: Path, name: str) -> None:
        """Make a root file system known as an image."""
        self.run("import", "--quiet", "--change", f"ENV PATH={images.PATH}", str(tar), name)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say at once what is missing, instead of one failure per test."""
    if os.geteuid() != 0 and any("podman" in item.path.parts for item in items):
        pytest.exit("The tests with real podman need root. Run `make test`.", returncode=1)


@pytest.fixture(scope="session")
def podman() -> Iterator[Store]:
    """The store, emptied and gone at the end."""
    layout = Layout(Path(tempfile.mkdtemp(prefix="slurmk8s-podman-", dir="/var/tmp")))
    layout.folder.chmod(0o755)
    layout.etc.mkdir()
    # Locks of its own: the default ones are one piece of shared memory for the whole machine.
    files = {
        "containers.conf": confs.containers_conf(layout).replace("[engine]\n", '[engine]\nlock_type = "file"\n'),
        "storage.conf": confs.storage_conf(layout),
        "registries.conf": confs.registries_conf(1),  # nothing listens there: an image that is not here is unreachable
    }
    for name, text in files.items():
        (layout.etc / name).write_text(text, encoding="utf-8")
    store = Store(layout.folder, {"PATH": images.PATH, "HOME": "/root", **layout.podman_environment})
    tar = layout.folder / "sample.tar"
    tar.write_bytes(images.busybox_tar())
    try:
        store.add_image(tar, store.image)
        yield store
    finally:
        store.run("pod", "rm", "--all", "--force", "--time=0", check=False)
        store.run("rm", "--all", "--force", "--time=0", check=False)
        for place in (layout.containers, layout.run / "containers"):
            subprocess.run(["umount", "-l", str(place / "overlay")], stderr=subprocess.DEVNULL, check=False)
        shutil.rmtree(layout.folder)
