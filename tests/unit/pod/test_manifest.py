"""Nothing that a person writes can become YAML: every value comes back as it went in."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmk8s.pod.labels import pod_name
from slurmk8s.pod.manifest import Pod, Volume, manifest, render

POD = Pod(
    name="slurm-job-7",
    hostname="slurm-job-7",
    labels={"app": "slurm-job", "job-id": "7"},
    image="nas-hub.local:5407/pytorch:2.0",
    container="job",
    uid=1000,
    gid=1001,
    groups=(1001, 2000),
    resources={"cpu": "4", "memory": "8192Mi"},
    environment={"HOME": "/home/alice"},
    volumes=(Volume("outputs", "/mnt/nas/results/7/outputs", "/workspace"),),
    priority=None,
    grace_seconds=5,
    pull_policy="Never",
)

HOSTILE = [
    "it's",
    'a "quoted" word',
    "two\nlines\r\n",
    "x: y\n  - privileged: true",
    "# no comment",
    "{{ pod.uid }} {% raw %}",
    "*anchor &x !!python/object",
    "한국어 🙂",
    "yes",
    "007",
    "",
    " leading",
    "tab\t\\n\\",
    "<a href='x'>&amp;",
    "\x7f\x85\u2028\u2029\ufeff\x00\x1b",
]


def test_the_whole_manifest() -> None:
    container = {
        "name": "job",
        "image": "nas-hub.local:5407/pytorch:2.0",
        "imagePullPolicy": "Never",
        "command": ["/bin/sh", "/slurmk8s/told/launcher.sh"],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "privileged": False,
            "capabilities": {"drop": ["ALL"]},
        },
        "resources": {
            "requests": {"cpu": "4", "memory": "8192Mi"},
            "limits": {"cpu": "4", "memory": "8192Mi"},
        },
        "env": [{"name": "HOME", "value": "/home/alice"}],
        "volumeMounts": [{"name": "outputs", "mountPath": "/workspace", "readOnly": False}],
    }
    assert manifest(POD) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "slurm-job-7", "labels": {"app": "slurm-job", "job-id": "7"}},
        "spec": {
            "restartPolicy": "Never",
            "hostname": "slurm-job-7",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 5,
            "securityContext": {
                "runAsUser": 1000,
                "runAsGroup": 1001,
                "runAsNonRoot": True,
                "supplementalGroups": [1001, 2000],
                "supplementalGroupsPolicy": "Strict",
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
            "volumes": [{"name": "outputs", "hostPath": {"path": "/mnt/nas/results/7/outputs", "type": "Directory"}}],
        },
    }


def test_a_priority_is_there_only_when_asked_for() -> None:
    assert manifest(replace(POD, priority="high-priority"))["spec"]["priorityClassName"] == "high-priority"


def hostile_pod(value: str) -> Pod:
    """The value in every place that a person or a site can reach."""
    return replace(
        POD,
        image=value,
        priority=value or None,
        labels={"app": value},
        environment={"A": value, "B": value},
        volumes=(Volume("v", value, value, read_only=True, kind="File"),),
    )


def check(value: str) -> None:
    shown = manifest(hostile_pod(value))
    container = shown["spec"]["containers"][0]
    assert shown["metadata"]["labels"] == {"app": value}
    assert container["image"] == value
    assert container["env"] == [{"name": "A", "value": value}, {"name": "B", "value": value}]
    assert container["volumeMounts"] == [{"name": "v", "mountPath": value, "readOnly": True}]
    assert shown["spec"]["volumes"] == [{"name": "v", "hostPath": {"path": value, "type": "File"}}]
    assert shown["spec"].get("priorityClassName", "") == value
    expected = {**manifest(POD)["spec"]["securityContext"]}
    assert shown["spec"]["securityContext"] == expected
    assert container["securityContext"] == manifest(POD)["spec"]["containers"][0]["securityContext"]


@pytest.mark.parametrize("value", HOSTILE)
def test_hostile_values_come_back_as_they_were(value: str) -> None:
    check(value)


@given(st.text(max_size=40))
@settings(max_examples=40, deadline=None)
def test_any_text_comes_back_as_it_was(value: str) -> None:
    check(value)


def test_the_yaml_is_readable() -> None:
    """People look at it with `kubectl get -o yaml` and in the agent's folder: Korean stays Korean."""
    text = render(replace(POD, environment={"NAME": "한국어"}))
    assert '- {name: "NAME", value: "한국어"}' in text


def test_the_second_node_of_a_job_adds_its_rank() -> None:
    assert [pod_name(7), pod_name(7, 0), pod_name(7, 2)] == ["slurm-job-7", "slurm-job-7", "slurm-job-7-2"]
