"""The rights that slurmk8s's own credentials have in Kubernetes: accounts, roles and admission policies, as YAML.

RBAC says which kinds of object a credential may touch; the policies say which node, namespace, mounts and images.
What a stolen node credential could still do is to run jobs as people on that very node, which root can do there anyway.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from json import dumps
from typing import Any

import jinja2
import yaml

from slurmk8s import labels
from slurmk8s.config import Config
from slurmk8s.jobfile.image import qualified
from slurmk8s.kube.client import Kube

DEFAULT_CLUSTER = "slurmk8s"


@dataclass(frozen=True)
class Names:
    """What our own objects are called; several clusters on one Kubernetes must not meet."""

    system: str
    """Namespace of the service accounts."""
    base: str
    agent: str
    """How the account of a node's agent begins; Kubernetes' name of the node follows."""
    head: str
    person: str = "reader"
    """The account in a person's namespace behind a read-only kubeconfig."""

    @classmethod
    def of(cls, config: Config) -> "Names":
        """The names of this configuration's cluster."""
        named = config.cluster != DEFAULT_CLUSTER
        base = f"{DEFAULT_CLUSTER}-{config.cluster}" if named else DEFAULT_CLUSTER
        # A dot cannot be in a cluster's name, so no cluster's accounts begin as another's do.
        account = f"{config.cluster}." if named else ""
        return cls(config.kubernetes.system_namespace, base, f"{account}agent-", f"{account}head")

    @property
    def agent_user(self) -> str:
        """How the API server calls an agent, without the node."""
        return f"system:serviceaccount:{self.system}:{self.agent}"

    @property
    def head_user(self) -> str:
        """How the API server calls the head node's watcher."""
        return f"system:serviceaccount:{self.system}:{self.head}"

    def named(self, what: str) -> str:
        """A role or policy of the whole Kubernetes."""
        return f"{self.base}-{what}"


def render(config: Config, nodes: Iterable[str] = ()) -> str:
    """Everything as YAML to apply; `nodes` are Kubernetes' names of the nodes that have an agent."""
    names = Names.of(config)
    values: dict[str, Any] = {"config": config, "names": names, "site": site(config), "labels": labels}
    parts = [_template("rbac.yaml.j2").render(values), _template("policy.yaml.j2").render(values)]
    parts += [agent(config, node) for node in nodes]
    return "---\n".join(part.strip().removesuffix("---") + "\n" for part in parts)


def agent(config: Config, node: str) -> str:
    """The account of one node's agent, as YAML."""
    names = Names.of(config)
    return _template("agent.yaml.j2").render(names=names, node=node, account=names.agent + node)


def apply(kube: Kube, config: Config, nodes: Iterable[str] = ()) -> None:
    """Have all of it in the cluster; takes an admin's credential."""
    put(kube, render(config, nodes))


def put(kube: Kube, text: str) -> None:
    """Have these YAML documents in the cluster."""
    for document in yaml.safe_load_all(text):
        if document:
            kube.apply(path(document), document)


PLACES = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/{namespace}/serviceaccounts",
    "Secret": "/api/v1/namespaces/{namespace}/secrets",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings",
    "ValidatingAdmissionPolicy": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
}
"""Where the kinds of object that are made here live."""


def path(document: Mapping[str, Any]) -> str:
    """The object's path on the API server."""
    metadata = document["metadata"]
    return PLACES[document["kind"]].format(namespace=metadata.get("namespace")) + f"/{metadata['name']}"


def site(config: Config) -> dict[str, Any]:
    """The configuration's part of the policies."""
    settings = config.kubernetes
    host_paths: dict[str, bool] = {}
    shares: dict[str, bool] = {}
    claims: dict[str, bool] = {}
    for mount in config.mounts.values():
        source, kind = str(mount.source), host_paths
        if mount.claim:
            source, kind = mount.claim, claims
        elif mount.nfs:
            source, kind = mount.nfs, shares
        # Mounted twice, once writable: then it is writable.
        kind[source] = kind.get(source, True) and mount.read_only
    partitions = config.partitions.values()
    priorities = {*config.priorities, *(part.priority for part in partitions), ""}
    runtime_classes = {settings.runtime_class, *(part.runtime_class for part in partitions), ""}
    if config.gpu.mode == "pinned":
        runtime_classes.add(config.gpu.runtime_class)
    return {
        "namespace": settings.namespace.removesuffix("%u"),
        "nodes": settings.nodes,
        "images": list(config.images.allowed),
        "whole_images": sorted({qualified(part.image, config.images.registry) for part in partitions if part.image}),
        "host_paths": sorted(host_paths),
        "shares": sorted(shares),
        "claims": sorted(claims),
        "read_only": sorted(name for kind in (host_paths, shares, claims) for name, value in kind.items() if value),
        "priorities": sorted(name for name in priorities if name is not None),
        "runtime_classes": sorted(name for name in runtime_classes if name is not None),
        "run_folder": str(config.agent.run_folder),
    }


def cel(value: object) -> str:
    """A value as a literal of the policies' language, in plain ASCII without single quotes: safe inside any YAML."""
    if isinstance(value, str):
        plain = (
            char if char.isascii() and char.isprintable() and char not in "\\\"'" else _escaped(char) for char in value
        )
        return f'"{"".join(plain)}"'
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{cel(key)}: {cel(item)}" for key, item in sorted(value.items())) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(cel, value))}]"
    raise TypeError(f"no literal for {type(value).__name__}")


def _escaped(char: str) -> str:
    return f"\\U{ord(char):08x}"


@cache
def _template(name: str) -> jinja2.Template:
    text = resources.files("slurmk8s.kube").joinpath(name).read_text(encoding="utf-8")
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False, keep_trailing_newline=True)  # noqa: S701 - YAML, and every value goes through tojson or cel
    environment.filters["tojson"] = dumps
    environment.filters["cel"] = cel
    return environment.from_string(text)
