"""How far a job's pod has come, by what Kubernetes says of it. Pure, but for `look`."""

from typing import TYPE_CHECKING, Any

from slurmk8s.config import Config
from slurmk8s.errors import SlurmK8sError
from slurmk8s.labels import PodName
from slurmk8s.ops.stage import CONTAINER, ENDED, PREPARING, UNKNOWN, WAITING, Stage
from slurmk8s.pod import kubernetes_state, kubernetes_words
from slurmk8s.results.summary_text import duration, printable, when
from slurmk8s.slurm.client import Job

if TYPE_CHECKING:
    from slurmk8s.kube.client import Kube

Json = dict[str, Any]

_LONG = 300


def look(kube: "Kube", config: Config, job: Job) -> Stage:
    """Ask Kubernetes; a refusal is no stage, but is said."""
    namespace, name = config.kubernetes.namespace_of(job.uid), str(PodName(job.job_id, job.uid))
    where = f"/api/v1/namespaces/{namespace}"
    try:
        pod = kube.find(f"{where}/pods/{name}")
        events = [] if pod is None else kube.items(f"{where}/events", fieldSelector=f"involvedObject.name={name}")
    except SlurmK8sError as fault:
        return Stage(UNKNOWN, "", (f"pod: not known: {printable(fault.sentence)}",))
    return of(pod, events, f"{namespace}/{name}")


def of(pod: Json | None, events: list[Json], name: str) -> Stage:
    """The stage of this pod; `events` are those about it."""
    if pod is None:
        return Stage(PREPARING, "its pod does not exist yet", (f"pod {name}: none",))
    uid = pod["metadata"].get("uid")
    events = [event for event in events if event.get("involvedObject", {}).get("uid", uid) == uid]
    evidence = _evidence(pod, events, name)
    if kubernetes_state.deleting(pod):
        since = when(kubernetes_state.moment(pod["metadata"]["deletionTimestamp"]))
        return Stage(ENDED, f"its pod is being removed (it is to be gone by {since})", evidence)
    if kubernetes_state.ended(pod):
        if fault := kubernetes_words.end_fault(pod):
            words = f"its pod has ended: {printable(fault.sentence).rstrip('.')}"
            return Stage(ENDED, words, evidence, printable(fault.hint), trouble=True)
        return Stage(ENDED, f"its pod has ended{_end(pod)}", evidence)
    container = kubernetes_state.job_container(pod)
    state = container.get("state") or {}
    if "running" in state:
        since = when(kubernetes_state.moment(state["running"].get("startedAt")))
        return Stage(CONTAINER, f"its container runs since {since}", evidence)
    if fault := kubernetes_words.start_fault(pod, events):
        words = f"its pod does not start: {printable(fault.sentence).rstrip('.')}"
        return Stage(WAITING, words, evidence, printable(fault.hint), trouble=True)
    if _latest(events, "Pulling") and not _latest(events, "Pulled"):
        return Stage(WAITING, f"the node pulls its image {printable(_image(pod))}", evidence)
    if not kubernetes_state.seen_by_kubelet(pod):
        node = (pod.get("spec") or {}).get("nodeName")
        words = f"the kubelet of {node} has not taken up its pod yet" if node else "Kubernetes has not placed its pod"
        return Stage(PREPARING, words, evidence)
    return Stage(WAITING, "its container is being made", evidence)


def _evidence(pod: Json, events: list[Json], name: str) -> tuple[str, ...]:
    status = pod.get("status") or {}
    words = [f"pod {name}: {kubernetes_state.phase(pod)}"]
    node = (pod.get("spec") or {}).get("nodeName")
    if node:
        words.append(f"on {node}")
    if status.get("reason"):
        words.append(f"{status['reason']}: {_clip(str(status.get('message') or ''))}")
    container = kubernetes_state.job_container(pod).get("state") or {}
    for kind, value in container.items():
        words.append(f"container {kind}" + (f" ({value['reason']})" if value.get("reason") else ""))
    lines = [", ".join(words)]
    if events:
        last = events[-1]
        lines.append(f"event: {last.get('reason', '')}: {_clip(str(last.get('message') or ''))}")
    return tuple(lines)


def _end(pod: Json) -> str:
    how = kubernetes_state.terminated(pod)
    if how is None:
        return ""
    begun, done = (kubernetes_state.moment(how.get(key)) for key in ("startedAt", "finishedAt"))
    took = f" after {duration(done - begun)}" if begun is not None and done is not None else ""
    return f" ({how.get('reason') or 'ended'}, exit code {how.get('exitCode')}{took})"


def _latest(events: list[Json], reason: str) -> Json | None:
    return next((event for event in reversed(events) if event.get("reason") == reason), None)


def _image(pod: Json) -> str:
    containers = (pod.get("spec") or {}).get("containers") or [{}]
    return str(containers[0].get("image", ""))


def _clip(text: str) -> str:
    said = printable(" ".join(text.split())).rstrip(".")
    return said if len(said) <= _LONG else said[:_LONG] + " …"
