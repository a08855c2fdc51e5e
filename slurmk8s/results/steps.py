"""The points between which a worker can die, in the order they are reached.

Whatever the last one reached, asking again ends with the same bundle. The tests walk this list, kill the worker after
each and let its owner swap files there; a new effect on a bundle needs a new name here.
"""

from collections.abc import Callable

from slurmk8s.results import paths


def put(name: str) -> tuple[str, str]:
    """The two steps of a file that is written beside its place and renamed."""
    return f"{name} written", f"{name} in place"


PREPARE = (
    "folder made",
    "earlier bundle aside",
    *(f"{name} moved" for name in paths.OF_ONE_ATTEMPT),
    *put(paths.MARKER),
    "logs made",
    "handover made",
)
NOTE = ("folder made", "log there", "note written")
FINISH = (
    "folder made",
    "handover removed",
    "logs durable",
    "outputs measured",
    *put(paths.USAGE),
    *put(paths.SUMMARY),
    *put(paths.SUMMARY_TEXT),
)
CHECKSUMS = (
    "folder made",
    "data durable",
    "batch hashed",
    "all hashed",
    *put(paths.CHECKSUMS),
    *put(paths.SUMMARY),
    *put(paths.SUMMARY_TEXT),
    "progress removed",
    "partial removed",
)
PRUNE = ("bundle set aside", "folder removed")

# Called with the name of each step when it is done.
At = Callable[[str], None]


def nothing(_step: str) -> None:
    """The step hook of production."""
