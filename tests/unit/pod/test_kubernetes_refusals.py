"""What a refused pod means. The messages are those of Kubernetes 1.34 (tests/kube/test_failures.py gets them anew)."""

from typing import Any

import pytest

from slurmk8s.errors import ClusterFault, PersonFault, SlurmK8sError
from slurmk8s.kube.faults import Refused, answer_fault
from slurmk8s.pod.kubernetes_refusals import QuotaFull, refusal

IMAGE = "nas-hub.local:5407/pytorch:2.0"
FORBIDDEN = 'pods "slurm-job-5" is forbidden: '
QUOTA = FORBIDDEN + "exceeded quota: slurmk8s, requested: {}, used: {}, limited: {}"
RBAC = (
    'pods is forbidden: User "system:serviceaccount:slurmk8s:node1" cannot create resource "pods" in API group "" in '
    'the namespace "user-1000"'
)
POLICY = (
    "ValidatingAdmissionPolicy 'slurmk8s-pods' with binding 'slurmk8s-pods' denied request: a job's pod runs as its "
    "namespace's user"
)
BUSY = (
    'Operation cannot be fulfilled on resourcequotas "slurmk8s": the object has been modified; please apply your '
    "changes to the latest version and try again"
)
PRIVILEGED = FORBIDDEN + (
    'violates PodSecurity "restricted:latest": restricted volume types (volume "mount-0" uses restricted volume type '
    '"hostPath")'
)


def fault_of(message: str, code: int = 403, reason: str = "Forbidden", **details: Any) -> SlurmK8sError:
    status = {"message": message, "reason": reason, "details": details}
    refused = answer_fault(code, status, "POST /api/v1/namespaces/user-1000/pods", "/etc/slurmk8s/kubeconfig")
    assert isinstance(refused, Refused)
    fault = refusal(refused, IMAGE, "user-1000", 1000)
    assert "\n" not in str(fault)
    assert fault.sentence.endswith(".")
    return fault


@pytest.mark.parametrize(
    ("message", "code", "kind", "said"),
    [
        (RBAC, 403, ClusterFault, "credential may not make pods"),
        ("Unauthorized", 401, ClusterFault, "does not accept this node's credential"),
        (FORBIDDEN + POLICY, 403, ClusterFault, "Admission refused: the policy slurmk8s-pods does not allow the pod"),
        ('Pod "slurm-job-5" is invalid: ' + POLICY, 422, ClusterFault, "a job's pod runs as its namespace's user"),
        (PRIVILEGED, 403, ClusterFault, "does not allow the pod"),
        (
            'admission webhook "images.example.com" denied the request: image is not signed',
            400,
            ClusterFault,
            "images.example.com does not allow the pod: image is not signed",
        ),
        (FORBIDDEN + "no PriorityClass with name urgent was found", 403, PersonFault, "no PriorityClass urgent"),
        (FORBIDDEN + 'pod rejected: RuntimeClass "nvidia" not found', 403, ClusterFault, "no RuntimeClass nvidia"),
        (
            FORBIDDEN + "unable to create new content in namespace user-1000 because it is being terminated",
            403,
            ClusterFault,
            "is being deleted",
        ),
        (
            FORBIDDEN + 'error looking up service account user-1000/default: serviceaccount "default" not found',
            403,
            ClusterFault,
            "is not ready yet",
        ),
        (
            BUSY,
            409,
            ClusterFault,
            "busy with the quota",
        ),
        (
            FORBIDDEN + "failed quota: slurmk8s: must specify requests.memory for: job",
            403,
            PersonFault,
            "requests.memory for: job",
        ),
        (FORBIDDEN + "maximum cpu usage per Container is 2, but limit is 4", 403, PersonFault, "LimitRange"),
        (FORBIDDEN + "something new", 403, ClusterFault, "something new"),
        ('Pod "slurm-job-5" is invalid: spec.containers[0].name: Required value', 422, SlurmK8sError, "Required value"),
        ("the object provided is unrecognized", 400, SlurmK8sError, "unrecognized"),
    ],
)
def test_a_refused_pod_is_somebodys_fault(message: str, code: int, kind: type[SlurmK8sError], said: str) -> None:
    fault = fault_of(message, code)
    assert type(fault) is kind
    assert said in fault.sentence


def test_a_missing_namespace_names_who_makes_it() -> None:
    fault = fault_of('namespaces "user-1000" not found', 404, "NotFound", name="user-1000", kind="namespaces")
    assert type(fault) is ClusterFault
    assert "slurm-job-watcher" in fault.hint


def test_rights_that_lack_name_the_command_that_gives_them() -> None:
    assert "slurmk8s cluster rbac" in fault_of(RBAC).hint


def test_a_full_quota_says_the_numbers_and_waits() -> None:
    fault = fault_of(QUOTA.format("requests.cpu=4", "requests.cpu=30", "requests.cpu=32"))
    assert type(fault) is QuotaFull
    assert isinstance(fault, ClusterFault)
    assert "CPUs: 4 needed, 30 of 32 in use" in fault.sentence


def test_several_full_resources_are_told_once_each() -> None:
    asked = "limits.memory=8Gi,requests.memory=8Gi,requests.nvidia.com/gpu=1"
    used = "limits.memory=124Gi,requests.memory=124Gi,requests.nvidia.com/gpu=4"
    limited = "limits.memory=128Gi,requests.memory=128Gi,requests.nvidia.com/gpu=4"
    fault = fault_of(QUOTA.format(asked, used, limited))
    assert type(fault) is QuotaFull
    assert fault.sentence.count("memory") == 1
    assert "GPUs: 1 needed, 4 of 4 in use" in fault.sentence


def test_a_job_that_alone_exceeds_the_quota_does_not_wait_for_ever() -> None:
    fault = fault_of(QUOTA.format("requests.memory=200Gi", "requests.memory=0", "requests.memory=128Gi"))
    assert type(fault) is PersonFault
    assert "memory: 200Gi needed, 0 of 128Gi in use" in fault.sentence


@pytest.mark.parametrize(
    "message",
    [
        FORBIDDEN + "no PriorityClass with name exceeded quota: x, requested: a=1, used: a=1, limited: a=1 was found",
        'Pod "x" is invalid: spec.image: Invalid value: "exceeded quota: x, requested: a=1, used: a=1, limited: a=1"',
    ],
)
def test_what_a_person_writes_is_never_taken_for_a_full_quota(message: str) -> None:
    """A job that waits for its quota is not counted as tried: it would be tried for ever."""
    assert not isinstance(fault_of(message), QuotaFull)


def test_long_words_are_cut() -> None:
    assert len(fault_of(FORBIDDEN + "x" * 5000).sentence) < 500
