"""How a watch goes on when its server breaks off, forgets or falls silent; see played_server."""

import asyncio
import functools
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from played_server import ApiServer, pod

from slurmk8s.kube import watch as watching
from slurmk8s.kube.watch import Watch

PATH = "/api/v1/pods"
A, B = ("user-1", "a"), ("user-1", "b")


def run(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """The test in an event loop of its own."""

    @functools.wraps(test)
    def running(*arguments: Any, **named: Any) -> None:
        asyncio.run(test(*arguments, **named))

    return running


@asynccontextmanager
async def followed(server: ApiServer, seconds: int = 30, request_seconds: float = 5) -> AsyncIterator[Watch]:
    kube = server.kube(request_seconds)
    watch = Watch(lambda: kube, PATH, lambda each: each, seconds, labelSelector="app=slurm-job")
    task = asyncio.create_task(watch.serve())
    try:
        yield watch
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def comes(watch: Watch, condition: Callable[[], object], seconds: float = 10) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await watch.change(0.1)


def listing(version: int, *pods: dict[str, Any]) -> tuple[int, Any]:
    return 200, {"metadata": {"resourceVersion": str(version)}, "items": list(pods)}


def event(kind: str, each: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "object": each}


class Script:
    """Lists and watches in the order they are to be answered; the last watch stays open, silently."""

    def __init__(self, server: ApiServer, lists: list[Any], watches: list[Any]) -> None:
        self.lists, self.watches = lists, watches
        self._server = server
        server.answer = self

    def __call__(self, query: dict[str, str]) -> Any:
        """The next answer."""
        if "watch" not in query:
            return self.lists.pop(0)
        return self._watch(self.watches.pop(0)) if self.watches else self._watch([], stays=True)

    def _watch(self, answer: Any, *, stays: bool = False) -> Any:
        return answer if isinstance(answer, tuple) else self._events(answer, stays)

    def _events(self, events: list[Any], stays: bool) -> Iterator[Any]:
        yield from events
        if stays:
            self._server.release.wait(30)


def versions(server: ApiServer) -> list[str]:
    return [query["resourceVersion"] for _, query in server.asked if "watch" in query]


@run
async def test_events_change_the_list_and_the_last_state_is_remembered(api_server: ApiServer) -> None:
    changes = [
        event("ADDED", pod("b", 11)),
        event("MODIFIED", pod("a", 12, phase="Running")),
        event("DELETED", pod("b", 13, phase="Failed")),
    ]
    Script(api_server, [listing(10, pod("a", 9))], [changes])
    async with followed(api_server) as watch:
        await comes(watch, lambda: watch.last(B) and watch.get(B) is None and watch.get(A) != pod("a", 9))
        assert watch.synced
        assert watch.objects() == [pod("a", 12, phase="Running")]
        assert watch.last(B) == pod("b", 13, phase="Failed")


@run
async def test_a_watch_that_ends_goes_on_from_the_last_version(api_server: ApiServer) -> None:
    """Also from a bookmark's, and also when the connection breaks off in the middle."""
    first = [event("MODIFIED", pod("a", 12)), event("BOOKMARK", pod("", 20))]
    Script(api_server, [listing(10, pod("a", 9))], [first, [event("MODIFIED", pod("a", 21)), None], []])
    async with followed(api_server) as watch:
        await comes(watch, lambda: len(versions(api_server)) >= 3)
        assert versions(api_server)[:3] == ["10", "20", "21"]
        await comes(watch, lambda: watch.synced)
    assert len([1 for _, query in api_server.asked if "watch" not in query]) == 1


@pytest.mark.parametrize("late", [True, False], ids=["in mid-watch", "at once"])
@run
async def test_after_410_the_list_is_read_again_and_what_it_misses_is_gone(api_server: ApiServer, late: bool) -> None:
    status = {"kind": "Status", "code": 410, "message": "too old resource version: 10 (50)"}
    gone = [event("MODIFIED", pod("a", 12)), event("ERROR", status)] if late else (410, status)
    Script(api_server, [listing(10, pod("a", 9), pod("b", 9)), listing(50, pod("b", 40))], [gone])
    async with followed(api_server) as watch:
        await comes(watch, lambda: "50" in versions(api_server) and watch.synced)
        assert watch.get(A) is None
        assert watch.last(A) == pod("a", 12 if late else 9)
        assert watch.get(B) == pod("b", 40)


@run
async def test_a_watch_that_falls_silent_is_opened_again(api_server: ApiServer) -> None:
    Script(api_server, [listing(10, pod("a", 9))], [])
    async with followed(api_server, seconds=0, request_seconds=0.4) as watch:
        await comes(watch, lambda: len(versions(api_server)) >= 3)
        assert set(versions(api_server)) == {"10"}
        assert watch.get(A) == pod("a", 9)


@run
async def test_while_the_server_is_away_the_list_is_unknown_and_nothing_is_gone(api_server: ApiServer) -> None:
    trouble = (503, {"message": "etcdserver: leader changed"})
    Script(api_server, [listing(10, pod("a", 9))], [[event("MODIFIED", pod("a", 12)), None], trouble, trouble, []])
    async with followed(api_server) as watch:
        await comes(watch, lambda: not watch.synced and "leader changed" in str(watch.fault))
        assert watch.get(A) == pod("a", 12)
        await comes(watch, lambda: watch.synced)
        assert versions(api_server)[-1] == "12"


@run
async def test_a_server_that_ends_every_watch_at_once_is_not_asked_without_pause(api_server: ApiServer) -> None:
    Script(api_server, [listing(10)], [[] for _ in range(1000)])
    async with followed(api_server):
        await asyncio.sleep(1.5)
    assert 2 <= len(versions(api_server)) <= 8


@run
async def test_the_list_is_read_again_now_and_then(api_server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "RELIST_SECONDS", -1)
    Script(api_server, [listing(10, pod("a", 9)), listing(11)], [[event("BOOKMARK", pod("", 10))]])
    async with followed(api_server) as watch:
        await comes(watch, lambda: watch.synced and watch.last(A) and watch.get(A) is None)


@run
async def test_the_end_does_not_wait_for_a_silent_server(api_server: ApiServer) -> None:
    Script(api_server, [listing(10)], [])
    async with followed(api_server) as watch:
        await comes(watch, lambda: watch.synced)
        begun = time.monotonic()
    assert time.monotonic() - begun < 1
