"""Where everything of a test cluster is: paths below its folder, addresses on its subnet."""

from dataclasses import dataclass
from pathlib import Path

DEFAULT = Path("/var/tmp/slurmk8s-testbed")
NODES = ("kube1", "kube2")
GPUS = 2
"""Per node."""
REGISTRY = "nas-hub.local:5407"
"""The guide's name. Only the nodes' containerd knows it; it leads to the cluster's own address."""


@dataclass(frozen=True)
class Layout:
    """Every path and address. The subnet's number is chosen at `up` and kept in a file."""

    folder: Path

    @property
    def marker(self) -> Path:
        """Is there from the beginning of `up` to the end of `down`: the folder is ours to remove."""
        return self.folder / "testbed"

    @property
    def number(self) -> int:
        """Which of the subnets 10.213.N.0/24 is this cluster's."""
        return int((self.folder / "subnet").read_text(encoding="ascii"))

    @property
    def address(self) -> str:
        """Where the control plane and the registry listen; it is the first node's as well."""
        return f"10.213.{self.number}.1"

    @property
    def server(self) -> str:
        """The API server."""
        return f"https://{self.address}:6443"

    @property
    def registry_address(self) -> str:
        """The registry as this machine reaches it; nodes call it `nas-hub.local:5407`."""
        return f"{self.address}:5407"

    @property
    def cgroup(self) -> str:
        """The parent of all containers' cgroups, so that none is missed at the end."""
        return f"slurmk8s-testbed-{self.number}"

    @property
    def sockets(self) -> Path:
        """Of containerd's shims. Their path may be 42 characters long, which a test's folder is not."""
        return Path(f"/run/slurmk8s-testbed-{self.number}")

    @property
    def bin(self) -> Path:
        """Links to the binaries: kubectl, kubelet, containerd, ctr…"""
        return self.folder / "bin"

    @property
    def pki(self) -> Path:
        """Certificates, keys and tokens."""
        return self.folder / "pki"

    @property
    def log(self) -> Path:
        """One file for each process."""
        return self.folder / "log"

    @property
    def processes(self) -> Path:
        """One file for each process, with its pid."""
        return self.folder / "processes"

    @property
    def hosts(self) -> Path:
        """Where the nodes' containerd looks up registries."""
        return self.folder / "certs.d"

    @property
    def admin(self) -> Path:
        """The kubeconfig that may do everything."""
        return self.folder / "admin.kubeconfig"

    def kubeconfig(self, name: str) -> Path:
        """Of a component."""
        return self.pki / f"{name}.kubeconfig"

    @property
    def nodes(self) -> tuple["Node", ...]:
        """All nodes."""
        return tuple(Node(self, name, index) for index, name in enumerate(NODES))

    def node(self, name: str) -> "Node":
        """One of them."""
        return next(node for node in self.nodes if node.name == name)


@dataclass(frozen=True)
class Node:
    """One node: a containerd and a kubelet with folders, a bridge and an address of its own."""

    layout: Layout
    name: str
    index: int

    @property
    def folder(self) -> Path:
        """All its files."""
        return self.layout.folder / self.name

    @property
    def bridge(self) -> str:
        """The interface that its pods are connected to. The kernel allows 15 characters."""
        return f"sk{self.layout.number}-{self.name}"

    @property
    def subnet(self) -> str:
        """Half of the cluster's."""
        return f"10.213.{self.layout.number}.{128 * self.index}/25"

    @property
    def address(self) -> str:
        """The bridge's own: a kubelet refuses a loopback address."""
        return f"10.213.{self.layout.number}.{128 * self.index + 1}"

    @property
    def socket(self) -> Path:
        """containerd's."""
        return self.folder / "containerd.sock"

    @property
    def kubelet(self) -> Path:
        """The kubelet's root folder, /var/lib/kubelet elsewhere."""
        return self.folder / "kubelet"

    @property
    def device_plugins(self) -> Path:
        """Where device plugins and the kubelet meet."""
        return self.kubelet / "device-plugins"

    @property
    def gpus(self) -> Path:
        """The list of its fake GPUs. A test may edit it (`healthy`); the plugin notices."""
        return self.folder / "gpus" / "gpus.json"

    @property
    def nvidia_smi(self) -> Path:
        """Says what NVIDIA's would say of these GPUs."""
        return self.folder / "gpus" / "nvidia-smi"
