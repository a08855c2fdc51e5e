"""Every path of a bundle, in one place."""

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the worker needs the names only, and a job's start should not wait for this import
    from pathlib import Path

STDOUT = "stdout.log"
STDERR = "stderr.log"
SUMMARY_TEXT = "job_summary.txt"
SUMMARY = "summary.json"
USAGE = "usage.svg"
CHECKSUMS = "checksums.txt"
OUTPUTS = "outputs"
# Which attempt the files beside it belong to. One writer: prepare.py.
MARKER = ".slurmk8s.json"
# Digests so far, while they are computed. One writer: checksums.py.
PARTIAL = ".checksums.partial"
# How far that is. One writer: checksums.py.
PROGRESS = ".checksums.progress"
# Says that the archive is in place and right; from then on the original may be in pieces. One writer: archived.py.
ARCHIVED = "archived.txt"

# What moves to attempt-N when the job starts again. outputs/ stays, so that the job finds its checkpoints.
# The summary goes first: as long as it is in place, its attempt number says whose files these are.
OF_ONE_ATTEMPT = (SUMMARY, SUMMARY_TEXT, USAGE, CHECKSUMS, STDOUT, STDERR)

BUNDLE_NAME = re.compile(r"([1-9][0-9]{0,17})(?:\.earlier-([1-9][0-9]{0,8}))?", re.ASCII)
ATTEMPT_NAME = re.compile(r"attempt-(0|[1-9][0-9]{0,8})", re.ASCII)
TEMPORARY_NAME = re.compile(r"\..+\.[0-9a-f]{16}\.tmp", re.ASCII)

GOING_NAME = re.compile(r"\.going-(.+)\.[0-9a-f]{16}", re.ASCII)


def going_name(name: str) -> str:
    """Where a bundle goes before it is emptied for good."""
    return f".going-{name}.{os.urandom(8).hex()}"


def handover_name(attempt: int) -> str:
    """Folder where a job and its pod meet, if the pod sees the NAS alone."""
    return f".handover-{attempt}"


def attempt_name(attempt: int) -> str:
    """Folder of an attempt that is over because the job was started again."""
    return f"attempt-{attempt}"


def earlier_name(job_id: int, number: int) -> str:
    """Where a bundle goes when Slurm's job ids have started again and another job has its number."""
    return f"{job_id}.earlier-{number}"


@dataclass(frozen=True)
class Bundle:
    """The folder `results/<job id>` and what is in it."""

    folder: "Path"

    @classmethod
    def of(cls, root: "Path", job_id: int) -> "Bundle":
        """The bundle of this job."""
        return cls(root / str(job_id))

    @property
    def stdout(self) -> "Path":
        """Standard output of the body, written while it runs."""
        return self.folder / STDOUT

    @property
    def stderr(self) -> "Path":
        """Standard error of the body, and slurmk8s's own messages when no body ran."""
        return self.folder / STDERR

    @property
    def summary_text(self) -> "Path":
        """The summary for people."""
        return self.folder / SUMMARY_TEXT

    @property
    def summary(self) -> "Path":
        """The summary for programs."""
        return self.folder / SUMMARY

    @property
    def checksums(self) -> "Path":
        """Digests as `sha256sum` writes them."""
        return self.folder / CHECKSUMS

    @property
    def outputs(self) -> "Path":
        """What the job wrote; `/workspace` in the container."""
        return self.folder / OUTPUTS

    @property
    def marker(self) -> "Path":
        """Which attempt the files belong to."""
        return self.folder / MARKER

    @property
    def partial(self) -> "Path":
        """Digests so far, while they are computed."""
        return self.folder / PARTIAL

    def attempt(self, attempt: int) -> "Bundle":
        """An earlier attempt: the same names, without outputs."""
        return Bundle(self.folder / attempt_name(attempt))
