"""What happens to a job, for whoever listens: slurmk8s-run, now or after a reconnect."""

import asyncio
from typing import Any


class Board:
    """The latest message of each kind is kept for whoever comes later."""

    def __init__(self) -> None:
        self.listeners: set[asyncio.Queue[dict[str, Any]]] = set()
        self._news: dict[str, dict[str, Any]] = {}
        self._noted: set[str] = set()

    def listen(self) -> asyncio.Queue[dict[str, Any]]:
        """A queue that gets what has happened and what will."""
        queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        for message in self._news.values():
            queue.put_nowait(message)
        self.listeners.add(queue)
        return queue

    def tell(self, stage: str, **fields: Any) -> None:  # noqa: ANN401 - JSON
        """Tell all."""
        message = {"stage": stage, **fields}
        self._news[stage] = message
        for queue in self.listeners:
            queue.put_nowait(message)

    def note(self, sentence: str) -> None:
        """A sentence for the person, once: what is tried again and again is news the first time only."""
        if sentence not in self._noted:
            self._noted.add(sentence)
            self.tell("note", sentence=sentence)
