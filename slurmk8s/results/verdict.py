"""How well a job's resources fitted, in words: at most three notes, each with the `#SBATCH` line to change. Pure."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from slurmk8s.results.usage import CardUsage, Usage

SHORTEST_SECONDS = 300.0
"""What a shorter job used says little of the next one."""
MOST_NOTES = 3
IDLE_PERCENT = 5.0
GIB = 1 << 30
_SIZES_G = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096)
_HOURS = (1, 2, 4, 8, 12, 24, 48, 72, 96, 168, 336)


@dataclass(frozen=True)
class Asked:
    """What the job had, and how it ended."""

    cpus: int
    memory_mb: int
    """0: no limit."""
    gpus: int
    time_limit: str
    """As Slurm writes it: `1-00:00:00`, `UNLIMITED`."""
    state: str
    running: float | None
    """Seconds of the body."""


def notes(asked: Asked, usage: Usage) -> tuple[str, ...]:
    """The most useful first. None for a short job."""
    if asked.running is None or asked.running < SHORTEST_SECONDS:
        return ()
    found = [*_on_gpus(asked, usage.gpus), *_on_memory(asked, usage), *_on_cpus(asked, usage), *_on_time(asked)]
    return tuple(found[:MOST_NOTES])


def _on_gpus(asked: Asked, cards: tuple[CardUsage, ...]) -> Iterator[str]:
    told = [card for card in cards if card.utilisation is not None]
    if not told or len(told) < asked.gpus:
        return  # unknown is not idle
    idle = [card for card in told if (card.utilisation or 0) < IDLE_PERCENT]
    busy = len(told) - len(idle)
    if not idle:
        return
    if not busy:
        which = "The GPU was" if len(idle) == 1 else f"All {len(idle)} GPUs were"
        yield f"{which} idle; without one the job starts sooner: leave out #SBATCH --gres=gpu:{asked.gpus}."
        return
    names = ", ".join(card.name for card in idle)
    yield (
        f"Used {busy} of {len(told)} GPUs (idle: {names}); "
        f"ask for {busy} next time with #SBATCH --gres=gpu:{busy}, or have the program use all of them."
    )


def _on_memory(asked: Asked, usage: Usage) -> Iterator[str]:
    limit = asked.memory_mb << 20
    peak = usage.memory_peak_bytes
    if not limit or asked.state == "out_of_memory":  # the cause says it
        return
    used = f"Used {_in_g(peak)} of {_in_g(limit)} GB of memory"
    enough = next((size for size in _SIZES_G if size * GIB >= peak * 1.5), None)
    if enough is not None and enough * GIB * 2 <= limit:
        yield f"{used}; ask for {enough}G next time with #SBATCH --mem={enough}G."
    elif peak > 0.95 * limit:
        more = math.ceil(limit * 1.25 / GIB)
        yield f"{used}: with a little more it would have been killed; ask for more with #SBATCH --mem={more}G."


def _in_g(count: float) -> str:
    value = count / GIB
    return f"{max(value, 0.1):.1f}".removesuffix(".0") if value < 100 else f"{value:.0f}"


def _on_cpus(asked: Asked, usage: Usage) -> Iterator[str]:
    """By what was used most of the time, not by the mean: a job that loads data in bursts needs its CPUs then."""
    enough = max(1, math.ceil(max(usage.cpu_cores, usage.cpu_cores_high) * 1.1))
    if asked.cpus >= 4 and enough * 2 <= asked.cpus:
        yield (
            f"Used {usage.cpu_cores:.1f} of {asked.cpus} CPUs; "
            f"ask for {enough} next time with #SBATCH --cpus-per-task={enough}."
        )


def _on_time(asked: Asked) -> Iterator[str]:
    limit = seconds_of(asked.time_limit)
    running = asked.running or 0.0
    if limit is None or asked.state != "completed":
        return
    enough = next((hours for hours in _HOURS if hours * 3600 >= running * 2), None)
    if enough is not None and enough * 3600 * 4 <= limit:
        yield (
            f"Ran {_hours(running)} of the {_hours(limit)} it had asked for; "
            f"a shorter time starts sooner: #SBATCH --time={enough}:00:00."
        )


def _hours(seconds: float) -> str:
    if seconds < 3600:
        return f"{seconds / 60:.0f} min"
    hours = seconds / 3600
    return f"{hours:.0f} h" if hours >= 10 or hours == int(hours) else f"{hours:.1f} h"


def seconds_of(limit: str) -> float | None:
    """A time limit as Slurm prints it (`days-hh:mm:ss`, `hh:mm:ss`, `mm:ss`); None for none."""
    days, dash, clock = limit.rpartition("-")
    parts = clock.split(":")
    if not all(part.isascii() and part.isdecimal() for part in (*parts, *([days] if dash else []))):
        return None
    total = 0
    for part in parts:
        total = total * 60 + int(part)
    return float(total + (int(days) * 86400 if dash else 0))
