"""Endings in a few groups, so that a report can say what goes wrong most. Pure."""

import re

from slurmk8s.results.entry import Entry

GOOD = "completed"
_BY_STATE = {
    "out_of_memory": "out of memory",
    "timeout": "time limit reached",
    "node_fail": "node lost",
    "preempted": "pre-empted",
    "cancelled": "cancelled",
    "completed": GOOD,
}
# In this order; the first that fits. The sentences are those of agent/ and pod/; docs/faults.md lists them.
_BY_WORDS = (
    (re.compile(r"quota", re.IGNORECASE), "quota"),
    (re.compile(r"\bGPUs?\b"), "GPUs of the node"),
    (re.compile(r"registry|pull|image", re.IGNORECASE), "image"),
    (re.compile(r"\bNAS\b|mount|volume|results folder|output file", re.IGNORECASE), "files and mounts"),
    (re.compile(r"interpreter|#!|/bin/sh|script", re.IGNORECASE), "script or interpreter"),
    (re.compile(r"#K8S_|#SBATCH", re.IGNORECASE), "job file"),
)
_EXIT = re.compile(r"exit code (\d+)")
_OF = {"cluster": "cluster", "node": "node", "ours": "slurmk8s itself"}


def group(entry: Entry) -> str:
    """`completed`, `out of memory`, `exit code 1`, `image`, `requeued: node` …"""
    if entry.state == "requeued":
        whose = _OF.get(entry.fault)
        return f"started again ({whose})" if whose else "started again"
    if entry.state in _BY_STATE:
        return _BY_STATE[entry.state]
    code = _EXIT.search(entry.cause)
    if entry.fault == "person" and code and entry.cause.startswith("The body ended"):
        return f"exit code {code[1]}"
    about = next((name for words, name in _BY_WORDS if words.search(entry.cause)), "")
    whose = _OF.get(entry.fault)
    if about and whose:
        return f"{about} ({whose})"
    return about or whose or "other"


def is_bad(entry: Entry) -> bool:
    """Whether what the attempt had was spent for nothing, as far as its ending tells."""
    return entry.state not in ("completed", "cancelled")
