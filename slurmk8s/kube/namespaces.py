"""A person's namespace and quota in Kubernetes, kept to the configuration: made when missing, put back when changed."""

from collections.abc import Mapping
from typing import Any

from slurmk8s import labels
from slurmk8s.config import Config
from slurmk8s.errors import ClusterFault, SetupError, SlurmK8sError
from slurmk8s.kube.client import Kube
from slurmk8s.kube.faults import Conflict, KubeUnreachable, NotFound, Refused
from slurmk8s.kube.quantity import number
from slurmk8s.kube.quotas import NAME, hard

ENFORCE = "pod-security.kubernetes.io/enforce"
Json = dict[str, Any]


def keep(kube: Kube, config: Config, uid: int, user: str) -> bool:
    """Have this person's namespace and quota as they should be; whether anything had to be changed."""
    name = config.kubernetes.namespace_of(uid)
    namespace = kube.find(f"/api/v1/namespaces/{name}")
    quota = None if namespace is None else kube.find(_quota_path(name))
    return _settle(kube, config, uid, user, namespace, quota)


def keep_all(kube: Kube, config: Config, people: Mapping[int, str]) -> dict[int, SlurmK8sError | None]:
    """The same for many (uid: login name), in two questions where nothing has changed.

    Only those that were changed are in the answer, and those that could not be settled, with the reason.
    """
    # By name, not by label: one that has lost its label must be found as well.
    there = {each["metadata"]["name"]: each for each in kube.items("/api/v1/namespaces")}
    quotas = {
        each["metadata"]["namespace"]: each
        for each in kube.items("/api/v1/resourcequotas", fieldSelector=f"metadata.name={NAME}")
    }
    outcome: dict[int, SlurmK8sError | None] = {}
    for uid, user in people.items():
        name = config.kubernetes.namespace_of(uid)
        try:
            if _settle(kube, config, uid, user, there.get(name), quotas.get(name)):
                outcome[uid] = None
        except KubeUnreachable:
            raise  # nor would the others be answered
        except (SetupError, ClusterFault, Refused) as error:
            outcome[uid] = error
    return outcome


def is_counted(kube: Kube, config: Config, uid: int) -> bool:
    """Whether Kubernetes counts by the quota as it is now. One that is younger than that charges nobody."""
    quota = kube.find(_quota_path(config.kubernetes.namespace_of(uid))) or {"spec": {}}
    counted = (quota.get("status") or {}).get("hard") or {}
    return _has(counted, quota["spec"].get("hard") or {})


def namespace_body(config: Config, uid: int) -> Json:
    """The namespace as it should be."""
    own = {labels.CLUSTER: config.cluster, labels.USER_ID: str(uid), ENFORCE: level(config)}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": config.kubernetes.namespace_of(uid), "labels": own},
    }


def quota_body(config: Config, user: str) -> Json:
    """The quota as it should be."""
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": NAME, "labels": {labels.CLUSTER: config.cluster}},
        "spec": {"hard": hard(config, user)},
    }


def level(config: Config) -> str:
    """The Pod Security level that our pods can have: paths of a node are privileged to it, NFS volumes not restricted.

    `privileged` is written out, since a cluster may enforce something by default; our own policy asks for all the rest.
    """
    if not config.uses_claims:
        return "privileged"
    return "baseline" if any(mount.nfs for mount in config.mounts.values()) else "restricted"


def _settle(kube: Kube, config: Config, uid: int, user: str, namespace: Json | None, quota: Json | None) -> bool:
    wanted = namespace_body(config, uid)
    name = wanted["metadata"]["name"]
    changed = False
    if namespace is None:
        try:
            kube.create("/api/v1/namespaces", wanted, fieldManager="slurmk8s")
        except Conflict:
            raise ClusterFault(f"The namespace {name} appeared just now; it is looked at again.") from None
        changed = True
    else:
        _require_own(config, namespace, user)
        if not _has(namespace["metadata"].get("labels"), wanted["metadata"]["labels"]):
            kube.apply(f"/api/v1/namespaces/{name}", wanted)
            changed = True
    if not _is_right(quota, config, user):
        try:
            kube.apply(_quota_path(name), quota_body(config, user))
        except NotFound:
            raise ClusterFault(f"The namespace {name} vanished just now; it is made again.") from None
        changed = True
    return changed


def _require_own(config: Config, namespace: Json, user: str) -> None:
    name, has = namespace["metadata"]["name"], namespace["metadata"].get("labels") or {}
    if has.get(labels.CLUSTER) != config.cluster:
        raise SetupError(
            f"The namespace {name} for {user}'s jobs exists and is not this cluster's, so it is not touched.",
            f"If it is meant for them: kubectl label --overwrite namespace {name} {labels.CLUSTER}={config.cluster}",
        )
    if namespace.get("status", {}).get("phase") == "Terminating":
        raise ClusterFault(f"The namespace {name} is being deleted; it is made again when it is gone.")


def _is_right(quota: Json | None, config: Config, user: str) -> bool:
    if quota is None:
        return False
    wanted = quota_body(config, user)
    has, want = quota["spec"].get("hard") or {}, wanted["spec"]["hard"]
    ours = {"requests.cpu", "requests.memory", f"requests.{config.gpu.resource}"}
    # The server writes 131072Mi for 128Gi if somebody else did; an admin's further keys are left alone.
    same = {key: number(has[key]) for key in ours & has.keys()} == {key: number(value) for key, value in want.items()}
    return same and _has(quota["metadata"].get("labels"), wanted["metadata"]["labels"])


def _has(there: Mapping[str, str] | None, wanted: Mapping[str, str]) -> bool:
    return all((there or {}).get(key) == value for key, value in wanted.items())


def _quota_path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/resourcequotas/{NAME}"
