"""Reading a pod and its events as the API gives them, and others' words made fit to show. Pure."""

import re
from datetime import datetime
from typing import Any

from slurmk8s.jobfile import image as images
from slurmk8s.kube.quantity import bytes_of
from slurmk8s.labels import CONTAINER

LONGEST = 400
# What gRPC, the kubelet and containerd put around the reason.
_WRAPPERS = re.compile(
    r"rpc error: code = \w+ desc = |^Error: |^Pod was rejected: "
    r"|failed to pull and unpack image(?: \"[^\"]*\")?: |failed to resolve (?:reference|image)(?: \"[^\"]*\")?: "
    r"|failed to do request: |\b(?:Head|Get) \"[^\"]*\": "
    r"|failed to create containerd task: |failed to create shim task: |OCI runtime create failed: "
    r"|runc create failed: |unable to start container process: |: unknown$"
)


def one_line(words: str, longest: int = LONGEST) -> str:
    """On one line, without a final stop; of what is too long the middle goes: a chain of errors ends with its cause."""
    text = " ".join("".join(char if char.isprintable() else " " for char in words).split()).rstrip(" .")
    if len(text) <= longest:
        return text
    head = longest // 4
    return f"{text[:head]} … {text[-(longest - head - 3) :]}"


def telling(words: str) -> str:
    """The reason within a chain of wrappers, on one line."""
    return one_line(_WRAPPERS.sub("", " ".join(words.split()))) or one_line(words) or "no reason was given"


def container(pod: dict[str, Any]) -> dict[str, Any]:
    """The job's container as its status tells it; empty when nothing is told yet."""
    statuses: list[dict[str, Any]] = (pod.get("status") or {}).get("containerStatuses") or []
    named = [status for status in statuses if status.get("name") == CONTAINER]
    return (named or statuses or [{}])[0]


def asked(pod: dict[str, Any]) -> dict[str, Any]:
    """The job's container as its manifest asks for it."""
    wanted: list[dict[str, Any]] = (pod.get("spec") or {}).get("containers") or []
    named = [each for each in wanted if each.get("name") == CONTAINER]
    return (named or wanted or [{}])[0]


def image(pod: dict[str, Any]) -> str:
    """The image's full name."""
    return str(asked(pod).get("image") or "")


def registry(reference: str) -> str:
    """The registry an image comes from."""
    try:
        return images.parse(reference).registry or "docker.io"
    except ValueError:
        return "its registry"


def node(pod: dict[str, Any]) -> str:
    """The Kubernetes node's name."""
    return str((pod.get("spec") or {}).get("nodeName") or "the node")


def name(pod: dict[str, Any]) -> str:
    """The pod's name."""
    return str((pod.get("metadata") or {}).get("name") or "")


def memory_limit(pod: dict[str, Any]) -> int | None:
    """The memory that the job may use, in bytes; None without a limit."""
    limit = ((asked(pod).get("resources") or {}).get("limits") or {}).get("memory")
    try:
        return None if limit is None else bytes_of(limit)
    except ValueError:
        return None


def condition(pod: dict[str, Any], kind: str) -> dict[str, Any]:
    """The condition of that type if it is true, else empty."""
    conditions: list[dict[str, Any]] = (pod.get("status") or {}).get("conditions") or []
    return next((each for each in conditions if each.get("type") == kind and each.get("status") == "True"), {})


def time_of(text: str | None) -> float | None:
    """A time of the API's as Unix time."""
    if not text:
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


def kubelets(pod: dict[str, Any], events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The kubelet's events about this very pod, oldest first: an earlier attempt's pod had the same name."""
    uid = (pod.get("metadata") or {}).get("uid")
    chosen = []
    for event in events:
        about = (event.get("involvedObject") or event.get("regarding") or {}).get("uid")
        teller = (event.get("source") or {}).get("component") or event.get("reportingComponent") or "kubelet"
        if about in (None, uid) and teller == "kubelet":
            chosen.append(event)
    return sorted(chosen, key=lambda event: span(event)[1])


def span(event: dict[str, Any]) -> tuple[float, float]:
    """When an event was first and last seen."""
    times = [
        event.get("firstTimestamp"),
        event.get("lastTimestamp"),
        event.get("eventTime"),
        (event.get("series") or {}).get("lastObservedTime"),
    ]
    known = [moment for moment in map(time_of, times) if moment is not None]
    return (min(known), max(known)) if known else (0.0, 0.0)


def count(event: dict[str, Any]) -> int:
    """How often an event was seen."""
    return int(event.get("count") or (event.get("series") or {}).get("count") or 1)
