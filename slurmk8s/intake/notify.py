"""Telling systemd how the service is doing (sd_notify), in the few lines that takes."""

import contextlib
import os
import socket
import time


def notify(state: str) -> None:
    """Send `READY=1`, `STOPPING=1` or `STATUS=…`; nothing happens where no systemd listens."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):  # Linux's abstract namespace
        address = "\0" + address[1:]
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out:
        out.sendto(state.encode(), address)


class Pulse:
    """Signs of life, as often as systemd's WatchdogSec wants them: a service that hangs is started again."""

    def __init__(self) -> None:
        mine = os.environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        self._every = int(os.environ.get("WATCHDOG_USEC", "0")) / 1e6 / 3 if mine else 0.0
        self._last = 0.0

    def beat(self) -> None:
        """Cheap: says something only when it is time."""
        if self._every and time.monotonic() - self._last >= self._every:
            self._last = time.monotonic()
            notify("WATCHDOG=1")

    @property
    def longest_pause(self) -> float:
        """How long one may sleep between two beats."""
        return self._every or 3600.0
