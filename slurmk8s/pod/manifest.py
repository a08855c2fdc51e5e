"""The Pod manifest, from plain values by a pure function: readable YAML out of pod.yaml.j2."""

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
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False}
    # jinja's own tojson escapes <, >, & and ' for HTML as \u003c, which YAML reads back as the same characters.
    return environment.from_string(template).render(pod=pod)


def manifest(pod: Pod) -> dict[str, Any]:
    """The manifest as data, read back from the YAML that runtimes get."""
    data: dict[str, Any] = yaml.safe_load(render(pod))
    return data
