"""The cluster's subnet and one bridge for each node: nothing outside 10.213.N.0/24 is touched."""

import ipaddress
import json
import subprocess
from typing import Any

from .layout import Layout


class TestbedError(Exception):
    """Something that keeps the cluster from starting, in one sentence."""

    __test__ = False  # pytest, it is no test


def create(layout: Layout) -> None:
    """Take a free number and make the bridges. Making the first one is what decides between two that want it."""
    taken = [ipaddress.ip_network(str(route["dst"])) for route in _ip("route", "show") if route["dst"] != "default"]
    for number in range(1, 255):
        if any(ipaddress.ip_network(f"10.213.{number}.0/24").overlaps(network) for network in taken):
            continue
        (layout.folder / "subnet").write_text(str(number), encoding="ascii")  # first: so that `down` finds the bridge
        first, *others = layout.nodes
        made = _run("link", "add", first.bridge, "type", "bridge")
        if made.returncode:
            if "File exists" in made.stderr:
                continue
            raise TestbedError(f"The bridge {first.bridge} cannot be made: {made.stderr.strip()}")
        for node in others:
            _check("link", "add", node.bridge, "type", "bridge")
        for node in layout.nodes:
            _check("link", "set", node.bridge, "alias", str(layout.folder))
            _check("address", "add", f"{node.address}/25", "dev", node.bridge)
            _check("link", "set", node.bridge, "up")
        return
    raise TestbedError("No subnet 10.213.N.0/24 is free. Are there many test clusters? See `ip link`.")


def remove(layout: Layout) -> None:
    """Delete the bridges, unless they are another cluster's."""
    try:
        nodes = layout.nodes
        names = [node.bridge for node in nodes]
    except FileNotFoundError:
        return
    for link in _ip("link", "show", "type", "bridge"):
        # The alias is set a moment after the bridge is made: killed in between, it has none.
        if link["ifname"] in names and link.get("ifalias", "") in ("", str(layout.folder)):
            _run("link", "delete", link["ifname"])


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)


def _check(*arguments: str) -> None:
    done = _run(*arguments)
    if done.returncode:
        raise TestbedError(f"`ip {' '.join(arguments)}` failed: {done.stderr.strip()}")


def _ip(*arguments: str) -> list[dict[str, Any]]:
    done = _run("-details", "-json", *arguments)
    found: list[dict[str, Any]] = json.loads(done.stdout or "[]")
    return [entry for entry in found if entry]
