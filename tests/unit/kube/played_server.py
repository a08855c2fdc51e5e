"""A small HTTP server that plays an API server, for what a real one cannot be made to do on demand.

That is: go silent in the middle of a watch, forget a version, break an answer off. Everything else is tested on a real
one (tests/kube).
"""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

from slurmk8s.kube.client import Kube
from slurmk8s.kube.connection import connect


class ApiServer:
    """Answers as the test says; remembers what it was asked."""

    def __init__(self, folder: Path) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.tokens: list[str] = []
        self.answer: Callable[[dict[str, str]], Any] = lambda _: (404, {})
        self.release = threading.Event()
        """Set at the end, so that an answer that hangs lets go."""
        self.token = folder / "token"
        self.token.write_text("first")
        self.kubeconfig = folder / "kubeconfig"
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                url = urlsplit(self.path)
                query = {key: values[0] for key, values in parse_qs(url.query).items()}
                outer.asked.append((url.path, query))
                outer.tokens.append(self.headers.get("Authorization", ""))
                answer = outer.answer(query)
                if isinstance(answer, tuple):
                    self._whole(*answer)
                else:
                    self._parts(answer)

            do_POST = do_DELETE = do_GET  # noqa: N815 - as the library calls them

            def _whole(self, code: int, body: Any) -> None:
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(code)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def _parts(self, events: Iterator[dict[str, Any] | None]) -> None:
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for event in events:
                    if event is None:  # break the connection off
                        self.close_connection = True
                        return
                    line = json.dumps(event).encode() + b"\n"
                    self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
                    self.wfile.flush()
                self.wfile.write(b"0\r\n\r\n")

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{self._server.server_port}"}}],
            "users": [{"name": "u", "user": {"tokenFile": "token"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        self.kubeconfig.write_text(yaml.safe_dump(config))

    def kube(self, seconds: float = 5) -> Kube:
        """A connection to it."""
        return connect(self.kubeconfig, seconds)

    def close(self) -> None:
        """Let go of whoever waits, and stop."""
        self.release.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def pod(name: str, version: int, **status: object) -> dict[str, Any]:
    """A pod as a list or an event has it."""
    return {
        "metadata": {"namespace": "user-1", "name": name, "uid": f"uid-{name}", "resourceVersion": str(version)},
        "status": status,
    }
