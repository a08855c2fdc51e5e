"""What the check may know beyond the bytes: gathered outside, handed in as plain values.

`None` always means "not known", and nothing is found against what is not known.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

FileState = Literal["ok", "missing", "hidden", "folder", "file", "special", "unreadable", "unwritable"]
"""What a path is to the submitter: hidden is in a folder they may not enter, file is not the folder it should be."""


@dataclass(frozen=True)
class Limits:
    """What one person's jobs may hold at the same time. None: no limit."""

    cpus: int | None = None
    memory_mb: int | None = None
    gpus: int | None = None


@dataclass(frozen=True)
class Site:
    """The site's policy, from its configuration."""

    registry: str = "nas-hub.local:5407"
    allowed_images: tuple[str, ...] = ("nas-hub.local:5407/",)
    partition_images: Mapping[str, str] = field(default_factory=dict)
    """Default image by partition."""
    shared_paths: tuple[str, ...] = ("/mnt/nas",)
    """Paths in the container that are the same files as on the submitting host: the standard mounts' targets."""
    mounts: tuple[str, ...] = ("nas",)
    """Names that `#K8S_MOUNT` may use."""
    mount_targets: Mapping[str, str] = field(default_factory=dict)
    """Where each of these mounts appears in the container, where known."""
    priorities: tuple[str, ...] = ("high-priority",)
    """Names that `#K8S_PRIORITY` may use."""
    limits: Limits = Limits()
    """Everybody's quota."""
    other_limits: Mapping[str, Limits] = field(default_factory=dict)
    """Quotas of people who have one of their own, by login name."""


@dataclass(frozen=True)
class PartitionFacts:
    """The most that one job can get in a partition. None: no limit known."""

    name: str
    default: bool = False
    up: bool = True
    max_seconds: int | None = None
    nodes: int | None = None
    max_nodes: int | None = None
    cpus_per_node: int | None = None
    memory_mb_per_node: int | None = None
    gpus_per_node: int | None = None
    gpu_types: tuple[str, ...] = ()


@dataclass(frozen=True)
class ClusterFacts:
    """What Slurm says about itself."""

    partitions: Mapping[str, PartitionFacts] = field(default_factory=dict)
    accounts: tuple[str, ...] | None = None
    """Accounts the submitter may use; None where there is no slurmdbd to ask."""
    qos: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Facts:
    """Everything the check may know. The default knows the default policy and nothing else, as with `--offline`."""

    site: Site = Site()
    cluster: ClusterFacts | None = None
    files: Mapping[str, FileState] = field(default_factory=dict)
    """For each path that `paths_of_interest` named, as far as known."""
    image_programs: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Programs that an image (full reference) is known to lack."""
    submitter: str | None = None
