"""A site whose NAS is a claim: no pod needs a path of its node, so Pod Security's `restricted` itself is enforced."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from policy_site import RECORD, Site, job, set_up, settings

from slurmk8s.kube import namespaces
from slurmk8s.kube.client import Kube
from slurmk8s.kube.faults import Refused

pytestmark = pytest.mark.kube

CLAIMS = {
    "nas": {"source": "/mnt/nas", "target": "/mnt/nas", "claim": "nas"},
    "datasets": {"source": "/srv/datasets", "target": "/mnt/datasets", "claim": "datasets", "read_only": True},
    "models": {"source": "/srv/models", "target": "/mnt/models", "claim": "models"},
}


@pytest.fixture(scope="module")
def site(_testbed: Any, kube: Kube, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    nodes = tuple(_testbed.nodes)
    with set_up(settings(nodes, mounts=CLAIMS), kube, nodes, tmp_path_factory.mktemp("claims")) as found:
        yield found


def test_our_pod_is_admitted_where_restricted_is_enforced(site: Site, kube: Kube) -> None:
    namespace = kube.get(f"/api/v1/namespaces/{site.namespace()}")
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    body = site.manifest()
    assert not any("hostPath" in volume for volume in body["spec"]["volumes"])
    assert site.agent().create(site.pods(), body, dryRun="All")


def test_not_even_an_admin_brings_a_path_of_the_node_there(site: Site, kube: Kube) -> None:
    body = copy.deepcopy(site.manifest())
    body["spec"]["volumes"].append({"name": "host", "hostPath": {"path": "/", "type": "Directory"}})
    with pytest.raises(Refused, match="violates PodSecurity"):
        kube.create(site.pods(), body, dryRun="All")


@pytest.mark.parametrize(
    ("source", "changes", "words"),
    [
        ({"persistentVolumeClaim": {"claimName": "other"}}, {}, "a claim or a ConfigMap"),
        ({"hostPath": {"path": "/mnt/nas", "type": "Directory"}}, {}, "violates PodSecurity|a path of the node"),
        ({"configMap": {"name": "slurm-job-8"}}, {}, "a claim or a ConfigMap"),
        ({"persistentVolumeClaim": {"claimName": "nas"}}, {"subPath": "home/lee"}, "a read-only mount"),
        ({"persistentVolumeClaim": {"claimName": "datasets"}}, {"readOnly": False}, "a read-only mount"),
    ],
)
def test_foreign_claims_and_parts_of_one_are_refused(
    site: Site, source: dict[str, Any], changes: dict[str, Any], words: str
) -> None:
    body = copy.deepcopy(site.manifest())
    body["spec"]["volumes"].append({"name": "evil", **source})
    body["spec"]["containers"][0]["volumeMounts"].append({"name": "evil", "mountPath": "/x", **changes})
    with pytest.raises(Refused, match=words):
        site.agent().create(site.pods(), body, dryRun="All")


def refusal(action: Any, *arguments: Any) -> str:
    with pytest.raises(Refused) as caught:
        action(*arguments)
    return caught.value.message


def files(site: Site, number: int, node: str = "slurm1", **more: str) -> dict[str, Any]:
    own = {"app": "slurm-job", "slurmk8s/cluster": site.config.cluster, "slurmk8s/node": node, **more}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"slurm-job-{number}", "labels": own},
        "data": {"launcher.sh": "exit 0\n"},
    }


def test_an_agent_writes_and_removes_its_own_files_only(site: Site, kube: Kube) -> None:
    """A file that a pod on another node is about to run must not be this node's to change."""
    agent, folder = site.agent(), f"/api/v1/namespaces/{site.namespace()}/configmaps"
    own, other = files(site, 21), files(site, 22, "slurm2")
    assert agent.apply(f"{folder}/slurm-job-21", own)
    kube.apply(f"{folder}/slurm-job-22", other)
    words = "carry the labels of this cluster and node"
    assert words in refusal(agent.apply, f"{folder}/slurm-job-22", files(site, 22))
    assert words in refusal(agent.apply, f"{folder}/slurm-job-23", files(site, 23, "slurm2"))
    assert words in refusal(agent.apply, f"{folder}/slurm-job-23", files(site, 23, **{"slurmk8s/cluster": "x"}))
    assert words in refusal(agent.apply, f"{folder}/web", files(site, 23) | {"metadata": {"name": "web"}})
    assert "own node" in refusal(agent.delete, f"{folder}/slurm-job-22")
    assert "a job of this cluster" in refusal(agent.delete, f"{folder}/kube-root-ca.crt")
    assert "not one of this cluster's" in refusal(
        agent.apply, "/api/v1/namespaces/default/configmaps/slurm-job-21", files(site, 21)
    )
    assert agent.delete(f"{folder}/slurm-job-21")


def test_with_a_share_among_them_it_is_baseline(site: Site, kube: Kube) -> None:
    """Restricted knows no NFS volumes; baseline refuses paths of the node just as well."""
    share = {**CLAIMS, "models": {"source": "/srv/models", "target": "/mnt/models", "nfs": "nas.lab:/models"}}
    config = settings(site.nodes, cluster=site.config.cluster, mounts=share, kubernetes=_kubernetes(site))
    assert namespaces.keep(kube, config, RECORD.uid, RECORD.user)
    try:
        namespace = kube.get(f"/api/v1/namespaces/{site.namespace()}")
        assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "baseline"
        body = Site(config, kube, site.folder, site.nodes).manifest(job(9))
        assert kube.create(site.pods(), body, dryRun="All")
    finally:
        namespaces.keep(kube, site.config, RECORD.uid, RECORD.user)


def _kubernetes(site: Site) -> dict[str, Any]:
    return site.config.kubernetes.model_dump(include={"namespace", "system_namespace"})
