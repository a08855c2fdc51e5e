"""What it means when the API server refuses a job's pod: whose fault, in one sentence with the next step. Pure."""

import re

from slurmk8s.errors import ClusterFault, PersonFault, SlurmK8sError
from slurmk8s.kube.faults import Refused
from slurmk8s.kube.quantity import number
from slurmk8s.pod.kubernetes_text import one_line

RBAC = "An admin applies what `slurmk8s cluster rbac` prints."
ADMINS = "Ask the admins of the Kubernetes cluster."
# Admission's words follow the pod's name, so nothing that a person chose can stand before them.
_FORBIDDEN = re.compile(r'\Apods "[^"]*" is forbidden: (?P<why>.*)', re.DOTALL)
_QUOTA = re.compile(
    r"exceeded quota: (?P<name>\S+), requested: (?P<asked>.*), used: (?P<used>.*), limited: (?P<all>.*)"
)
_UNSAID = re.compile(r"failed quota: (?P<name>\S+): must specify (?P<what>.*)")
_POLICY = re.compile(
    r"ValidatingAdmissionPolicy '(?P<name>[^']*)' (?:with binding '[^']*' )?denied request: (?P<why>.*)"
)
_WEBHOOK = re.compile(r'admission webhook "(?P<name>[^"]*)" denied the request:? ?(?P<why>.*)')
_LIMITS = re.compile(r"\[?(?:maximum|minimum) \S+ usage per (?:Container|Pod) is ")
_NAMES = {
    "cpu": "CPUs",
    "memory": "memory",
    "nvidia.com/gpu": "GPUs",
    "pods": "pods",
    "ephemeral-storage": "disk space",
}
_SAYS = {"memory": "#SBATCH --mem", "cpu": "#SBATCH --cpus-per-task"}


class QuotaFull(ClusterFault):
    """The person's other jobs use what their quota allows: this one waits in Slurm, and no attempt is counted."""


def refusal(refused: Refused, image: str, namespace: str, uid: int) -> SlurmK8sError:
    """The fault behind a refused create of the pod of `uid`'s job."""
    words = one_line(refused.message or refused.sentence, 2000)
    if refused.code == 404 and refused.details.get("kind") == "namespaces":
        return ClusterFault(
            f"The namespace {namespace} of user {uid} is not there yet.",
            "The head node makes it: is slurm-job-watcher running there?",
        )
    if refused.code == 401:
        return ClusterFault("Kubernetes does not accept this node's credential.", refused.hint or RBAC)
    if match := _POLICY.search(words):
        return ClusterFault(
            f"Admission refused: the policy {match['name']} does not allow the pod: {one_line(match['why'])}.",
            RBAC if match["name"].startswith("slurmk8s") else ADMINS,
        )
    if match := _WEBHOOK.search(words):
        return ClusterFault(
            f"Admission refused: {match['name']} does not allow the pod: {one_line(match['why'])}.",
            ADMINS,
        )
    if refused.code == 403:
        match = _FORBIDDEN.match(words)
        return _forbidden(match["why"], namespace) if match else _no_right(words)
    if refused.code == 409:
        return ClusterFault(f"Kubernetes was busy with the quota of {namespace}: {one_line(words)}.")
    return SlurmK8sError(
        f"Kubernetes does not accept the pod of {one_line(image)} ({refused.code}): {one_line(words)}.",
        "This is a bug of slurmk8s: see the agent's log.",
    )


def _no_right(words: str) -> ClusterFault:
    return ClusterFault(f"This node's credential may not make pods: {one_line(words)}.", RBAC)


def _forbidden(why: str, namespace: str) -> SlurmK8sError:
    """Admission's own refusals, all of which are 403."""
    told = one_line(why)
    if match := _QUOTA.match(why):
        return _over_quota(match, namespace)
    if match := _UNSAID.match(why):
        missing = [name for name in _SAYS if name in match["what"]]
        says = " and ".join(_SAYS[name] for name in missing)
        return PersonFault(
            f"The quota of {namespace} asks every job to say what it needs: {one_line(match['what'])}.",
            f"Say it with {says or '#SBATCH'}; an admin can set a default (DefMemPerCPU in slurm.conf).",
        )
    if match := re.match(r"no PriorityClass with name (\S+) was found", why):
        return PersonFault(
            f"There is no PriorityClass {one_line(match[1])} in Kubernetes.",
            "Correct #K8S_PRIORITY; `kubectl get priorityclass` shows what there is.",
        )
    if match := re.match(r'pod rejected: RuntimeClass "([^"]*)" not found', why):
        return ClusterFault(
            f"There is no RuntimeClass {one_line(match[1])} in Kubernetes.",
            "An admin makes it, or corrects runtime_class in the configuration.",
        )
    if "because it is being terminated" in why:
        return ClusterFault(
            f"The namespace {namespace} is being deleted.", "The head node makes it anew; an admin sees who deletes it."
        )
    if "error looking up service account" in why:  # made by a controller, a moment after its namespace
        return ClusterFault(f"The namespace {namespace} is not ready yet: {told}.")
    if why.startswith("violates PodSecurity"):
        return ClusterFault(
            f"Admission refused: the namespace {namespace} does not allow the pod: {told}.",
            "An admin corrects its labels pod-security.kubernetes.io/*, which the head node sets.",
        )
    if _LIMITS.match(why):
        return PersonFault(f"The job asks for more than a LimitRange of {namespace} allows: {told}.", "Ask for less.")
    return ClusterFault(f"Admission refused the pod: {told}.", ADMINS)


def _over_quota(match: re.Match[str], namespace: str) -> SlurmK8sError:
    asked, used, limited = (_amounts(match[part]) for part in ("asked", "used", "all"))
    parts = {}
    for key, want in asked.items():
        name = key.removeprefix("requests.").removeprefix("limits.")
        parts[name] = f"{_NAMES.get(name, name)}: {want} needed, {used.get(key, '?')} of {limited.get(key, '?')} in use"
    numbers = one_line("; ".join(parts.values()))
    if any(_more(want, limited.get(key, "")) for key, want in asked.items()):  # no other job's end will help
        return PersonFault(
            f"The job asks for more than the quota of {namespace} allows at all ({numbers}).",
            "Ask for less, or ask an admin for a larger quota.",
        )
    return QuotaFull(
        f"The quota of {namespace} is full ({numbers}).", "The job starts when other jobs of yours have ended."
    )


def _amounts(text: str) -> dict[str, str]:
    """`requests.cpu=4,requests.memory=1Gi`."""
    return dict(part.strip().partition("=")[::2] for part in text.split(",") if "=" in part)


def _more(want: str, limit: str) -> bool:
    try:
        return number(want) > number(limit)
    except ValueError:
        return False
