"""Hash a bundle, write checksums.txt, and say in the summaries that it is complete.

Runs after the node is free for other jobs. May be killed at any point and asked again: the same bundle results.
"""

import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from slurmk8s import durable
from slurmk8s.errors import ClusterFault, PersonFault
from slurmk8s.results import files, paths
from slurmk8s.results.finish import NAMES_SHOWN
from slurmk8s.results.hashers import Batch, Way, batches, hash_all
from slurmk8s.results.hashing import Hashed, Identity
from slurmk8s.results.partial import Partial, partial
from slurmk8s.results.prepare import Place, exists, follow_rotation, place, refuse_if_started_again
from slurmk8s.results.progress import Tell, Teller, unheard
from slurmk8s.results.request import Checksums
from slurmk8s.results.steps import At, nothing
from slurmk8s.results.summary import COMPLETE, FAILED, Outputs, Summary
from slurmk8s.results.summary_file import read_summary, write_summary
from slurmk8s.results.summary_text import brief_name
from slurmk8s.results.walk import Folder, trouble, walk

_PROBLEMS = {"changing": "still changing", "unreadable": "not readable", "missing": "gone"}
_LOGS = (os.fsencode(paths.STDOUT), os.fsencode(paths.STDERR))

Sized = Iterator[tuple[bytes, Identity | None]]
"""Names of files with what a stat says of them."""


@dataclass
class Tally:
    """What was found on the way. Names are kept up to a bound, the rest only counted: memory stays flat."""

    files: int = 0
    size: int = 0
    reused: int = 0
    """Bytes that an earlier try had hashed."""
    skipped: int = 0
    skipped_names: list[str] = field(default_factory=list)
    problems: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_PROBLEMS, 0))
    problem_names: dict[str, list[str]] = field(default_factory=lambda: {kind: [] for kind in _PROBLEMS})

    def good(self, path: bytes, size: int) -> None:
        """A file with a digest."""
        if path not in _LOGS:
            self.files += 1
            self.size += size

    def skip(self, folder: Folder) -> None:
        """What is no regular file."""
        self.skipped += len(folder.skipped)
        room = NAMES_SHOWN - len(self.skipped_names)
        self.skipped_names += [brief_name(folder.path + b"/" + name) for name in folder.skipped[:room]]

    def bad(self, kind: str, path: bytes) -> None:
        """A file without a digest."""
        self.problems[kind] += 1
        if len(self.problem_names[kind]) < NAMES_SHOWN:
            self.problem_names[kind].append(brief_name(path))

    def verdict(self) -> str:
        """What the summary says of the checksums."""
        words = [
            f"{self.problem_names[kind][0]}{_more(count - 1)} {'was' if count == 1 else 'were'} {meaning}"
            for kind, meaning in _PROBLEMS.items()
            if (count := self.problems[kind])
        ]
        return FAILED + "; ".join(words) if words else COMPLETE


def _more(count: int) -> str:
    return f" and {count} more" if count else ""


def checksums(request: Checksums, at: At = nothing, tell: Tell = unheard) -> dict[str, object]:
    """Do what the request asks; a bundle that is complete already is left alone."""
    modes = request.target.modes
    if not exists(request.target):
        raise _gone(request.target.folder)
    with place(request.target, at) as here:
        summary = _summary(here)
        if summary.complete and files.lstat(here.folder, paths.PARTIAL) is None:
            return _reply(summary, Tally())
        files.sweep(here.folder)
        with partial(here.folder) as so_far:
            # Digests are of what is on the disk: after a power cut a file must not be older than its digest.
            durable.keep_file_system(here.folder)
            at("data durable")
            tally = Tally()
            teller = Teller(here.folder, modes.file, *_totals(here, summary), tell)
            way = Way(
                request.processes,
                request.bytes_per_second,
                tick=lambda read: teller.tick(read, tally.reused, tally.files),
            )
            _hash_all(here, so_far, tally, way, at)
            at("all hashed")
            refuse_if_started_again(here)
            _refuse_if_told_anew(here, summary)
            files.write(here.folder, paths.CHECKSUMS, so_far.checksum_lines(), modes.file, at)
            verdict = tally.verdict()
            outputs = Outputs(tally.files, tally.size, tally.skipped, tuple(tally.skipped_names))
            summary = replace(
                summary,
                outputs=outputs if here.is_latest else None,
                checksums=verdict,
                complete=verdict == COMPLETE,
            )
            # Once more: the list may be long and the NAS slow to keep it.
            _refuse_if_told_anew(here, summary)
            write_summary(here.folder, summary, here.path, modes.file, at)
            # What was told a moment later has taken the place of this, and is not complete yet.
            _refuse_if_told_anew(here, summary)
            follow_rotation(here, modes)
            files.remove(here.folder, paths.PROGRESS)
            at("progress removed")
            files.remove(here.folder, paths.PARTIAL)
            at("partial removed")
    return _reply(summary, tally)


