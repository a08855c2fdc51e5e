"""A pod made by hand, as the guide's mkinst does: a machine for one person to try things on, without a job of Slurm's.

It is made as a job's pod is (same user, rights, mounts and quota) with three differences: it waits instead of running a
body, its /workspace goes with it, and its label says that no job owns it.
"""

import pwd
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from slurmk8s import labels
from slurmk8s.agent import blueprint, meeting
from slurmk8s.agent.meeting import Places
from slurmk8s.agent.record import Record
from slurmk8s.config import Config, Partition, Profile
from slurmk8s.errors import ClusterFault, PersonFault, SetupError, SlurmK8sError
from slurmk8s.jobfile import values
from slurmk8s.jobfile.finding import shown
from slurmk8s.jobfile.k8s import WORKSPACE
from slurmk8s.kube import namespaces
from slurmk8s.kube.client import Kube
from slurmk8s.kube.faults import Refused
from slurmk8s.kube.quantity import bytes_of
from slurmk8s.ops import whom
from slurmk8s.ops.images import full_name
from slurmk8s.pod.kubernetes_refusals import QuotaFull, refusal
from slurmk8s.pod.kubernetes_words import start_fault
from slurmk8s.pod.manifest import Files, Pod, Scratch, Volume, files, manifest

# PID 1 gets only the signals it asks for; without the trap a deletion would wait out the whole grace.
WAIT = ("/bin/sh", "-c", "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done")
SIZE = re.compile(r"gpu([1-9][0-9]?)")
SECONDS_BETWEEN_LOOKS = 0.5
SECONDS_TO_DELETE = 60
SECONDS_FOR_NAMESPACE = 10
"""A new namespace takes pods when its service account and its quota have been counted, a moment later."""


@dataclass(frozen=True)
class Wanted:
    """What was typed; None where the profile decides."""

    size: str
    """`gpu1` for one GPU, `cpu` for none."""
    profile: str
    person: pwd.struct_passwd
    job_id: int | None = None
    image: str | None = None
    cpu: int | None = None
    memory: str | None = None
    node: str | None = None
    """Slurm's name of a node; None: Kubernetes chooses."""

    @property
    def name(self) -> str:
        """The pod's name: by the number that was given, else by the person."""
        if self.job_id is not None:
            return f"instance-{self.job_id}"
        login = self.person.pw_name
        fits = re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,48}[a-z0-9])?", login)
        return f"instance-{login if fits else self.person.pw_uid}"


def require_cluster(config: Config) -> None:
    """Only Kubernetes has namespaces and quotas to put it into."""
    if config.backend != "kubernetes":
        raise SetupError(
            f"mkinst makes pods on Kubernetes, and the backend here is {config.backend}.",
            'Set backend = "kubernetes", or submit a job.',
        )


def pod_of(wanted: Wanted, config: Config) -> Pod:
    """The manifest's values, from those that the person's job would have."""
    person, profile = wanted.person, _profile(wanted, config)
    least = config.intake.minimum_uid
    if person.pw_uid < least:
        raise PersonFault(f"{person.pw_name} (uid {person.pw_uid}) is no person's account: those start at {least}.")
    gpus = _gpus(wanted.size, config)
    image = wanted.image or profile.image
    if image is None:
        raise PersonFault(f"The profile {wanted.profile} has no image.", "Name one with --image.")
    partition = config.partitions.get(profile.partition or "", Partition())
    record = Record(
        job_id=wanted.job_id or 0,
        attempt=0,
        name=wanted.name,
        user=person.pw_name,
        uid=person.pw_uid,
        gid=person.pw_gid,
        groups=whom.groups(person),
        account="",
        partition=profile.partition or "",
        nodes=(),
        array=None,
        may_requeue=False,
        time_limit="",
        cpus=wanted.cpu or profile.cpu,
        memory_mb=_megabytes(wanted, profile),
        gpus=tuple(range(gpus)),
        submitted=None,
        started=None,
        image=full_name(image, config),
        workdir=WORKSPACE,
        priority=profile.priority or partition.priority,
    )
    around = blueprint.Surroundings(
        node=wanted.node or "",
        places=Places.of(config, wanted.node or "", record.job_id),
        home=person.pw_dir if person.pw_dir.startswith("/") else "/",
        results=config.nas.results_folder,
        told=meeting.told(person, record.groups),
    )
    return _by_hand(blueprint.pod(config, record, around), wanted, config, around.told)


