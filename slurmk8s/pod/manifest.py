"""The Pod manifest, from plain values by a pure function: readable YAML out of pod.yaml.j2."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, Literal

import jinja2
import yaml


@dataclass(frozen=True)
class HostPath:
    """A path of the node."""

    path: str
    kind: Literal["Directory", "File", "CharDevice"] = "Directory"
    """Never made by the runtime: a missing source is an error, else results would land on the system disk."""


@dataclass(frozen=True)
class Nfs:
    """A share that the kubelet mounts."""

    server: str
    path: str


@dataclass(frozen=True)
class Claim:
    """A PersistentVolumeClaim of the namespace."""

    name: str


@dataclass(frozen=True)
class Scratch:
    """An empty folder that goes with the pod."""

    size: int | None = None
    """Bytes; None where nothing limits it."""
    memory: bool = False


@dataclass(frozen=True)
class Files:
    """Small texts by file name: a ConfigMap that is named as the pod and goes with it."""

    texts: Mapping[str, str]


@dataclass(frozen=True)
class Volume:
    """One thing that the pod sees at a path."""

    name: str
    source: HostPath | Nfs | Claim | Scratch | Files
    target: str
    read_only: bool = False
    sub_path: str | None = None
    """One file of `Files`. Never of anything else: a kubelet follows links inside a volume, as root."""


@dataclass(frozen=True)
class Pod:
    """Everything that a job's manifest says."""

    name: str
    hostname: str
    labels: Mapping[str, str]
    image: str
    container: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    resources: Mapping[str, str]
    """Requests and limits alike: what Slurm has allocated."""
    environment: Mapping[str, str]
    volumes: tuple[Volume, ...]
    priority: str | None
    grace_seconds: int
    pull_policy: Literal["Never", "IfNotPresent", "Always"]
    command: tuple[str, ...] = ("/bin/sh", "/slurmk8s/told/launcher.sh")
    namespace: str | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)
    node: str | None = None
    """Kubernetes' name of the node that Slurm chose: no scheduler has a say, and its kubelet counts again."""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, str], ...] = ()
    runtime_class: str | None = None
    pull_secrets: tuple[str, ...] = ()
    ceilings: Mapping[str, str] = field(default_factory=dict)
    """Limits of what is not set aside for the pod: it may use that much, as others may."""
    before_stop: tuple[str, ...] = ()
    """What the kubelet runs in the container before it ends it: PID 1 takes no signals."""


def render(pod: Pod) -> str:
    """The manifest as YAML."""
    limits = {**pod.resources, **pod.ceilings}
    return _template().render(
        pod=pod, requests=_requests(pod), limits=limits, volumes=_sources(pod), volume_source=_source
    )


@cache
def _template() -> jinja2.Template:
    """Compiled once: it costs more than all the rest."""
    text = resources.files("slurmk8s.pod").joinpath("pod.yaml.j2").read_text(encoding="utf-8")
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False, keep_trailing_newline=True)  # noqa: S701 - YAML, and every value goes through tojson
    environment.filters["tojson"] = _quoted
    return environment.from_string(text)


def _requests(pod: Pod) -> dict[str, str]:
    """Kubernetes takes a limit without a request for both."""
    return {**pod.resources, **dict.fromkeys(pod.ceilings, "0")}


def _sources(pod: Pod) -> dict[str, Volume]:
    """The volumes by name: several files of one ConfigMap are mounts of one volume."""
    return {volume.name: volume for volume in pod.volumes}


def _source(volume: Volume, pod: Pod) -> dict[str, object]:
    """A volume as a Pod has it."""
    return {"name": volume.name, **_kind(volume, pod)}


def _kind(volume: Volume, pod: Pod) -> dict[str, object]:
    match volume.source:
        case HostPath(path, kind):
            return {"hostPath": {"path": path, "type": kind}}
        case Nfs(server, path):
            return {"nfs": {"server": server, "path": path, "readOnly": volume.read_only}}
        case Claim(name):
            return {"persistentVolumeClaim": {"claimName": name, "readOnly": volume.read_only}}
        case Scratch(size, memory):
            return {
                "emptyDir": {
                    **({"medium": "Memory"} if memory else {}),
                    **({"sizeLimit": str(size)} if size is not None else {}),
                }
            }
        case Files():
            return {"configMap": {"name": pod.name}}


def files(pod: Pod) -> dict[str, str]:
    """The texts of the pod's ConfigMap; empty if it needs none."""
    texts: dict[str, str] = {}
    for volume in pod.volumes:
        if isinstance(volume.source, Files):
            texts |= volume.source.texts
    return texts


def _quoted(value: object) -> str:
    """As JSON, which is YAML too but for a few characters: raw ones that YAML takes for the end of a line, or refuses.

    Not json's own ASCII form: it writes two halves for one character beyond 16 bits, and YAML keeps them apart.
    """
    value = dict(value) if isinstance(value, Mapping) else value
    text = json.dumps(value, ensure_ascii=False)
    return re.sub("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]", lambda match: f"\\u{ord(match[0]):04x}", text)


def manifest(pod: Pod) -> dict[str, Any]:
    """The manifest as data, read back from the YAML that runtimes get."""
    data: dict[str, Any] = yaml.load(render(pod), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
    return data
