"""One node: containerd and kubelet with everything they write kept below the node's folder."""

import json
import resource
from pathlib import Path
from string import Template
from typing import Any

from .layout import REGISTRY, Node

PAUSE = f"{REGISTRY}/pause:latest"
RESOURCE = "nvidia.com/gpu"

CONTAINERD = Template("""\
version = 3
root = "$folder/containerd/root"
state = "$folder/containerd/state"
# Not used here, or not possible: NRI's socket has a path outside the folder.
disabled_plugins = ["io.containerd.nri.v1.nri", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.erofs"]

[grpc]
  address = "$socket"
[ttrpc]
  address = "$socket.ttrpc"

[plugins."io.containerd.shim.v1.manager"]
  socket_dir = "$sockets"

[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "$pause"
  [plugins."io.containerd.cri.v1.images".registry]
    config_path = "$hosts"

[plugins."io.containerd.cri.v1.runtime"]
  # A container here may not set a score lower than its own: no CAP_SYS_RESOURCE.
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["/usr/lib/cni"]
    conf_dir = "$folder/cni"
  [plugins."io.containerd.cri.v1.runtime".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
        Root = "$folder/runc"
        SystemdCgroup = false
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.nvidia]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.nvidia.options]
        Root = "$folder/runc"
        SystemdCgroup = false
        BinaryName = "$folder/gpus/nvidia-runtime"
""")


def prepare(node: Node) -> None:
    """Write what its daemons read."""
    for folder in (node.folder / "cni", node.device_plugins, node.layout.sockets / node.name):
        folder.mkdir(parents=True)
    values = {
        "folder": node.folder,
        "socket": node.socket,
        "sockets": node.layout.sockets / node.name,
        "hosts": node.layout.hosts,
        "pause": PAUSE,
    }
    (node.folder / "containerd.toml").write_text(CONTAINERD.substitute(values), encoding="utf-8")
    (node.folder / "cni" / "10-testbed.conflist").write_text(json.dumps(_cni(node)), encoding="utf-8")
    (node.folder / "kubelet.yaml").write_text(json.dumps(_kubelet(node), indent=1), encoding="utf-8")


def _cni(node: Node) -> dict[str, Any]:
    """A bridge, and addresses out of the node's subnet; no masquerading, which would leave firewall rules behind."""
    bridge = {
        "type": "bridge",
        "bridge": node.bridge,
        # Else the plugin switches forwarding on for the whole machine. The bridge has its address from us.
        "isGateway": False,
        "ipMasq": False,
        "ipam": {
            "type": "host-local",
            "dataDir": str(node.folder / "addresses"),
            "ranges": [[{"subnet": node.subnet, "gateway": node.address}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    return {"cniVersion": "0.4.0", "name": node.bridge, "plugins": [bridge]}


def _kubelet(node: Node) -> dict[str, Any]:
    pki = node.layout.pki
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node.address,
        "healthzBindAddress": node.address,
        "tlsCertFile": str(pki / "server.crt"),
        "tlsPrivateKeyFile": str(pki / "server.key"),
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(pki / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": f"unix://{node.socket}",
        "clusterDNS": [node.layout.address],  # nobody answers; without one every pod gets a warning
        "clusterDomain": "cluster.local",
        # Two kubelets on one machine: each would sweep away what the other has in the default places.
        "podLogsDir": str(node.folder / "pod-logs"),
        "volumePluginDir": str(node.folder / "volume-plugins"),
        # What the kernel and the missing CAP_SYS_RESOURCE leave us.
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{node.layout.cgroup}/{node.name}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "oomScoreAdj": 0,
        "maxOpenFiles": resource.getrlimit(resource.RLIMIT_NOFILE)[1],
        # Two nodes share one disk and one memory, which tests fill.
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "evictionPressureTransitionPeriod": "5s",
        "imageGCHighThresholdPercent": 100,
        # How old the kubelet's knowledge of a volume's size may be, by which it evicts: a minute elsewhere.
        "volumeStatsAggPeriod": "5s",
        # A lease is renewed in a quarter of this time, so a lost node is noticed soon (see UNREACHABLE_SECONDS).
        "nodeLeaseDurationSeconds": 8,
        "nodeStatusUpdateFrequency": "2s",
        # Tests start many pods at once, and each wants to see its events.
        "registryPullQPS": 0,
        "serializeImagePulls": False,
        "eventRecordQPS": 0,
        "makeIPTablesUtilChains": False,
        "enableControllerAttachDetach": True,
    }


def containerd_command(node: Node) -> list[str]:
    """Of its containerd."""
    return [str(node.layout.bin / "containerd"), "--config", str(node.folder / "containerd.toml")]


def kubelet_command(node: Node) -> list[str]:
    """Of its kubelet."""
    return [
        str(node.layout.bin / "kubelet"),
        f"--config={node.folder / 'kubelet.yaml'}",
        f"--kubeconfig={node.layout.kubeconfig(f'kubelet-{node.name}')}",
        f"--hostname-override={node.name}",
        f"--node-ip={node.address}",
        f"--root-dir={node.kubelet}",
        f"--cert-dir={node.folder / 'pki'}",
        "--v=2",
    ]


def gpu_plugin_command(node: Node) -> list[str]:
    """Of its device plugin."""
    command = [str(node.layout.bin / "gpu-plugin"), "--resource", RESOURCE]
    return [*command, "--gpus", str(node.gpus), "--folder", str(node.device_plugins)]


def write_hosts(hosts: Path, registry_address: str) -> None:
    """Lead the guide's registry name to the cluster's own, without TLS."""
    folder = hosts / REGISTRY
    folder.mkdir(parents=True)
    text = f'server = "http://{registry_address}"\n[host."http://{registry_address}"]\n'
    (folder / "hosts.toml").write_text(text + '  capabilities = ["pull", "resolve"]\n', encoding="utf-8")
