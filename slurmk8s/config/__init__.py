"""The configuration: one TOML file, read once at the edge and passed inwards as frozen values.

Every field says its unit, its default and why the default is what it is; `slurmk8s config docs` makes the reference
page from these lines, so there is no second place to keep up to date.
"""

import difflib
import os
import tomllib
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field, ValidationError, model_validator

from slurmk8s.config.after import After, Archive, Chat, Command, Mail
from slurmk8s.config.kubernetes import Kubernetes, Profile, Quota, Toleration
from slurmk8s.config.metrics import Metrics
from slurmk8s.config.section import Section
from slurmk8s.config.sections import (
    Agent,
    Environment,
    Gpu,
    Images,
    Intake,
    Mount,
    Nas,
    Partition,
    Podman,
    Results,
    Retention,
    Slurm,
)
from slurmk8s.errors import SetupError

__all__ = [
    "DEFAULT_PATH",
    "After",
    "Agent",
    "Archive",
    "Chat",
    "Command",
    "Config",
    "Environment",
    "Gpu",
    "Images",
    "Intake",
    "Kubernetes",
    "Mail",
    "Metrics",
    "Mount",
    "Nas",
    "Partition",
    "Podman",
    "Profile",
    "Quota",
    "Results",
    "Retention",
    "Section",
    "Slurm",
    "Toleration",
    "config_path",
    "known_keys",
    "load",
    "parse",
]

DEFAULT_PATH = Path("/etc/slurmk8s/config.toml")


class Config(Section):
    """The whole file."""

    cluster: str = Field("slurmk8s", pattern=r"^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$")
    """Name of this cluster. Pods carry it as a label, and an agent touches no pod with another name, so that several
    clusters can share a machine."""
    backend: Literal["podman", "kubernetes"] = "podman"
    """What runs the pods."""
    log_folder: Path = Path("/var/log/slurm-k8s")
    """Where daemons and hooks log. Default as in the guide."""
    nas: Nas = Nas()
    intake: Intake = Intake()
    images: Images = Images()
    partitions: dict[str, Partition] = {}
    """What partitions give to jobs that do not say it themselves, by the partition's name. Default: nothing."""
    mounts: dict[str, Mount] = {}
    """Folders that pods may see, by name. Default: the NAS root as `nas`."""
    standard_mounts: tuple[str, ...] = ("nas",)
    """Mounts every pod has, by name. `#K8S_MOUNT` adds others."""
    priorities: tuple[str, ...] = ("high-priority",)
    """Names that `#K8S_PRIORITY` may use."""
    agent: Agent = Agent()
    podman: Podman = Podman()
    kubernetes: Kubernetes = Kubernetes()
    gpu: Gpu = Gpu()
    environment: Environment = Environment()
    results: Results = Results()
    after: After = After()
    metrics: Metrics = Metrics()
    slurm: Slurm = Slurm()

    @model_validator(mode="before")
    @classmethod
    def _nas_is_a_mount(cls, data: object) -> object:
        """The NAS root is the mount `nas` unless the file says otherwise."""
        if isinstance(data, dict):
            nas, mounts = data.get("nas", {}), data.get("mounts", {})
            if isinstance(nas, dict) and isinstance(mounts, dict):  # anything else is reported by its own field
                root = nas.get("root", Nas().root)
                data = {**data, "mounts": {"nas": {"source": root, "target": root}, **mounts}}
        return data

    @model_validator(mode="after")
    def _names_exist(self) -> "Config":
        for name in self.standard_mounts:
            if name not in self.mounts:
                raise ValueError(f"standard_mounts names {name!r}, but there is no [mounts.{name}]")
        return self

    @property
    def uses_claims(self) -> bool:
        """Whether the NAS reaches pods by a claim, so that no pod needs a path of its host."""
        return self.backend == "kubernetes" and self.mounts["nas"].claim is not None

    @model_validator(mode="after")
    def _all_by_claims(self) -> "Config":
        """One hostPath is enough for Pod Security to refuse the pod."""
        if self.uses_claims:
            for name, mount in self.mounts.items():
                if mount.claim is None and mount.nfs is None:
                    raise ValueError(f"mounts.nas is a claim, so mounts.{name} must be a claim or an nfs volume too")
        return self


NAMED: dict[str, type[Section]] = {
    "partitions": Partition,
    "mounts": Mount,
    "quotas": Quota,
    "profiles": Profile,
    "tolerations": Toleration,
    "chats": Chat,
    "commands": Command,
}
"""Tables of which there may be many, by the key that holds them."""


def config_path() -> Path:
    """The file in use: SLURMK8S_CONFIG, else the default."""
    return Path(os.environ.get("SLURMK8S_CONFIG", DEFAULT_PATH))


def load(path: Path | None = None) -> Config:
    """Read the file; a missing one means all defaults, unless it was named explicitly."""
    named = path is not None or "SLURMK8S_CONFIG" in os.environ
    path = path or config_path()
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if named:
            raise SetupError(
                f"The configuration {path} does not exist.", "Create it, or unset SLURMK8S_CONFIG."
            ) from None
        data = {}
    except OSError as error:
        raise SetupError(f"The configuration {path} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SetupError(f"{path} is not valid TOML: {error}.") from None
    return parse(data, str(path))


def parse(data: dict[str, object], name: str) -> Config:
    """Turn parsed TOML into a Config, or all its problems into one error with suggestions."""
    try:
        return Config.model_validate(data)
    except ValidationError as error:
        problems = [_problem(entry["loc"], entry["type"], entry["msg"]) for entry in error.errors()]
        lines = "\n".join(f"  - {problem}" for problem in problems)
        raise SetupError(
            f"{name} has {len(problems)} problem(s):\n{lines}", "See `slurmk8s config docs` for every key."
        ) from None


def _problem(location: tuple[int | str, ...], kind: str, message: str) -> str:
    key = ".".join(str(part) for part in location) or "the file"
    if kind != "extra_forbidden":
        return f"{key}: {message}"
    known = known_keys(location[:-1])
    close = difflib.get_close_matches(str(location[-1]), known, n=1, cutoff=0.6)
    suggestion = f"did you mean {close[0]!r}?" if close else f"known keys are {', '.join(known)}"
    return f"{key}: unknown key; {suggestion}"


def known_keys(location: tuple[int | str, ...]) -> list[str]:
    """The keys that may stand in the table at this location."""
    section: type[BaseModel] = Config
    parts = [str(part) for part in location if not isinstance(part, int)]
    while parts:
        part = parts.pop(0)
        if part in NAMED:
            section = NAMED[part]
            if parts and part != "tolerations":
                parts.pop(0)  # the name the site chose
            continue
        annotation = section.model_fields[part].annotation
        if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
            return []
        section = annotation
    return sorted(section.model_fields)
