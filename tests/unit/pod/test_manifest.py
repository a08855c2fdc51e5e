"""Nothing that a person writes can become YAML: every value comes back as it went in."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmk8s.labels import PodName
from slurmk8s.pod.manifest import Claim, Files, HostPath, Nfs, Pod, Scratch, Volume, files, manifest, render

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
    volumes=(Volume("outputs", HostPath("/mnt/nas/results/7/outputs"), "/workspace"),),
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
        volumes=(Volume("v", HostPath(value, "File"), value, read_only=True),),
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
    assert [str(PodName(7, 1000)), str(PodName(7, 1000, 2))] == ["slurm-job-7", "slurm-job-7-2"]


def test_what_only_kubernetes_understands_is_there_when_given() -> None:
    shown = manifest(
        replace(
            POD,
            namespace="user-1000",
            annotations={"slurmk8s/job-name": "학습 #1: {x}"},
            node="kube1",
            node_selector={"disk": "ssd"},
            tolerations=({"key": "slurmk8s", "operator": "Exists"},),
            runtime_class="nvidia",
            pull_secrets=("hub",),
            before_stop=("/bin/sh", "-c", "true"),
        )
    )
    spec = shown["spec"]
    assert shown["metadata"]["namespace"] == "user-1000"
    assert shown["metadata"]["annotations"] == {"slurmk8s/job-name": "학습 #1: {x}"}
    assert (spec["nodeName"], spec["nodeSelector"], spec["runtimeClassName"]) == ("kube1", {"disk": "ssd"}, "nvidia")
    assert spec["tolerations"] == [{"key": "slurmk8s", "operator": "Exists"}]
    assert spec["imagePullSecrets"] == [{"name": "hub"}]
    assert spec["containers"][0]["lifecycle"] == {"preStop": {"exec": {"command": ["/bin/sh", "-c", "true"]}}}


def test_every_kind_of_volume() -> None:
    told = Files({"passwd": "root:x:0:0", "group": "root:x:0:"})
    pod = replace(
        POD,
        volumes=(
            Volume("nfs", Nfs("nas", "/export"), "/nas", read_only=True),
            Volume("claim", Claim("nas"), "/claim"),
            Volume("shm", Scratch(1024, memory=True), "/dev/shm"),
            Volume("home", Scratch(), "/home/alice"),
            Volume("told", told, "/told", read_only=True),
            Volume("told", told, "/etc/passwd", read_only=True, sub_path="passwd"),
        ),
    )
    spec = manifest(pod)["spec"]
    assert spec["volumes"] == [
        {"name": "nfs", "nfs": {"server": "nas", "path": "/export", "readOnly": True}},
        {"name": "claim", "persistentVolumeClaim": {"claimName": "nas", "readOnly": False}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1024"}},
        {"name": "home", "emptyDir": {}},
        {"name": "told", "configMap": {"name": "slurm-job-7"}},
    ]
    mounts = spec["containers"][0]["volumeMounts"]
    assert mounts[-1] == {"name": "told", "mountPath": "/etc/passwd", "readOnly": True, "subPath": "passwd"}
    assert all("subPath" not in mount for mount in mounts[:-1])
    assert files(pod) == {"passwd": "root:x:0:0", "group": "root:x:0:"}
    assert files(POD) == {}
