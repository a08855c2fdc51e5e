"""Which Kubernetes nodes a local cluster uses, and how large Slurm may take them for."""

from pathlib import Path
from typing import Any

import pytest

from slurmk8s.errors import SetupError
from slurmk8s.local import kubernetes
from slurmk8s.local.plan import Node, Plan
from slurmk8s.ops.books import Amounts


def node(name: str, ready: str = "True", **spec: Any) -> dict[str, Any]:
    conditions = [{"type": "DiskPressure", "status": "False"}, {"type": "Ready", "status": ready}]
    return {"metadata": {"name": name}, "spec": spec, "status": {"conditions": conditions}}


def plan(**fields: Any) -> Plan:
    return Plan(folder=Path("/srv/c"), backend="kubernetes", kubeconfig=Path("/f"), **fields)


def test_nodes_that_are_ready_are_taken_by_name() -> None:
    known = [node("c"), node("a"), node("b", ready="Unknown"), node("d", unschedulable=True), node("e", ready="False")]
    assert kubernetes.choose(known, plan(nodes=2)) == {"node1": "a", "node2": "c"}
    assert kubernetes.choose(known, plan(nodes=1)) == {"node1": "a"}


def test_nodes_that_were_named_are_taken_in_that_order() -> None:
    chosen = kubernetes.choose([node("a"), node("b"), node("c")], plan(nodes=2, kube_nodes=("c", "a")))
    assert chosen == {"node1": "c", "node2": "a"}


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"nodes": 3}, "3 nodes were asked for, but Kubernetes has 2.*--nodes"),
        ({"nodes": 2, "kube_nodes": ("a", "a")}, "has 1 for them"),
        ({"kube_nodes": ("x",)}, "no node 'x'.*Ready are: a, b"),
        ({"kube_nodes": ("late",)}, "no node 'late' that is ready"),
    ],
)
def test_too_few_nodes_or_a_wrong_name_is_told_with_a_next_step(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(SetupError, match=why):
        kubernetes.choose([node("a"), node("b"), node("late", ready="Unknown")], plan(**fields))


def free(millicores: int, memory_mb: int) -> Amounts:
    return Amounts(millicores=millicores, memory=(memory_mb << 20) + 1)


def test_slurm_may_give_away_what_other_pods_leave() -> None:
    assert kubernetes.size("a", free(3650, 15060), Node(64, 1 << 20)) == Node(3, 15060, "a")


def test_a_node_is_no_larger_than_its_share_of_the_machine() -> None:
    assert kubernetes.size("a", free(7500, 16384), Node(4, 9216)) == Node(4, 9216, "a")


@pytest.mark.parametrize("left", [free(500, 16384), free(4000, -1000)])
def test_a_node_that_others_fill_is_refused(left: Amounts) -> None:
    with pytest.raises(SetupError, match=r"leave too little.*kubectl describe node a"):
        kubernetes.size("a", left, Node(4, 9216))
