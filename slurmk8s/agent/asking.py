"""Questions to Slurm, on threads of their own.

While slurmctld hangs each of them takes a minute; what the Epilog waits for must not queue up behind them.
"""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Answer = TypeVar("Answer")

_THREADS = ThreadPoolExecutor(max_workers=8, thread_name_prefix="slurm")


async def ask(question: Callable[[], Answer]) -> Answer:
    """Run a blocking call to Slurm without blocking the agent."""
    return await asyncio.get_running_loop().run_in_executor(_THREADS, question)


def pauses() -> Iterator[float]:
    """How long to wait between tries while something shared does not answer, for ever: soon at first, then seldom."""
    yield from (1, 2, 4, 8)
    while True:
        yield 15
