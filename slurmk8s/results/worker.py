"""The process that does file work on the NAS as the job's user: `python -I -m slurmk8s.results.worker`.

One JSON request on stdin, one line of JSON on stdout; where it takes long, lines before it that say how far it is.
Exit status 0 when there is an answer, also when it is a refusal; anything else is a bug of ours, with its traceback on
stderr.
"""

import contextlib
import json
import os
import sys
from typing import TYPE_CHECKING

from slurmk8s.errors import NasFull, PersonFault, SlurmK8sError
from slurmk8s.results import faults
from slurmk8s.results.prepare import prepare
from slurmk8s.results.request import Checksums, Finish, Note, Prepare, Prune, Request, parse
from slurmk8s.results.steps import At, nothing
from slurmk8s.results.strict import Malformed

if TYPE_CHECKING:
    from slurmk8s.results.progress import Progress, Tell

# A request holds a summary at most.
_LIMIT = 4 << 20


def answer(request: Request, at: At = nothing, tell: "Tell" = lambda _: None) -> dict[str, object]:
    """Do it; a fault becomes an answer."""
    try:
        return _do(request, at, tell)
    except SlurmK8sError as fault:
        return _refusal(fault)
    except OSError as error:
        ended = isinstance(request, Finish | Checksums)
        where = request.root if isinstance(request, Prune) else request.target.folder
        return _refusal(faults.explain(error, f"work in the results folder {where}", ended=ended))


def _do(request: Request, at: At, tell: "Tell") -> dict[str, object]:
    if isinstance(request, Prepare):
        return prepare(request, at)
    # Late: a job's start must not pay for what only its end needs.
    from slurmk8s.results import checksums, finish, prune  # noqa: PLC0415

    match request:
        case Note():
            return finish.note(request, at)
        case Finish():
            return finish.finish(request, at)
        case Checksums():
            return checksums.checksums(request, at, tell)
        case Prune():
            return prune.prune(request, at)
        case _:
            return finish.stored_summary(request, at)


def _refusal(fault: SlurmK8sError) -> dict[str, object]:
    kind = "full" if isinstance(fault, NasFull) else fault.fault
    return {"ok": False, "fault": kind, "sentence": fault.sentence, "hint": fault.hint}


def main() -> int:
    """Answer one request."""
    os.umask(0o077)
    try:
        request = parse(sys.stdin.buffer.read(_LIMIT))
    except Malformed as error:
        print(f"slurmk8s: bad request to the results worker: {error}", file=sys.stderr)
        return 2
    if os.geteuid() == 0:
        # Root would follow what a user put in place, and on most NAS it is nobody anyway.
        reply = _refusal(PersonFault("Results are never written as root.", "Submit the job as an ordinary user."))
    else:
        if isinstance(request, Checksums | Prune):
            from slurmk8s.results import background  # noqa: PLC0415 - late, like all that only a job's end needs

            background.step_back()
        reply = answer(request, tell=_tell)
    _say(reply)
    return 0


def _tell(progress: "Progress") -> None:
    """An agent that has died hears nothing; the work goes on."""
    with contextlib.suppress(BrokenPipeError):
        _say({"progress": vars(progress)})


def _say(message: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
