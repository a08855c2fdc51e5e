from typing import Any

import pytest

from slurmk8s.errors import ClusterFault
from slurmk8s.kube.faults import Conflict, Gone, KubeUnreachable, NotFound, Refused, answer_fault

RBAC = (
    'pods is forbidden: User "system:serviceaccount:slurmk8s:agent" cannot list resource "pods" in API group "" at the '
    "cluster scope"
)
QUOTA = 'pods "slurm-job-5" is forbidden: exceeded quota: person, requested: requests.nvidia.com/gpu=5, used: …'


def fault(code: int, **status: Any) -> Exception:
    return answer_fault(code, status, "POST /api/v1/pods", "/etc/slurmk8s/kubeconfig")


@pytest.mark.parametrize("code", [429, 500, 502, 503, 504])
def test_the_servers_own_trouble_says_nothing_about_the_object(code: int) -> None:
    assert isinstance(fault(code, message="etcdserver: request timed out"), KubeUnreachable)
    assert issubclass(KubeUnreachable, ClusterFault)


@pytest.mark.parametrize(("code", "kind"), [(404, NotFound), (409, Conflict), (422, Refused), (400, Refused)])
def test_a_refusal_keeps_what_the_server_said(code: int, kind: type[Refused]) -> None:
    refused = fault(code, reason="AlreadyExists", message='pods "a" already exists', details={"kind": "pods"})
    assert type(refused) is kind
    assert isinstance(refused, Refused)
    assert (refused.code, refused.reason, refused.details) == (code, "AlreadyExists", {"kind": "pods"})
    assert refused.sentence == 'The Kubernetes API server refused POST /api/v1/pods: pods "a" already exists.'


def test_a_version_that_is_too_old_is_no_refusal() -> None:
    assert isinstance(fault(410, message="too old resource version"), Gone)


def test_a_credential_that_is_not_known_names_its_file() -> None:
    assert "/etc/slurmk8s/kubeconfig" in str(fault(401, message="Unauthorized"))


def test_a_missing_right_names_what_gives_it() -> None:
    assert "slurmk8s cluster rbac" in str(fault(403, reason="Forbidden", message=RBAC))


def test_a_quota_is_no_missing_right() -> None:
    assert "rbac" not in str(fault(403, reason="Forbidden", message=QUOTA))
