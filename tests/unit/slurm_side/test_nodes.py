"""Reading `scontrol show node -d -o`, as 22.05 prints it. Needs nothing."""

from slurmk8s.slurm import nodes

SHOWN = (
    "NodeName=node1 Arch=x86_64 CoresPerSocket=4  CPUAlloc=4 CPUEfctv=14 CPUTot=16 CPULoad=0.84 "
    "AvailableFeatures=(null) ActiveFeatures=(null) Gres=gpu:tesla:2,gpu:t4:1 GresDrain=N/A "
    "GresUsed=gpu:tesla:2(IDX:0-1),gpu:t4:0(IDX:N/A) NodeAddr=127.0.0.1 NodeHostName=vm Port=46871 Version=22.05.8 "
    "OS=Linux 6.18.44 #1 SMP @0  RealMemory=8000 AllocMem=100 FreeMem=18996 Sockets=2 Boards=1 CoreSpecCount=1 "
    "CPUSpecList=14-15 MemSpecLimit=500 State=IDLE+DRAIN ThreadsPerCore=2 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A "
    "Partitions=cpu,boxed  BootTime=1794851161 AllocTRES=cpu=4,mem=100M "
    "Reason=slurmk8s: State=IDLE [of the] NAS is not mounted. [root@1794852089]\n"
    "NodeName=node2 State=DOWN*+CLOUD CPUTot=4 RealMemory=8000 Partitions=cpu\n"
)


def test_what_a_node_has_and_why_it_takes_no_jobs() -> None:
    node = nodes.parse(SHOWN)["node1"]
    assert (node.states, node.takes_jobs, node.responds) == (("IDLE", "DRAIN"), False, True)
    assert node.reason == "slurmk8s: State=IDLE [of the] NAS is not mounted."
    assert (node.reason_by, node.reason_since) == ("root", 1794852089)
    assert (node.cpus, node.cpus_for_jobs, node.cores, node.core_spec, node.cpus_free) == (16, 14, 8, 1, 10)
    assert (node.memory_mb, node.memory_for_jobs_mb, node.memory_free_mb) == (8000, 7500, 7400)
    assert (node.gpus, node.gpus_used, node.gpus_free) == (3, 2, 1)
    assert node.partitions == ("cpu", "boxed")


def test_a_silent_node_is_told_by_its_star() -> None:
    node = nodes.parse(SHOWN)["node2"]
    assert node.states == ("DOWN", "NOT_RESPONDING", "CLOUD")
    assert (node.takes_jobs, node.responds, node.reason, node.cpus_for_jobs) == (False, False, "", 4)


def test_a_node_that_is_switched_off_takes_jobs() -> None:
    for state in ("IDLE~", "IDLE#", "IDLE+POWERED_DOWN", "MIXED-", "ALLOCATED", "IDLE+CLOUD+POWERING_UP"):
        assert nodes.parse(f"NodeName=n State={state} CPUTot=1")["n"].takes_jobs, state
    for state in ("DOWN", "MIXED+DRAIN", "IDLE*", "IDLE+MAINTENANCE", "FUTURE", "IDLE+FAIL"):
        assert not nodes.parse(f"NodeName=n State={state} CPUTot=1")["n"].takes_jobs, state
