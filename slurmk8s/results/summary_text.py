"""job_summary.txt: the summary as a person reads it, the cause first."""

import unicodedata
from datetime import UTC, datetime

from slurmk8s.results import paths
from slurmk8s.results.summary import COMPLETE, FAILED, HEAD, NODE, NODE_AFTER_HEAD, Summary

_LABEL_WIDTH = 12
_LONGEST_NAME = 1000
_WRITERS = {
    NODE: "",
    HEAD: "the head node; what only the node knows (exit code, use, image digest) is missing unless it is told above",
    NODE_AFTER_HEAD: "the node, after it had been lost for a while",
}


def text(summary: Summary, folder: str = "") -> str:
    """The whole file. `folder` is where the bundle lies, if that is to be said."""
    lines = [printable(summary.cause or "It is not known why the job ended."), ""]
    lines += [f"{label:<{_LABEL_WIDTH}}{value}".rstrip() for label, value in _facts(summary) if value]
    if summary.usage and summary.usage.notes:
        lines += ["", "For the next time:", *(f"  - {printable(note)}" for note in summary.usage.notes)]
    if folder:
        lines += ["", f"Everything is in {printable(folder)}:", *_contents(summary)]
    return "\n".join(lines) + "\n"


def _facts(summary: Summary) -> list[tuple[str, str]]:
    times, durations = summary.times, summary.durations
    return [
        ("Job", _job(summary)),
        ("Person", f"{printable(summary.user)} (uid {summary.uid})" + _named("account", summary.account)),
        ("State", summary.state.replace("_", " ") + _whose(summary.fault)),
        ("Command", printable(summary.command)),
        ("Script", f"sha256 {printable(summary.script_sha256)}" if summary.script_sha256 else ""),
        ("Image", printable(summary.image)),
        ("Digest", printable(summary.image_digest or "")),
        ("Workdir", printable(summary.workdir)),
        ("Node", _nodes(summary) + _named("partition", summary.partition)),
        ("Resources", f"{_count(summary.cpus, 'CPU')}, {size(summary.memory_mb * 2**20)} memory"),
        ("GPUs", printable(", ".join(summary.gpus)) or "none"),
        *_used(summary),
        ("GPU-hours", f"{summary.gpu_hours:.2f}" if summary.gpu_hours else ""),
        ("Dropped", when(times.dropped)),
        ("Accepted", when(times.submitted) + _took(durations.accepting, "checked in")),
        ("Started", when(times.started) + _took(durations.queued, "queued for")),
        ("Image there", when(times.pulled) + _took(durations.pulling, "pulled in")),
        ("Body began", when(times.body_started)),
        ("Ended", when(times.ended) + _took(durations.running, "ran for")),
        ("Exit code", _exit(summary)),
        ("Outputs", _outputs(summary)),
        ("Checksums", _checksums(summary)),
        ("Written by", _WRITERS[summary.written_by]),
    ]


def _used(summary: Summary) -> list[tuple[str, str]]:
    """What was used of it, each with its course over time: from nothing to all that the job had."""
    usage = summary.usage
    if usage is None:
        return []
    limit = summary.memory_mb << 20
    held = f"peak {size(usage.memory_peak_bytes)}"
    held += f" of {size(limit)} ({100 * usage.memory_peak_bytes / limit:.0f} %)" if limit else ""
    computed = f"{usage.cpu_cores:.2f} of {summary.cpus} on average"
    computed += f" ({100 * usage.cpu_cores / summary.cpus:.0f} %)" if summary.cpus else ""
    rows = [("CPU used", computed, usage.cpu_trend), ("Memory used", held, usage.memory_trend)]
    for card in usage.gpus:
        busy = "" if card.utilisation is None else f"{card.utilisation:.0f} % busy on average, "
        memory = f"peak {size(card.memory_peak_bytes)} of {size(card.memory_bytes)}"
        rows.append((f"GPU {printable(card.name)} used", busy + memory, card.trend))
    return [(label, f"{figures:<50}{printable(course)}") for label, figures, course in rows]


