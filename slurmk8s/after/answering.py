"""How a child answers: one JSON request on stdin, one line of JSON on stdout, a fault as an answer."""

import json
import sys
from collections.abc import Callable
from typing import Any

from slurmk8s.errors import SlurmK8sError

_LIMIT = 8 << 20


def answer(work: Callable[[dict[str, Any]], dict[str, Any]]) -> int:
    """Do what the request asks and say how it went."""
    request: dict[str, Any] = json.loads(sys.stdin.buffer.read(_LIMIT))
    try:
        reply = {"ok": True, **work(request)}
    except SlurmK8sError as fault:
        reply = {"ok": False, "fault": fault.fault, "sentence": fault.sentence, "hint": fault.hint}
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()
    return 0
