"""Every path and name of a local cluster, derived from its folder alone."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

DEFAULT_FOLDER = Path("/var/lib/slurmk8s/local")
NAS_MOUNT = Path("/mnt/nas")
LOG_MOUNT = Path("/var/log/slurm-k8s")


@dataclass(frozen=True)
class Layout:
    """One class owns every path. `%n` stands for a Slurm node's name, as in Slurm's own files."""

    folder: Path

    @property
    def identity(self) -> str:
        """Eight characters that tell this cluster from every other on the machine."""
        return hashlib.sha256(str(self.folder).encode()).hexdigest()[:8]

    @property
    def cluster(self) -> str:
        """Name of the cluster: the label its pods carry, its podman network and its cgroup."""
        return f"slurmk8s-{self.identity}"

    @property
    def bridge(self) -> str:
        """Network interface of its pods; the kernel allows 15 characters."""
        return f"sk8s-{self.identity}"

    @property
    def plan(self) -> Path:
        """What `up` was asked for; written by `up` alone. Its presence marks the folder as ours."""
        return self.folder / "plan.json"

    @property
    def state(self) -> Path:
        """What runs; written by the supervisor alone."""
        return self.folder / "state.json"

    @property
    def lock(self) -> Path:
        """Held by `up` and `down` while they work."""
        return self.folder / ".lock"

    @property
    def env(self) -> Path:
        """The file people source."""
        return self.folder / "env"

    @property
    def bin(self) -> Path:
        """`slurmk8s`, `slurmk8s-run` and the hooks, with absolute paths in them."""
        return self.folder / "bin"

    @property
    def venv(self) -> Path:
        """Our program, where the job's user can reach it."""
        return self.folder / "venv"

    @property
    def nas(self) -> Path:
        """The NAS as seen from outside; inside it is /mnt/nas."""
        return self.folder / "nas"

    @property
    def jobs(self) -> Path:
        """Where files are dropped and receipts appear, from outside."""
        return self.nas / "slurm-jobs"

    @property
    def results(self) -> Path:
        """Where results appear, from outside."""
        return self.nas / "results"

    @property
    def etc(self) -> Path:
        """Generated configuration."""
        return self.folder / "etc"

    @property
    def slurm_conf(self) -> Path:
        """Slurm looks for gres.conf and job_submit.lua beside it."""
        return self.etc / "slurm" / "slurm.conf"

    @property
    def config(self) -> Path:
        """Our own configuration."""
        return self.etc / "config.toml"

    @property
    def log(self) -> Path:
        """One file per daemon, and the hooks' own."""
        return self.folder / "log"

    @property
    def run(self) -> Path:
        """A tmpfs: to podman a restart must look like a reboot. It exists only inside, unless a kubelet must see it."""
        return self.folder / "run"

    @property
    def agent_run(self) -> str:
        """`agent.run_folder`."""
        return f"{self.run}/%n"

    @property
    def agent_state(self) -> str:
        """`agent.state_folder`."""
        return f"{self.folder}/state/%n"

    @property
    def host_proc(self) -> Path:
        """The host's /proc as seen inside, whose own /proc shows no process of a kubelet's pods."""
        return self.folder / "host" / "proc"

    @property
    def host_cgroups(self) -> Path:
        """The host's control groups as seen inside, where those of a kubelet's pods do not show."""
        return self.folder / "host" / "cgroup"

    @property
    def agent_kubeconfig(self) -> str:
        """`kubernetes.kubeconfig`."""
        return f"{self.etc}/agent-%n.kubeconfig"

    @property
    def head_kubeconfig(self) -> Path:
        """`kubernetes.head_kubeconfig`."""
        return self.etc / "head.kubeconfig"

    @property
    def munge(self) -> Path:
        """Key and socket. Not below `run`: people outside must reach the socket."""
        return self.folder / "munge"

    @property
    def munge_socket(self) -> Path:
        """What Slurm's clients speak to."""
        return self.munge / "munge.socket"

    @property
    def slurm_state(self) -> Path:
        """Of slurmctld: job ids go on counting after a restart, so results are never mixed up."""
        return self.folder / "slurmctld"

    @property
    def spool(self) -> Path:
        """Of slurmd, one folder per node."""
        return self.folder / "slurmd"

    @property
    def containers(self) -> Path:
        """The store of podman."""
        return self.folder / "containers"

    @property
    def registry(self) -> Path:
        """The registry's store."""
        return self.folder / "registry"

    @property
    def devices(self) -> Path:
        """Fake GPUs."""
        return self.folder / "dev"

    @property
    def podman_environment(self) -> dict[str, str]:
        """What makes podman use this cluster's store and nothing else."""
        return {
            "CONTAINERS_CONF": str(self.etc / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(self.etc / "storage.conf"),
            "CONTAINERS_REGISTRIES_CONF": str(self.etc / "registries.conf"),
            # As systemd tells its services: podman then leaves a container's monitor in our cgroup. In the pod's own,
            # `pod rm` waits 3 s for the monitor's cleanup, which waits for `pod rm` (podman 4.3).
            "INVOCATION_ID": self.identity * 4,
        }