def _job(summary: Summary) -> str:
    words = f"{summary.job_id} {printable(summary.name)}"
    if summary.array:
        words += f" (task {summary.array})"
    return words + (f", attempt {summary.attempt}" if summary.attempt else "")


def _named(what: str, value: str) -> str:
    return f", {what} {printable(value)}" if value else ""


def _whose(fault: str) -> str:
    return {
        "none": "",
        "person": "",
        "cluster": " (the cluster's fault, not the job's)",
        "node": " (the node's fault, not the job's)",
        "ours": " (a fault of slurmk8s, not the job's)",
    }[fault]


def _nodes(summary: Summary) -> str:
    return printable(", ".join(summary.nodes) or summary.node)


def _took(seconds: float | None, words: str) -> str:
    return "" if seconds is None else f"  ({words} {duration(seconds)})"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _exit(summary: Summary) -> str:
    code = "none" if summary.exit_code is None else str(summary.exit_code)
    return f"{code} ({printable(summary.signal)})" if summary.signal else code


def _outputs(summary: Summary) -> str:
    outputs = summary.outputs
    if outputs is None:
        return "left in place for the next attempt" if summary.starts_again else "not measured"
    words = f"{_count(outputs.files, 'file')}, {size(outputs.bytes)}"
    if outputs.skipped_count:
        names = ", ".join(printable(name) for name in outputs.skipped[:3])
        what = "that is no regular file was" if outputs.skipped_count == 1 else "that are no regular files were"
        words += f"; {outputs.skipped_count:,} {what} skipped ({names}"
        words += ", …)" if outputs.skipped_count > 3 else ")"
    return words


def _checksums(summary: Summary) -> str:
    if summary.checksums == COMPLETE:
        return f"complete; check with `slurmk8s verify {summary.job_id}` or `sha256sum -c {paths.CHECKSUMS}`"
    if summary.checksums.startswith(FAILED):
        return printable(summary.checksums)
    return "pending: the files are still being hashed"


def _contents(summary: Summary) -> list[str]:
    rows = [(f"{paths.STDOUT}, {paths.STDERR}", "what the job printed"), (paths.SUMMARY, "this summary for programs")]
    if summary.usage is not None and summary.usage.cpu_trend:  # one look makes no picture
        rows.append((paths.USAGE, "what the job used over time, as a picture"))
    if summary.outputs is not None:
        rows.append((f"{paths.OUTPUTS}/", "what the job wrote in /workspace"))
    return [f"  {names:<24}{meaning}" for names, meaning in rows]


def when(time: float | None) -> str:
    """A local time with its zone, or nothing."""
    if time is None:
        return ""
    try:
        return datetime.fromtimestamp(time, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")
    except (OverflowError, OSError, ValueError):  # somebody edited the file
        return str(time)


def duration(seconds: float) -> str:
    """As people say it: `0.4 s`, `12 s`, `3 min 5 s`, `2 h 10 min`, `3 d 4 h`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


def size(count: float) -> str:
    """Bytes in units people use; powers of 1024, as Slurm counts memory."""
    if count < 1024:
        return f"{int(count)} bytes"
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        count /= 1024
        if count < 1024:
            return f"{count:.1f} {unit}"
    return f"{count / 1024:.1f} PiB"


def printable(words: str) -> str:
    """Text that somebody else chose, safe for a terminal: control characters would move its cursor or retitle it."""
    return "".join(char if _shows(char) else char.encode("unicode_escape").decode("ascii") for char in words)


def _shows(char: str) -> bool:
    return char == " " or (char.isprintable() and unicodedata.category(char) != "Cf")


def shown_name(name: bytes) -> str:
    """A file name for people and JSON; bytes that are not UTF-8 are shown as escapes."""
    return name.decode("utf-8", "backslashreplace")


def brief_name(name: bytes) -> str:
    """As much of a name as a summary takes: a path may be longer than a whole summary. Its end tells the file."""
    shown = shown_name(name)
    return shown if len(shown) <= _LONGEST_NAME else "…" + shown[-_LONGEST_NAME:]
