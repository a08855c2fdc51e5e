"""What a job uses, measured in a real container: one core of two, 200 MB of memory, and an agent that goes away."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from slurmk8s.agent import samples
from slurmk8s.agent.debts import Debts

sys.path.insert(0, str(Path(__file__).parent))
from test_agent_work import Site, _readable, image, news, play, site, until  # found only now

__all__ = ["_readable", "image", "site"]

MB = 1 << 20
# busybox's awk holds the text that it builds up in memory; dd's file in /dev/shm is memory of the job's too; reading
# a file fills the page cache, which is not.
TOUCH = """
head -c {file} /dev/zero >/workspace/large; cat /workspace/large >/dev/null
head -c {shm} /dev/zero >/dev/shm/held
awk 'BEGIN {{ x = sprintf("%{text}s", "x"); print "up"; fflush(); while (1) {{ }} }}'
"""


def awaken(site: Site, cards: str = "") -> None:
    """Two CPUs, room for what the body touches, and looks in quick succession."""
    site.job(cpus={"node1": 2}, memory_mb={"node1": 512})
    agent = site.config.agent.model_copy(update={"sample_seconds": 0.5})
    smi = site.folder / "nvidia-smi"
    if cards:
        site.job(gpus={"node1": (1,)})
        smi.write_text(f"#!/bin/sh\nprintf '{cards}'\n")
        smi.chmod(0o755)
    gpu = site.config.gpu.model_copy(update={"smi": smi, "devices": "/dev/null"})
    site.config = site.config.model_copy(update={"agent": agent, "gpu": gpu})


def measured(site: Site) -> samples.History:
    record = site.store.load(7) or next(iter(site.store.owed()))
    return samples.read(site.store.samples(record))


async def bundle(site: Site) -> dict[str, Any]:
    site.job(state="COMPLETED")
    debts = Debts("node1", site.config, site.slurm, site.store)  # type: ignore[arg-type]
    paying = asyncio.create_task(debts.pay())
    await until(lambda: not list(site.store.owed()), "the bundle")
    paying.cancel()
    summary: dict[str, Any] = json.loads((site.results / "summary.json").read_text())
    return summary


def test_one_core_of_two_and_200_mb_also_when_the_agent_is_replaced(site: Site) -> None:
    """Half of the memory is in /dev/shm, a file system that the agent has made: it is the job's own all the same."""
    awaken(site)

    async def story() -> dict[str, Any]:
        first = site.work()
        await news(first.board.listen(), "running")
        site.hand_over(TOUCH.format(file=150 * MB, shm=100 * MB, text=100 * MB))
        await until(lambda: "up" in (site.results / "stdout.log").read_text(), "the body")
        await until(lambda: max((each.memory for each in measured(site).samples), default=0) > 190 * MB, "its memory")
        await first.close()
        before = measured(site).samples
        second = site.work()
        await news(second.board.listen(), "running")
        await until(lambda: len(measured(site).samples) >= len(before) + 6, "further samples")
        assert measured(site).samples[: len(before)] == before
        await second.finish()
        return await bundle(site)

    summary = play(story())
    usage = summary["usage"]
    # awk may hold its text twice for a moment; with the page cache it would be more than this.
    assert 195 * MB < usage["memory_peak_bytes"] < 340 * MB
    last = summary["durations"]["running"]
    assert usage["cpu_seconds"] == pytest.approx(last, rel=0.5)  # other tests compete for the machine's cores
    assert usage["cpu_cores"] == pytest.approx(usage["cpu_seconds"] / last, abs=0.01)
    assert usage["cpu_cores_high"] < 1.3
    assert usage["notes"] == []  # it was short
    assert usage["gpus"] == []
    text = (site.results / "job_summary.txt").read_text()
    assert "Memory used peak 2" in text
    assert " of 512.0 MiB" in text
    assert (site.results / "usage.svg").read_text().startswith("<svg ")
    assert (site.results / "usage.svg").stat().st_mode & 0o777 == 0o600
    assert list((site.folder / "state" / "usage").iterdir()) == []


def test_the_last_word_on_cpu_time_is_the_kernels(site: Site) -> None:
    """The agent looks every few seconds; what was computed after its last look counts too."""
    awaken(site)
    slow = site.config.agent.model_copy(update={"sample_seconds": 300.0})
    site.config = site.config.model_copy(update={"agent": slow})

    async def story() -> dict[str, Any]:
        work = site.work()
        queue = work.board.listen()
        await news(queue, "running")
        await until(lambda: measured(site).samples, "the first sample")
        site.hand_over("awk 'BEGIN { for (i = 0; i < 20000000; i++) { } }'")
        await news(queue, "gone")
        await work.finish()
        return await bundle(site)

    summary = play(story())
    owed = summary["usage"]
    assert owed["cpu_seconds"] == pytest.approx(summary["durations"]["running"], rel=0.6)


def test_each_gpu_of_the_job_and_no_other(site: Site) -> None:
    awaken(site, "0, NVIDIA Imaginary, 99, 70000, 81920\\n1, NVIDIA Imaginary, 42, 1024, 81920\\n")

    async def story() -> dict[str, Any]:
        work = site.work()
        queue = work.board.listen()
        await news(queue, "running")
        site.hand_over("read -r _ </slurmk8s/handover/nothing 2>/dev/null; sleep 1")
        await news(queue, "gone")
        await work.finish()
        return await bundle(site)

    usage = play(story())["usage"]
    assert [(card["name"], card["utilisation"], card["memory_peak_bytes"]) for card in usage["gpus"]] == [
        ("1", 42.0, 1024 * MB)
    ]
    assert "GPU 1" in (site.results / "usage.svg").read_text()
    assert "GPU 1 used  42 % busy on average" in (site.results / "job_summary.txt").read_text()


def test_a_body_that_no_driver_tells_of_has_no_gpu_figures(site: Site) -> None:
    awaken(site)
    site.job(gpus={"node1": (0,)})

    async def story() -> dict[str, Any]:
        work = site.work()
        queue = work.board.listen()
        await news(queue, "running")
        site.hand_over("sleep 1")
        await news(queue, "gone")
        await work.finish()
        return await bundle(site)

    summary = play(story())
    assert summary["usage"]["gpus"] == []
    assert summary["gpus"] == ["0"]
    assert "GPU 0 used" not in (site.results / "job_summary.txt").read_text()
