"""Local file events, which wake the scan sooner. They decide nothing: most clients' writes never cause one."""

import logging
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from loguru import logger
from watchdog.events import (
    DirCreatedEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer

if TYPE_CHECKING:
    from watchdog.observers.api import BaseObserver, ObservedWatch

# Not "opened" and "closed without writing": the scan itself causes those and would wake itself for ever.
EVENTS: list[type[FileSystemEvent]] = [
    DirCreatedEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileModifiedEvent,
    FileMovedEvent,
]


# It calls the ordinary end of a watch an error.
logging.getLogger("watchdog").setLevel(logging.CRITICAL)


class Wake(FileSystemEventHandler):
    """A flag that is raised by events in the watched folders, or by a signal."""

    def __init__(self) -> None:
        self._flag = threading.Event()
        self._observer: BaseObserver | None = None
        self._watched: dict[Path, tuple[tuple[int, int], ObservedWatch]] = {}

    def on_any_event(self, event: FileSystemEvent) -> None:  # noqa: ARG002 - watchdog's signature
        """Something happened; the scan will see what."""
        self._flag.set()

    def call(self) -> None:
        """Wake the scan."""
        self._flag.set()

    def wait(self, seconds: float) -> None:
        """Until something happens, or that long."""
        self._flag.wait(seconds)
        self._flag.clear()

    def watch(self, folders: dict[Path, tuple[int, int]]) -> None:
        """Watch exactly these folders, given with device and inode: a share that was mounted again is a new one."""
        if self._observer is None:
            self._observer = Observer()
            self._observer.start()
        for path in [path for path, (seen, _) in self._watched.items() if folders.get(path) != seen]:
            self._observer.unschedule(self._watched.pop(path)[1])
        for path in folders.keys() - self._watched.keys():
            try:
                watched = self._observer.schedule(self, str(path), event_filter=EVENTS)
            except OSError as error:  # no inotify here, or too many watches: scans alone do
                logger.debug(f"No file events from {path} ({error}); it is scanned in any case.")
                continue
            self._watched[path] = (folders[path], watched)

    def close(self) -> None:
        """Stop watching."""
        if self._observer is not None:
            self._observer.stop()
            self._observer.join()
