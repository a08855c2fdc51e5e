"""The tables of the file that every site has, whatever runs its pods."""

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from slurmk8s.config.kubernetes import Toleration
from slurmk8s.config.section import Section
from slurmk8s.language import Language


class Nas(Section):
    """Where the share is and which of its folders are ours."""

    root: Path = Path("/mnt/nas")
    """Mount point of the NAS, the same on every node. Default as in the guide."""
    jobs: Path = Path("slurm-jobs")
    """Folder with `submit`, `processed` and `failed`, relative to the root. Default as in the guide."""
    results: Path = Path("results")
    """Folder that gets one folder per job, relative to the root. Default as in the guide."""
    require_mountpoint: bool = True
    """Refuse to work when the root is not a mount point: an unmounted NAS is an empty folder on the system disk, and
    results written there are lost. Turn off only where the "NAS" is a local disk."""
    service_user: str | None = None
    """Account that owns the folder `jobs` on a share with root_squash, where root is nobody: the watcher then does its
    own work there as this account, and everything of a person's as that person. Default none: as root."""

    @property
    def jobs_folder(self) -> Path:
        """The folder that holds `submit`, `processed` and `failed`."""
        return self.root / self.jobs

    @property
    def results_folder(self) -> Path:
        """The folder that holds one folder per job."""
        return self.root / self.results


class Intake(Section):
    """How dropped files become jobs."""

    settle_seconds: float = Field(2.0, gt=0)
    """How long a file must be unchanged before it is taken. Unit: seconds. Default 2: longer than a pause between two
    writes of a copying client, short enough not to be noticed."""
    scan_seconds: float = Field(1.0, gt=0)
    """Time between two scans of the folder while files are arriving. Unit: seconds. Events of local writes wake the
    scan sooner; writes by other NFS or SMB clients cause no event."""
    idle_scan_seconds: float = Field(5.0, gt=0)
    """Time between two scans while nothing moves. Unit: seconds. Default 5: what a person waits at most extra after
    a copy from another machine."""
    patterns: tuple[str, ...] = ("*.sh", "*.sbatch", "*.slurm", "*.job")
    """Which file names are job files. Others get a receipt that names these patterns."""
    identity: Literal["owner", "folder"] = "owner"
    """Whose job it is: the file's owner, or the person named by `submit/<user>/` where the NAS gives all files one
    owner. Default owner: it needs nothing from people."""
    minimum_uid: int = 1000
    """Files of accounts below this uid are refused. Default 1000, where Debian starts people's accounts."""
    language: Language = "en"
    """Language of receipts and of `slurmk8s check`."""
    languages: dict[str, Language] = {}
    """Language of people who read another one, by login name, such as `kim = "ko"`. Default none."""
    submitters: int = Field(4, ge=1, le=64)
    """How many files are submitted side by side when many arrive at once; a few go one after the other. Default 4:
    more than a slurmctld takes at a time. It is lowered by itself while slurmctld does not keep up."""
    broken_copy_seconds: float = Field(300, gt=0)
    """How long a file with room in it that is reserved but not filled (NUL bytes) may stay unchanged before it is
    answered. Unit: seconds. Default 300: some clients reserve the whole size first and fill it after a pause."""
    retry_seconds: float = Field(30, gt=0)
    """How long until a drop that met trouble of its own (a full quota, a limit of Slurm's for its person) is tried
    again, and between two looks for what a stopped watcher left. Unit: seconds. Default 30: it rarely ends sooner."""
    keep_receipts_days: int = Field(90, ge=0)
    """How long receipts, and what lies beside them in `processed` and `failed`, are kept. Unit: days; 0: for ever."""

    def language_of(self, user: str | None) -> Language:
        """The language that this person reads; the site's for nobody in particular."""
        return self.languages.get(user or "", self.language)


class Images(Section):
    """Which container images may run."""

    registry: str = "nas-hub.local:5407"
    """Registry that a bare name such as `pytorch:2.0` means. Default as in the guide."""
    allowed: tuple[str, ...] = ("nas-hub.local:5407/",)
    """Prefixes an image must start with. Default: only the site's own registry, since an image decides what runs
    beside people's data."""
    pull_seconds: float = Field(3600, gt=0)
    """Longest time one pull may take before it is taken for hung. Unit: seconds. Default one hour: CUDA images are
    large and the first pull on a node is slow."""
    pull_retry_seconds: float = Field(120, gt=0)
    """How long an unreachable registry is retried within one attempt of a job. Unit: seconds. Default 120: longer
    than a registry's restart; then the job is requeued."""


