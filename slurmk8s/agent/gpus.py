"""Which GPUs a pod really has, looked at before its body runs: the very ones, or as many as Slurm says."""

import errno
import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from slurmk8s.config import Gpu
from slurmk8s.errors import ClusterFault, NodeFault, PersonFault

SECONDS_FOR_SMI = 30
_DEVICE = re.compile(r"nvidia([0-9]+)")


@dataclass(frozen=True)
class Card:
    """One GPU of this node, by nvidia-smi."""

    index: int
    uuid: str
    minor: int
    """Number of its device file, which need not be its index."""


def cards(settings: Gpu) -> list[Card]:
    """All GPUs of this node."""
    try:
        asked = subprocess.run(
            [settings.smi, "-q", "-x"], capture_output=True, text=True, timeout=SECONDS_FOR_SMI, check=True
        )
        found = ET.fromstring(asked.stdout).findall("gpu")  # noqa: S314 - the driver's own program
        return [
            Card(index, gpu.findtext("uuid", ""), int(gpu.findtext("minor_number", "-1")))
            for index, gpu in enumerate(found)
        ]
    except (OSError, subprocess.SubprocessError, ET.ParseError, ValueError) as error:
        raise NodeFault(
            f"The GPUs of this node cannot be told apart: {settings.smi} failed ({error}).",
            "Check the driver with `nvidia-smi -L`.",
        ) from None


def uuids(settings: Gpu, indices: Sequence[int]) -> tuple[str, ...]:
    """The UUIDs that Slurm's indices mean."""
    known = {card.index: card.uuid for card in cards(settings)}
    missing = [index for index in indices if index not in known]
    if missing:
        raise NodeFault(
            f"Slurm allocated GPU {_list(missing)}, and this node's driver has only {_list(sorted(known))}.",
            "Compare gres.conf with `nvidia-smi -L`.",
        )
    return tuple(known[index] for index in indices)


def minors_of(proc: Path, pids: Sequence[int]) -> list[int]:
    """The GPUs that a container sees, by the device files in its /dev, which its runtime made.

    In an image /dev can be a link, which would lead us to wherever it says on the node.
    """
    for pid in pids:
        try:
            names = _names(proc / str(pid) / "root")
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR):
                raise PersonFault("The image's /dev is not a folder.", "Use an image whose /dev is one.") from None
            continue  # it has just ended
        return sorted(int(match[1]) for name in names if (match := _DEVICE.fullmatch(name)))
    raise ClusterFault("The job's container was ended before its GPUs could be looked at.")


def _names(root: Path) -> list[str]:
    top = os.open(root, os.O_PATH | os.O_CLOEXEC)
    try:
        dev = os.open("dev", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=top)
        try:
            return os.listdir(dev)
        finally:
            os.close(dev)
    finally:
        os.close(top)


def require(settings: Gpu, allocated: Sequence[int], proc: Path, pids: Sequence[int]) -> None:
    """NodeFault unless the container has what Slurm allocated."""
    minors = minors_of(proc, pids)
    if settings.mode == "count":
        if len(minors) != len(allocated):
            seen = ", ".join(f"/dev/nvidia{minor}" for minor in minors) or "none"
            raise NodeFault(
                f"Slurm allocated {len(allocated)} GPU(s) ({_list(allocated)}); the pod has {len(minors)} ({seen}).",
                "Compare gres.conf with what the device plugin offers: `kubectl describe node`.",
            )
        return
    all_cards = cards(settings)
    chosen = {card.uuid for card in all_cards if card.index in allocated}
    seen_uuids = {card.uuid for card in all_cards if card.minor in minors}
    if chosen != seen_uuids or len(minors) != len(allocated):
        raise NodeFault(
            f"Slurm allocated the GPU(s) {_list(sorted(chosen))}; the pod has {_list(sorted(seen_uuids)) or 'none'}.",
            f"Check the runtime class {settings.runtime_class} on this node.",
        )


def _list(values: Sequence[object]) -> str:
    return ", ".join(str(value) for value in values)
