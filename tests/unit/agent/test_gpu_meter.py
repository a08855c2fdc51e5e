"""Needs nothing: what the driver says of GPUs, by programs and a library that only look like NVIDIA's."""

import asyncio
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from slurmk8s.agent import gpu_meter
from slurmk8s.agent.gpu_meter import CardNow, GpuMeter
from slurmk8s.config import Gpu

ANSWER = "0, NVIDIA H100 80GB HBM3, 37, 1024, 81559\n1, NVIDIA H100 80GB HBM3, [N/A], 0, 81559\n"
CARDS = {
    0: CardNow("NVIDIA H100 80GB HBM3", 37.0, 1024 << 20, 81559 << 20),
    1: CardNow("NVIDIA H100 80GB HBM3", None, 0, 81559 << 20),
}


@pytest.fixture(autouse=True)
def _no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is installed here."""
    monkeypatch.setitem(sys.modules, "pynvml", None)


def program(folder: Path, text: str) -> Gpu:
    path = folder / "nvidia-smi"
    path.write_text(f"#!/bin/sh\necho asked >>{folder}/asked\n{text}\n")
    path.chmod(0o755)
    return Gpu(smi=path)


def test_nvidia_smi_is_understood(tmp_path: Path) -> None:
    settings = program(tmp_path, f"echo \"$*\" >{tmp_path}/arguments; printf '{ANSWER}'")
    assert asyncio.run(GpuMeter(settings, 1).cards()) == CARDS
    wanted = "--query-gpu=index,name,utilization.gpu,memory.used,memory.total --format=csv,noheader,nounits\n"
    assert (tmp_path / "arguments").read_text() == wanted


def test_units_and_nonsense_do_no_harm() -> None:
    assert gpu_meter.by_text("0, NVIDIA, 5 %, 10 MiB, 100 MiB\n")[0] == CardNow("NVIDIA", 5.0, 10 << 20, 100 << 20)
    assert gpu_meter.by_text("No devices were found\n") == {}
    assert gpu_meter.by_text("0, NVIDIA, 5, [N/A], [N/A]\nx, y, z, 1, 2\n") == {}


def test_jobs_that_ask_together_share_one_answer(tmp_path: Path) -> None:
    async def ask() -> None:
        meter = GpuMeter(program(tmp_path, f"printf '{ANSWER}'"), 60)
        assert await asyncio.gather(*(meter.cards() for _ in range(20))) == [CARDS] * 20

    asyncio.run(ask())
    assert (tmp_path / "asked").read_text() == "asked\n"


@pytest.mark.parametrize("text", ["exit 9", "echo 'NVIDIA-SMI has failed'; exit 0"])
def test_a_driver_that_does_not_work_says_nothing_and_is_left_alone(tmp_path: Path, text: str) -> None:
    async def ask() -> None:
        meter = GpuMeter(program(tmp_path, text), 0)
        assert [await meter.cards(), await meter.cards()] == [{}, {}]

    asyncio.run(ask())
    assert (tmp_path / "asked").read_text() == "asked\n"


def test_no_driver_at_all_says_nothing(tmp_path: Path) -> None:
    assert asyncio.run(GpuMeter(Gpu(smi=tmp_path / "none"), 1).cards()) == {}


def test_a_driver_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_meter, "SECONDS_FOR_AN_ANSWER", 0.2)
    started = time.monotonic()
    assert asyncio.run(GpuMeter(program(tmp_path, f"echo $$ >{tmp_path}/pid; exec sleep 600"), 1).cards()) == {}
    assert time.monotonic() - started < 60
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


class NVMLError(Exception):
    """As the library has it."""


def library(**changes: Any) -> SimpleNamespace:
    def utilisation(handle: int) -> SimpleNamespace:
        if handle == 1:
            raise NVMLError
        return SimpleNamespace(gpu=37)

    functions: dict[str, Any] = {
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlDeviceGetCount": lambda: 2,
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetMemoryInfo": lambda handle: SimpleNamespace(used=0 if handle else 1024 << 20, total=81559 << 20),
        "nvmlDeviceGetUtilizationRates": utilisation,
        "nvmlDeviceGetName": lambda _: b"NVIDIA H100 80GB HBM3",
        "NVMLError": NVMLError,
    }
    return SimpleNamespace(**{**functions, **changes})


def test_the_library_is_asked_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", library())
    assert asyncio.run(GpuMeter(Gpu(smi=tmp_path / "none"), 1).cards()) == CARDS


def test_where_the_library_finds_no_driver_the_program_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise NVMLError

    for broken in ({"nvmlInit": refuse}, {"nvmlDeviceGetCount": refuse}):
        monkeypatch.setitem(sys.modules, "pynvml", library(**broken))
        assert asyncio.run(GpuMeter(program(tmp_path, f"printf '{ANSWER}'"), 1).cards()) == CARDS
