"""What a job used, as Princeton's jobstats keeps it in slurmdbd: `JS1:` and gzipped JSON in base64, as AdminComment.

reportseff and jobstats itself read it there. slurmctld's own admin comment stays our stamp; only the database's copy
of an ended job is replaced, and the stamp goes into the JSON, under a key that those programs do not look at.
"""

import base64
import binascii
import gzip
import json
import zlib
from typing import Any

from slurmk8s.results.summary import Summary

PREFIX = "JS1:"
STAMP_KEY = "slurmk8s"
_LARGEST = 1 << 20


def encode(summary: Summary, stamp: str) -> str | None:
    """The comment for an ended job; None where nothing was measured or it held nothing for any time."""
    times, usage = summary.times, summary.usage
    if usage is None or times.started is None or times.ended is None or times.ended - times.started < 1:
        return None
    node: dict[str, Any] = {"cpus": summary.cpus, "total_time": round(usage.cpu_seconds, 1)}
    if summary.memory_mb:
        node |= {"used_memory": usage.memory_peak_bytes, "total_memory": summary.memory_mb << 20}
    told = [card for card in usage.gpus if card.utilisation is not None and card.memory_bytes]
    if told:
        node["gpu_utilization"] = {card.name: card.utilisation for card in told}
        node["gpu_used_memory"] = {card.name: card.memory_peak_bytes for card in told}
        node["gpu_total_memory"] = {card.name: card.memory_bytes for card in told}
    document = {
        "nodes": {summary.node: node},
        "total_time": round(times.ended - times.started),
        "gpus": len(summary.gpus),
        STAMP_KEY: stamp,
    }
    text = json.dumps(document, separators=(",", ":"))
    return PREFIX + base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def decode(comment: str) -> dict[str, Any] | None:
    """What such a comment holds; None if it is none."""
    if not comment.startswith(PREFIX):
        return None
    try:
        packed = base64.b64decode(comment.removeprefix(PREFIX), validate=True)
        unpacking = zlib.decompressobj(wbits=31)
        text = unpacking.decompress(packed, _LARGEST)
        document = json.loads(text)
    except (ValueError, binascii.Error, zlib.error):
        return None
    return document if isinstance(document, dict) else None


def stamp_in(comment: str) -> str:
    """Our stamp, whether it is the comment itself or was put into the other; "" if there is none."""
    document = decode(comment)
    return comment if document is None else str(document.get(STAMP_KEY) or "")
