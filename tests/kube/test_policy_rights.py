"""What the credentials of agent, head node and person may ask for at all, and what each may remove."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from policy_site import RECORD, Site, job, set_up, settings

from slurmk8s.kube import credentials, namespaces
from slurmk8s.kube.client import Kube
from slurmk8s.kube.faults import Refused
from slurmk8s.kube.policy import Names

pytestmark = pytest.mark.kube

Json = dict[str, Any]


@pytest.fixture(scope="module")
def site(_testbed: Any, kube: Kube, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    nodes = tuple(_testbed.nodes)
    with set_up(settings(nodes), kube, nodes, tmp_path_factory.mktemp("rights")) as found:
        yield found


@pytest.fixture(scope="module")
def agent(site: Site) -> Kube:
    return site.agent()


@pytest.fixture(scope="module")
def head(site: Site) -> Kube:
    return site.head()


def allowed(who: Kube, verb: str, resource: str, namespace: str = "", group: str = "", name: str = "") -> bool:
    """What the API server itself says about a right."""
    resource, _, part = resource.partition("/")
    asked = {"verb": verb, "group": group, "resource": resource, "subresource": part}
    body = {"spec": {"resourceAttributes": {**asked, "namespace": namespace, "name": name}}}
    answer = who.create("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)
    return bool(answer["status"]["allowed"])


def refusal(action: Any, *arguments: Any, **more: Any) -> str:
    with pytest.raises(Refused) as caught:
        action(*arguments, **more)
    assert caught.value.code in (403, 422)  # RBAC's and a policy's
    return caught.value.message


@pytest.mark.parametrize(
    "right",
    [
        *("create pods/exec", "get pods/exec", "create pods/attach", "create pods/portforward", "create pods/eviction"),
        *("patch pods/ephemeralcontainers", "update pods", "patch pods", "patch pods/status", "create pods/binding"),
        *(
            "get secrets",
            "list secrets",
            "get configmaps",
            "create configmaps",
            "deletecollection pods",
            "create namespaces",
        ),
        *("patch namespaces", "create serviceaccounts/token", "patch nodes", "get nodes/proxy", "create nodes"),
        *("create persistentvolumes", "create persistentvolumeclaims", "impersonate users", "patch resourcequotas"),
        *("create deployments.apps", "create jobs.batch", "create rolebindings.rbac.authorization.k8s.io"),
        "delete validatingadmissionpolicybindings.admissionregistration.k8s.io",
    ],
)
def test_an_agent_has_no_right_to(site: Site, agent: Kube, right: str) -> None:
    verb, _, resource = right.partition(" ")
    resource, _, group = resource.partition(".")
    assert not allowed(agent, verb, resource, site.namespace(), group)


@pytest.fixture
def pods(site: Site, kube: Kube) -> Iterator[dict[str, Json]]:
    """A job's pod on each node, and somebody else's, all made by the admin."""
    body, elsewhere, foreign = site.manifest(job(1)), site.manifest(job(2)), site.manifest(job(3))
    elsewhere["spec"]["nodeName"] = site.nodes[1]
    elsewhere["metadata"]["labels"]["slurmk8s/node"] = "slurm2"
    foreign["metadata"]["labels"]["slurmk8s/cluster"] = "other"
    made = {"own": body, "elsewhere": elsewhere, "foreign": foreign}
    for each in made.values():
        kube.create(site.pods(), each)
    yield made
    for each in made.values():
        kube.delete(f"{site.pods()}/{each['metadata']['name']}", gracePeriodSeconds=0)


def test_an_agent_removes_its_own_pods_only(site: Site, agent: Kube, kube: Kube, pods: dict[str, Json]) -> None:
    path = {key: f"{site.pods()}/{body['metadata']['name']}" for key, body in pods.items()}
    assert "only what is of its own node" in refusal(agent.delete, path["elsewhere"])
    assert "a job of this cluster" in refusal(agent.delete, path["foreign"])
    assert kube.find(path["elsewhere"])
    assert agent.delete(path["own"], gracePeriodSeconds=1)


def test_the_head_node_keeps_people_and_nothing_else(site: Site, head: Kube, kube: Kube) -> None:
    assert namespaces.keep(head, site.config, 4720, "park")
    assert not namespaces.keep(head, site.config, 4720, "park")
    words = "only the namespaces of this cluster's people"
    for name in ("kube-system", "default", site.config.kubernetes.system_namespace):
        body = namespaces.namespace_body(site.config, 4720)
        body["metadata"]["name"] = name
        assert words in refusal(head.apply, f"/api/v1/namespaces/{name}", body)
    quota = namespaces.quota_body(site.config, "park")
    path = "/api/v1/namespaces/default/resourcequotas/user-quota"
    assert "works only in the namespaces" in refusal(head.apply, path, quota)


def test_the_head_node_gives_no_rights_away(site: Site, head: Kube, kube: Kube) -> None:
    names = Names.of(site.config)
    token = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    system = f"/api/v1/namespaces/{names.system}/serviceaccounts/{names.agent}{site.nodes[0]}/token"
    assert "works only in the namespaces" in refusal(head.create, system, token)
    default = f"/api/v1/namespaces/{site.namespace()}/serviceaccounts/default/token"
    assert "for people only" in refusal(head.create, default, token)
    everybody = {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "system:authenticated"}
    person = {"kind": "ServiceAccount", "name": "reader", "namespace": site.namespace()}
    for role, subject, words in (
        ("cluster-admin", person, "attempting to grant RBAC permissions not currently held"),
        (names.named("person"), everybody, "to people only"),
    ):
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "evil", "namespace": site.namespace()},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [subject],
        }
        path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{site.namespace()}/rolebindings/evil"
        assert words in refusal(head.apply, path, binding)
    assert not allowed(head, "list", "secrets", site.namespace())
    assert not allowed(head, "create", "pods", site.namespace())


def test_the_head_node_removes_jobs_pods_only(site: Site, head: Kube, pods: dict[str, Json]) -> None:
    path = {key: f"{site.pods()}/{body['metadata']['name']}" for key, body in pods.items()}
    assert "a job of this cluster" in refusal(head.delete, path["foreign"], gracePeriodSeconds=0)
    assert head.delete(path["elsewhere"], gracePeriodSeconds=0)


def test_a_token_may_last_until_it_is_revoked(site: Site, kube: Kube, tmp_path: Path) -> None:
    """Some clusters give tokens of a day at most; the other kind lives in a Secret, and dies with it."""
    from slurmk8s.kube.connection import connect

    names = Names.of(site.config)
    path = tmp_path / "kubeconfig"
    path.write_text(credentials.agent_kubeconfig(kube, site.config, site.nodes[0], 0))
    assert connect(path).items(site.pods()) is not None
    assert kube.delete(f"/api/v1/namespaces/{names.system}/secrets/{names.agent}{site.nodes[0]}-token")
    deadline = time.monotonic() + 30
    while True:
        try:
            connect(path).items(site.pods())
        except Refused as error:
            if error.code == 401:
                return
            raise
        assert time.monotonic() < deadline, "the token still works"
        time.sleep(0.5)


def test_a_person_sees_the_own_pods_and_nothing_else(
    site: Site, head: Kube, kube: Kube, testbed: Any, tmp_path: Path
) -> None:
    """The guide's 4.2 to 4.4, typed as they stand, with the kubeconfig that the head node's credential makes."""
    config = tmp_path / "kim.kubeconfig"
    config.write_text(credentials.person_kubeconfig(head, site.config, RECORD.uid, RECORD.user, 1))
    namespaces.keep(kube, site.config, 4730, "lee")
    body = site.manifest(job(31, gpus=(), mounts=(), image=testbed.image))
    body["spec"]["volumes"], body["spec"]["containers"][0]["volumeMounts"] = [], []
    body["spec"]["containers"][0] |= {"command": ["/bin/sh", "-c", "echo hello; sleep 60"], "lifecycle": None}
    kube.create(site.pods(), body)

    def typed(words: str, check: bool = True) -> str:
        program = str(testbed.own.layout.bin / "kubectl") if testbed.own else "kubectl"
        done = subprocess.run(
            [program, f"--kubeconfig={config}", *words.split()], capture_output=True, text=True, timeout=60, check=False
        )
        assert (done.returncode == 0) == check, done.stdout + done.stderr
        return done.stdout + done.stderr

    deadline = time.monotonic() + 60
    while "Running" not in (shown := typed("get pods -l app=slurm-job")):
        assert time.monotonic() < deadline, shown
        time.sleep(0.5)
    assert "slurm-job-31" in shown
    assert "hello" in typed("logs slurm-job-31")
    assert "slurm-job-31" in typed("get pods -l job-id=31")
    assert "Started" in typed("get events --sort-by=.lastTimestamp")
    assert "Name:" in typed("describe pod slurm-job-31")
    for words in (
        *(
            "get pods -A",
            f"get pods -n {site.namespace(4730)}",
            "get secrets",
            "get configmaps",
            "get pods -n kube-system",
        ),
        *(
            "exec slurm-job-31 -- id",
            "delete pod slurm-job-31",
            "run x --image=x",
            "get serviceaccounts",
            "get namespaces",
        ),
        *("attach slurm-job-31", "port-forward slurm-job-31 8080:80", "label pod slurm-job-31 a=b"),
        "create token reader",
    ):
        assert "Forbidden" in typed(words, check=False) or "forbidden" in typed(words, check=False)
    assert "yes" in typed("auth can-i list pods.metrics.k8s.io")
    if "metrics.k8s.io/v1beta1" in testbed.kubectl("api-versions"):
        assert site.nodes[0] in typed("top nodes")
    kube.delete(f"{site.pods()}/slurm-job-31", gracePeriodSeconds=1)
