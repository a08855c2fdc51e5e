"""What `local up` is asked for, as one frozen value that survives in plan.json."""

import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from slurmk8s.errors import SetupError
from slurmk8s.local.layout import DEFAULT_FOLDER, Layout


@dataclass(frozen=True)
class Plan:
    """One local cluster."""

    folder: Path = DEFAULT_FOLDER
    user: str | None = None
    nodes: int = 1
    gpus: int = 0
    """Fake GPUs of each node."""
    backend: str = "podman"
    kubeconfig: Path | None = None
    """An admin's, of the Kubernetes cluster that runs the pods; with the backend `kubernetes` only."""
    kube_nodes: tuple[str, ...] = ()
    """Kubernetes' names of the nodes, in the order of ours. None: those that are ready, by name."""
    test_image: bool = False
    """Also offer `debian:test` with bash and python3."""
    slurm_overrides: Mapping[str, str] = field(default_factory=dict)
    """Settings of slurm.conf that replace ours; for tests."""
    config_overrides: Mapping[str, object] = field(default_factory=dict)
    """Settings of config.toml by `section.key` that replace ours; for tests."""
    services: bool = True
    """Start agents and the watcher; without them it is a plain private Slurm."""

    @property
    def layout(self) -> Layout:
        """Where everything is."""
        return Layout(self.folder)

    @property
    def node_names(self) -> tuple[str, ...]:
        """node1, node2, …"""
        return tuple(f"node{number}" for number in range(1, self.nodes + 1))

    @property
    def on_kubernetes(self) -> bool:
        """Whether pods run on a Kubernetes cluster, which then has the images, the network and the GPUs."""
        return self.backend == "kubernetes"


@dataclass(frozen=True)
class Ports:
    """TCP ports on this host."""

    slurmctld: int
    registry: int
    """0 where Kubernetes has a registry of its own."""
    slurmd: Mapping[str, int]
    """By node name."""


@dataclass(frozen=True)
class Node:
    """What Slurm is told about one node."""

    cpus: int
    memory_mb: int
    kube: str = ""
    """Kubernetes' name of it."""


@dataclass(frozen=True)
class Decided:
    """A plan with everything settled that the machine decides: whose cluster it is, ports, subnet, nodes."""

    plan: Plan
    user: str
    ports: Ports
    subnet: str
    """Of podman's pods."""
    nodes: Mapping[str, Node]
    """By Slurm's name."""


def checked(plan: Plan) -> Plan:
    """The plan with an absolute folder, or why it cannot be."""
    folder = Path(os.path.abspath(plan.folder))
    # Slurm, munge and sh all read this path from files of their own grammar.
    if not re.fullmatch(r"[A-Za-z0-9_./+@-]+", str(folder)):
        raise SetupError(
            f"The folder {folder} has characters that slurm.conf cannot hold.", "Choose a plain path with --dir."
        )
    if len(str(folder)) > 60:
        raise SetupError(
            f"The path {folder} is too long: a unix socket below it may have 107 characters in all.",
            "Choose a shorter one with --dir.",
        )
    if not plan.on_kubernetes:
        if plan.kubeconfig or plan.kube_nodes:
            raise SetupError("podman runs the pods, so no kubeconfig is used.", "Say `--backend kubernetes` as well.")
        return replace(plan, folder=folder)
    if plan.kubeconfig is None:
        raise SetupError("The backend kubernetes needs an admin's kubeconfig.", "Name it with --kubeconfig.")
    if plan.test_image:
        raise SetupError("The images of Kubernetes come from its own registry.", "Push debian:test there.")
    return replace(plan, folder=folder, kubeconfig=Path(os.path.abspath(plan.kubeconfig)))


def write(decided: Decided) -> None:
    """Record it in the folder."""
    path = decided.plan.layout.plan
    data = asdict(decided)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(data, indent=1, default=str) + "\n", encoding="utf-8")
    temporary.chmod(0o644)
    temporary.replace(path)


def read(layout: Layout) -> Decided | None:
    """What `up` recorded, or None if this folder holds no cluster."""
    try:
        data = json.loads(layout.plan.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except PermissionError:
        raise SetupError(f"The folder {layout.folder} cannot be read by you.", "Run the command with sudo.") from None
    values = data["plan"]
    kubeconfig = Path(values["kubeconfig"]) if values["kubeconfig"] else None
    kube_nodes = tuple(values["kube_nodes"])
    plan = Plan(**{**values, "folder": Path(values["folder"]), "kubeconfig": kubeconfig, "kube_nodes": kube_nodes})
    nodes = {name: Node(**node) for name, node in data["nodes"].items()}
    return Decided(plan, data["user"], Ports(**data["ports"]), data["subnet"], nodes)


def setting(text: str) -> tuple[str, str]:
    """`KEY=VALUE` of a command line."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise SetupError(f"{text!r} is not KEY=VALUE.")
    return key.strip(), value.strip()


def toml_setting(text: str) -> tuple[str, object]:
    """`section.key=value`, the value as TOML writes it, or a bare word as a string."""
    key, value = setting(text)
    try:
        return key, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key, value