def _by_hand(job: Pod, wanted: Wanted, config: Config, told: dict[str, str]) -> Pod:
    """A job's pod without its job: nothing on the node waits for it, so it uses nothing that the agent makes there."""
    kept = [volume for volume in job.volumes if volume.name in ("shm", "home") or volume.name.startswith("mount-")]
    identity = Files({name: told[name] for name in ("passwd", "group")})
    own = [Volume("identity", identity, f"/etc/{name}", read_only=True, sub_path=name) for name in identity.texts]
    ids = {labels.JOB_ID: str(wanted.job_id)} if wanted.job_id is not None else {}
    return replace(
        job,
        name=wanted.name,
        hostname=wanted.name,
        labels={
            labels.APP: labels.INSTANCE_VALUE,
            labels.CLUSTER: config.cluster,
            labels.USER_ID: str(wanted.person.pw_uid),
            **ids,
        },
        annotations={labels.USER: wanted.person.pw_name},
        environment={name: value for name, value in job.environment.items() if not name.startswith("SLURMK8S_")},
        volumes=(*own, *kept, Volume("workspace", Scratch(), WORKSPACE)),
        command=WAIT,
        before_stop=(),
        node=config.kubernetes.node_of(wanted.node) if wanted.node else None,
    )


def _profile(wanted: Wanted, config: Config) -> Profile:
    known = config.kubernetes.profiles
    if wanted.profile not in known and wanted.profile != "std":
        raise PersonFault(
            f"There is no profile {shown(wanted.profile)!r}.",
            f"The configuration has: {', '.join(sorted({*known, 'std'}))}.",
        )
    return known.get(wanted.profile, Profile())


def _gpus(size: str, config: Config) -> int:
    match = SIZE.fullmatch(size)
    if match is None:
        if size in ("cpu", "gpu0"):
            return 0
        raise PersonFault(f"{shown(size)!r} is no size.", "Write gpu1 for one GPU, gpu2 for two, cpu for none.")
    if config.gpu.mode == "pinned":
        raise PersonFault(
            "With gpu.mode `pinned` only Slurm knows which GPUs are free.", "Submit a job, or take the size cpu."
        )
    return int(match[1])


def _megabytes(wanted: Wanted, profile: Profile) -> int:
    """As in a job file, where 8G means 8 × 1024 megabytes; Kubernetes' 8Gi is the same."""
    if wanted.memory is None:
        return bytes_of(profile.memory or 0) >> 20
    try:
        return max(values.shm_bytes(wanted.memory) >> 20, 1)
    except ValueError as error:
        raise PersonFault(f"--memory {shown(wanted.memory)} is no amount: {error}.", "Write 8G.") from None


