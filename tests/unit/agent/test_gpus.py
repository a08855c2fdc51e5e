"""What a pod's GPUs are compared with, and what is said when they differ. The driver's program is a script here."""

from pathlib import Path

import pytest

from slurmk8s.agent import gpus
from slurmk8s.config import Gpu
from slurmk8s.errors import ClusterFault, NodeFault, PersonFault

# The second card has the device file of number 3, as after a card was replaced.
XML = """<nvidia_smi_log>
<gpu id="0"><uuid>GPU-aaaa</uuid><minor_number>0</minor_number></gpu>
<gpu id="1"><uuid>GPU-bbbb</uuid><minor_number>3</minor_number></gpu>
</nvidia_smi_log>"""


@pytest.fixture
def smi(tmp_path: Path) -> Path:
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\ncat <<'EOF'\n{XML}\nEOF\n")
    program.chmod(0o755)
    return program


def proc(tmp_path: Path, *devices: str) -> Path:
    dev = tmp_path / "proc" / "42" / "root" / "dev"
    dev.mkdir(parents=True)
    for name in ("null", "nvidiactl", "nvidia-uvm", *devices):
        (dev / name).touch()
    return tmp_path / "proc"


def test_slurms_indices_are_turned_into_uuids(smi: Path) -> None:
    assert gpus.uuids(Gpu(smi=smi), [1, 0]) == ("GPU-bbbb", "GPU-aaaa")


def test_an_index_that_the_driver_does_not_have_is_the_nodes_fault(smi: Path) -> None:
    with pytest.raises(NodeFault, match="Slurm allocated GPU 2, and this node's driver has only 0, 1"):
        gpus.uuids(Gpu(smi=smi), [0, 2])


def test_a_driver_that_does_not_answer_is_the_nodes_fault(tmp_path: Path) -> None:
    with pytest.raises(NodeFault, match="cannot be told apart"):
        gpus.uuids(Gpu(smi=tmp_path / "none"), [0])


def test_as_many_as_slurm_says_are_enough_where_they_are_counted(tmp_path: Path) -> None:
    gpus.require(Gpu(), [0, 1], proc(tmp_path, "nvidia4", "nvidia5"), [42])


@pytest.mark.parametrize(("devices", "seen"), [((), "0 \\(none\\)"), (("nvidia0", "nvidia1"), "2 \\(/dev/nvidia0")])
def test_another_number_is_told_with_both_lists(tmp_path: Path, devices: tuple[str, ...], seen: str) -> None:
    with pytest.raises(NodeFault, match=rf"Slurm allocated 1 GPU\(s\) \(0\); the pod has {seen}"):
        gpus.require(Gpu(), [0], proc(tmp_path, *devices), [42])


def test_the_very_ones_are_found_by_their_device_number(tmp_path: Path, smi: Path) -> None:
    gpus.require(Gpu(mode="pinned", smi=smi), [1], proc(tmp_path, "nvidia3"), [7, 42])


def test_others_than_slurms_are_told_with_both_lists(tmp_path: Path, smi: Path) -> None:
    with pytest.raises(NodeFault, match="allocated the GPU\\(s\\) GPU-bbbb; the pod has GPU-aaaa"):
        gpus.require(Gpu(mode="pinned", smi=smi), [1], proc(tmp_path, "nvidia0"), [42])


def test_a_container_that_is_gone_cannot_be_looked_at(tmp_path: Path) -> None:
    """Somebody deleted the pod, which is no fault of the node's."""
    with pytest.raises(ClusterFault, match="was ended before"):
        gpus.require(Gpu(), [0], tmp_path, [42])


def test_an_image_whose_dev_leads_elsewhere_is_the_persons_fault(tmp_path: Path) -> None:
    """Followed, it would show the node's own files, none of them a GPU, and the node would be drained for it."""
    root = tmp_path / "42" / "root"
    root.mkdir(parents=True)
    (root / "dev").symlink_to("/dev")
    with pytest.raises(PersonFault, match="/dev is not a folder"):
        gpus.require(Gpu(), [0], tmp_path, [42])
