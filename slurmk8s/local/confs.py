"""The text of every configuration file of a local cluster; pure, so that a test can read what a cluster would get."""

import json
from collections.abc import Mapping
from pathlib import Path

from slurmk8s.local.layout import NAS_MOUNT, Layout
from slurmk8s.local.plan import Decided

GPU_MAJOR = 195
"""NVIDIA's character device number; gres.conf accepts only character devices."""


def slurm_conf(decided: Decided, host: str, settings: Mapping[str, str]) -> str:
    """slurm.conf: what makes it private and one-machine, then `settings`, which replace ours where both speak."""
    layout, ports, plan = decided.plan.layout, decided.ports, decided.plan
    ours = {
        "ClusterName": layout.cluster,
        "SlurmctldHost": f"{host}(127.0.0.1)",
        "SlurmctldPort": str(ports.slurmctld),
        "SlurmUser": "root",
        "SlurmdUser": "root",
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={layout.munge_socket}",
        "CredType": "cred/munge",
        "StateSaveLocation": str(layout.slurm_state),
        "SlurmdSpoolDir": f"{layout.spool}/%n",
        "SlurmctldPidFile": f"{layout.run}/slurmctld.pid",
        "SlurmdPidFile": f"{layout.run}/slurmd-%n.pid",
        "SlurmctldLogFile": str(layout.log / "slurmctld.log"),
        "SlurmdLogFile": f"{layout.log}/slurmd-%n.log",
        # Nothing of the host's cgroups or accounting is touched: the machine may run a Slurm of its own.
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none",
        "JobAcctGatherType": "jobacct_gather/none",
        "AccountingStorageType": "accounting_storage/none",
        "MpiDefault": "none",
        # Several nodes on one host are more than it has.
        "SlurmdParameters": "config_overrides",
        "ReturnToService": "2",
        "GresTypes": "gpu",
        # Without it a job that names no memory gets the whole node, and the next one waits.
        "DefMemPerCPU": str(min(node.memory_mb // node.cpus for node in decided.nodes.values())),
    }
    # Slurm takes a repeated key's last value in silence and its keys in any case: one line per key.
    merged = {key.lower(): (key, value) for key, value in ours.items()}
    merged |= {key.lower(): (key, value) for key, value in settings.items()}
    merged |= {key.lower(): (key, value) for key, value in plan.slurm_overrides.items()}
    gres = f" Gres=gpu:{plan.gpus}" if plan.gpus else ""
    lines = ["# Written by `slurmk8s local up`; changes are lost at the next one."]
    lines += [f"{key}={value}" for key, value in merged.values()]
    lines += [
        f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports.slurmd[name]} "
        f"CPUs={node.cpus} Sockets=1 CoresPerSocket={node.cpus} ThreadsPerCore=1 "
        f"RealMemory={node.memory_mb}{gres} State=UNKNOWN"
        for name, node in decided.nodes.items()
    ]
    # The guide's jobs name `gpu`, `cpu` or no partition.
    lines += ["PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP"]
    lines += [f"PartitionName={name} Nodes=ALL MaxTime=INFINITE State=UP" for name in ("cpu", "gpu")]
    return "\n".join(lines) + "\n"


def gres_conf(decided: Decided) -> str:
    """Each node has its own count from 0, as on real machines; they share the fake devices."""
    plan = decided.plan
    return "".join(
        f"NodeName={name} Name=gpu File={plan.layout.devices}/nvidia{number}\n"
        for name in plan.node_names
        for number in range(plan.gpus)
    )


def our_config(decided: Decided) -> str:
    """config.toml."""
    layout = decided.plan.layout
    tables: dict[str, dict[str, object]] = {
        "": {"cluster": layout.cluster, "backend": decided.plan.backend, "log_folder": str(layout.log)},
        "nas": {"root": str(NAS_MOUNT), "require_mountpoint": True},
        # A local disk has no copying client that pauses.
        "intake": {"settle_seconds": 0.5, "scan_seconds": 0.5, "idle_scan_seconds": 2.0},
        "images": {"registry": "nas-hub.local:5407", "allowed": ["nas-hub.local:5407/"]},
        "agent": _agent(layout),
        "slurm": {"conf": str(layout.slurm_conf)},
        **(_for_kubernetes(decided) if decided.plan.on_kubernetes else _for_podman(layout)),
    }
    for key, value in decided.plan.config_overrides.items():
        table, _, name = key.rpartition(".")
        tables.setdefault(table, {})[name] = value
    return toml(tables)


def _agent(layout: Layout) -> dict[str, object]:
    return {"run_folder": layout.agent_run, "state_folder": layout.agent_state}


def _for_podman(layout: Layout) -> dict[str, dict[str, object]]:
    return {
        "podman": {
            "network": layout.cluster,
            "containers_conf": layout.podman_environment["CONTAINERS_CONF"],
            "storage_conf": layout.podman_environment["CONTAINERS_STORAGE_CONF"],
            "registries_conf": layout.podman_environment["CONTAINERS_REGISTRIES_CONF"],
        },
        "gpu": {"devices": f"{layout.devices}/nvidia%d", "shared_devices": []},
    }


def _for_kubernetes(decided: Decided) -> dict[str, dict[str, object]]:
    layout = decided.plan.layout
    return {
        "agent": {**_agent(layout), "cgroups": str(layout.host_cgroups)},
        # The kubelet mounts what the host sees, where the NAS is at its own place.
        "mounts.nas": {"source": str(layout.nas), "target": str(NAS_MOUNT)},
        "kubernetes": {
            "kubeconfig": layout.agent_kubeconfig,
            "head_kubeconfig": str(layout.head_kubeconfig),
            # Several local clusters may share one Kubernetes.
            "namespace": f"{layout.cluster}-user-%u",
            "system_namespace": layout.cluster,
            "proc": str(layout.host_proc),
        },
        "kubernetes.nodes": {name: node.kube for name, node in decided.nodes.items()},
    }


def toml(tables: Mapping[str, Mapping[str, object]]) -> str:
    """Tables of plain values as TOML, whose strings, numbers, booleans and lists JSON writes the same way."""
    parts = []
    for name, values in tables.items():
        header = f"[{name}]\n" if name else ""
        parts.append(header + "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items()))
    return "\n".join(parts)


def containers_conf(layout: Layout) -> str:
    """podman: nothing shared with the machine's own podman, and no limit that root here may not set."""
    return toml(
        {
            # podman asks for more open files than a container without CAP_SYS_RESOURCE may grant.
            "containers": {"default_ulimits": ["nofile=16384:16384", "nproc=16384:16384"]},
            "engine": {
                "runtime": "runc",  # crun refuses machines with both cgroup versions
                "cgroup_manager": "cgroupfs",  # no systemd is needed
                "events_logger": "file",
                "tmp_dir": str(layout.run / "libpod"),
                "static_dir": str(layout.containers / "libpod"),
                "volume_path": str(layout.containers / "volumes"),
                "image_copy_tmp_dir": "storage",  # else pulls that were cut short stay in /var/tmp
            },
            "network": {"network_config_dir": str(layout.etc / "networks")},
        }
    )


def storage_conf(layout: Layout) -> str:
    """Where podman keeps images and containers."""
    return toml(
        {
            "storage": {
                "driver": "overlay",
                "graphroot": str(layout.containers),
                "runroot": str(layout.run / "containers"),
            }
        }
    )


def registries_conf(port: int) -> str:
    """The guide's registry name leads to ours; no other is searched."""
    registry = f'[[registry]]\nprefix = "nas-hub.local:5407"\nlocation = "localhost:{port}"\ninsecure = true\n'
    return f"unqualified-search-registries = []\n\n{registry}"


def registry_config(layout: Layout, port: int) -> str:
    """docker-registry's own file; JSON is YAML."""
    return json.dumps(
        {
            "version": 0.1,
            "log": {"level": "warn", "accesslog": {"disabled": True}},
            "storage": {"filesystem": {"rootdirectory": str(layout.registry)}, "delete": {"enabled": True}},
            "http": {"addr": f"127.0.0.1:{port}"},
        },
        indent=1,
    )


def env_file(layout: Layout, path: Path) -> str:
    """What people source: works in any sh, twice, for root and for the person."""
    return f"""\
# Source this to use the local cluster in {layout.folder}:  . {path}
export SLURM_CONF={layout.slurm_conf}
export SLURMK8S_CONFIG={layout.config}
export SLURMK8S_RESULTS_ROOT={layout.results}
export SLURMK8S_LOCAL_DIR={layout.folder}
case ":$PATH:" in *":{layout.bin}:"*) ;; *) export PATH="{layout.bin}:$PATH" ;; esac
"""
