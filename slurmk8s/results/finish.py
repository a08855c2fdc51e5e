"""The end of an attempt: slurmk8s's own words, the size of outputs, the summaries."""

import contextlib
import os
import stat
import time
from dataclasses import replace

from slurmk8s.results import entry, files, handover, index, listing, paths, picture, room
from slurmk8s.results.prepare import exists, follow_rotation, place
from slurmk8s.results.request import Finish, Note, ReadSummary
from slurmk8s.results.steps import At, nothing
from slurmk8s.results.summary import HEAD, PENDING, Outputs, keep_first
from slurmk8s.results.summary_file import read_summary, write_summary
from slurmk8s.results.summary_text import brief_name
from slurmk8s.results.walk import walk

# So many names are given in a summary; the rest are counted.
NAMES_SHOWN = 20


def note(request: Note, at: At = nothing) -> dict[str, object]:
    """Add one line to stderr.log."""
    line = request.stderr.rstrip("\n").encode("utf-8", "backslashreplace") + b"\n"
    with place(request.target, at) as here:
        files.create_empty(here.folder, paths.STDERR, request.target.modes.file)
        at("log there")
        files.append(here.folder, paths.STDERR, line)
        at("note written")
    return {"ok": True}


def finish(request: Finish, at: At = nothing) -> dict[str, object]:
    """Write both summaries. Asked again, what was said first about the cause stays."""
    target = replace(request.target, attempt=request.summary.attempt)
    with place(target, at) as here:
        if request.summary.written_by != HEAD:  # a lost node that comes back reads in it how the body ended
            handover.remove(here.bundle, here.attempt)
            at("handover removed")
        files.sweep(here.folder)
        # No summary without its data: the logs are durable before anything says that the job has ended.
        files.sync_file(here.folder, paths.STDOUT)
        files.sync_file(here.folder, paths.STDERR)
        at("logs durable")
        outputs = measure(here.folder) if here.is_latest else None
        at("outputs measured")
        summary = replace(request.summary, outputs=outputs, checksums=PENDING, complete=False)
        missed = room.shortage(here.folder, failed=summary.state == "failed") if summary.cause else None
        if missed and missed not in summary.cause:
            summary = replace(summary, cause=f"{summary.cause} {missed}")
        first = read_summary(here.folder)
        if first is not None and (first.job_id, first.attempt) == (summary.job_id, summary.attempt):
            summary = keep_first(first, summary)
        if request.course is not None:
            # Before the summary, which names it.
            files.write(here.folder, paths.USAGE, [picture.svg(summary, request.course)], target.modes.file, at)
        write_summary(here.folder, summary, here.path, target.modes.file, at)
        follow_rotation(here, target.modes)
    document = summary.to_json()
    told = entry.of_summary(document, time.time())
    unlisted = index.note(target.root, told) or listing.note(target.root, told, target.modes.file)
    return {"ok": True, "summary": document, **({"unlisted": unlisted} if unlisted else {})}


def stored_summary(request: ReadSummary, at: At = nothing) -> dict[str, object]:
    """What summary.json says of this attempt; null if there is none yet."""
    if not exists(request.target):
        return {"ok": True, "summary": None}
    with place(request.target, at) as here:
        summary = read_summary(here.folder)
    if summary is not None and summary.attempt != here.attempt:
        summary = None
    return {"ok": True, "summary": None if summary is None else summary.to_json()}


def measure(folder: int) -> Outputs:
    """Count and add up what lies under outputs/."""
    count, total, skipped = 0, 0, 0
    names: list[str] = []
    for inner in walk(folder, os.fsencode(paths.OUTPUTS)):
        for name in inner.names:
            with contextlib.suppress(OSError):  # removed meanwhile
                found = os.stat(name, dir_fd=inner.descriptor, follow_symlinks=False)
                if stat.S_ISREG(found.st_mode):
                    count += 1
                    total += found.st_size
        skipped += len(inner.skipped)
        names += [brief_name(inner.path + b"/" + name) for name in inner.skipped[: NAMES_SHOWN - len(names)]]
    return Outputs(count, total, skipped, tuple(names))
