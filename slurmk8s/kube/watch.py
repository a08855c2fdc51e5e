"""A list of objects kept up to date by one watch: list, watch from that version, go on from the last version seen.

The watch runs in a thread of its own and hands each event to the event loop, which alone touches the list. A broken
watch goes on where it stopped; 410 Gone means listing again. While the server cannot be asked, the list is *unknown*:
`synced` is false, and what is not in it is not gone.
"""

import asyncio
import contextlib
import random
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from loguru import logger

from slurmk8s.errors import SlurmK8sError
from slurmk8s.kube.client import Events, Kube
from slurmk8s.kube.faults import Gone, KubeUnreachable

Key = tuple[str, str]
"""Namespace and name."""

SECONDS = 60
"""Each watch ends after that time by the server's hand and goes on: one that has gone silent is noticed soon after."""
RELIST_SECONDS = 600
"""How long the watch alone is believed: an etcd restored from yesterday counts versions anew, and says nothing."""
PAUSES = (0.1, 0.3, 1.0, 2.0, 5.0)
REMEMBERED = 200
"""How many that are gone are remembered as they were last seen."""


class Watch:
    """Objects of one kind, by namespace and name."""

    def __init__(
        self,
        connect: Callable[[], Kube],
        path: str,
        keep: Callable[[dict[str, Any]], dict[str, Any]],
        seconds: int = SECONDS,
        **query: str,
    ) -> None:
        """`keep` reduces an object to what is worth its memory; `connect` may fail, and is then tried again."""
        self.synced = False
        self.fault: SlurmK8sError = KubeUnreachable("The Kubernetes API server has not been asked yet.")
        """Why it is not synced."""
        self._connect = connect
        self._path = path
        self._query = query
        self._keep = keep
        self._seconds = seconds
        self._objects: dict[Key, dict[str, Any]] = {}
        self._gone: OrderedDict[Key, dict[str, Any]] = OrderedDict()
        self._waiting: set[asyncio.Future[None]] = set()
        self._stop = threading.Event()
        self._stream: Events | None = None

    # For the event loop.

    def get(self, key: Key) -> dict[str, Any] | None:
        """The object as last heard of. None says nothing: it may be too new."""
        return self._objects.get(key)

    def last(self, key: Key) -> dict[str, Any] | None:
        """The object as last heard of, also when it is gone by now."""
        return self._objects.get(key) or self._gone.get(key)

    def objects(self) -> list[dict[str, Any]]:
        """All, as last heard of."""
        return list(self._objects.values())

    def note(self, key: Key, found: dict[str, Any]) -> None:
        """Remember an object that was read by other means, should it vanish before the watch tells of it."""
        if key not in self._objects:
            self._remember(key, self._keep(found))

    async def change(self, seconds: float) -> bool:
        """Wait for any news, or as long; whether there was any. What changed before the call is not told."""
        news: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(news)
        try:
            async with asyncio.timeout(seconds):
                await news
        except TimeoutError:
            return False
        finally:
            self._waiting.discard(news)
        return True

    async def serve(self) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()

        def in_loop(step: Callable[..., None], *arguments: object) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody needs it any more
                loop.call_soon_threadsafe(step, *arguments)

        def work() -> None:
            try:
                self._run(in_loop)
            finally:
                in_loop(ended.set)

        # A daemon: a server that does not answer must not keep the agent from its end.
        threading.Thread(target=work, name="watch", daemon=True).start()
        try:
            await ended.wait()
        finally:
            self._stop.set()
            if self._stream is not None:
                self._stream.close()

    def _lost(self, fault: SlurmK8sError) -> None:
        if self.synced or str(fault) != str(self.fault):
            logger.warning(f"watch of {self._path}: {fault}")
        self.synced, self.fault = False, fault
        self._wake()

    def _found(self) -> None:
        if not self.synced:
            logger.info(f"watch of {self._path}: {len(self._objects)} there")
        self.synced = True
        self._wake()

    def _replace(self, objects: list[dict[str, Any]]) -> None:
        """What a new list does not have is gone."""
        fresh = {_key(each): self._keep(each) for each in objects}
        for key in self._objects.keys() - fresh.keys():
            self._remember(key, self._objects[key])
        self._objects = fresh
        self._wake()

    def _apply(self, kind: str, each: dict[str, Any]) -> None:
        key = _key(each)
        if kind == "DELETED":
            self._objects.pop(key, None)
            self._remember(key, self._keep(each))
        else:
            self._objects[key] = self._keep(each)
        self._wake()

    def _remember(self, key: Key, each: dict[str, Any]) -> None:
        self._gone[key] = each
        self._gone.move_to_end(key)
        while len(self._gone) > REMEMBERED:
            self._gone.popitem(last=False)

    def _wake(self) -> None:
        for news in self._waiting:
            if not news.done():
                news.set_result(None)

    # For the thread.

    def _run(self, in_loop: Callable[..., None]) -> None:
        version = ""
        listed = 0.0
        failures = 0
        while not self._stop.is_set():
            begun = time.monotonic()
            if begun - listed > RELIST_SECONDS:
                version = ""
            try:
                kube = self._connect()
                if not version:
                    objects, version = kube.listing(self._path, **self._query)
                    in_loop(self._replace, objects)
                    listed = begun
                version = self._follow(kube, version, in_loop)
                failures = 0 if time.monotonic() - begun > 1 else failures + 1  # never a loop that only reconnects
            except Gone as gone:
                logger.info(f"watch of {self._path}: {gone} Listing again.")
                version = ""
                failures += 1
            except SlurmK8sError as fault:
                in_loop(self._lost, fault)
                failures = 1 if time.monotonic() - begun > 30 else failures + 1
            except Exception as error:  # noqa: BLE001 - a watch that dies silently would be the worst of all
                logger.exception("the watch failed")
                in_loop(self._lost, KubeUnreachable(f"The watch of {self._path} failed: {error}."))
                version, failures = "", failures + 1
            if failures:
                self._stop.wait(PAUSES[min(failures, len(PAUSES)) - 1] * random.uniform(0.7, 1.3))  # noqa: S311 - jitter

    def _follow(self, kube: Kube, version: str, in_loop: Callable[..., None]) -> str:
        """One watch, to its end; the version to go on from, also if it breaks off."""
        self._stream = kube.watch(self._path, version, self._seconds, **self._query)
        in_loop(self._found)
        try:
            for event in self._stream:
                each = event["object"]
                version = each["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    in_loop(self._apply, event["type"], each)
        except KubeUnreachable as fault:
            in_loop(self._lost, fault)
        finally:
            self._stream.close()
        return version


def _key(each: dict[str, Any]) -> Key:
    return each["metadata"].get("namespace", ""), each["metadata"]["name"]
