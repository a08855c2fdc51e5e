"""Which images and which nodes are meant, and what the nodes have: what `slurmk8s image` asks before it acts.

Pure, but for `slurm_nodes`.
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from slurmk8s.config import Config
from slurmk8s.errors import PersonFault
from slurmk8s.jobfile import image as references
from slurmk8s.jobfile.finding import shown
from slurmk8s.slurm import hostlist
from slurmk8s.slurm.programs import Programs

CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")


@dataclass(frozen=True)
class Target:
    """A node that images are brought to."""

    name: str
    """As people call it: Slurm's name where the configuration gives one."""
    node: str
    """As Kubernetes calls it."""
    fault: str = ""
    """Why it can take none now, in one sentence."""


@dataclass(frozen=True, order=True)
class Held:
    """One image on one node."""

    node: str
    image: str
    size: int


Task = tuple[Target, str]
"""A node and the image it gets."""


@dataclass(frozen=True)
class Stage:
    """How far one image is on one node."""

    word: Literal["waiting", "pulling", "present", "pulled", "failed"]
    seconds: float = 0
    sentence: str = ""
    """Why it failed, or what is being waited for."""

    @property
    def is_final(self) -> bool:
        """Whether nothing more will happen."""
        return self.word not in ("waiting", "pulling")

    def __str__(self) -> str:
        if self.word == "failed":
            return f"failed: {self.sentence}"
        if self.word in ("pulling", "pulled"):
            took = f"{self.seconds:.0f} s" if self.seconds >= 10 else f"{self.seconds:.1f} s"
            text = f"pulling {self.seconds:.0f} s" if self.word == "pulling" else f"pulled in {took}"
        else:
            text = self.word
        return f"{text} ({self.sentence})" if self.sentence else text


WAITING = Stage("waiting")


def full_name(name: str, config: Config) -> str:
    """The full reference of an image that this site allows; a bare name means the site's own registry."""
    registry, allowed = config.images.registry, config.images.allowed
    try:
        full = references.qualified(name, registry)
    except ValueError as error:
        raise PersonFault(
            f"{shown(name)!r} is not an image: {error}.",
            f"Write registry/name:tag, such as {registry}/pytorch:2.0-cuda11.8.",
        ) from None
    if full not in _defaults(config) and not references.allowed(full, allowed):
        raise PersonFault(
            f"{shown(full, 120)} is not from an allowed registry: this site runs images from "
            f"{', '.join(allowed) or 'nowhere'} only.",
            f"Push it to {registry} and name it there, or add its registry to images.allowed.",
        )
    return full


def _defaults(config: Config) -> set[str]:
    """The partitions' own images: the site's choice needs no permission."""
    found = set()
    for partition in config.partitions.values():
        try:
            found.add(references.qualified(partition.image or "", config.images.registry))
        except ValueError:
            continue
    return found


def moves(image: str) -> bool:
    """Whether the name may mean another image tomorrow, so that each use asks the registry, as Kubernetes does."""
    reference = references.parse(image)
    return not reference.digest and reference.tag in ("", "latest")


def slurm_nodes(partition: str, programs: Programs) -> tuple[str, ...]:
    """The nodes of a partition, as Slurm names them."""
    found = hostlist.expand(programs.ask("sinfo", "--noheader", "--partition", partition, "--format=%N").strip())
    if not found:
        raise PersonFault(f"Slurm has no partition {shown(partition)!r}, or it has no nodes.", "See `sinfo`.")
    return found


def targets(nodes: Sequence[Mapping[str, Any]], config: Config, names: Iterable[str] = ()) -> list[Target]:
    """The nodes with these names (Slurm's or Kubernetes'), else all that jobs can run on."""
    slurm_names = {kube: slurm for slurm, kube in config.kubernetes.nodes.items()}
    known = {node["metadata"]["name"]: node for node in nodes}
    chosen = [config.kubernetes.node_of(name) for name in dict.fromkeys(names)]
    for name in chosen:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            raise PersonFault(
                f"Kubernetes has no node {shown(name)!r}.",
                f"Did you mean {close[0]}?"
                if close
                else "See `kubectl get nodes`; kubernetes.nodes maps Slurm's names.",
            )
    return [
        Target(slurm_names.get(name, name), name, _unready(known[name]))
        for name in (chosen or sorted(name for name in known if not _is_control_plane(known[name])))
    ]


def _is_control_plane(node: Mapping[str, Any]) -> bool:
    """By the taint, not the label: on a small cluster jobs may run there too."""
    return any(taint.get("key") in CONTROL_PLANE for taint in node.get("spec", {}).get("taints") or ())


def _unready(node: Mapping[str, Any]) -> str:
    conditions = {entry["type"]: entry for entry in node.get("status", {}).get("conditions") or ()}
    ready = conditions.get("Ready", {"status": "Unknown", "message": "its kubelet has never reported"})
    if ready["status"] == "True":
        return ""
    return f"The node is not ready: {(ready.get('message') or ready.get('reason') or 'no reason given').rstrip('.')}."


def held(nodes: Sequence[Mapping[str, Any]], chosen: Sequence[Target], config: Config, everything: bool) -> list[Held]:
    """What the kubelets report of the chosen nodes, by node and image."""
    reported = {node["metadata"]["name"]: node.get("status", {}).get("images") or () for node in nodes}
    return sorted(
        Held(target.name, name, int(entry.get("sizeBytes") or 0))
        for target in chosen
        for entry in reported.get(target.node, ())
        for name in tagged(entry.get("names") or ())
        if everything or is_ours(name, config)
    )


def tagged(names: Sequence[str]) -> list[str]:
    """An image's names: those with a tag, or where it has none the one with its digest."""
    with_tag = [name for name in names if "@" not in name and "<none>" not in name]
    return with_tag or [name for name in names if "<none>" not in name][:1]


def is_ours(name: str, config: Config) -> bool:
    """Whether jobs may use an image of that name."""
    return references.allowed(name, config.images.allowed) or name in _defaults(config)
