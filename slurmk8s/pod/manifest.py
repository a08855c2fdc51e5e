"""The Pod manifest, from plain values by a pure function: readable YAML out of pod.yaml.j2."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal

import jinja2
import yaml


@dataclass(frozen=True)
class Volume:
    """One path of the host that the pod sees."""

    name: str
    source: str
    target: str
    read_only: bool = False
    kind: Literal["Directory", "File", "CharDevice"] = "Directory"
    """Never made by the runtime: a missing source is an error, else results would land on the system disk."""


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


def render(pod: Pod) -> str:
    """The manifest as YAML."""
    template = resources.files("slurmk8s.pod").joinpath("pod.yaml.j2").read_text(encoding="utf-8")
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False, keep_trailing_newline=True)  # noqa: S701 - YAML, and every value goes through tojson
    environment.filters["tojson"] = _quoted
    return environment.from_string(template).render(pod=pod)


def _quoted(value: object) -> str:
    """As JSON, which is YAML too but for a few characters: raw ones that YAML takes for the end of a line, or refuses.

    Not json's own ASCII form: it writes two halves for one character beyond 16 bits, and YAML keeps them apart.
    """
    value = dict(value) if isinstance(value, Mapping) else value
    text = json.dumps(value, ensure_ascii=False)
    return re.sub("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]", lambda match: f"\\u{ord(match[0]):04x}", text)


def manifest(pod: Pod) -> dict[str, Any]:
    """The manifest as data, read back from the YAML that runtimes get."""
    data: dict[str, Any] = yaml.safe_load(render(pod))
    return data