class Partition(Section):
    """What a partition gives to jobs that do not say it themselves."""

    image: str | None = None
    """Image of jobs without `#K8S_IMAGE`. Default none: such jobs are plain Slurm jobs and we leave them alone."""
    priority: str | None = None
    """priorityClassName of its pods. Default none."""
    runtime_class: str | None = None
    """runtimeClassName of its pods on Kubernetes. Default none: `kubernetes.runtime_class`."""
    node_selector: dict[str, str] = {}
    """Labels that a node must have for its pods on Kubernetes, besides being the one that Slurm chose. Default none."""
    tolerations: tuple[Toleration, ...] = ()
    """Taints that its pods tolerate, besides `kubernetes.tolerations`. Default none."""


class Mount(Section):
    """A folder of the host that pods may see."""

    source: Path
    """Path on the host."""
    target: Path
    """Path in the container. Use the same path where you can: paths in job files then mean the same everywhere."""
    read_only: bool = False
    """Whether the job may write there (its own user's rights still apply). Default no."""
    require_mountpoint: bool = False
    """Refuse to start a pod when the source is not a mount point. Default no; turn on for network mounts."""
    nfs: str | None = Field(None, pattern=r"^[^:/]+:/.*$")
    """`server:/export`: on Kubernetes the kubelet mounts it from there, not from the host's path. Default none."""
    claim: str | None = Field(None, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
    """Name of a PersistentVolumeClaim in each person's namespace: on Kubernetes pods mount that instead of the host's
    path, and no pod needs a hostPath. Default none. The node itself still needs the share at `source`."""

    @model_validator(mode="after")
    def _one_source(self) -> "Mount":
        if self.nfs and self.claim:
            raise ValueError("a mount is either an nfs volume or a claim, not both")
        return self


class Agent(Section):
    """The node's agent. `%n` in a path stands for the Slurm node's name, as in Slurm's own configuration."""

    run_folder: Path = Path("/run/slurmk8s")
    """Folder for sockets and for each running job's rendezvous. Default in /run: it must be local and it is right
    that a reboot empties it."""
    state_folder: Path = Path("/var/lib/slurmk8s")
    """Folder for job records and owed work, which must survive a reboot."""
    kill_grace_seconds: float = Field(5.0, ge=0)
    """Time between SIGTERM and SIGKILL when a pod must go. Unit: seconds. Default 5; keep it at least 5 below
    Slurm's KillWait (30)."""
    reap_seconds: float = Field(30.0, gt=0)
    """Time between two looks for pods whose job is over; what is found in two looks running is removed. Unit: seconds.
    Default 30: it is only the net below the Epilog."""
    attempts: int = Field(3, ge=1)
    """How often a job is started when the cluster is at fault (registry down, agent away) before it ends with that
    reason. Default 3: Slurm waits about two minutes between attempts."""
    requeue_delay_seconds: float = Field(0, ge=0)
    """Extra delay before a job that was requeued for a cluster fault may start again. Unit: seconds. Default 0:
    Slurm's own two minutes are enough."""
    sample_seconds: float = Field(5.0, ge=0.5, le=300)
    """Time between two looks at what a job uses (CPU, memory, GPUs), for its summary. Unit: seconds. Default 5: a look
    reads two small files. A job's first seconds are looked at more often."""
    cgroups: Path = Path("/sys/fs/cgroup")
    """Where control groups are mounted, version 1 or 2. Default: the kernel's usual place."""

    def run_folder_of(self, node: str) -> Path:
        """The run folder of a node's agent."""
        return Path(str(self.run_folder).replace("%n", node))

    def state_folder_of(self, node: str) -> Path:
        """The state folder of a node's agent."""
        return Path(str(self.state_folder).replace("%n", node))


class Podman(Section):
    """The backend for one machine without Kubernetes."""

    program: Path = Path("/usr/bin/podman")
    """The podman to call."""
    network: str = "podman"
    """Network of the pods, by podman's name; `none` for no network. Default: podman's bridge."""
    containers_conf: Path | None = None
    """A containers.conf of our own. Default none: the system's."""
    storage_conf: Path | None = None
    """A storage.conf of our own, so that several clusters do not share a store. Default none: the system's."""
    registries_conf: Path | None = None
    """A registries.conf of our own. Default none: the system's."""


class Gpu(Section):
    """How GPUs get into a pod."""

    mode: Literal["count", "pinned"] = "count"
    """On Kubernetes: `count` asks the device plugin for as many as Slurm allocated, and it picks; `pinned` gives the
    very GPUs that Slurm chose, by their UUIDs through the runtime class. Default count: it needs nothing but NVIDIA's
    plugin. podman always gives the very ones."""
    resource: str = "nvidia.com/gpu"
    """What the device plugin calls them. Default NVIDIA's."""
    runtime_class: str = "nvidia"
    """runtimeClassName of pods in mode `pinned`. Default as NVIDIA's operator names it."""
    smi: Path = Path("/usr/bin/nvidia-smi")
    """Program that tells the UUID of each GPU, for mode `pinned`. Default where the driver installs it."""
    devices: str = "/dev/nvidia%d"
    """Device file of GPU number %d on the host. Default NVIDIA's."""
    shared_devices: tuple[Path, ...] = (Path("/dev/nvidiactl"), Path("/dev/nvidia-uvm"))
    """Device files that every job with a GPU needs; those that do not exist are left out. Default NVIDIA's."""


class Environment(Section):
    """What the body sees besides SLURM_* and the variables that `--export` names."""

    pass_through: tuple[str, ...] = ("HF_*", "WANDB_*", "MLFLOW_*", "LANG", "LC_*", "TZ")
    """Variables of the submitter that are handed on, as shell patterns. Default: what training scripts commonly
    need. PATH and library paths are never handed on: the image's own are right in the image."""
    shm_fraction: float = Field(0.5, gt=0, le=1)
    """Size of /dev/shm as a part of the job's memory. Default half, as Linux itself does; PyTorch's DataLoader
    dies with the 64 MB that runtimes give."""


class Retention(Section):
    """How long results stay. Off by default; `slurmk8s prune`, once a day by systemd, does what this says."""

    days: float | None = Field(None, gt=0)
    """Bundles of jobs that ended longer ago are removed. Unit: days. Default none: nothing goes for its age."""
    gib_per_person: float | None = Field(None, gt=0)
    """While one person's bundles are larger together, the oldest are removed. Unit: GiB. Default none: nothing goes for
    its size. Sizes are those that the summaries tell."""
    spare_days: float = Field(7.0, ge=0)
    """Whatever the size, bundles younger than this stay. Unit: days. Default 7: a week to look at what a job left."""


class Results(Section):
    """What a job leaves on the NAS."""

    folder_mode: int = 0o711
    """Mode of `results/<id>`. Default 0711: a squashed root must pass through to mount `outputs`."""
    file_mode: int = 0o600
    """Mode of the files in it. Default 0600: the job's owner alone."""
    outputs_mode: int = 0o700
    """Mode of `outputs`. Default 0700."""
    checksum_processes: int = Field(2, ge=1)
    """How many files are hashed at the same time. Default 2: a spinning NAS gets slower with more."""
    checksum_mib_per_second: int | None = Field(None, ge=1)
    """How fast one bundle is hashed at most, so that a slow NAS keeps room for the jobs. Unit: MiB per second. Default
    none: as fast as it goes, at a low priority for CPU and disk."""
    lost_node_seconds: float = Field(3600, gt=0)
    """How long a node must have been lost to Slurm before the head node writes the summaries of its jobs, from what
    Slurm knows. Unit: seconds. Default one hour: time for a reboot or a repair, since the node itself knows more. If it
    comes back later, what it tells takes the place of that."""
    retention: Retention = Retention()
    """How long results stay; see `[results.retention]`. Default: for ever."""


class Slurm(Section):
    """How Slurm is asked."""

    bin_folder: Path | None = None
    """Folder of sbatch, scontrol and the others. Default none: found on PATH."""
    conf: Path | None = None
    """slurm.conf to use (SLURM_CONF). Default none: Slurm's own search."""
    command_seconds: float = Field(60, gt=0)
    """Longest time one Slurm command may take. Unit: seconds. Default 60: above Slurm's MessageTimeout with retries.
    After it the outcome is unknown, not failed."""
