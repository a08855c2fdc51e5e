"""Telling systemd how the service is doing (sd_notify), in the few lines that takes."""

import os
import socket


def notify(state: str) -> None:
    """Send `READY=1`, `STOPPING=1` or `STATUS=…`; nothing happens where no systemd listens."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):  # Linux's abstract namespace
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
        channel.sendto(state.encode(), address)
