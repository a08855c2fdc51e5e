"""The marker of a bundle: which attempt of which job the files beside it belong to."""

import json
from dataclasses import asdict, dataclass

from slurmk8s.results import files, paths
from slurmk8s.results.steps import At
from slurmk8s.results.strict import Malformed, load
from slurmk8s.results.summary import ArrayTask, read_array

SCHEMA = 1


@dataclass(frozen=True)
class Marker:
    """What prepare knew of the job. Written before anything else in the folder."""

    attempt: int
    submitted: float | None
    """When the job was submitted, as Slurm says: tells two jobs of the same number apart."""
    name: str
    array: ArrayTask | None
    prepared: bool = True
    """False: the job has ended before anything was prepared for it, so no body can have touched these files."""

    def encode(self) -> bytes:
        """The bytes of the file."""
        return json.dumps({"schema": SCHEMA, **asdict(self)}).encode() + b"\n"


def decode(data: bytes) -> Marker | None:
    """The marker, or None if these bytes are none: its owner may have edited it."""
    try:
        fields = load(data, "marker")
        fields.whole("schema", SCHEMA, SCHEMA)
        marker = Marker(
            attempt=fields.whole("attempt"),
            submitted=fields.number_or_none("submitted"),
            name=fields.text("name"),
            array=read_array(fields),
            prepared=fields.flag("prepared") if fields.has("prepared") else True,
        )
        fields.done()
    except Malformed:
        return None
    return marker


def read(folder: int) -> Marker | None:
    """The marker in this open folder."""
    data = files.read_small(folder, paths.MARKER)
    return None if data is None else decode(data)


def write(folder: int, marker: Marker, mode: int, at: At) -> None:
    """Say whose files these are."""
    files.write(folder, paths.MARKER, [marker.encode()], mode, at)
