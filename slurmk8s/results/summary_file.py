"""The two summary files on disk. summary.json is written first: it says which attempt both belong to."""

from slurmk8s.results import files, paths, summary_text
from slurmk8s.results.steps import At
from slurmk8s.results.strict import Malformed
from slurmk8s.results.summary import Summary, decode


def read_summary(folder: int) -> Summary | None:
    """The summary in this open folder; None if there is none, or its owner made something else of it."""
    data = files.read_small(folder, paths.SUMMARY)
    if data is None:
        return None
    try:
        return decode(data)
    except Malformed:
        return None


def write_summary(folder: int, summary: Summary, shown_folder: str, mode: int, at: At) -> None:
    """Both files, each as a whole."""
    files.write(folder, paths.SUMMARY, [summary.encode()], mode, at)
    # Bytes that are no text (a folder's name, say) must not stop a summary.
    text = summary_text.text(summary, shown_folder).encode("utf-8", "backslashreplace")
    files.write(folder, paths.SUMMARY_TEXT, [text], mode, at)
