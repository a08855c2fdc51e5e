"""Every way in which the API server refuses a job's pod, produced for real, ends in the sentence that people get."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kube.failing import Json, Stage, refused, wait
from testbed.shared import Shared

from slurmk8s.errors import ClusterFault, PersonFault, SlurmK8sError
from slurmk8s.kube.connection import connect
from slurmk8s.pod.kubernetes_refusals import QuotaFull

POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"


@pytest.fixture(scope="module")
def stage(_testbed: Shared, kube: Any) -> Iterator[Stage]:
    with Stage(kube, _testbed.image, _testbed.nodes[0]) as made:
        yield made


def told(fault: SlurmK8sError, kind: type[SlurmK8sError], *said: str) -> None:
    assert type(fault) is kind, fault
    assert "\n" not in str(fault)
    for words in said:
        assert words in str(fault)
    print(f"{type(fault).__name__}: {fault}")


def test_a_full_quota_is_waited_for_and_a_job_beyond_it_is_not(kube: Any, testbed: Shared) -> None:
    with Stage(kube, testbed.image, testbed.nodes[0]) as stage:
        path = f"/api/v1/namespaces/{stage.namespace}/resourcequotas"
        hard = {"requests.cpu": "100m", "requests.memory": "64Mi"}
        kube.create(path, {"metadata": {"name": "quota"}, "spec": {"hard": hard}})
        counted = f"{path}/quota"
        wait(lambda: kube.get(counted).get("status", {}).get("hard"), "the quota is counted")
        small = {"limits": {"cpu": "60m", "memory": "16Mi"}}
        stage.pod("first", resources=small)
        fault = stage.refused("second", resources=small)
        told(fault, QuotaFull, f"The quota of {stage.namespace} is full (CPUs: 60m needed, 60m of 100m in use).")
        large = {"limits": {"cpu": "10m", "memory": "1Gi"}}
        fault = stage.refused("third", resources=large)
        told(fault, PersonFault, "memory: 1Gi needed, 16Mi of 64Mi in use")
        unsaid = {"limits": {"cpu": "10m"}}
        told(stage.refused("fourth", resources=unsaid), PersonFault, "requests.memory", "#SBATCH --mem")


def test_a_policy_that_does_not_allow_it(stage: Stage) -> None:
    """Admission refused, in the policy's own words."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    words = "jobs of this namespace are named after their numbers"
    policy: Json = {
        "metadata": {"name": stage.namespace},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "!object.metadata.name.startsWith('unwanted')", "message": words}],
        },
    }
    where = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": stage.namespace}}}
    spec = {"policyName": stage.namespace, "validationActions": ["Deny"], "matchResources": where}
    stage.kube.create(POLICIES, policy)
    stage.kube.create(BINDINGS, {"metadata": {"name": stage.namespace}, "spec": spec})
    try:
        numbers = iter(range(1000))

        def asked() -> SlurmK8sError | None:
            try:  # a policy takes a moment to be known to the API server
                return stage.refused(f"unwanted-{next(numbers)}")
            except AssertionError:
                return None

        told(
            wait(asked, "the policy holds"),
            ClusterFault,
            f"the policy {stage.namespace} does not allow the pod: {words}.",
        )
    finally:
        stage.kube.delete(f"{BINDINGS}/{stage.namespace}")
        stage.kube.delete(f"{POLICIES}/{stage.namespace}")


def test_a_namespace_that_is_not_there_yet(kube: Any, stage: Stage) -> None:
    fault = refused(kube, "user-4294967294", stage.manifest("early"))
    told(fault, ClusterFault, "The namespace user-4294967294 of user 1000 is not there yet.", "slurm-job-watcher")


def test_a_namespace_that_is_being_deleted(kube: Any, testbed: Shared) -> None:
    with Stage(kube, testbed.image, testbed.nodes[0]) as stage:
        path = f"/api/v1/namespaces/{stage.namespace}/configmaps"
        kube.create(path, {"metadata": {"name": "last", "finalizers": ["slurmk8s.test/hold"]}})
        kube.delete(f"/api/v1/namespaces/{stage.namespace}")
        try:
            told(stage.refused("late"), ClusterFault, f"The namespace {stage.namespace} is being deleted.")
        finally:
            kube.patch(f"{path}/last", {"metadata": {"finalizers": None}})


def test_a_namespace_whose_account_is_not_there_yet(stage: Stage) -> None:
    fault = stage.refused("unborn", serviceAccountName="nobody")
    told(fault, ClusterFault, f"The namespace {stage.namespace} is not ready yet")


def test_a_namespace_that_allows_no_paths_of_the_host(kube: Any, testbed: Shared) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    with Stage(kube, testbed.image, testbed.nodes[0], labels) as stage:
        volume = {"name": "mount-0", "hostPath": {"path": "/mnt", "type": "Directory"}}
        fault = stage.refused("mounting", volumes=[volume])
        told(fault, ClusterFault, f"the namespace {stage.namespace} does not allow the pod", "hostPath")


def test_a_priority_that_there_is_not(stage: Stage) -> None:
    fault = stage.refused("urgent", priorityClassName="no-such-priority")
    told(fault, PersonFault, "There is no PriorityClass no-such-priority in Kubernetes.", "#K8S_PRIORITY")


def test_a_runtime_class_that_there_is_not(stage: Stage) -> None:
    fault = stage.refused("runtime", runtimeClassName="no-such-class")
    told(fault, ClusterFault, "There is no RuntimeClass no-such-class in Kubernetes.")


def test_a_range_that_does_not_allow_so_much(kube: Any, testbed: Shared) -> None:
    with Stage(kube, testbed.image, testbed.nodes[0]) as stage:
        limit = {"type": "Container", "max": {"cpu": "1"}}
        path = f"/api/v1/namespaces/{stage.namespace}/limitranges"
        kube.create(path, {"metadata": {"name": "range"}, "spec": {"limits": [limit]}})
        fault = stage.refused("large", resources={"limits": {"cpu": "2"}})
        told(fault, PersonFault, "LimitRange", "maximum cpu usage per Container is 1, but limit is 2")


def test_a_pod_that_is_wrong_is_our_own_fault(stage: Stage) -> None:
    fault = stage.refused("wrong", restartPolicy="Sometimes")
    told(fault, SlurmK8sError, "does not accept the pod", "Sometimes", "bug of slurmk8s")


def test_a_credential_that_may_not_make_pods(stage: Stage, testbed: Shared, tmp_path: Path) -> None:
    account = f"/api/v1/namespaces/{stage.namespace}/serviceaccounts/default"
    token = stage.kube.create(f"{account}/token", {"spec": {"expirationSeconds": 600}})["status"]["token"]
    config = json.loads(testbed.kubectl("config", "view", "--raw", "--minify", "-o", "json"))
    config["users"][0]["user"] = {"token": token}
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config), encoding="utf-8")
    poor = connect(path)
    fault = refused(poor, stage.namespace, stage.manifest("poor"))
    told(fault, ClusterFault, "credential may not make pods", "`slurmk8s cluster rbac`")
    config["users"][0]["user"] = {"token": "not.a.token"}
    path.write_text(json.dumps(config), encoding="utf-8")
    fault = refused(connect(path), stage.namespace, stage.manifest("poor"))
    told(fault, ClusterFault, "does not accept this node's credential")
