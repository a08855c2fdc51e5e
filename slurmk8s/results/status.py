"""How far a bundle is, for readers: what its marker and its summary say together."""

from dataclasses import dataclass

from slurmk8s.results import files, marker, progress
from slurmk8s.results.marker import Marker
from slurmk8s.results.paths import Bundle
from slurmk8s.results.progress import Progress
from slurmk8s.results.summary import PENDING, ArrayTask, Summary
from slurmk8s.results.summary_file import read_summary


@dataclass(frozen=True)
class Status:
    """The latest attempt of a job."""

    marker: Marker | None
    summary: Summary | None
    """None while the attempt runs; the summary of an earlier attempt does not count."""
    readable: bool = True
    hashing: Progress | None = None
    """How far the checksums are, while they are computed."""

    @property
    def ended(self) -> bool:
        """Whether the job is over for good."""
        return self.summary is not None and not self.summary.starts_again

    @property
    def array(self) -> ArrayTask | None:
        """Its place in a job array."""
        if self.summary is not None:
            return self.summary.array
        return self.marker.array if self.marker else None


def status(bundle: Bundle) -> Status:
    """Look at a bundle. Raises FileNotFoundError if there is none."""
    try:
        with files.folder(str(bundle.folder)) as folder:
            return status_of(folder)
    except PermissionError:
        return Status(None, None, readable=False)


def status_of(folder: int) -> Status:
    """The same of an open folder."""
    known, summary = marker.read(folder), read_summary(folder)
    if known is not None and summary is not None and summary.attempt != known.attempt:
        summary = None
    is_hashed = summary is not None and summary.checksums == PENDING
    return Status(known, summary, hashing=progress.read(folder) if is_hashed else None)
