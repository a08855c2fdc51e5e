"""The pods' network: a bridge and subnet of the cluster's own, so that all that is left of it can be found."""

import contextlib
import re
import shlex
import subprocess

from slurmk8s.local.layout import Layout
from slurmk8s.local.namespace import environment


def create(layout: Layout, subnet: str) -> None:
    """Describe the network to podman, from inside; the bridge itself appears with the first pod."""
    folder = layout.etc / "networks"
    for old in folder.glob("*"):
        old.unlink()
    _podman(layout, "create", "--disable-dns", f"--subnet={subnet}", layout.cluster)
    chosen = _podman(layout, "inspect", "--format", "{{.NetworkInterface}}", layout.cluster).strip()
    # Before 4.4 podman takes no name for the bridge, and two clusters would both be given the first one.
    for path in folder.glob(f"{layout.cluster}.*"):
        path.write_text(path.read_text(encoding="utf-8").replace(f'"{chosen}"', f'"{layout.bridge}"'), encoding="utf-8")


def _podman(layout: Layout, *arguments: str) -> str:
    command = ["podman", "network", *arguments]
    return subprocess.run(command, env=environment(layout), stdout=subprocess.PIPE, text=True, check=True).stdout


def remove(layout: Layout, subnet: str) -> None:
    """Take away what only an orderly end of each pod would have: the bridge and the firewall rules."""
    subprocess.run(["ip", "link", "delete", layout.bridge], stderr=subprocess.DEVNULL, check=False)
    saved = subprocess.run(["iptables-save"], capture_output=True, text=True, check=False).stdout
    for arguments in leftovers(saved, layout.cluster, subnet):
        subprocess.run(["iptables", "-w", *arguments], stderr=subprocess.DEVNULL, check=False)


def leftovers(saved: str, cluster: str, subnet: str) -> list[list[str]]:
    """Arguments of the iptables calls that remove every rule, and then every chain, of this cluster's pods."""
    ours = re.compile(rf'{re.escape(subnet.rpartition(".")[0])}\.\d|name: \\?"{re.escape(cluster)}\\?"')
    table = ""
    rules: list[list[str]] = []
    chains: dict[tuple[str, str], None] = {}
    for line in saved.splitlines():
        if line.startswith("*"):
            table = line[1:]
        if not line.startswith("-A ") or not ours.search(line):
            continue
        words: list[str] = []
        with contextlib.suppress(ValueError):  # a rule of somebody else's with odd quoting
            words = shlex.split(line)
        if not words:
            continue
        rules.append(["-t", table, "-D", *words[1:]])
        # CNI gives each container a chain of its own.
        chains.update(dict.fromkeys((table, word) for word in words if re.fullmatch(r"CNI-(DN-)?[0-9a-f]{20,}", word)))
    return [
        *rules,
        *(["-t", table, flag, chain] for flag in ("-F", "-X") for table, chain in chains),
    ]
