"""What a local cluster would be given, read without one."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from slurmk8s import config
from slurmk8s.errors import SetupError
from slurmk8s.local import confs, images, machine, network, plan
from slurmk8s.local.plan import Decided, Node, Plan, Ports


def decided(**fields: Any) -> Decided:
    wanted = Plan(folder=Path("/srv/c"), nodes=2, gpus=2, **fields)
    ports = Ports(21000, 21001, {"node1": 21002, "node2": 21003})
    nodes = {"node1": Node(4, 8192, "kube1"), "node2": Node(2, 4096, "kube2")}
    return Decided(wanted, "kim", ports, "10.130.7.0/24", nodes)


def test_slurm_conf_says_each_key_once_and_the_last_word_is_the_tests() -> None:
    settings = {"ReturnToService": "1", "KillWait": "30"}
    text = confs.slurm_conf(decided(slurm_overrides={"killwait": "3"}), "host", settings)
    keys = [line.partition("=")[0].lower() for line in text.splitlines() if re.match(r"\w+=\S+$", line)]
    assert len(keys) == len(set(keys))
    assert "ReturnToService=1\n" in text
    assert "killwait=3\n" in text
    assert "KillWait=30" not in text


def test_slurm_conf_has_all_nodes_and_the_guides_partitions() -> None:
    text = confs.slurm_conf(decided(), "host", {})
    shown = re.findall(r"^NodeName=(\S+) .* Port=(\d+) CPUs=(\d) .* RealMemory=(\d+) Gres=gpu:2", text, re.MULTILINE)
    assert shown == [("node1", "21002", "4", "8192"), ("node2", "21003", "2", "4096")]
    assert re.findall(r"^PartitionName=(\S+)", text, re.MULTILINE) == ["main", "cpu", "gpu"]


def test_our_config_is_valid_and_takes_settings_of_tests() -> None:
    text = confs.our_config(decided(config_overrides={"intake.settle_seconds": 0.25, "partitions.gpu.image": "a:1"}))
    parsed = config.parse(tomllib.loads(text), "config.toml")
    assert parsed.nas.require_mountpoint
    assert parsed.intake.settle_seconds == 0.25
    assert parsed.partitions["gpu"].image == "a:1"
    assert parsed.gpu.devices % 1 == "/srv/c/dev/nvidia1"


def test_on_kubernetes_the_config_names_what_the_host_sees_and_what_is_the_clusters_own() -> None:
    text = confs.our_config(decided(backend="kubernetes", config_overrides={"kubernetes.quota.cpu": 2}))
    parsed = config.parse(tomllib.loads(text), "config.toml")
    cluster = decided().plan.layout.cluster
    nas = parsed.mounts["nas"]
    assert (str(nas.source), str(nas.target), str(parsed.nas.root)) == ("/srv/c/nas", "/mnt/nas", "/mnt/nas")
    assert parsed.kubernetes.namespace_of(1000) == f"{cluster}-user-1000"
    assert parsed.kubernetes.system_namespace == cluster
    assert parsed.kubernetes.node_of("node2") == "kube2"
    assert parsed.kubernetes.kubeconfig_of("node1") == Path("/srv/c/etc/agent-node1.kubeconfig")
    assert parsed.kubernetes.proc == Path("/srv/c/host/proc")
    assert parsed.kubernetes.quota.cpu == 2


def test_files_for_podman_are_toml() -> None:
    layout = decided().plan.layout
    for text in (confs.containers_conf(layout), confs.storage_conf(layout), confs.registries_conf(21001)):
        assert tomllib.loads(text)


@pytest.mark.parametrize("fields", [{}, {"kubeconfig": Path("/etc/admin.conf"), "kube_nodes": ("kube1", "kube2")}])
def test_a_plan_survives_its_file(tmp_path: Path, fields: dict[str, Any]) -> None:
    wanted = Plan(folder=tmp_path, config_overrides={"a.b": [1, "x"]}, slurm_overrides={"K": "v"}, **fields)
    whole = Decided(wanted, "kim", Ports(1, 2, {"node1": 3}), "10.130.7.0/24", {"node1": Node(4, 9216, "kube1")})
    plan.write(whole)
    assert plan.read(wanted.layout) == whole


@pytest.mark.parametrize(
    ("folder", "why"),
    [("/srv/a b", "characters"), ("/srv/" + "x" * 80, "too long"), ("/srv/한글", "characters")],
)
def test_a_folder_that_slurm_or_a_socket_cannot_hold_is_refused(folder: str, why: str) -> None:
    with pytest.raises(SetupError, match=why):
        plan.checked(Plan(folder=Path(folder)))


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"backend": "kubernetes"}, "--kubeconfig"),
        ({"kubeconfig": Path("/etc/admin.conf")}, "--backend kubernetes"),
        ({"backend": "kubernetes", "kubeconfig": Path("/etc/admin.conf"), "test_image": True}, "own registry"),
    ],
)
def test_a_plan_that_cannot_be_meant_is_refused_with_a_next_step(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(SetupError, match=why):
        plan.checked(Plan(**fields))


@pytest.mark.parametrize(
    ("text", "value"),
    [("a.b=1.5", 1.5), ("a.b=true", True), ('a.b=["x"]', ["x"]), ("a.b=/some/path", "/some/path"), ("a.b=x=y", "x=y")],
)
def test_a_setting_is_read_as_toml_or_else_as_a_word(text: str, value: object) -> None:
    assert plan.toml_setting(text) == ("a.b", value)


SAVED = r"""
*filter
-A FORWARD -m comment --comment "CNI firewall plugin rules" -j CNI-FORWARD
-A CNI-FORWARD -s 10.130.7.2/32 -j ACCEPT
-A CNI-FORWARD -s 10.130.70.2/32 -j ACCEPT
COMMIT
*nat
-A POSTROUTING -s 10.130.7.2/32 -m comment --comment "name: \"slurmk8s-x\" id: \"5\"" -j CNI-f5577c7bb97cc237dd818044
-A POSTROUTING -s 10.9.7.2/32 -m comment --comment "name: \"other\" id: \"6\"" -j CNI-aaaaaaaabb97cc237dd81804
-A CNI-f5577c7bb97cc237dd818044 ! -d 224.0.0.0/4 -m comment --comment "name: \"slurmk8s-x\" id: \"5\"" -j MASQUERADE
"""


def test_only_this_clusters_firewall_rules_and_chains_are_removed() -> None:
    chain = "CNI-f5577c7bb97cc237dd818044"
    comment = ["-m", "comment", "--comment", 'name: "slurmk8s-x" id: "5"']
    assert network.leftovers(SAVED, "slurmk8s-x", "10.130.7.0/24") == [
        ["-t", "filter", "-D", "CNI-FORWARD", "-s", "10.130.7.2/32", "-j", "ACCEPT"],
        ["-t", "nat", "-D", "POSTROUTING", "-s", "10.130.7.2/32", *comment, "-j", chain],
        ["-t", "nat", "-D", chain, "!", "-d", "224.0.0.0/4", *comment, "-j", "MASQUERADE"],
        ["-t", "nat", "-F", chain],
        ["-t", "nat", "-X", chain],
    ]


def test_a_node_is_never_too_small_for_the_guides_example() -> None:
    node = machine.node_size(64)
    assert node.cpus >= 4
    assert node.memory_mb >= 8 * 1024


def test_the_sample_image_has_the_name_that_the_guide_uses() -> None:
    assert images.SAMPLE == "nas-hub.local:5407/alpine:latest"
