"""`slurmk8s image` on a real cluster: every node gets the image, and nothing of ours stays behind."""

import io
import json
import os
import secrets
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ABSENT = "no-such-image:1"


class Site:
    """A configuration with a namespace of its own, as strict as Pod Security can be."""

    def __init__(self, testbed: Any, folder: Path) -> None:
        self.testbed = testbed
        self.namespace = f"prepull-{secrets.token_hex(3)}"
        registry = testbed.image.split("/")[0]
        self.config = folder / "config.toml"
        self.config.write_text(
            'backend = "kubernetes"\n'
            f'[images]\nregistry = "{registry}"\nallowed = ["{registry}/", "registry.invalid/"]\n'
            f'[kubernetes]\nsystem_namespace = "{self.namespace}"\n'
        )

    @property
    def command(self) -> list[str]:
        """The program."""
        return [sys.executable, "-m", "slurmk8s", "image"]

    @property
    def environment(self) -> dict[str, str]:
        """Its environment: the admin's credential, our configuration."""
        own = {"KUBECONFIG": str(self.testbed.kubeconfig), "SLURMK8S_CONFIG": str(self.config)}
        return {"PATH": os.environ["PATH"], **own}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Call the command."""
        command = [*self.command, *arguments]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=240, check=False)

    def pods(self) -> list[str]:
        """Names of the pods in our namespace."""
        return str(self.testbed.kubectl("get", "pods", "-n", self.namespace, "-o", "name")).split()


@pytest.fixture
def site(testbed: Any, tmp_path: Path) -> Iterator[Site]:
    found = Site(testbed, tmp_path)
    testbed.kubectl("create", "namespace", found.namespace)
    testbed.kubectl("label", "namespace", found.namespace, "pod-security.kubernetes.io/enforce=restricted")
    try:
        yield found
    finally:
        testbed.kubectl("delete", "namespace", found.namespace, "--wait=false", check=False)


@pytest.fixture
def fresh(testbed: Any) -> str:
    """An image that no node has yet, and that has no program at all: nothing in it can be started."""
    if not testbed.own:
        pytest.skip("needs the project's own test cluster (an image is pushed): unset KUBECONFIG to run it")
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        text = secrets.token_hex(1 << 16).encode()
        entry = tarfile.TarInfo("readme")
        entry.size = len(text)
        tar.addfile(entry, io.BytesIO(text))
    name = f"empty:{secrets.token_hex(4)}"
    testbed.own.push(made.getvalue(), name)
    return name


def test_every_node_pulls_once_and_then_has_it(site: Site, fresh: str, wait_for: Callable[..., Any]) -> None:
    """The image has no program, so its container cannot start: that is no matter here."""
    first = site.run("prepull", fresh)
    assert first.returncode == 0, first.stdout + first.stderr
    for node in site.testbed.nodes:
        assert f"/{fresh}: pulled in " in next(
            line for line in first.stdout.splitlines()[::-1] if line.startswith(f"{node}:")
        )
    count = len(site.testbed.nodes)
    assert first.stdout.splitlines()[-1].startswith(f"{count} pulled, in ")
    again = site.run("prepull", fresh)
    assert again.stdout.splitlines()[-1].startswith(f"{count} present, in ")
    wait_for(lambda: not site.pods(), "no pod is left")


def test_one_node_can_be_named(site: Site, fresh: str) -> None:
    node = site.testbed.nodes[-1]
    done = site.run("prepull", "--node", node, fresh)
    assert done.returncode == 0, done.stderr
    assert {line.split(":")[0] for line in done.stdout.splitlines()[:-1]} == {node}


def test_an_image_that_does_not_exist_fails_on_each_node_with_a_sentence(
    site: Site, wait_for: Callable[..., Any]
) -> None:
    done = site.run("prepull", ABSENT)
    assert done.returncode == 1
    failed = [line for line in done.stdout.splitlines() if "failed: The image" in line and "does not exist" in line]
    assert len(failed) == len(site.testbed.nodes), done.stdout
    assert f"{len(failed)} failed, in " in done.stdout
    wait_for(lambda: not site.pods(), "no pod is left")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ending_it_half_way_leaves_no_pod(site: Site, wait_for: Callable[..., Any], number: int) -> None:
    """The registry's name cannot be found, so the pull would be tried again for minutes."""
    command = [*site.command, "prepull", "registry.invalid/x:1"]
    with subprocess.Popen(
        command, env=site.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout
        for line in process.stdout:
            if "does not answer" in line or "could not be pulled" in line:
                break
        assert site.pods()
        process.send_signal(number)
        process.communicate(timeout=60)
    assert process.returncode == 130
    wait_for(lambda: not site.pods(), "no pod is left")


def test_without_the_namespace_it_says_what_to_apply(site: Site, testbed: Any) -> None:
    site.config.write_text(site.config.read_text().replace(site.namespace, "no-such-namespace"))
    done = site.run("prepull", testbed.image)
    assert done.returncode == 2
    assert "Kubernetes has no namespace no-such-namespace." in done.stderr
    assert "slurmk8s cluster rbac" in done.stderr


def test_the_list_is_what_the_kubelets_report(site: Site, fresh: str, kube: Any, wait_for: Callable[..., Any]) -> None:
    """A kubelet reports its images with its node's status, some ten seconds later."""
    node = site.testbed.nodes[0]
    assert site.run("prepull", "--node", node, fresh).returncode == 0
    wait_for(lambda: f"/{fresh}" in str(kube.get(f"/api/v1/nodes/{node}")["status"]["images"]), "it is reported", 120)
    (row,) = (line.split() for line in site.run("list").stdout.splitlines() if f"/{fresh}" in line)
    assert row[0] == node
    assert row[3] == "KiB"
    other = site.run("list", "--node", site.testbed.nodes[-1])
    assert fresh not in other.stdout or len(site.testbed.nodes) == 1


def test_it_reads_no_more_than_it_needs(site: Site, testbed: Any) -> None:
    """A node that does not exist is found out before any pod is made."""
    done = site.run("prepull", "--node", "no-such-node", testbed.image)
    assert done.returncode == 2
    assert "Kubernetes has no node 'no-such-node'" in done.stderr
    assert json.loads(testbed.kubectl("get", "events", "-n", site.namespace, "-o", "json"))["items"] == []
