"""Credentials as kubeconfig files: for a node's agent, for the head node, and read-only for a person."""

import base64
import time
from typing import Any

import yaml

from slurmk8s.config import Config
from slurmk8s.errors import ClusterFault, SetupError
from slurmk8s.kube import namespaces, policy
from slurmk8s.kube.client import Kube
from slurmk8s.kube.policy import Names

DAY = 86400
SECRET_SECONDS = 10.0


def agent_kubeconfig(kube: Kube, config: Config, node: str, days: int = 365) -> str:
    """For the agent of that node (Kubernetes' name); makes its account. `days` 0: until its Secret is deleted."""
    names = Names.of(config)
    _require_rbac(kube, names)
    policy.put(kube, policy.agent(config, node))
    return _of_account(kube, names.system, names.agent + node, days, f"{config.cluster}-{node}")


def head_kubeconfig(kube: Kube, config: Config, days: int = 365) -> str:
    """For the watcher on the head node; `slurmk8s cluster rbac` has made its account."""
    names = Names.of(config)
    _require_rbac(kube, names)
    return _of_account(kube, names.system, names.head, days, f"{config.cluster}-head")


def person_kubeconfig(kube: Kube, config: Config, uid: int, name: str, days: int = 90) -> str:
    """For a person: read-only, in the own namespace, which is made if it is not there yet."""
    namespaces.keep(kube, config, uid, name)
    names = Names.of(config)
    namespace = config.kubernetes.namespace_of(uid)
    account = {"kind": "ServiceAccount", "name": names.person, "namespace": namespace}
    for document in (
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": names.person, "namespace": namespace},
            "automountServiceAccountToken": False,
        },
        _binding("RoleBinding", names.person, namespace, names.named("person"), account),
        _binding("ClusterRoleBinding", f"{names.named('usage')}-{namespace}", None, names.named("usage"), account),
    ):
        kube.apply(policy.path(document), document)
    return _of_account(kube, namespace, names.person, days, f"{config.cluster}-{name}", namespace)


def _require_rbac(kube: Kube, names: Names) -> None:
    """Without its policies a credential would be worth more than it should."""
    account = f"/api/v1/namespaces/{names.system}/serviceaccounts/{names.head}"
    policies = policy.PLACES["ValidatingAdmissionPolicyBinding"]
    if kube.find(account) is None or kube.find(f"{policies}/{names.named('pods')}") is None:
        raise SetupError(
            "The accounts and policies of slurmk8s are not in Kubernetes yet.",
            "Apply them first: slurmk8s cluster rbac | kubectl apply -f -",
        )


def _binding(kind: str, name: str, namespace: str | None, role: str, account: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [account],
    }


def _of_account(
    kube: Kube, namespace: str, account: str, days: int, name: str, default_namespace: str | None = None
) -> str:
    token, end = _token(kube, namespace, account, days) if days else _lasting_token(kube, namespace, account)
    context = {"cluster": name, "user": name, **({"namespace": default_namespace} if default_namespace else {})}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": kube.server, **kube.trust}}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": context}],
        "current-context": name,
    }
    return f"# For {name}; valid until {end}.\n" + yaml.safe_dump(document, sort_keys=False)


def _token(kube: Kube, namespace: str, account: str, days: int) -> tuple[str, str]:
    """A token that ends by itself, or with its account; and when: a cluster may give less than was asked for."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": days * DAY},
    }
    status = kube.create(path, body)["status"]
    return status["token"], status["expirationTimestamp"]


def _lasting_token(kube: Kube, namespace: str, account: str) -> tuple[str, str]:
    """A token that does not end by itself: some clusters shorten the other kind to a day, and daemons need theirs."""
    name = f"{account}-token"
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/service-account-token",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "annotations": {"kubernetes.io/service-account.name": account},
        },
    }
    path = policy.path(secret)
    kube.apply(path, secret)
    deadline = time.monotonic() + SECRET_SECONDS
    while not (token := (kube.get(path).get("data") or {}).get("token")):  # a controller fills it in
        if time.monotonic() > deadline:
            raise ClusterFault(f"Kubernetes has put no token into the Secret {namespace}/{name}.", "Try again.")
        time.sleep(0.1)
    return base64.b64decode(token).decode(), f"the Secret {name} in {namespace} is deleted"
