"""What the worker is told of a job. The worker itself is played: it must run as another user."""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from slurmk8s.agent.person import Bundles
from slurmk8s.agent.record import Record
from slurmk8s.config import Config

ANSWERS = """#!{python}
import json, sys
request = sys.stdin.read()
open({log!r}, "w").write(request)
print(json.dumps({{"ok": True, "summary": None}}))
"""


@pytest.mark.parametrize(
    ("submitted", "started", "told"),
    [
        (100.0, 104.0, 100.0),
        (100.0, None, 100.0),
        (None, 104.0, None),
        # Slurm puts the job back into the queue, and has not counted the attempt yet.
        (200.0, 104.0, None),
    ],
)
def test_a_time_of_submission_that_is_not_this_attempts_is_not_told(
    settings: Config,
    record: Callable[..., Record],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    submitted: float | None,
    started: float | None,
    told: float | None,
) -> None:
    worker, log = tmp_path / "worker", tmp_path / "request"
    worker.write_text(ANSWERS.format(python=sys.executable, log=str(log)))
    worker.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(worker))
    here = tmp_path.stat()
    mine = record(uid=here.st_uid, gid=here.st_gid, groups=(), submitted=submitted, started=started)
    assert asyncio.run(Bundles(settings).summary(mine)) is None
    assert json.loads(log.read_text())["submitted"] == told
