"""Which images and nodes are meant, and what the nodes have. Needs nothing."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slurmk8s.cli import image
from slurmk8s.config import Config, parse
from slurmk8s.errors import PersonFault
from slurmk8s.ops import images
from slurmk8s.ops.images import Held, Stage, Target
from slurmk8s.slurm.programs import Programs

HUB = "nas-hub.local:5407"


def settings(**data: Any) -> Config:
    return parse({"backend": "kubernetes", **data}, "test")


def node(name: str, *, ready: str = "True", taint: str = "", held: dict[str, int] | None = None) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {"taints": [{"key": taint, "effect": "NoSchedule"}]} if taint else {},
        "status": {
            "conditions": [{"type": "Ready", "status": ready, "message": "Kubelet stopped posting node status."}],
            "images": [
                {"names": [f"{image.split(':')[0]}@sha256:{'0' * 64}", image], "sizeBytes": size}
                for image, size in (held or {}).items()
            ],
        },
    }


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("pytorch:2.0", f"{HUB}/pytorch:2.0"),
        ("team/pytorch", f"{HUB}/team/pytorch"),
        (f"{HUB}/alpine:latest", f"{HUB}/alpine:latest"),
    ],
)
def test_a_bare_name_means_the_sites_registry(name: str, full: str) -> None:
    assert images.full_name(name, settings()) == full


def test_another_registry_is_refused_unless_it_is_a_partitions_own_image() -> None:
    with pytest.raises(PersonFault, match=r"quay\.io/x:1 is not from an allowed registry"):
        images.full_name("quay.io/x:1", settings())
    own = settings(partitions={"gpu": {"image": "quay.io/x:1"}, "cpu": {}})
    assert images.full_name("quay.io/x:1", own) == "quay.io/x:1"


def test_what_is_no_image_is_told_with_the_reason() -> None:
    with pytest.raises(PersonFault, match="'Py Torch' is not an image: ") as caught:
        images.full_name("Py Torch", settings())
    assert HUB in caught.value.hint


@pytest.mark.parametrize(
    ("name", "moves"),
    [("h:1/a", True), ("h:1/a:latest", True), ("h:1/a:2.0", False), (f"h:1/a:latest@sha256:{'0' * 64}", False)],
)
def test_only_a_name_that_may_change_is_asked_for_again(name: str, moves: bool) -> None:
    assert images.moves(name) is moves


def test_every_node_but_the_control_plane_is_meant() -> None:
    """By the taint: a label alone is on single-machine clusters too, where jobs do run."""
    nodes = [node("b"), node("a", taint="slurmk8s"), node("master", taint="node-role.kubernetes.io/control-plane")]
    assert [target.name for target in images.targets(nodes, settings())] == ["a", "b"]
    assert [target.name for target in images.targets(nodes, settings(), ["master"])] == ["master"]


def test_slurms_names_are_mapped_and_shown() -> None:
    config = settings(kubernetes={"nodes": {"node1": "worker-7f"}})
    nodes = [node("worker-7f"), node("other")]
    assert images.targets(nodes, config, ["node1"]) == [Target("node1", "worker-7f")]
    assert images.targets(nodes, config) == [Target("other", "other"), Target("node1", "worker-7f")]


def test_a_node_that_kubernetes_does_not_know_is_told_with_the_nearest() -> None:
    with pytest.raises(PersonFault, match="no node 'nodel'") as caught:
        images.targets([node("node1")], settings(), ["nodel"])
    assert caught.value.hint == "Did you mean node1?"


def test_a_node_that_is_not_ready_is_known_before_anything_is_tried() -> None:
    (target,) = images.targets([node("node1", ready="Unknown")], settings())
    assert target.fault == "The node is not ready: Kubelet stopped posting node status."


def test_the_list_shows_names_with_tags_of_what_jobs_may_use() -> None:
    nodes = [node("node2", held={f"{HUB}/b:1": 7, "docker.io/library/x:1": 9}), node("node1", held={f"{HUB}/a:1": 5})]
    chosen = images.targets(nodes, settings())
    assert images.held(nodes, chosen, settings(), everything=False) == [
        Held("node1", f"{HUB}/a:1", 5),
        Held("node2", f"{HUB}/b:1", 7),
    ]
    assert Held("node2", "docker.io/library/x:1", 9) in images.held(nodes, chosen, settings(), everything=True)


def test_an_image_without_a_tag_is_shown_by_its_digest() -> None:
    digest = f"{HUB}/a@sha256:{'1' * 64}"
    assert images.tagged([digest, f"{HUB}/a:<none>"]) == [digest]
    assert images.tagged(["<none>@<none>"]) == []


@pytest.mark.parametrize(
    ("stage", "text"),
    [
        (Stage("waiting"), "waiting"),
        (Stage("pulling", 12.4), "pulling 12 s"),
        (Stage("pulling", 12.4, "The registry is down."), "pulling 12 s (The registry is down.)"),
        (Stage("present"), "present"),
        (Stage("pulled", 34.2), "pulled in 34 s"),
        (Stage("pulled", 0.24), "pulled in 0.2 s"),
        (Stage("failed", sentence="It does not exist."), "failed: It does not exist."),
    ],
)
def test_a_stage_reads_as_a_few_words(stage: Stage, text: str) -> None:
    assert str(stage) == text


def test_a_partitions_nodes_are_slurms(tmp_path: Path) -> None:
    sinfo = tmp_path / "sinfo"
    sinfo.write_text('#!/bin/sh\ncase "$*" in *"--partition gpu "*) echo "node[1-2]";; esac\n')
    sinfo.chmod(0o755)
    programs = Programs(parse({"slurm": {"bin_folder": str(tmp_path)}}, "test").slurm)
    assert images.slurm_nodes("gpu", programs) == ("node1", "node2")
    with pytest.raises(PersonFault, match="no partition 'gpuu'"):
        images.slurm_nodes("gpuu", programs)


class Puller:
    """One node that pulls and one that fails."""

    def __init__(self) -> None:
        self.first, self.second = (Target("node1", "node1"), f"{HUB}/a:1"), (Target("node2", "node2"), f"{HUB}/a:1")
        self.stages: dict[images.Task, Stage] = {self.first: Stage("waiting"), self.second: Stage("waiting")}

    def run(self, show: Callable[[], None]) -> None:
        """Go through the stages."""
        for seconds in (1, 2):
            self.stages[self.first] = Stage("pulling", seconds)
            show()
        self.stages = {self.first: Stage("pulled", 34), self.second: Stage("failed", sentence="No. " * 40)}
        show()


def test_in_a_pipe_each_change_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    image._follow(Puller())
    shown = capsys.readouterr().out
    assert shown.splitlines()[:3] == [
        f"node1: {HUB}/a:1: pulling",
        f"node2: {HUB}/a:1: waiting",
        f"node1: {HUB}/a:1: pulled in 34 s",
    ]
    assert "\033" not in shown


def test_on_a_terminal_lines_are_written_over_and_shown_whole_at_the_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")
    image._follow(Puller())
    *before, last = capsys.readouterr().out.split("\033[2A")
    assert len(before) == 3
    assert all(len(line.replace("\033[2K", "")) < 80 for part in before for line in part.splitlines())
    assert "No. " * 40 in last
    assert "pulled in 34 s" in last
