"""What this machine decides: the person the cluster serves, free ports, a free subnet, how large a node is."""

import ipaddress
import os
import pwd
import socket
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path

from slurmk8s.errors import SetupError
from slurmk8s.local.plan import Node, Plan, Ports

ACCOUNT = "slurmk8s-user"
# Below the range that the kernel gives to outgoing connections: a restarted daemon must find its port still free.
FIRST_PORT, LAST_PORT = 21000, 31999
PROGRAMS = ("slurmctld", "slurmd", "sbatch", "munged", "unshare", "nsenter", "setpriv")
PODMANS = ("podman", "runc", "docker-registry", "ip", "iptables", "busybox")


def require_programs(plan: Plan) -> None:
    """All at once, so that one apt-get is enough."""
    needed = PROGRAMS if plan.on_kubernetes else (*PROGRAMS, *PODMANS)
    places = [Path(place) for place in search_path().split(":")]
    missing = [name for name in needed if not any((place / name).exists() for place in places)]
    if missing:
        raise SetupError(
            f"Not installed here: {', '.join(missing)}.", "Run `make deps`, or see docs/local.md for the packages."
        )


def search_path() -> str:
    """PATH of everything we start: Debian keeps Slurm's and munge's daemons in sbin, which people may lack."""
    return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def person(plan: Plan) -> pwd.struct_passwd:
    """Whom the cluster serves: `--user`, else the one who called sudo, else an account of our own."""
    name = plan.user or os.environ.get("SUDO_USER")
    if not plan.user and name in (None, "root"):
        name = ACCOUNT
    assert name is not None
    try:
        account = pwd.getpwnam(name)
    except KeyError:
        if name != ACCOUNT:
            raise SetupError(f"There is no account {name!r} here.", "Name another with --user.") from None
        subprocess.run(["useradd", "--create-home", "--shell", "/bin/bash", ACCOUNT], check=True)
        account = pwd.getpwnam(name)
    if account.pw_uid == 0:
        raise SetupError("Jobs never run as root, so root cannot be the cluster's person.", "Name another with --user.")
    return account


def free_ports(plan: Plan) -> Ports:
    """Ports nobody listens on; the search starts at a place of the cluster's own, so a restart finds the same ones."""
    found = ports(plan.layout.identity)
    slurmctld, registry = next(found), 0 if plan.on_kubernetes else next(found)
    return Ports(slurmctld, registry, {name: next(found) for name in plan.node_names})


def ports(identity: str) -> Iterator[int]:
    """Ports nobody listens on, below those the kernel gives to connections: a restarted daemon finds its own free."""
    span = LAST_PORT - FIRST_PORT + 1
    start = zlib.crc32(identity.encode()) % span
    for step in range(span):
        port = FIRST_PORT + (start + step) % span
        with socket.socket() as probe:
            # As the daemons do: a port in TIME_WAIT is free, a port somebody listens on is not.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("0.0.0.0", port))  # noqa: S104 - only to see that it is free
            except OSError:
                continue
        yield port
    raise SetupError(f"No TCP port between {FIRST_PORT} and {LAST_PORT} is free.")


def free_subnet(identity: str) -> str:
    """A /24 for the pods that no route of this machine covers."""
    routes = subprocess.run(
        ["ip", "-4", "route", "show", "table", "all"], capture_output=True, text=True, check=True
    ).stdout
    taken = []
    for word in routes.split():
        try:
            network = ipaddress.ip_network(word, strict=False)
        except ValueError:
            continue
        if isinstance(network, ipaddress.IPv4Network) and network.prefixlen > 0:
            taken.append(network)
    start = zlib.crc32(identity.encode())
    for step in range(0x4000):
        number = (start + step) % 0x4000  # 10.128.0.0/24 … 10.191.255.0/24: seldom used by sites and by podman itself
        candidate = ipaddress.ip_network(f"10.{128 + (number >> 8)}.{number & 255}.0/24")
        if not any(candidate.overlaps(network) for network in taken):
            return str(candidate)
    raise SetupError(
        "No private subnet is free for the pods.", "Remove routes of 10.128.0.0/10, or unused podman networks."
    )


def node_size(nodes: int) -> Node:
    """CPUs and memory (MiB) of each node: its share of the machine, but enough for the guide's example job."""
    memory = next(
        int(line.split()[1]) // 1024
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        if line.startswith("MemTotal:")
    )
    return Node(max(4, (os.cpu_count() or 1) // nodes), max(9216, memory * 9 // 10 // nodes))
