"""Whose fault it is that a pod ended otherwise than by its own process."""

import pytest
from kubernetes_samples import LOW, NO_DEVICE, REJECTED, UNHEALTHY, checked, ended, pod

from slurmk8s.errors import ClusterFault, NodeFault, PersonFault, SlurmK8sError
from slurmk8s.pod.kubernetes_text import one_line
from slurmk8s.pod.kubernetes_words import deleted, end_fault, start_fault


@pytest.mark.parametrize(
    ("reason", "message", "kind", "said"),
    [
        (
            "Evicted",
            'Usage of EmptyDir volume "home" exceeds the limit "50Gi". ',
            PersonFault,
            "The job wrote more to /home/kim than the 50Gi it may hold.",
        ),
        (
            "Evicted",
            'Container job exceeded its local ephemeral storage limit "50Gi". ',
            PersonFault,
            "the 50Gi it may",
        ),
        (
            "Evicted",
            "Pod ephemeral local storage usage exceeds the total limit of containers 50Gi. ",
            PersonFault,
            "the 50Gi it may",
        ),
        (
            "Evicted",
            LOW,
            ClusterFault,
            "The node was low on resource: memory.",
        ),
        (
            "Evicted",
            "The node had condition: [DiskPressure]. ",
            ClusterFault,
            "The node had condition: [DiskPressure].",
        ),
        (
            "OutOfcpu",
            REJECTED + "Node didn't have enough resource: cpu, requested: 4000, used: 500, capacity: 2000",
            ClusterFault,
            "on node1 (CPUs: 4 needed, 0.5 of 2 taken).",
        ),
        (
            "OutOfmemory",
            REJECTED
            + "Node didn't have enough resource: memory, requested: 8589934592, used: 104857600, capacity: 4294967296",
            ClusterFault,
            "(MiB of memory: 8192 needed, 100 of 4096 taken).",
        ),
        (
            "OutOfpods",
            REJECTED + "Node didn't have enough resource: pods, requested: 1, used: 110, capacity: 110",
            ClusterFault,
            "(pods: 1 needed, 110 of 110 taken).",
        ),
        (
            "UnexpectedAdmissionError",
            NO_DEVICE,
            ClusterFault,
            "(nvidia.com/gpu: 2 needed, 1 free).",
        ),
        (
            "UnexpectedAdmissionError",
            UNHEALTHY,
            ClusterFault,
            "(nvidia.com/gpu: none is healthy).",
        ),
        ("UnexpectedAdmissionError", REJECTED + "Update plugin resources failed", ClusterFault, "refused the pod"),
        ("Preempting", "Preempted in order to admit critical pod", ClusterFault, "pre-empted on node1"),
        (
            "DeadlineExceeded",
            "Pod was active on the node longer than the specified deadline",
            ClusterFault,
            "activeDeadlineSeconds",
        ),
        ("NodeLost", "Node node1 which was running pod x is unresponsive", NodeFault, "does not answer"),
        (
            "Terminated",
            "Pod was terminated in response to imminent node shutdown.",
            ClusterFault,
            "node1 is being shut down",
        ),
        ("NodeShutdown", "Pod was rejected as the node is shutting down.", ClusterFault, "is being shut down"),
        (
            "NodeAffinity",
            REJECTED + "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
            ClusterFault,
            "does not admit",
        ),
        (
            "SupplementalGroupsPolicyNotSupported",
            "SupplementalGroupsPolicy=Strict is not supported in this node",
            NodeFault,
            "supplementalGroupsPolicy",
        ),
        ("SomethingNew", "in words", ClusterFault, "refused the pod (SomethingNew): in words."),
    ],
)
def test_a_pod_that_the_kubelet_ended_or_refused(
    reason: str, message: str, kind: type[SlurmK8sError], said: str
) -> None:
    dead = pod(phase="Failed", reason=reason, message=message)
    assert checked(end_fault(dead), kind, said).hint
    checked(start_fault(dead, []), kind, said)


@pytest.mark.parametrize(
    ("reason", "kind", "said"),
    [
        ("PreemptionByScheduler", ClusterFault, "pre-empted"),
        ("DeletionByTaintManager", NodeFault, "NoExecute taint"),
        ("DeletionByPodGC", NodeFault, "no node called node1"),
        ("EvictionByEvictionAPI", NodeFault, "kubectl drain"),
        ("SomethingNew", ClusterFault, "SomethingNew"),
    ],
)
def test_a_pod_that_was_taken_off_its_node(reason: str, kind: type[SlurmK8sError], said: str) -> None:
    target = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "words"}
    gone = pod(phase="Running", conditions=[target])
    gone["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:31Z", "deletionGracePeriodSeconds": 30}
    assert checked(end_fault(gone), kind, said).hint


def test_a_pod_that_somebody_deleted() -> None:
    gone = pod(phase="Running")
    gone["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:31Z", "deletionGracePeriodSeconds": 30}
    fault = checked(end_fault(gone), ClusterFault, "Somebody deleted the pod slurm-job-5")
    assert str(fault) == str(deleted("slurm-job-5"))


def test_a_job_that_ended_before_its_pod_was_deleted_ended_by_itself() -> None:
    done = ended("Completed", code=0, phase="Succeeded")
    done["metadata"] |= {"deletionTimestamp": "2026-01-01T00:01:00Z", "deletionGracePeriodSeconds": 30}
    assert end_fault(done) is None
    killed = ended("Error", code=143)
    killed["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:35Z", "deletionGracePeriodSeconds": 30}
    checked(end_fault(killed), ClusterFault, "Somebody deleted")


def test_a_node_that_forgot_the_container() -> None:
    checked(end_fault(ended("ContainerStatusUnknown", code=137)), ClusterFault, "lost the job's container")


def test_an_exit_code_says_enough() -> None:
    for reason, code in (("Completed", 0), ("Error", 3), ("OOMKilled", 137)):
        assert end_fault(ended(reason, code=code)) is None


def test_words_are_cut_in_the_middle_and_stay_on_one_line() -> None:
    text = one_line("begin\n\x1b[31m" + "x " * 1000 + "\nthe cause.")
    assert len(text) == 400
    assert text.startswith("begin [31mx x")
    assert text.endswith("the cause")
