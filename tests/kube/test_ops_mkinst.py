"""`mkinst` on a real cluster: a pod by hand has a job's rights, and is nobody's but the one who asked for it."""

import asyncio
import json
import os
import pwd
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from slurmk8s import labels
from slurmk8s.config import load
from slurmk8s.errors import SetupError
from slurmk8s.kube.connection import connect
from slurmk8s.kube.namespaces import keep
from slurmk8s.labels import PodName
from slurmk8s.ops.instance import Wanted, pod_of
from slurmk8s.pod.kubernetes import Kubernetes
from slurmk8s.pod.manifest import Files, Pod

PERSON, UID = "nobody", 65534


class Site:
    """A configuration whose namespaces no other test uses."""

    def __init__(self, testbed: Any, folder: Path) -> None:
        self.testbed = testbed
        self.nas = folder / "nas"
        self.nas.mkdir(mode=0o777)
        self.nas.chmod(0o777)
        self._prefix = f"inst-{secrets.token_hex(3)}-"
        self.namespace = f"{self._prefix}{UID}"
        self.path = folder / "config.toml"
        self.write()

    def write(self, **quota: int) -> None:
        """The configuration, with this quota."""
        registry = self.testbed.image.split("/")[0]
        limits = "".join(f"{key} = {value}\n" for key, value in quota.items())
        self.path.write_text(
            f'backend = "kubernetes"\n[nas]\nroot = "{self.nas}"\nrequire_mountpoint = false\n'
            f'[images]\nregistry = "{registry}"\nallowed = ["{registry}/"]\n'
            f'[kubernetes]\nnamespace = "{self._prefix}%u"\nscratch = "100Mi"\n[kubernetes.quota]\n{limits}'
        )

    def mkinst(self, *arguments: str, size: str = "cpu") -> subprocess.CompletedProcess[str]:
        """Call the command for our person."""
        own = {"KUBECONFIG": str(self.testbed.kubeconfig), "SLURMK8S_CONFIG": str(self.path)}
        return subprocess.run(
            [sys.executable, "-m", "slurmk8s", "mkinst", size, "std", PERSON, *arguments],
            env={"PATH": os.environ["PATH"], **own},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )

    def make(self, *arguments: str, size: str = "cpu") -> subprocess.CompletedProcess[str]:
        """The guide's command, with small numbers."""
        small = ("--job-id", "12345", "--image", self.testbed.image, "--cpu", "1", "--memory", "64M")
        return self.mkinst(*small, *arguments, size=size)

    def kubectl(self, *arguments: str) -> str:
        """kubectl in our person's namespace."""
        return str(self.testbed.kubectl("-n", self.namespace, *arguments))

    def inside(self, script: str) -> str:
        """What a shell in the pod prints."""
        return self.kubectl("exec", "instance-12345", "--", "/bin/sh", "-c", script).strip()

    def names(self, kind: str) -> list[str]:
        """Objects of a kind, by name."""
        return [name.partition("/")[2] for name in self.kubectl("get", kind, "-o", "name").split()]


@pytest.fixture
def site(testbed: Any) -> Iterator[Site]:
    if not testbed.own:
        pytest.skip("needs the project's own test cluster (nodes see a folder of this machine): unset KUBECONFIG")
    folder = Path(tempfile.mkdtemp(prefix="slurmk8s-mkinst-", dir="/var/tmp"))
    folder.chmod(0o755)
    found = Site(testbed, folder)
    try:
        yield found
    finally:
        testbed.kubectl("delete", "namespace", found.namespace, "--ignore-not-found", "--wait=false", check=False)
        shutil.rmtree(folder)


def test_the_guides_command_makes_a_pod_to_work_in(site: Site) -> None:
    done = site.make()
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"kubectl exec -it -n {site.namespace} instance-12345 -- /bin/sh\n"
    assert site.inside("id -u; id -G; id -un; echo $HOME").split() == [str(UID), "65534", PERSON, "/nonexistent"]
    site.inside(f"echo here >{site.nas}/from-the-pod; echo kept >/workspace/x; echo >/dev/shm/y; echo >$HOME/z")
    assert (site.nas / "from-the-pod").read_text() == "here\n"
    assert (site.nas / "from-the-pod").stat().st_uid == UID
    pod = json.loads(site.kubectl("get", "pod", "instance-12345", "-o", "json"))
    assert pod["metadata"]["labels"]["app"] == "slurmk8s-instance"
    assert pod["spec"]["containers"][0]["resources"]["limits"]["memory"] == "64Mi"


def test_the_namespace_and_the_quota_are_the_persons(site: Site, wait_for: Callable[..., Any]) -> None:
    assert site.make().returncode == 0

    def counted() -> tuple[str | None, str | None]:
        (quota,) = json.loads(site.kubectl("get", "resourcequota", "-o", "json"))["items"]
        both = (quota.get("status", {}).get(kind, {}).get("requests.cpu") for kind in ("hard", "used"))
        return (next(both), next(both))

    wait_for(lambda: counted() == ("32", "1"), "the quota counts the instance")


