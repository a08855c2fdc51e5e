"""How much the node's GPUs are used, asked once for all jobs: by NVML where its library is installed, else nvidia-smi.

Where neither answers nothing is said: a zero would look like a GPU that nobody used.
"""

import asyncio
import contextlib
import csv
import time
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from loguru import logger

from slurmk8s.config import Gpu

SECONDS_FOR_AN_ANSWER = 10.0
# A driver that hangs is not asked at every sample.
SECONDS_AFTER_A_FAILURE = 60.0
FIELDS = ("index", "name", "utilization.gpu", "memory.used", "memory.total")
MIB = 1 << 20


@dataclass(frozen=True)
class CardNow:
    """One GPU at this moment."""

    model: str
    utilisation: float | None
    """Percent; None where the driver does not know it, as for a part of a GPU (MIG)."""
    memory_used: int
    memory_total: int


Cards = dict[int, CardNow]


class GpuMeter:
    """Asks the driver; jobs that ask at the same time get the same answer."""

    def __init__(self, settings: Gpu, fresh_seconds: float) -> None:
        self._settings = settings
        self._fresh_seconds = fresh_seconds
        self._lock = asyncio.Lock()
        self._cards: Cards = {}
        self._until = 0.0

    async def cards(self) -> Cards:
        """All GPUs of this node by index; none where nobody can tell."""
        async with self._lock:
            if time.monotonic() >= self._until:
                self._cards = await self._ask()
                self._until = time.monotonic() + (self._fresh_seconds if self._cards else SECONDS_AFTER_A_FAILURE)
            return self._cards

    async def _ask(self) -> Cards:
        cards = await asyncio.to_thread(by_library)
        return cards or await self._by_program()

    async def _by_program(self) -> Cards:
        try:
            process = await asyncio.create_subprocess_exec(
                self._settings.smi,
                f"--query-gpu={','.join(FIELDS)}",
                "--format=csv,noheader,nounits",
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )
        except OSError:
            return {}  # no driver here
        try:
            async with asyncio.timeout(SECONDS_FOR_AN_ANSWER):
                out, _ = await process.communicate()
        except TimeoutError:
            logger.warning(f"{self._settings.smi} did not answer within {SECONDS_FOR_AN_ANSWER:g} s")
            return {}
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError, TimeoutError):
                    process.kill()
                    async with asyncio.timeout(1):  # one that hangs in the driver does not die
                        await process.wait()
        return by_text(out.decode("utf-8", "replace")) if process.returncode == 0 else {}


def by_text(text: str) -> Cards:
    """What `nvidia-smi --query-gpu` printed: `0, NVIDIA H100, 37, 1024, 81559`, or `[N/A]` for what it cannot tell."""
    cards: Cards = {}
    for row in csv.reader(text.splitlines(), skipinitialspace=True):
        with contextlib.suppress(ValueError):
            index, model, utilisation, used, total = row
            numbers = [_number(used), _number(total)]
            if None not in numbers:
                cards[int(index)] = CardNow(model, _number(utilisation), *(round((mb or 0) * MIB) for mb in numbers))
    return cards


def _number(text: str) -> float | None:
    """The number in front of a unit, which nounits leaves out."""
    try:
        return float(text.split(maxsplit=1)[0])
    except (ValueError, IndexError):
        return None


def by_library() -> Cards:
    """By NVML itself, which takes a millisecond where the program takes a tenth of a second."""
    try:
        nvml: Any = import_module("pynvml")
        nvml.nvmlInit()
    except Exception:  # noqa: BLE001 - not installed, no driver, or one that does not fit: the program may know
        return {}
    try:
        return {
            index: _card(nvml, nvml.nvmlDeviceGetHandleByIndex(index)) for index in range(nvml.nvmlDeviceGetCount())
        }
    except nvml.NVMLError:
        return {}
    finally:
        with contextlib.suppress(nvml.NVMLError):
            nvml.nvmlShutdown()


def _card(nvml: Any, handle: Any) -> CardNow:  # noqa: ANN401 - the library has no types
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    utilisation: float | None = None
    with contextlib.suppress(nvml.NVMLError):  # a GPU that is cut into parts (MIG) has none
        utilisation = float(nvml.nvmlDeviceGetUtilizationRates(handle).gpu)
    model = nvml.nvmlDeviceGetName(handle)
    return CardNow(
        model if isinstance(model, str) else model.decode(), utilisation, int(memory.used), int(memory.total)
    )
