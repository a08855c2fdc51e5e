"""Partitions and nodes as facts. The texts are as 22.05 prints them. Needs nothing."""

from slurmk8s.slurm import facts

PARTITIONS = """\
PartitionName=gpu AllowGroups=ALL Default=YES MaxNodes=4 MaxTime=2-00:00:00 MaxCPUsPerNode=UNLIMITED State=UP \
TotalCPUs=8 TotalNodes=2 MaxMemPerNode=48000
PartitionName=cloud Default=NO MaxNodes=UNLIMITED MaxTime=UNLIMITED MaxCPUsPerNode=8 State=DRAIN TotalNodes=0 \
MaxMemPerNode=UNLIMITED
"""
NODES = """\
NodeName=g1 CPUTot=16 Gres=gpu:a100:4(S:0-1),gpu:t4:2 RealMemory=32000 Partitions=gpu,old OS=Linux 5 x
NodeName=g2 CPUTot=64 Gres=gpu:2 RealMemory=64000 State=DOWN Partitions=gpu Reason=CPUTot is=bad
NodeName=free CPUTot=512 Gres=(null) RealMemory=1
"""


def test_the_largest_node_decides() -> None:
    found = facts.parse(PARTITIONS, NODES)
    gpu = found["gpu"]
    assert (gpu.default, gpu.up, gpu.max_seconds, gpu.nodes, gpu.max_nodes) == (True, True, 172800, 2, 4)
    assert (gpu.cpus_per_node, gpu.memory_mb_per_node, gpu.gpus_per_node) == (64, 48000, 6)
    assert gpu.gpu_types == ("a100", "t4")


def test_nothing_is_known_of_nodes_that_do_not_exist_yet() -> None:
    cloud = facts.parse(PARTITIONS, NODES)["cloud"]
    assert (cloud.up, cloud.max_seconds, cloud.max_nodes) == (False, None, None)
    assert (cloud.cpus_per_node, cloud.memory_mb_per_node, cloud.gpus_per_node, cloud.gpu_types) == (8, None, None, ())


def test_times_are_seconds() -> None:
    assert facts.seconds("1-00:30:00") == 88200
    assert facts.seconds("00:30:00") == 1800
    assert facts.seconds("UNLIMITED") is None
