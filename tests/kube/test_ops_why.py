"""What `slurmk8s why` sees of a pod on a real cluster."""

import json
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from slurmk8s import config as configuration
from slurmk8s.config import Config
from slurmk8s.kube.connection import connect
from slurmk8s.ops import pod_stage, stage
from slurmk8s.ops.stage import Stage
from slurmk8s.slurm.client import Job

UID = 65534
JOB = Job(
    job_id=7,
    name="train",
    user="nobody",
    uid=UID,
    gid=UID,
    partition="gpu",
    account="",
    state="RUNNING",
    reason="",
    exit_code="0:0",
    comment="",
    admin_comment="",
    restarts=0,
    requeue=True,
    batch_host="",
    nodes=("gpu1",),
    work_folder="/",
    stdout="",
    stderr="",
    time_limit="1:00:00",
    submitted=None,
    started=None,
    ended=None,
    array_job_id=None,
    array_task_id=None,
)


@dataclass
class Person:
    """A namespace of its own, with one job's pod."""

    testbed: Any
    config: Config
    namespace: str

    def start(self, image: str, *command: str, **limits: str) -> None:
        """The pod of job 7."""
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "slurm-job-7", "namespace": self.namespace, "labels": {"app": "slurm-job"}},
            "spec": {
                "nodeName": self.testbed.nodes[0],
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 0,
                "containers": [
                    {"name": "job", "image": image, "command": command, "resources": {"limits": limits}},
                ],
            },
        }
        self.testbed.kubectl("create", "-f", "-", text=json.dumps(pod))

    def look(self) -> Stage:
        """As the command does."""
        return pod_stage.look(connect(self.testbed.kubeconfig), self.config, JOB)


@pytest.fixture
def person(testbed: Any) -> Iterator[Person]:
    prefix = f"why-{secrets.token_hex(3)}-"
    config = configuration.parse({"backend": "kubernetes", "kubernetes": {"namespace": f"{prefix}%u"}}, "test")
    namespace = config.kubernetes.namespace_of(UID)
    testbed.kubectl("create", "namespace", namespace)
    yield Person(testbed, config, namespace)
    testbed.kubectl("delete", "namespace", namespace, "--wait=false", "--now")


def test_no_pod_then_a_running_one_then_an_end(person: Person, testbed: Any, wait_for: Callable[..., Any]) -> None:
    none = person.look()
    assert (none.reached, none.words) == (stage.PREPARING, "its pod does not exist yet")
    person.start(testbed.image, "sh", "-c", "sleep 4; exit 3")
    wait_for(lambda: person.look().reached == stage.CONTAINER, "the container runs")
    found = person.look()
    assert found.words.startswith("its container runs since 20")
    assert found.evidence[0].startswith(f"pod {person.namespace}/slurm-job-7: Running, on {testbed.nodes[0]}")
    assert found.evidence[-1].startswith("event: Started: ")
    ended = wait_for(lambda: (now := person.look()).reached == stage.ENDED and now, "the container has ended")
    assert ended.words.startswith("its pod has ended (Error, exit code 3 after ")


def test_an_image_that_is_not_there_is_trouble_with_the_image_named(
    person: Person, testbed: Any, wait_for: Callable[..., Any]
) -> None:
    image = f"{testbed.image.rpartition('/')[0]}/nosuch:1"
    person.start(image, "true")
    found = wait_for(lambda: (now := person.look()).trouble and now, "the kubelet has tried")
    assert found.reached == stage.WAITING
    assert found.words.startswith("its pod does not start: ")
    assert image in found.words


def test_a_kubelet_that_refuses_the_pod_is_told_with_the_numbers(person: Person, testbed: Any, wait_for: Any) -> None:
    person.start(testbed.image, "true", cpu="400")
    found = wait_for(lambda: (now := person.look()).reached == stage.ENDED and now, "the kubelet has refused")
    assert found.words.startswith("its pod has ended: Kubernetes has no room for the job on ")
    assert found.step == "`slurmk8s cluster books` compares what Slurm and Kubernetes count."
    assert "OutOfcpu: " in found.evidence[0]


def test_a_server_that_is_away_leaves_the_pod_unknown(person: Person, testbed: Any, tmp_path: Any) -> None:
    wanted = json.loads(testbed.kubectl("config", "view", "--raw", "--minify", "-o", "json"))
    wanted["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    dead = tmp_path / "dead.kubeconfig"
    dead.write_text(json.dumps(wanted))
    found = pod_stage.look(connect(dead, 2), person.config, JOB)
    assert (found.reached, found.words) == (stage.UNKNOWN, "")
    assert "does not answer" in found.evidence[0]