def _totals(here: Place, summary: Summary) -> tuple[int, int]:
    """Bytes and files to come, as they were when the job ended."""
    logs = [found for log in _LOGS if (found := files.lstat(here.folder, os.fsdecode(log)))]
    outputs = summary.outputs or Outputs(0, 0)
    return outputs.bytes + sum(log.st_size for log in logs), outputs.files + len(logs)


def _summary(here: Place) -> Summary:
    summary = read_summary(here.folder)
    if summary is None or summary.attempt != here.attempt:
        raise _gone(here.path)
    return summary


def _refuse_if_told_anew(here: Place, summary: Summary) -> None:
    """A lost node that came back meanwhile has told its own account of the job, which must not be replaced by ours."""
    now = read_summary(here.folder)  # None: its owner took it away, or the next attempt did; both find it again
    if now is not None and now.attempt == here.attempt and now.written_by != summary.written_by:
        raise ClusterFault("The summary was written anew while the files were hashed.", "It is tried again.")


def _gone(folder: str) -> PersonFault:
    return PersonFault(f"{folder}/{paths.SUMMARY} is gone or no longer a summary, so the bundle cannot be completed.")


def _reply(summary: Summary, tally: Tally) -> dict[str, object]:
    return {
        "ok": True,
        "complete": summary.complete,
        "checksums": summary.checksums,
        "changing": tally.problem_names["changing"],
        "unreadable": tally.problem_names["unreadable"],
        "missing": tally.problem_names["missing"],
        "summary": summary.to_json(),
    }


def _hash_all(here: Place, so_far: Partial, tally: Tally, way: Way, at: At) -> None:
    for batch in hash_all(here.folder, _work(here, so_far, tally), way):
        so_far.add(hashed for hashed in batch if hashed.state == "ok")
        for hashed in batch:
            if hashed.state == "ok":
                assert hashed.identity is not None
                tally.good(hashed.path, hashed.identity.size)
            else:
                # What is no file any more, say a link in place of a log, is gone as far as checksums go.
                tally.bad("missing" if hashed.state == "other" else hashed.state, hashed.path)
        at("batch hashed")


def _work(here: Place, so_far: Partial, tally: Tally) -> Iterator[Batch | list[Hashed]]:
    """What is still to be hashed, in the order of the walk. What an earlier try has hashed is taken over here."""
    resuming = True
    for folder in _folders(here):
        if folder.error is not None:
            # A result like the others: what is told of the bundle then has the order of the walk.
            yield [Hashed(folder.path + b"/", trouble(folder.error))]
            continue
        tally.skip(folder)
        sized: Sized = ((name, _identity(folder.descriptor, name)) for name in folder.names)
        if resuming:
            sized, resuming = _take_over(folder, sized, so_far, tally)
        yield from batches(folder.path, ((name, identity.size if identity else 0) for name, identity in sized))
    if resuming:
        so_far.cut()


def _take_over(folder: Folder, sized: Sized, so_far: Partial, tally: Tally) -> tuple[Sized, bool]:
    """Pass the files that an earlier try has hashed; what is left of them, and whether all were passed."""
    prefix = folder.path + b"/" if folder.path else b""
    for name, identity in sized:
        if identity is None or not so_far.reuse(prefix + name, identity):
            so_far.cut()
            return itertools.chain([(name, identity)], sized), False
        tally.good(prefix + name, identity.size)
        tally.reused += identity.size
    return iter(()), True


def _folders(here: Place) -> Iterator[Folder]:
    yield Folder(b"", here.folder, _LOGS, ())
    if here.is_latest:
        yield from walk(here.folder, os.fsencode(paths.OUTPUTS))


def _identity(folder: int, name: bytes) -> Identity | None:
    try:
        return Identity.of(os.stat(name, dir_fd=folder, follow_symlinks=False))
    except (FileNotFoundError, PermissionError):
        return None