def test_a_second_of_the_same_name_is_refused_and_deleting_leaves_nothing(
    site: Site, wait_for: Callable[..., Any]
) -> None:
    assert site.make().returncode == 0
    again = site.make()
    assert again.returncode == 2
    assert "There is a pod instance-12345" in again.stderr
    assert site.make("--delete").returncode == 0
    assert site.names("pods") == []
    wait_for(lambda: "instance-12345" not in site.names("configmaps"), "its files go with it")
    gone = site.make("--delete")
    assert (gone.returncode, gone.stderr) == (0, f"There is no instance-12345 in {site.namespace}.\n")


def test_a_pod_that_mkinst_did_not_make_is_left_alone(site: Site) -> None:
    assert site.make().returncode == 0
    site.kubectl("label", "--overwrite", "pod", "instance-12345", "app=mine")
    done = site.make("--delete")
    assert done.returncode == 2
    assert "was not made by mkinst" in done.stderr
    assert site.names("pods") == ["instance-12345"]


def test_the_quota_applies(site: Site) -> None:
    site.write(cpu=1)
    done = site.mkinst("--job-id", "12345", "--image", site.testbed.image, "--cpu", "2", "--memory", "64M")
    assert done.returncode == 2
    assert "quota" in done.stderr
    assert site.names("pods") == []


def test_an_image_that_does_not_exist_is_told_and_nothing_stays(site: Site) -> None:
    done = site.mkinst("--job-id", "12345", "--image", "no-such-image:1", "--cpu", "1", "--memory", "64M")
    assert done.returncode == 2
    assert "no-such-image:1 does not exist" in done.stderr
    assert site.names("pods") == []


def test_one_that_fits_nowhere_says_so_and_waits(site: Site) -> None:
    site.write(cpu=0)
    done = site.mkinst("--image", site.testbed.image, "--cpu", "9000", "--memory", "64M", "--wait", "5")
    assert done.returncode == 2
    assert "No node can take it: " in done.stderr
    assert site.names("pods") == [f"instance-{PERSON}"]


def test_one_gpu_is_the_device_plugins(site: Site) -> None:
    nodes = json.loads(site.testbed.kubectl("get", "nodes", "-o", "json"))["items"]
    if not any(int(node["status"]["allocatable"].get("nvidia.com/gpu", 0)) for node in nodes):
        pytest.skip("needs a node with nvidia.com/gpu")
    done = site.make(size="gpu1")
    assert done.returncode == 0, done.stderr
    assert site.inside("echo $NVIDIA_VISIBLE_DEVICES") not in ("", "void", "all")


# A site's own program makes the pods of jobs.


@pytest.fixture
def backend(site: Site, tmp_path: Path) -> Callable[[str], tuple[Kubernetes, Pod]]:
    """`backend(script)`: the agent's backend with this program as mkinst, and the pod of job 7."""

    def make(script: str) -> tuple[Kubernetes, Pod]:
        program = tmp_path / "mkinst"
        program.write_text(f"#!/bin/sh\nPATH={site.testbed.own.layout.folder}/bin:$PATH\n{script}\n")
        program.chmod(0o755)
        node = site.testbed.nodes[0]
        config = load(site.path)
        settings = config.kubernetes.model_copy(update={"mkinst": program, "kubeconfig": site.testbed.kubeconfig})
        config = config.model_copy(update={"kubernetes": settings})
        wanted = Wanted("cpu", "std", pwd.getpwnam(PERSON), 7, site.testbed.image, 1, "64M", node)
        own = {labels.APP: labels.APP_VALUE, labels.NODE: node, labels.ATTEMPT: "0"}
        pod = pod_of(wanted, config)
        kept = tuple(volume for volume in pod.volumes if not isinstance(volume.source, Files))
        pod = replace(pod, name="slurm-job-7", labels={**pod.labels, **own}, volumes=kept)
        keep(connect(site.testbed.kubeconfig), config, UID, PERSON)
        return Kubernetes(config, node), pod

    return make


async def lived(backend: Kubernetes, pod: Pod) -> None:
    """Make the pod, see it run, make it again, remove it."""
    name = PodName(7, UID)
    watch = asyncio.create_task(backend.serve())
    try:
        await backend.create(pod)
        await backend.started(name, pod.image, lambda _: None)
        await backend.create(pod)  # as after a lost answer: it is there
        found = await backend.find(name)
        assert found
        assert found.running
        await backend.delete(name)
        assert await backend.find(name) is None
    finally:
        watch.cancel()
        await asyncio.gather(watch, return_exceptions=True)


def test_the_agent_has_a_sites_own_program_make_the_pod(site: Site, backend: Any, tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    made = backend(f'echo "$*" >>{calls}; exec kubectl create -f -')
    asyncio.run(lived(*made))
    wanted = f"cpu std {PERSON} --job-id 7 --image {site.testbed.image} --cpu 1 --memory 64M\n"
    assert calls.read_text() == wanted  # once


def test_a_program_that_makes_nothing_is_found_out(backend: Any) -> None:
    made, pod = backend("exit 0")
    with pytest.raises(SetupError, match="ended well, but there is no pod slurm-job-7"):
        asyncio.run(made.create(pod))
