"""What a pod sees of its node and of the NAS, and nothing else. Pure, but for asking which device files there are.

No image decides where these go: a runtime follows an image's own links when it makes a mount point, so what is mounted
first are the folders that everybody shares, and nothing of ours lies below a path that a person can write.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from slurmk8s.agent.meeting import Places
from slurmk8s.agent.record import Record
from slurmk8s.config import Config, Mount
from slurmk8s.jobfile.k8s import WORKSPACE, is_under
from slurmk8s.pod.manifest import Claim, Files, HostPath, Nfs, Scratch, Volume
from slurmk8s.rendezvous import IN_POD
from slurmk8s.results import paths

# An image that asks for less than this cannot even start a shell with its libraries.
SMALLEST_SHM = 64 << 20
TOLD = str(IN_POD / "told")


def of_podman(config: Config, record: Record, places: Places, home: str, results: Path) -> tuple[Volume, ...]:
    """Paths of this machine, device files among them."""
    chosen = [
        *_meeting(places),
        *_identity(places),
        Volume("shm", HostPath(str(places.shm)), "/dev/shm"),  # noqa: S108 - in the pod
        *_mounts(config, record, host_only=True),
        *_results(config, record, places, results),
    ]
    if not is_under(home, _targets(config, record)):
        chosen.append(Volume("home", HostPath(str(places.home)), home))
    return (*chosen, *_devices(config, record))


def of_kubernetes(
    config: Config, record: Record, places: Places, home: str, results: Path, told: dict[str, str]
) -> tuple[Volume, ...]:
    """GPUs come by the device plugin or the runtime class, /dev/shm and a home by the kubelet.

    Where the NAS is a claim, nothing is a path of the node: what the pod is told comes as a ConfigMap, and the job
    and its pod meet in the bundle on the NAS.
    """
    memory = Scratch(shm_bytes(config, record), memory=True)
    chosen: list[Volume] = []
    if config.uses_claims:
        files = Files(told)
        chosen += [
            Volume("told", files, TOLD, read_only=True),
            Volume("told", files, "/etc/passwd", read_only=True, sub_path="passwd"),
            Volume("told", files, "/etc/group", read_only=True, sub_path="group"),
            *_mounts(config, record),
        ]
    else:
        chosen += [
            *_meeting(places),
            *_identity(places),
            *_mounts(config, record),
            *_results(config, record, places, results),
        ]
    chosen.append(Volume("shm", memory, "/dev/shm"))  # noqa: S108 - in the pod
    if not is_under(home, _targets(config, record)):
        chosen.append(Volume("home", Scratch(), home))
    return tuple(chosen)


def handover_in_pod(config: Config, record: Record, results: Path) -> str:
    """Where the pod finds the hand-over folder."""
    if config.uses_claims:
        return str(results / paths.handover_name(record.attempt))
    return str(IN_POD / "handover")


def workdir_in_pod(config: Config, record: Record, results: Path) -> str:
    """Where the body starts. With a claim there is no /workspace: a kubelet follows links inside a volume."""
    if config.uses_claims and is_under(record.workdir, [WORKSPACE]):
        return str(results / paths.OUTPUTS) + record.workdir.removeprefix(WORKSPACE)
    return record.workdir


def shm_bytes(config: Config, record: Record) -> int:
    """Size of /dev/shm."""
    if record.shm_bytes:
        return record.shm_bytes
    return max(SMALLEST_SHM, int(record.memory_mb * (1 << 20) * config.environment.shm_fraction))


def _meeting(places: Places) -> Iterator[Volume]:
    yield Volume("told", HostPath(str(places.meeting.told)), TOLD, read_only=True)
    yield Volume("handover", HostPath(str(places.meeting.handover)), str(IN_POD / "handover"))


def _identity(places: Places) -> Iterator[Volume]:
    yield Volume("passwd", HostPath(str(places.passwd), "File"), "/etc/passwd", read_only=True)
    yield Volume("group", HostPath(str(places.group), "File"), "/etc/group", read_only=True)


def _results(config: Config, record: Record, places: Places, results: Path) -> Iterator[Volume]:
    """The bundle by the folders that were bound by descriptor: their names on the NAS are the person's to change."""
    if not is_under(str(results), _targets(config, record)):
        yield Volume("results", HostPath(str(places.results)), str(results))
    yield Volume("outputs", HostPath(str(places.outputs)), WORKSPACE)


def _chosen(config: Config, record: Record) -> list[Mount]:
    return [config.mounts[name] for name in dict.fromkeys([*config.standard_mounts, *record.mounts])]


def _targets(config: Config, record: Record) -> list[str]:
    return [str(mount.target) for mount in _chosen(config, record)]


def _mounts(config: Config, record: Record, *, host_only: bool = False) -> Iterator[Volume]:
    for index, mount in enumerate(_chosen(config, record)):
        source: HostPath | Nfs | Claim = HostPath(str(mount.source))
        if mount.claim and not host_only:
            source = Claim(mount.claim)
        elif mount.nfs and not host_only:
            source = Nfs(*mount.nfs.split(":", 1))
        yield Volume(f"mount-{index}", source, str(mount.target), read_only=mount.read_only)


def _devices(config: Config, record: Record) -> Iterator[Volume]:
    for index in record.gpus:
        device = config.gpu.devices.replace("%d", str(index))
        yield Volume(f"gpu-{index}", HostPath(device, "CharDevice"), f"/dev/{os.path.basename(device)}")
    if record.gpus:
        for number, path in enumerate(path for path in config.gpu.shared_devices if path.exists()):
            yield Volume(f"gpu-shared-{number}", HostPath(str(path), "CharDevice"), str(path))
