"""The agent's real credential, attacked: what it may not do it cannot, and the pod it is meant to make is admitted."""

import copy
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from policy_site import RECORD, Site, job, set_up, settings

from slurmk8s.kube.client import Kube
from slurmk8s.kube.faults import Refused

pytestmark = pytest.mark.kube

Json = dict[str, Any]


@pytest.fixture(scope="module")
def site(_testbed: Any, kube: Kube, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    nodes = tuple(_testbed.nodes)
    with set_up(settings(nodes), kube, nodes, tmp_path_factory.mktemp("rights")) as found:
        accounts = f"/api/v1/namespaces/{found.namespace()}/serviceaccounts"
        kube.create(accounts, {"metadata": {"name": "reader"}})
        yield found


@pytest.fixture(scope="module")
def agent(site: Site) -> Kube:
    return site.agent()


def refused(agent: Kube, site: Site, body: Json, namespace: str | None = None) -> str:
    """Try to make it; the server's words. Nothing is made even if it were allowed."""
    with pytest.raises(Refused) as caught:
        agent.create(f"/api/v1/namespaces/{namespace or site.namespace()}/pods", body, dryRun="All")
    return caught.value.message


def test_the_pod_of_a_job_is_admitted(site: Site, agent: Kube) -> None:
    made = agent.create(site.pods(), site.manifest(), dryRun="All")
    assert made["spec"]["nodeName"] == site.nodes[0]


def test_the_policies_are_well_typed(site: Site, kube: Kube) -> None:
    """Kubernetes checks the expressions against the objects' types, in its own time."""
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    deadline = time.monotonic() + 30
    while True:
        found = [
            each for each in kube.items(path) if each["metadata"]["name"].startswith(f"slurmk8s-{site.config.cluster}-")
        ]
        if all("typeChecking" in each.get("status", {}) for each in found):
            break
        assert time.monotonic() < deadline, "no type check"
        time.sleep(0.2)
    assert len(found) == 4
    assert [each["status"]["typeChecking"] for each in found] == [{}] * 4


Change = Callable[[Json], None]


def put(path: str, value: Any) -> Change:
    """Set one field; numbers in the path are places in lists, `+` adds to one."""

    def change(body: Json) -> None:
        at: Any = body
        *parents, last = path.split(".")
        for part in parents:
            at = at[int(part)] if part.isdecimal() else at.setdefault(part.replace("~", "."), {})
        if last == "+":
            at.append(value)
        elif last.isdecimal():
            at[int(last)] = value
        else:
            at[last.replace("~", ".")] = value

    return change


def volume(name: str, **source: Any) -> Change:
    """Mount something more."""

    def change(body: Json) -> None:
        body["spec"]["volumes"].append({"name": name, **source})
        body["spec"]["containers"][0]["volumeMounts"].append({"name": name, "mountPath": f"/x/{name}"})

    return change


def host_path(path: str, kind: str = "Directory") -> Change:
    return volume("evil", hostPath={"path": path, "type": kind})


def drop(path: str) -> Change:
    def change(body: Json) -> None:
        at: Any = body
        *parents, last = path.split(".")
        for part in parents:
            at = at[int(part)] if part.isdecimal() else at[part.replace("~", ".")]
        del at[last.replace("~", ".")]

    return change


def mount(name: str, **changes: Any) -> Change:
    """Change how a volume is mounted, by the volume's name."""

    def change(body: Json) -> None:
        for each in body["spec"]["containers"][0]["volumeMounts"]:
            if each["name"] == name:
                each.update(changes)

    return change


JOBS = "/run/slurmk8s/jobs"
NODE, NAMESPACE, LABELS = "own node", "the one of the user", "named after its job"
ROOT, PRIVILEGED, SECCOMP = "must not run as root", "must be unprivileged", "seccomp must be RuntimeDefault"
HOST, TOKEN, CONTAINERS = "must not share the node's", "no service account token", "must have one container"
PATH, KIND, SOURCE, MOUNT = "a path of the node", "a volume may be", "a claim or a ConfigMap", "a read-only mount"

ATTACKS: dict[str, tuple[Change, str]] = {
    "another node": (put("spec.nodeName", "another"), NODE),
    "no node": (drop("spec.nodeName"), NODE),
    "another user": (put("spec.securityContext.runAsUser", 4712), NAMESPACE),
    "root": (put("spec.securityContext.runAsUser", 0), NAMESPACE),
    "no user": (drop("spec.securityContext.runAsUser"), NAMESPACE),
    "root's group": (put("spec.securityContext.runAsGroup", 0), ROOT),
    "no group": (drop("spec.securityContext.runAsGroup"), ROOT),
    "root among the groups": (put("spec.securityContext.supplementalGroups", [4711, 0]), ROOT),
    "root's group on volumes": (put("spec.securityContext.fsGroup", 0), ROOT),
    "a group that chowns volumes": (put("spec.securityContext.fsGroup", 5000), ROOT),
    "may be root": (drop("spec.securityContext.runAsNonRoot"), ROOT),
    "another user in the container": (put("spec.containers.0.securityContext.runAsUser", 4712), ROOT),
    "another group in the container": (put("spec.containers.0.securityContext.runAsGroup", 6), ROOT),
    "root in the container": (put("spec.containers.0.securityContext.runAsNonRoot", False), ROOT),
    "groups of the image": (put("spec.securityContext.supplementalGroupsPolicy", "Merge"), "must be Strict"),
    "no groups policy": (drop("spec.securityContext.supplementalGroupsPolicy"), "must be Strict"),
    "privileged": (
        lambda body: body["spec"]["containers"][0]["securityContext"].update(
            privileged=True, allowPrivilegeEscalation=True
        ),
        PRIVILEGED,
    ),
    "privilege escalation": (put("spec.containers.0.securityContext.allowPrivilegeEscalation", True), PRIVILEGED),
    "privilege escalation unsaid": (drop("spec.containers.0.securityContext.allowPrivilegeEscalation"), PRIVILEGED),
    "a capability": (put("spec.containers.0.securityContext.capabilities.add", ["SYS_ADMIN"]), PRIVILEGED),
    "all capabilities kept": (put("spec.containers.0.securityContext.capabilities", {}), PRIVILEGED),
    "no security context": (drop("spec.containers.0.securityContext"), PRIVILEGED),
    "unconfined": (put("spec.securityContext.seccompProfile", {"type": "Unconfined"}), SECCOMP),
    "seccomp unsaid": (drop("spec.securityContext.seccompProfile"), SECCOMP),
    "unconfined container": (put("spec.containers.0.securityContext.seccompProfile", {"type": "Unconfined"}), SECCOMP),
    "AppArmor off": (put("spec.securityContext.appArmorProfile", {"type": "Unconfined"}), SECCOMP),
    "SELinux": (put("spec.containers.0.securityContext.seLinuxOptions", {"type": "spc_t"}), SECCOMP),
    "sysctl": (put("spec.securityContext.sysctls", [{"name": "net.ipv4.ip_forward", "value": "1"}]), SECCOMP),
    "AppArmor off by annotation": (
        put("metadata.annotations.container~apparmor~security~beta~kubernetes~io/job", "unconfined"),
        "annotations can grant",
    ),
    "devices by annotation": (put("metadata.annotations.cdi~k8s~io/x", "nvidia.com/gpu=all"), "annotations can grant"),
    "the node's network": (put("spec.hostNetwork", True), HOST),
    "the node's processes": (put("spec.hostPID", True), HOST),
    "the node's IPC": (put("spec.hostIPC", True), HOST),
    "a port of the node": (put("spec.containers.0.ports", [{"containerPort": 80, "hostPort": 80}]), HOST),
    "a token": (put("spec.automountServiceAccountToken", True), TOKEN),
    "a token unsaid": (drop("spec.automountServiceAccountToken"), TOKEN),
    "another account": (put("spec.serviceAccountName", "reader"), TOKEN),
    "a second container": (put("spec.containers.+", {"name": "two", "image": RECORD.image}), CONTAINERS),
    "an init container": (put("spec.initContainers", [{"name": "two", "image": RECORD.image}]), CONTAINERS),
    "another name of the container": (put("spec.containers.0.name", "main"), CONTAINERS),
    "for ever": (put("spec.restartPolicy", "Always"), CONTAINERS),
    "a request by the kubelet": (
        put("spec.containers.0.livenessProbe", {"httpGet": {"host": "169.254.169.254", "port": 80}}),
        "no probes",
    ),
    "a hook that is a request": (
        put("spec.containers.0.lifecycle", {"preStop": {"httpGet": {"host": "10.0.0.1", "port": 80}}}),
        "no probes",
    ),
    "a secret in the environment": (
        put("spec.containers.0.env.+", {"name": "X", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}),
        "plain values",
    ),
    "secrets in the environment": (
        put("spec.containers.0.envFrom", [{"secretRef": {"name": "s"}}]),
        "plain values",
    ),
    "a foreign registry": (put("spec.containers.0.image", "docker.io/library/evil:1"), "allowed registry"),
    "a registry that begins alike": (put("spec.containers.0.image", "nas-hub.local:54070/x:1"), "allowed registry"),
    "a system priority": (put("spec.priorityClassName", "system-node-critical"), "PriorityClass"),
    "an unknown priority": (put("spec.priorityClassName", "low-priority"), "PriorityClass"),
    "another runtime": (put("spec.runtimeClassName", "nvidia"), "RuntimeClass"),
    "the root disk": (host_path("/"), PATH),
    "/etc": (host_path("/etc"), PATH),
    "below a mount": (host_path("/mnt/nas/home"), PATH),
    "above a mount": (host_path("/mnt"), PATH),
    "a device": (host_path("/dev/nvidia0", "CharDevice"), PATH),
    "a folder to be made": (host_path("/mnt/nas", "DirectoryOrCreate"), PATH),
    "a path of any kind": (volume("evil", hostPath={"path": "/mnt/nas"}), PATH),
    "the runtime's socket": (host_path("/run/containerd/containerd.sock", "Socket"), PATH),
    "all jobs' folders": (host_path(JOBS), PATH),
    "another job's folder": (host_path(f"{JOBS}/8/handover"), PATH),
    "a job that begins alike": (host_path(f"{JOBS}/77/handover"), PATH),
    "the whole folder of the job": (host_path(f"{JOBS}/7"), PATH),
    "a link that the person made": (host_path(f"{JOBS}/7/handover/etc"), PATH),
    "a secret": (volume("evil", secret={"secretName": "s"}), KIND),
    "a token as a volume": (
        volume("evil", projected={"sources": [{"serviceAccountToken": {"path": "t"}}]}),
        KIND,
    ),
    "an inline driver": (volume("evil", csi={"driver": "x"}), KIND),
    "the node's view of the pod": (volume("evil", downwardAPI={"items": []}), KIND),
    "another share": (volume("evil", nfs={"server": "nas.lab", "path": "/export"}), SOURCE),
    "another server": (volume("evil", nfs={"server": "evil.lab", "path": "/export/models"}), SOURCE),
    "a claim": (volume("evil", persistentVolumeClaim={"claimName": "x"}), SOURCE),
    "another job's files": (volume("evil", configMap={"name": "slurm-job-8"}), SOURCE),
    "writable datasets": (mount("mount-1", readOnly=False), MOUNT),
    "a part of a mount": (mount("mount-0", subPath="home/lee"), MOUNT),
    "a part by a variable": (mount("mount-0", subPathExpr="$(USER)"), MOUNT),
    "mounts that reach the node": (mount("mount-0", mountPropagation="HostToContainer"), MOUNT),
    "no label": (drop("metadata.labels"), LABELS),
    "another cluster": (put("metadata.labels.slurmk8s/cluster", "other"), LABELS),
    "another app": (put("metadata.labels.app", "web"), LABELS),
    "another job": (put("metadata.labels.job-id", "8"), LABELS),
    "no number for a job": (put("metadata.labels.job-id", "7x"), LABELS),
    "another Slurm node": (put("metadata.labels.slurmk8s/node", "slurm2"), LABELS),
    "another owner": (put("metadata.labels.slurmk8s/uid", "4712"), LABELS),
    "another pod name": (put("metadata.name", "web"), LABELS),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_pod_that_is_no_jobs_is_refused(site: Site, agent: Kube, attack: str) -> None:
    change, words = ATTACKS[attack]
    body = copy.deepcopy(site.manifest())
    change(body)
    said = refused(agent, site, body)
    if attack == "privileged" and "disallowed by cluster policy" in said:
        return  # by this API server's own flag, before any policy is asked
    assert f"ValidatingAdmissionPolicy 'slurmk8s-{site.config.cluster}-pods'" in said
    assert words in said


ALLOWED: dict[str, Change] = {
    "a digest": put("spec.containers.0.image", f"nas-hub.local:5407/x@sha256:{'0' * 64}"),
    "the partition's own image": put("spec.containers.0.image", "docker.io/library/default:1"),
    "no priority": drop("spec.priorityClassName"),
    "another rank": put("metadata.name", "slurm-job-7-1"),
    "datasets by the agent's own words": mount("mount-1", readOnly=True),
}


@pytest.mark.parametrize("change", ALLOWED)
def test_what_a_job_may_have_is_admitted(site: Site, agent: Kube, change: str) -> None:
    body = copy.deepcopy(site.manifest())
    ALLOWED[change](body)
    assert agent.create(site.pods(), body, dryRun="All")


@pytest.mark.parametrize("namespace", ["default", "kube-system"])
def test_no_pod_in_another_namespace(site: Site, agent: Kube, namespace: str) -> None:
    body = site.manifest() | {"metadata": {**site.manifest()["metadata"], "namespace": namespace}}
    assert NAMESPACE in refused(agent, site, body, namespace)


def test_no_pod_in_a_namespace_that_only_has_the_name(site: Site, agent: Kube, kube: Kube) -> None:
    """A namespace of the right name that the head node did not make belongs to somebody else."""
    name = site.namespace(4799)
    kube.create("/api/v1/namespaces", {"metadata": {"name": name}})
    body = site.manifest(job(7, uid=4799))
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    kube.apply(f"/api/v1/namespaces/{name}/serviceaccounts/default", account)  # a controller is about to
    assert "not one of this cluster's" in refused(agent, site, body, name)
