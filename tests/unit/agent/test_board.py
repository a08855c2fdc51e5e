"""Whoever comes later hears the latest of each kind; what is tried again and again is news once."""

import asyncio

from slurmk8s.agent.board import Board


def heard(board: Board) -> list[str]:
    queue = board.listen()
    return [str(queue.get_nowait()) for _ in range(queue.qsize())]


def test_a_late_listener_hears_the_latest_of_each_kind() -> None:
    async def story() -> None:
        board = Board()
        board.tell("pulling", seconds=1)
        board.tell("pulling", seconds=2)
        board.tell("running")
        assert heard(board) == ["{'stage': 'pulling', 'seconds': 2}", "{'stage': 'running'}"]

    asyncio.run(story())


def test_the_same_note_is_told_once() -> None:
    async def story() -> None:
        board = Board()
        queue = board.listen()
        for _ in range(3):
            board.note("The registry does not answer.")
        board.note("Something else.")
        assert queue.qsize() == 2

    asyncio.run(story())