class Instances:
    """The pods that were made by hand."""

    def __init__(self, kube: Kube, config: Config) -> None:
        self._kube = kube
        self._config = config

    def create(self, pod: Pod) -> None:
        """Make it in the person's namespace, and the files it reads, which go when it goes."""
        if namespaces.keep(self._kube, self._config, pod.uid, pod.annotations[labels.USER]):
            self._wait_for_quota(pod)
        made = self._create(pod)
        owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": made["metadata"]["uid"]}
        about = {"name": pod.name, "labels": dict(pod.labels), "ownerReferences": [owner]}
        self._kube.apply(
            _path(pod, "configmaps", pod.name),
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": files(pod)},
        )

    def _wait_for_quota(self, pod: Pod) -> None:
        deadline = time.monotonic() + SECONDS_FOR_NAMESPACE
        while not namespaces.is_counted(self._kube, self._config, pod.uid):
            if time.monotonic() > deadline:
                raise ClusterFault(
                    f"Kubernetes does not count the new quota of {pod.namespace}.",
                    "Is kube-controller-manager running? Try again.",
                )
            time.sleep(SECONDS_BETWEEN_LOOKS)

    def _create(self, pod: Pod) -> dict[str, Any]:
        deadline = time.monotonic() + SECONDS_FOR_NAMESPACE
        while True:
            try:
                return self._kube.create(_path(pod, "pods"), manifest(pod))
            except Refused as refused:
                if refused.reason == "AlreadyExists":
                    raise PersonFault(
                        f"There is a pod {pod.name} in {pod.namespace} already.",
                        "Remove it with --delete, or take another --job-id.",
                    ) from None
                fault = refusal(refused, pod.image, pod.namespace or "", pod.uid)
                passing = isinstance(fault, ClusterFault) and not isinstance(fault, QuotaFull)
                if not passing or time.monotonic() > deadline:
                    raise fault from None
            time.sleep(SECONDS_BETWEEN_LOOKS)

    def started(self, pod: Pod, seconds: float, tell: Callable[[str], None]) -> str:
        """Wait until it runs: its node's name. One that can never run is removed, and the fault raised."""
        deadline = time.monotonic() + seconds
        trouble = ""
        while True:
            now = self._kube.find(_path(pod, "pods", pod.name))
            if now is None:
                raise ClusterFault(f"Somebody deleted {pod.name}.")
            if (now.get("status") or {}).get("phase") == "Running":
                return str(now["spec"]["nodeName"])
            fault = self._in_the_way(now)
            if fault is not None and not isinstance(fault, ClusterFault):
                self.delete(pod.name, pod.namespace or "")
                raise fault
            if fault is not None and fault.sentence != trouble:
                trouble = fault.sentence
                tell(trouble)
            if time.monotonic() > deadline:
                raise ClusterFault(
                    f"{pod.name} does not run yet{f': {trouble}' if trouble else '.'}",
                    f"It stays and goes on trying: `kubectl -n {pod.namespace} describe pod {pod.name}`, or --delete.",
                )
            time.sleep(SECONDS_BETWEEN_LOOKS)

    def _in_the_way(self, now: dict[str, Any]) -> SlurmK8sError | None:
        for condition in (now.get("status") or {}).get("conditions") or ():
            if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
                return ClusterFault(f"No node can take it: {str(condition.get('message') or '').rstrip('.')}.")
        namespace, uid = now["metadata"]["namespace"], now["metadata"]["uid"]
        events = self._kube.items(f"/api/v1/namespaces/{namespace}/events", fieldSelector=f"involvedObject.uid={uid}")
        return start_fault(now, events)

    def delete(self, name: str, namespace: str) -> bool:
        """Remove it and wait until it is gone; False if there was none. Nothing else of that name is touched."""
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        there = self._kube.find(path)
        if there is None:
            return False
        if (there["metadata"].get("labels") or {}).get(labels.APP) != labels.INSTANCE_VALUE:
            raise PersonFault(f"The pod {name} in {namespace} was not made by mkinst.", "It is left alone.")
        uid = there["metadata"]["uid"]
        self._kube.delete(path, preconditions={"uid": uid})
        deadline = time.monotonic() + SECONDS_TO_DELETE
        while (there := self._kube.find(path)) is not None and there["metadata"]["uid"] == uid:
            if time.monotonic() > deadline:
                raise ClusterFault(f"{name} does not go.", f"See `kubectl -n {namespace} describe pod {name}`.")
            time.sleep(SECONDS_BETWEEN_LOOKS)
        return True


def _path(pod: Pod, kind: str, name: str = "") -> str:
    return f"/api/v1/namespaces/{pod.namespace}/{kind}" + (f"/{name}" if name else "")
