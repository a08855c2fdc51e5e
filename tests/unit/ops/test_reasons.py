"""Why a job waits, in words. Needs nothing."""

from dataclasses import replace
from typing import Any

import pytest
from why_samples import NODE, NOW, seen

from slurmk8s.ops import reasons
from slurmk8s.ops.waiting import Waiting, freest, ordinal
from slurmk8s.slurm.queue import Place

# Every reason that 22.05's libslurm knows, but those of limits, which are below.
PLAIN = """
None Priority Dependency Resources PartitionNodeLimit PartitionTimeLimit PartitionDown PartitionInactive JobHeldAdmin
BeginTime Licenses AssociationJobLimit AssociationResourceLimit AssociationTimeLimit Reservation ReservationDeleted
ReqNodeNotAvail NodeDown FrontEndDown BadConstraints SystemFailure JobLaunchFailure NonZeroExitCode TimeLimit
InactiveLimit InvalidAccount InvalidQOS QOSUsageThreshold QOSJobLimit QOSResourceLimit QOSTimeLimit RaisedSignal:9
Cleaning Prolog QOSNotAllowed AccountNotAllowed DependencyNeverSatisfied JobHeldUser JobHoldMaxRequeue
JobArrayTaskLimit BurstBufferResources BurstBufferStageIn BurstBufferOperation PowerNotAvail PowerReserved FedJobLock
MaxMemPerLimit PartitionConfig DeadLine OutOfMemory
"""

LIMITS = """
AssocGrpBB AssocGrpBBMinutes AssocGrpBBRunMinutes AssocGrpBilling AssocGrpBillingMinutes AssocGrpBillingRunMinutes
AssocGrpCPUMinutesLimit AssocGrpCPURunMinutesLimit AssocGrpCpuLimit AssocGrpEnergy AssocGrpEnergyMinutes
AssocGrpEnergyRunMinutes AssocGrpGRES AssocGrpGRESMinutes AssocGrpGRESRunMinutes AssocGrpJobsLimit AssocGrpLicense
AssocGrpLicenseMinutes AssocGrpLicenseRunMinutes AssocGrpMemLimit AssocGrpMemMinutes AssocGrpMemRunMinutes
AssocGrpNodeLimit AssocGrpNodeMinutes AssocGrpNodeRunMinutes AssocGrpSubmitJobsLimit AssocGrpUnknown
AssocGrpUnknownMinutes AssocGrpUnknownRunMinutes AssocGrpWallLimit AssocMaxBBMinutesPerJob AssocMaxBBPerJob
AssocMaxBBPerNode AssocMaxBillingMinutesPerJob AssocMaxBillingPerJob AssocMaxBillingPerNode
AssocMaxCpuMinutesPerJobLimit AssocMaxCpuPerJobLimit AssocMaxCpuPerNode AssocMaxEnergyMinutesPerJob
AssocMaxEnergyPerJob AssocMaxEnergyPerNode AssocMaxGRESMinutesPerJob AssocMaxGRESPerJob AssocMaxGRESPerNode
AssocMaxJobsLimit AssocMaxLicenseMinutesPerJob AssocMaxLicensePerJob AssocMaxMemMinutesPerJob AssocMaxMemPerJob
AssocMaxMemPerNode AssocMaxNodeMinutesPerJob AssocMaxNodePerJobLimit AssocMaxSubmitJobLimit
AssocMaxUnknownMinutesPerJob AssocMaxUnknownPerJob AssocMaxUnknownPerNode AssocMaxWallDurationPerJobLimit
MaxBBPerAccount MaxBillingPerAccount MaxCpuPerAccount MaxEnergyPerAccount MaxGRESPerAccount MaxJobsPerAccount
MaxLicensePerAccount MaxMemoryPerAccount MaxNodePerAccount MaxSubmitJobsPerAccount MaxUnknownPerAccount QOSGrpBB
QOSGrpBBMinutes QOSGrpBBRunMinutes QOSGrpBilling QOSGrpBillingMinutes QOSGrpBillingRunMinutes QOSGrpCPUMinutesLimit
QOSGrpCPURunMinutesLimit QOSGrpCpuLimit QOSGrpEnergy QOSGrpEnergyMinutes QOSGrpEnergyRunMinutes QOSGrpGRES
QOSGrpGRESMinutes QOSGrpGRESRunMinutes QOSGrpJobsLimit QOSGrpLicense QOSGrpLicenseMinutes QOSGrpLicenseRunMinutes
QOSGrpMemLimit QOSGrpMemoryMinutes QOSGrpMemoryRunMinutes QOSGrpNodeLimit QOSGrpNodeMinutes QOSGrpNodeRunMinutes
QOSGrpSubmitJobsLimit QOSGrpUnknown QOSGrpUnknownMinutes QOSGrpUnknownRunMinutes QOSGrpWallLimit QOSMaxBBPerJob
QOSMaxBBPerNode QOSMaxBBPerUser QOSMaxBillingMinutesPerJob QOSMaxBillingPerJob QOSMaxBillingPerNode
QOSMaxBillingPerUser QOSMaxCpuMinutesPerJobLimit QOSMaxCpuPerJobLimit QOSMaxCpuPerNode QOSMaxCpuPerUserLimit
QOSMaxEnergyMinutesPerJob QOSMaxEnergyPerJob QOSMaxEnergyPerNode QOSMaxEnergyPerUser QOSMaxGRESMinutesPerJob
QOSMaxGRESPerJob QOSMaxGRESPerNode QOSMaxGRESPerUser QOSMaxJobsPerUserLimit QOSMaxLicenseMinutesPerJob
QOSMaxLicensePerJob QOSMaxLicensePerUser QOSMaxMemoryMinutesPerJob QOSMaxMemoryPerJob QOSMaxMemoryPerNode
QOSMaxMemoryPerUser QOSMaxNodeMinutesPerJob QOSMaxNodePerJobLimit QOSMaxNodePerUserLimit QOSMaxSubmitJobPerUserLimit
QOSMaxUnknownMinutesPerJob QOSMaxUnknownPerJob QOSMaxUnknownPerNode QOSMaxUnknownPerUser
QOSMaxWallDurationPerJobLimit QOSMinBB QOSMinBilling QOSMinCpuNotSatisfied QOSMinEnergy QOSMinGRES QOSMinLicense
QOSMinMemory QOSMinNode QOSMinUnknown
"""

