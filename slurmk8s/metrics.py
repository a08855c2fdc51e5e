"""Figures for Prometheus: one process's registry, and the two ways in which they are read.

Each daemon makes one `Metrics`, asks it for what it counts, and exposes it once:

    metrics = Metrics("watcher")
    drops = metrics.counter("drops", "Files taken from submit/.", ("outcome",))
    oldest = metrics.gauge("oldest_drop_seconds", "Age of the oldest file that waits.")
    metrics.expose(config.metrics.watcher_address, config.metrics.textfile_of("watcher"), config.metrics.seconds)
    ...
    drops.labels(outcome="accepted").inc()
    oldest.set_function(lambda: watcher.oldest_age())  # asked whenever somebody reads
    ...
    metrics.close()

What `counter`, `gauge` and `histogram` give are prometheus_client's own objects, and safe to use from any thread.
Every name begins with `slurmk8s_`, a counter's ends with `_total`. A label's values must be few and ours (an outcome, a
reason by its code, a partition): never a job's name, an id or a person's text: each new value is a series for ever.

Nothing here may hurt its daemon: with neither address nor textfile nothing is opened and counting costs a microsecond;
an address that is taken or a folder that is full is told in the log, and the daemon works on.
"""

import contextlib
import socket
import socketserver
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from loguru import logger
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, make_wsgi_app, write_to_textfile

from slurmk8s import __version__

PREFIX = "slurmk8s"
# People's jobs on the node can reach the port: whoever holds connections open must not use up the daemon's files.
MOST_READERS = 8
SECONDS_FOR_A_READER = 5


class Metrics:
    """The figures of one process."""

    def __init__(self, part: str) -> None:
        self.registry = CollectorRegistry()
        self.address: tuple[str, int] | None = None
        """Where they are served, once they are."""
        self._part = part
        self._server: _Server | None = None
        self._textfile: Path | None = None
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._told: str | None = None
        self.gauge("build_info", "Which slurmk8s this is.", ("version", "part")).labels(__version__, part).set(1)

    def counter(self, name: str, meaning: str, labels: Sequence[str] = ()) -> Counter:
        """What only grows. `drops` becomes `slurmk8s_drops_total`."""
        return Counter(name, meaning, labels, namespace=PREFIX, registry=self.registry)

    def gauge(self, name: str, meaning: str, labels: Sequence[str] = ()) -> Gauge:
        """What goes up and down."""
        return Gauge(name, meaning, labels, namespace=PREFIX, registry=self.registry)

    def histogram(self, name: str, meaning: str, buckets: Sequence[float], labels: Sequence[str] = ()) -> Histogram:
        """How often which size: `buckets` are upper bounds."""
        return Histogram(name, meaning, labels, namespace=PREFIX, registry=self.registry, buckets=buckets)

    def expose(self, address: str | None, textfile: Path | None = None, seconds: float = 15) -> None:
        """Serve them over HTTP at `host:port` (port 0: any free one), and write them to a file every so often."""
        if address:
            self._serve(address)
        if textfile:
            self._textfile = textfile
            self._begin(lambda: self._write_regularly(seconds))

    def write(self) -> bool:
        """Write the textfile now; whether it worked. node_exporter sees all of it or the one before."""
        if self._textfile is None:
            return False
        try:
            write_to_textfile(str(self._textfile), self.registry)
            self._textfile.chmod(0o644)  # node_exporter is another user
        except OSError as error:
            problem = f"Metrics cannot be written to {self._textfile}: {error.strerror}."
            if problem != self._told:  # once, not every 15 seconds
                logger.warning(problem)
            self._told = problem
            return False
        self._told = None
        return True

    def close(self) -> None:
        """Stop serving, write the file a last time. Returns when its threads have ended."""
        self._stop.set()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
        for thread in self._threads:
            thread.join(SECONDS_FOR_A_READER)
        self.write()

    def _serve(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        try:
            self._server = _Server((host.strip("[]"), int(port)), _Handler)
        except (OSError, ValueError, OverflowError) as error:
            logger.error(f"Metrics are not served at {address}: {error}. Check [metrics] in the configuration.")
            return
        self._server.set_app(make_wsgi_app(self.registry))
        self.address = (self._server.server_name_asked, self._server.server_port)
        logger.info(f"metrics of the {self._part} at http://{self.address[0]}:{self.address[1]}/metrics")
        self._begin(lambda: self._server.serve_forever(poll_interval=0.2) if self._server else None)

    def _write_regularly(self, seconds: float) -> None:
        while not self._stop.is_set():
            self.write()
            self._stop.wait(seconds)

    def _begin(self, work: Any) -> None:  # noqa: ANN401 - any call without arguments
        thread = threading.Thread(target=work, name="metrics", daemon=True)
        thread.start()
        self._threads.append(thread)


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    """One thread for each reader, up to a bound; who comes above it is turned away."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], handler: type[WSGIRequestHandler]) -> None:
        self.server_name_asked = address[0]
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        self._room = threading.BoundedSemaphore(MOST_READERS)
        super().__init__(address, handler)

    def server_bind(self) -> None:
        """Without looking up the host's full name: a dead name server would hold up the daemon."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_name_asked, self.server_address[1]
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - socketserver's signature
        """Turn away who comes when all places are taken."""
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._room.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as above
        """Answer, then make room."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as above
        """A reader that went away or sent nonsense is no news."""


class _Handler(WSGIRequestHandler):
    """One request, in time, without a line in the log."""

    timeout = SECONDS_FOR_A_READER

    def handle(self) -> None:
        """One that says nothing is let go."""
        with contextlib.suppress(TimeoutError, ConnectionError):
            super().handle()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401 - the base class's signature
        """Prometheus reads every 15 seconds: nobody wants to read that."""
