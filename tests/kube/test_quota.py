"""People's namespaces and quotas on a real cluster: what is counted, what is put back, what is not touched."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from policy_site import remove, settings

from slurmk8s.config import Config
from slurmk8s.errors import SetupError
from slurmk8s.kube import namespaces
from slurmk8s.kube.client import Kube
from slurmk8s.kube.faults import Refused

pytestmark = pytest.mark.kube

KIM = 4711
GUIDE_QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "user-quota"},
    "spec": {"hard": {"requests.cpu": "32", "requests.memory": "128Gi", "nvidia.com/gpu": "4"}},
}


@pytest.fixture
def config(testbed: Any, kube: Kube) -> Iterator[Config]:
    """The guide's quota."""
    found = settings(tuple(testbed.nodes), kubernetes={"quota": {}})
    yield found
    remove(found, kube)


def gpu_pod(number: int) -> dict[str, Any]:
    """A pod with one GPU that no scheduler places: a quota counts it when it is made."""
    amounts = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}
    container = {"name": "job", "image": "x", "resources": {"requests": amounts, "limits": amounts}}
    return {
        "metadata": {"name": f"slurm-job-{number}"},
        "spec": {"schedulerName": "nobody", "containers": [container], "automountServiceAccountToken": False},
    }


def make_pods(kube: Kube, namespace: str, count: int) -> None:
    import time

    for number in range(1, count + 1):
        deadline = time.monotonic() + 20
        while True:
            try:
                kube.create(f"/api/v1/namespaces/{namespace}/pods", gpu_pod(number))
                break
            except Refused as refused:
                young = "status unknown for quota" in refused.message or "service account" in refused.message
                if not young or time.monotonic() > deadline:  # a controller counts first, and makes the account
                    raise
                time.sleep(0.1)


def test_the_fifth_gpu_is_refused(config: Config, kube: Kube, wait_for: Callable[..., Any]) -> None:
    namespaces.keep(kube, config, KIM, "kim")
    name = config.kubernetes.namespace_of(KIM)
    # A quota that is younger than what the API server has heard of it charges nobody yet.
    quota = f"/api/v1/namespaces/{name}/resourcequotas/user-quota"
    wait_for(lambda: (kube.get(quota).get("status") or {}).get("hard"), "the quota to be counted")
    with pytest.raises(Refused, match=r"exceeded quota: user-quota, requested: requests.nvidia.com/gpu=1, used: .*=4"):
        make_pods(kube, name, 5)
    assert len(kube.items(f"/api/v1/namespaces/{name}/pods")) == 4


def test_with_the_guides_own_key_eight_are_admitted(config: Config, kube: Kube) -> None:
    """Kubernetes accepts `nvidia.com/gpu` as a quota's key and never counts it."""
    name = config.kubernetes.namespace_of(KIM)
    kube.create("/api/v1/namespaces", {"metadata": {"name": name}})
    kube.create(f"/api/v1/namespaces/{name}/resourcequotas", GUIDE_QUOTA)
    make_pods(kube, name, 8)
    assert len(kube.items(f"/api/v1/namespaces/{name}/pods")) == 8


def hard(kube: Kube, config: Config) -> dict[str, str]:
    path = f"/api/v1/namespaces/{config.kubernetes.namespace_of(KIM)}/resourcequotas/user-quota"
    amounts: dict[str, str] = kube.get(path)["spec"]["hard"]
    return amounts


def test_the_namespace_is_made_and_then_left_alone(config: Config, kube: Kube) -> None:
    assert namespaces.keep(kube, config, KIM, "kim")
    assert not namespaces.keep(kube, config, KIM, "kim")
    assert namespaces.keep_all(kube, config, {KIM: "kim"}) == {}
    assert hard(kube, config) == {"requests.cpu": "32", "requests.memory": "128Gi", "requests.nvidia.com/gpu": "4"}
    labels = kube.get(f"/api/v1/namespaces/{config.kubernetes.namespace_of(KIM)}")["metadata"]["labels"]
    assert labels["slurmk8s/cluster"] == config.cluster
    assert labels["slurmk8s/uid"] == str(KIM)
    assert labels["pod-security.kubernetes.io/enforce"] == "privileged"


def test_drift_is_put_back(config: Config, kube: Kube) -> None:
    namespaces.keep(kube, config, KIM, "kim")
    name = config.kubernetes.namespace_of(KIM)
    quota = f"/api/v1/namespaces/{name}/resourcequotas/user-quota"
    kube.patch(quota, {"spec": {"hard": {"requests.cpu": "64", "pods": "100"}}})
    kube.patch(f"/api/v1/namespaces/{name}", {"metadata": {"labels": {"slurmk8s/uid": "1", "team": "vision"}}})
    assert namespaces.keep_all(kube, config, {KIM: "kim"}) == {KIM: None}
    assert hard(kube, config)["requests.cpu"] == "32"
    assert hard(kube, config)["pods"] == "100"  # an admin's own
    labels = kube.get(f"/api/v1/namespaces/{name}")["metadata"]["labels"]
    assert (labels["slurmk8s/uid"], labels["team"]) == (str(KIM), "vision")
    kube.delete(quota)
    assert namespaces.keep(kube, config, KIM, "kim")
    assert hard(kube, config)["requests.cpu"] == "32"


def test_a_changed_configuration_changes_it(config: Config, kube: Kube) -> None:
    namespaces.keep(kube, config, KIM, "kim")
    quotas = {"quota": {}, "quotas": {"kim": {"cpu": 8, "memory": "", "gpus": 0}}}
    ours = config.kubernetes.model_dump(include={"namespace", "system_namespace"})
    other = settings(("a", "b"), cluster=config.cluster, kubernetes={**ours, **quotas})
    assert namespaces.keep(kube, other, KIM, "kim")
    assert hard(kube, config) == {"requests.cpu": "8"}
    assert not namespaces.keep(kube, other, KIM, "kim")


def test_a_namespace_that_is_not_ours_is_not_touched(config: Config, kube: Kube) -> None:
    """The guide's 8.1 typed by an admin, or another cluster's: the error says how to hand it over."""
    name = config.kubernetes.namespace_of(KIM)
    kube.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": {"team": "vision"}}})
    before = kube.get(f"/api/v1/namespaces/{name}")["metadata"]["resourceVersion"]
    with pytest.raises(SetupError, match="is not this cluster's, so it is not touched") as caught:
        namespaces.keep(kube, config, KIM, "kim")
    assert kube.get(f"/api/v1/namespaces/{name}")["metadata"]["resourceVersion"] == before
    outcome = namespaces.keep_all(kube, config, {KIM: "kim", 4712: "lee"})
    assert isinstance(outcome[KIM], SetupError)
    assert outcome[4712] is None
    key, _, value = caught.value.hint.rpartition(" ")[2].partition("=")
    kube.patch(f"/api/v1/namespaces/{name}", {"metadata": {"labels": {key: value}}})
    assert namespaces.keep(kube, config, KIM, "kim")
    assert kube.get(f"/api/v1/namespaces/{name}")["metadata"]["labels"]["team"] == "vision"