DRAINED = replace(NODE, states=("IDLE", "DRAIN"), reason="slurmk8s: The NAS is not mounted.", cpus_used=0)


def clause(reason: str, **around: Any) -> str:
    facts = {name: around.pop(name) for name in ("place", "nodes") if name in around}
    return reasons.told(Waiting(seen(reason, **around), now=NOW, **facts)).clause


@pytest.mark.parametrize("reason", [*PLAIN.split(), *LIMITS.split()])
def test_every_reason_of_slurm_has_words_of_its_own(reason: str) -> None:
    told = reasons.told(Waiting(seen(reason), now=NOW))
    assert "Slurm says" not in told.clause
    assert "{" not in told.clause + told.step


def test_what_nobody_knows_is_passed_on_as_slurm_says_it() -> None:
    assert clause("SomethingNew") == "Slurm says “SomethingNew”"
    assert clause("Evil\x1b[2J") == "Slurm says “Evil\\x1b[2J”"


def test_the_place_in_the_queue_is_told() -> None:
    place = Place("gpu", 3, 12)
    assert clause("Priority", place=place) == "other jobs go first; it is 3rd of 12 in partition gpu"
    assert "it is next in partition gpu" in clause("Resources", place=Place("gpu", 1, 1))


def test_what_is_missing_is_told_with_the_numbers_and_the_expected_start() -> None:
    said = clause("Resources", expected_start=NOW + 90, planned_nodes=("gpu1",))
    assert "(4 CPUs, 3.9 GiB of memory and 2 GPUs on one node)" in said
    assert "on gpu1 (in 1 min 30 s) or earlier" in said
    assert "Slurm expects" not in clause("Resources", expected_start=NOW - 1)  # a plan that is past


@pytest.mark.parametrize("reason", ["Priority", "Resources", "NodeDown"])
def test_drained_nodes_are_the_cause_whatever_slurm_calls_it(reason: str) -> None:
    told = reasons.told(Waiting(seen(reason), Place("gpu", 1, 2), {"gpu1": DRAINED}, NOW))
    words = "the only node of partition gpu takes no jobs: gpu1 is IDLE+DRAIN (slurmk8s: The NAS is not mounted)"
    assert told.clause == words
    assert "administrator" in told.step
    one_left = {"gpu1": DRAINED, "gpu2": replace(NODE, name="gpu2")}
    assert "IDLE+DRAIN" not in reasons.told(Waiting(seen("Priority"), None, one_left, NOW)).clause


