"""What a Pod's JSON says, as plain values. Pure."""

import re
from datetime import datetime
from typing import Any

from slurmk8s import labels
from slurmk8s.errors import SlurmK8sError
from slurmk8s.pod.backend import PodState, Started

Json = dict[str, Any]

ENDED = ("Succeeded", "Failed")
LOST = ("Unknown", "ContainerStatusUnknown")
"""It ended while containerd was away, or the node: the exit code that is told then (255, 137) is made up."""
DURATION = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s|us|µs|ns)")
UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}


def trimmed(pod: Json) -> Json:
    """The pod without what nobody asks for: half of it is the API server's own book-keeping and our manifest."""
    spec = pod.get("spec") or {}
    containers = [
        {key: each[key] for key in ("name", "image", "resources", "command", "volumeMounts") if key in each}
        for each in spec.get("containers") or []
    ]
    kept = ("nodeName", "priority", "priorityClassName", "terminationGracePeriodSeconds", "activeDeadlineSeconds")
    return {
        "metadata": {key: value for key, value in pod["metadata"].items() if key != "managedFields"},
        "spec": {**{key: spec[key] for key in kept if key in spec}, "containers": containers},
        "status": pod.get("status") or {},
    }


def job_container(pod: Json) -> Json:
    """The status of the one container; empty while the kubelet has said nothing."""
    for each in pod.get("status", {}).get("containerStatuses") or []:
        if each.get("name") == labels.CONTAINER:
            return dict(each)
    return {}


def phase(pod: Json) -> str:
    """Pending, Running, Succeeded, Failed or Unknown."""
    return str(pod.get("status", {}).get("phase") or "Pending")


def terminated(pod: Json) -> Json | None:
    """How the container ended, None while it has not."""
    container = job_container(pod)
    ended = container.get("state", {}).get("terminated") or container.get("lastState", {}).get("terminated")
    return dict(ended) if ended is not None else None


def running(pod: Json) -> bool:
    """Whether the kubelet says that the container runs."""
    return "running" in job_container(pod).get("state", {}) and phase(pod) not in ENDED


def ended(pod: Json) -> bool:
    """Whether nothing of it will run any more: restartPolicy is Never."""
    return terminated(pod) is not None or phase(pod) in ENDED


def seen_by_kubelet(pod: Json) -> bool:
    """Whether the kubelet has looked at it at all."""
    status = pod.get("status", {})
    return bool(status.get("startTime") or status.get("containerStatuses") or phase(pod) != "Pending")


def complains(pod: Json) -> bool:
    """Whether the kubelet waits for something else than its own work."""
    reason = job_container(pod).get("state", {}).get("waiting", {}).get("reason")
    return reason not in (None, "ContainerCreating", "PodInitializing")


def deleting(pod: Json) -> bool:
    """Whether somebody has asked for its deletion."""
    return bool(pod["metadata"].get("deletionTimestamp"))


def state(pod: Json, fault: SlurmK8sError | None = None) -> PodState:
    """The pod as any backend tells it."""
    how = terminated(pod) or {}
    code = None if how.get("reason") in LOST else how.get("exitCode")
    return PodState(
        name=pod["metadata"]["name"],
        labels=dict(pod["metadata"].get("labels") or {}),
        running=running(pod),
        exit_code=int(code) if code is not None else None,
        out_of_memory=how.get("reason") == "OOMKilled",
        fault=fault,
    )


def digest(pod: Json) -> str | None:
    """The image's digest, as the kubelet found it: `name@sha256:…`, or the bare digest of one that has no name."""
    found = re.search(r"sha256:[0-9a-f]{64}", job_container(pod).get("imageID") or "")
    return found[0] if found else None


def container_ids(pod: Json) -> set[str]:
    """The ids of its containers, also of one that has ended: their control groups are called after them."""
    found = set()
    for each in pod.get("status", {}).get("containerStatuses") or []:
        ids = [each.get("containerID")]
        ids += [how.get("containerID") for how in (each.get("state") or {}).values()]
        ids += [how.get("containerID") for how in (each.get("lastState") or {}).values()]
        found |= {text.partition("://")[2] for text in ids if text}
    return found - {""}


def marks(pod: Json) -> set[str]:
    """What all its control groups are called after: besides its containers, its uid as either cgroup driver writes it.

    That includes the sandbox, which lives until the kubelet has done with the pod.
    """
    uid = str(pod["metadata"].get("uid") or "")
    return container_ids(pod) | ({uid, uid.replace("-", "_")} if uid else set())


def pulling(events: list[Json]) -> bool:
    """Whether the kubelet is in the middle of a pull, by its events, oldest first."""
    steps = [event["reason"] for event in events if event.get("reason") in ("Pulling", "Pulled", "Failed", "BackOff")]
    return steps[-1:] == ["Pulling"]


def started(pod: Json, events: list[Json]) -> Started:
    """What is known of a container that runs: its image's digest, and when that was pulled if it had to be."""
    begun, done = pull_times(events)
    return Started(digest(pod), begun, done, tuple(sorted(marks(pod))))


def pull_times(events: list[Json]) -> tuple[float | None, float | None]:
    """When the pull began and ended, by the kubelet's events; None where the image was there already.

    Events count whole seconds, so the kubelet's own figure is taken: "in 5.213s (6.1s including waiting)".
    """
    begun = [_moment(event) for event in events if event.get("reason") == "Pulling"]
    pulled = [event for event in events if event.get("reason") == "Pulled" and "already present" not in _words(event)]
    done = _moment(pulled[-1]) if pulled else None
    if done is None:
        return None, None
    took = re.search(r"\(([\w.µ]+) including waiting\)", _words(pulled[-1])) or re.search(
        r" in ([\d][\w.µ]*)", _words(pulled[-1])
    )
    if took and (seconds := duration(took[1])):
        return done - seconds, done
    first = [moment for moment in begun if moment is not None]
    return (min(first), done) if first else (None, None)


def duration(text: str) -> float:
    """Seconds of a duration as Go prints it, e.g. 1m2.5s."""
    return sum(float(value) * UNITS[unit] for value, unit in DURATION.findall(text))


def moment(text: str | None) -> float | None:
    """Seconds since 1970 of Kubernetes' time stamps."""
    return datetime.fromisoformat(text).timestamp() if text else None


def _moment(event: Json) -> float | None:
    return moment(event.get("eventTime") or event.get("lastTimestamp") or event.get("firstTimestamp"))


def _words(event: Json) -> str:
    return str(event.get("message") or "")
