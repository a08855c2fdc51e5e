"""A NAS without room, with real podman and the real results worker: a small file system of its own.

Slurm alone is played, as in test_agent_work.py.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from test_agent_work import Site, _readable, image, news, play, site, until  # noqa: F401 - fixtures among them

from slurmk8s.agent.debts import Debts
from slurmk8s.results.verify import verify

SIZE = 4 << 20


@pytest.fixture
def small(site: Site) -> Iterator[Site]:  # noqa: F811 - the fixture
    """The node with one job, whose NAS holds four megabytes."""
    nas = site.folder / "nas"
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=755", "tmpfs", nas], check=True)
    (nas / "results").mkdir()
    (nas / "results").chmod(0o1777)
    yield site
    for name in ("outputs", "results", "handover", "shm"):
        subprocess.run(["umount", "-l", site.folder / "run/jobs/7" / name], stderr=subprocess.DEVNULL, check=False)
    subprocess.run(["umount", "-l", nas], check=True)


def test_a_job_that_fills_the_nas_ends_with_that_reason_and_keeps_what_it_wrote(small: Site) -> None:
    script = "echo begun; echo first > /workspace/first; cat /dev/zero > /workspace/second && exit 0; exit 3"

    async def story() -> None:
        work = small.work()
        queue = work.board.listen()
        await news(queue, "planned")
        small.hand_over(script)
        assert (await news(queue, "gone"))["exit_code"] == 3
        await work.finish()
        small.job(state="FAILED", exit_code="3:0")
        debts = Debts("node1", small.config, small.slurm, small.store)  # type: ignore[arg-type]
        paying = asyncio.create_task(debts.pay())
        # No room for a summary: it is owed, and the reason is kept.
        await until(lambda: any(record.no_room for record in small.store.owed()), "the refusal")
        assert not (small.results / "summary.json").exists()
        assert not list(small.results.glob(".*.tmp"))
        # Somebody makes room.
        os.truncate(small.results / "outputs" / "second", 1 << 20)
        while list(small.store.owed()):
            debts.wake()
            await asyncio.sleep(0.1)
        paying.cancel()

    play(story())
    summary = json.loads((small.results / "summary.json").read_text())
    assert (summary["state"], summary["exit_code"], summary["complete"]) == ("failed", 3, True)
    assert summary["cause"].startswith("The body ended with exit code 3. The NAS was full: what the job wrote last")
    assert (small.results / "stdout.log").read_text() == "begun\n"
    assert (small.results / "outputs" / "first").read_text() == "first\n"
    assert verify(small.results).ok
    assert (small.slurm.requeued, small.slurm.drained) == ([], [])


def test_a_job_that_finds_the_nas_full_is_told_so_and_goes_back_to_the_queue(small: Site) -> None:
    ballast = small.folder / "nas" / "ballast"
    done = subprocess.run(["cp", "/dev/zero", ballast], check=False, capture_output=True, text=True)
    assert "No space left" in done.stderr

    async def story() -> dict[str, Any]:
        work = small.work()
        message = await news(work.board.listen(), "requeueing")
        await asyncio.wait({work._task})
        await work.close()
        return message

    message = play(story())
    assert "The NAS is full" in message["sentence"]
    assert len(small.slurm.requeued) == 1
    assert small.slurm.drained == []