def test_a_required_node_that_is_drained_is_named_with_its_reason() -> None:
    both = {"gpu1": DRAINED, "gpu2": replace(NODE, name="gpu2")}
    said = clause("ReqNodeNotAvail, UnavailableNodes:gpu1", nodes=both, required_nodes=("gpu1",))
    assert said == "it asks for gpu1, and gpu1 is IDLE+DRAIN (slurmk8s: The NAS is not mounted)"
    reserved = clause("ReqNodeNotAvail, May be reserved for other job", nodes=both, required_nodes=("gpu2",))
    assert "reserved for other jobs" in reserved


def test_the_long_sentence_of_slurm_is_understood_in_both_spellings() -> None:
    long = "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"
    for written in (long, long.replace(" ", "_")):
        assert clause(written, nodes={"gpu1": DRAINED}).startswith("the only node of partition gpu takes no jobs")
        assert "down, drained or reserved" in clause(written, nodes={"gpu1": NODE})


def test_a_requeue_delay_is_told_apart_from_begin() -> None:
    assert clause("BeginTime", expected_start=NOW + 3600).endswith("(in 1 h 0 min) (--begin)")
    said = clause(
        "BeginTime", expected_start=NOW + 100, job_restarts=1, job_comment="x requeued: The registry is down."
    )
    assert said.startswith("it was put back into the queue (The registry is down), and Slurm does not start it again")
    assert "(in 1 min 40 s)" in said


def test_dependencies_are_read_out() -> None:
    assert clause("Dependency", dependency="afterok:3(unfulfilled)") == "it is to start after the good end of job 3"
    two = "afterany:3:4(unfulfilled),singleton(unfulfilled)"
    assert clause("Dependency", dependency=two) == (
        "it is to start after the end of jobs 3 and 4 and after all earlier jobs of the same name and person"
    )
    assert "never" in clause("DependencyNeverSatisfied", dependency="afterok:3(failed)")
    assert clause("Dependency", dependency="afternotok:13_*(unfulfilled)").endswith("after the failure of job 13")


def test_a_hold_comes_with_the_way_out_of_it() -> None:
    told = reasons.told(Waiting(seen("JobHeldUser", job_array_job_id=7, job_array_task_id=2), now=NOW))
    assert told.step == "`scontrol release 7_2` lets it go."
    dropped = seen("JobHeldUser", job_comment=f"slurmk8s-key={'0' * 32} slurmk8s")
    assert "released by itself" in reasons.told(Waiting(dropped, now=NOW)).step
    assert "could not be started" in clause("launch_failed_requeued_held")


def test_limits_say_whose_and_of_what() -> None:
    assert clause("QOSMaxGRESPerUser") == (
        "its QOS normal lets one person have only so many GPUs or other devices at a time, and that many are in use"
    )
    assert clause("AssocGrpCpuLimit").startswith("its account lab lets all its jobs together have only so many CPUs")
    assert clause("AssocMaxCpuPerJobLimit").startswith("it asks for more CPUs than its account lab lets one job have")
    assert clause("QOSGrpCPUMinutesLimit") == "its QOS normal has used up its CPU-minutes"
    assert clause("QOSMinGRES").startswith("it asks for fewer GPUs or other devices than its QOS normal demands")


def test_the_freest_node_is_the_one_with_gpus() -> None:
    nodes = [NODE, DRAINED, replace(NODE, name="gpu2", gpus_used=0, cpus_used=7)]
    assert freest(nodes) == (
        "2 of 3 nodes take jobs; the freest, gpu2, has 1 of 8 CPUs, 7.8 GiB of 15.6 GiB of memory and 2 of 2 GPUs free"
    )
    assert freest([DRAINED]) == "no node takes jobs"


def test_ordinals() -> None:
    words = [ordinal(number) for number in (1, 2, 3, 4, 11, 12, 13, 21, 102, 111)]
    assert words == ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "102nd", "111th"]
