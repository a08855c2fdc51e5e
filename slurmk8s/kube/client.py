"""Requests to one API server: raw JSON, one warm connection pool, a timeout on each, answers told by class.

The official client brings the connection and the credential; its models are left alone: they cost a second at start and
twenty megabytes. Blocking and safe to use from several threads.
"""

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from threading import Lock
from typing import Any, Protocol
from urllib.parse import urlencode, urlsplit

import urllib3
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError, ProtocolError, ReadTimeoutError

from slurmk8s.errors import SetupError
from slurmk8s.kube.faults import Gone, KubeUnreachable, NotFound, answer_fault

PAGE = "500"
SECONDS_BETWEEN_CREDENTIALS = 5.0
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"  # JSON is YAML
JSON = "application/json"


class Access(Protocol):
    """A way in: where the server is, and the credential as it stands now."""

    host: str
    name: str
    """Where the credential comes from, for people."""
    pool: urllib3.PoolManager
    trust: dict[str, Any]
    """How the server is known to be the right one, as a kubeconfig says it."""

    def headers(self) -> dict[str, str]:
        """The credential, where it is a header."""


class Kube:
    """One API server, with one credential."""

    def __init__(self, access: Callable[[], Access], seconds: float) -> None:
        self._make_access = access
        self._access = access()
        self._made = time.monotonic()
        self._renewing = Lock()
        self._seconds = seconds

    @property
    def server(self) -> str:
        """The server's address, for people."""
        return self._access.host

    @property
    def trust(self) -> dict[str, Any]:
        """How the server is known to be the right one, for a kubeconfig of somebody else."""
        return self._access.trust

    def get(self, path: str, **query: str) -> dict[str, Any]:
        """One object, or a list as it is. Raises NotFound."""
        return self._json("GET", path, query)

    def find(self, path: str, **query: str) -> dict[str, Any] | None:
        """One object, None when the server says that there is none."""
        try:
            return self.get(path, **query)
        except NotFound:
            return None

    def items(self, path: str, **query: str) -> list[dict[str, Any]]:
        """A list's items, from all its pages."""
        return self.listing(path, **query)[0]

    def listing(self, path: str, **query: str) -> tuple[list[dict[str, Any]], str]:
        """A list's items and the version from which a watch goes on."""
        for last in (False, True):
            try:
                return self._pages(path, query)
            except Gone:  # the later pages were compacted away while the first ones were read
                if last:
                    raise KubeUnreachable(f"The list {path} changes faster than it can be read.") from None
        raise AssertionError("unreachable")

    def _pages(self, path: str, query: dict[str, str]) -> tuple[list[dict[str, Any]], str]:
        found: list[dict[str, Any]] = []
        following = ""
        while True:
            page = self.get(path, **query, limit=PAGE, **({"continue": following} if following else {}))
            found += page.get("items") or []
            following = page["metadata"].get("continue") or ""
            if not following:
                return found, page["metadata"].get("resourceVersion") or ""

    def create(self, path: str, body: dict[str, Any], **query: str) -> dict[str, Any]:
        """Make an object. If the answer is lost it may exist: try again, and Conflict says so."""
        return self._json("POST", path, query, body)

    def apply(self, path: str, body: dict[str, Any], manager: str = "slurmk8s") -> dict[str, Any]:
        """Have the object as the body says; fields that others manage stay, the body's own are taken over."""
        return self._json("PATCH", path, {"fieldManager": manager, "force": "true"}, body, APPLY)

    def patch(self, path: str, body: dict[str, Any], **query: str) -> dict[str, Any]:
        """Change the body's fields, by merge patch."""
        return self._json("PATCH", path, query, body, MERGE)

    def delete(self, path: str, **options: Any) -> dict[str, Any] | None:  # noqa: ANN401 - DeleteOptions' fields
        """Delete; what is not there is deleted (None). `options` are DeleteOptions, e.g. gracePeriodSeconds=1."""
        try:
            return self._json("DELETE", path, {}, {"kind": "DeleteOptions", "apiVersion": "v1", **options})
        except NotFound:
            return None

    def text(self, path: str, **query: str) -> str:
        """A log."""
        return self._read("GET", path, query).decode("utf-8", "replace")

    def watch(self, path: str, resource_version: str, seconds: int, **query: str) -> "Events":
        """What happens after that version: {"type", "object"}, bookmarks too. Ends after `seconds` by the server.

        Raises Gone when the version is too old, KubeUnreachable when the connection breaks or is silent for longer.
        """
        query |= {"watch": "true", "resourceVersion": resource_version, "allowWatchBookmarks": "true"}
        query["timeoutSeconds"] = str(seconds)
        # The server ends the watch itself; a silence beyond that is a connection that has died.
        return Events(self._ask("GET", path, query, None, JSON, read_seconds=seconds + self._seconds), self.server)

    def _json(
        self, method: str, path: str, query: dict[str, str], body: dict[str, Any] | None = None, kind: str = JSON
    ) -> dict[str, Any]:
        text = self._read(method, path, query, body, kind)
        try:
            answer = json.loads(text)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise KubeUnreachable(f"{self.server} does not answer as a Kubernetes API server: {text[:80]!r}.")
        return answer

    def _read(
        self, method: str, path: str, query: dict[str, str], body: dict[str, Any] | None = None, kind: str = JSON
    ) -> bytes:
        response = self._ask(method, path, query, body, kind, self._seconds)
        try:
            return response.data
        except HTTPError as error:
            raise self._unreachable(error) from None

    def _ask(
        self,
        method: str,
        path: str,
        query: dict[str, str],
        body: dict[str, Any] | None,
        kind: str,
        read_seconds: float,
    ) -> urllib3.BaseHTTPResponse:
        """The answer's head. A credential that is refused is read again once: tokens and certificates are renewed."""
        access = self._access
        response = self._send(access, method, path, query, body, kind, read_seconds)
        if response.status == 401:
            response.drain_conn()
            response = self._send(self._renewed(access), method, path, query, body, kind, read_seconds)
        if response.status < 300:
            return response
        try:
            status = json.loads(response.data)
        except (ValueError, HTTPError):
            status = {}
        fault = answer_fault(
            response.status, status if isinstance(status, dict) else {}, f"{method} {path}", access.name
        )
        raise fault

    def _send(
        self,
        access: Access,
        method: str,
        path: str,
        query: dict[str, str],
        body: dict[str, Any] | None,
        kind: str,
        read_seconds: float,
    ) -> urllib3.BaseHTTPResponse:
        headers = {"Accept": "application/json", "User-Agent": "slurmk8s", **access.headers()}
        if body is not None:
            headers["Content-Type"] = kind
        url = access.host + path + (f"?{urlencode(query)}" if query else "")
        timeout = urllib3.Timeout(connect=self._seconds, read=read_seconds)
        data = None if body is None else json.dumps(body)
        for again in (method != "POST", False):
            try:
                return access.pool.request(
                    method, url, headers=headers, body=data, timeout=timeout, preload_content=False, redirect=False
                )
            except ProtocolError as error:  # a kept connection whose server has gone: a fresh one may do
                if not again:
                    raise self._unreachable(error) from None
            except HTTPError as error:
                raise self._unreachable(error) from None
        raise AssertionError("unreachable")

    def _renewed(self, refused: Access) -> Access:
        """The credential as it is in its file by now."""
        with self._renewing:
            if self._access is refused and time.monotonic() - self._made > SECONDS_BETWEEN_CREDENTIALS:
                self._made = time.monotonic()
                with contextlib.suppress(SetupError):  # in the middle of being replaced: the old one's answer stands
                    self._access = self._make_access()
            return self._access

    def _unreachable(self, error: Exception) -> KubeUnreachable:
        return unreachable(self.server, error)


class Events:
    """The events of one watch. `close` may be called by any thread: who waits for the next event is woken."""

    def __init__(self, response: urllib3.BaseHTTPResponse, server: str) -> None:
        self._response = response
        self._server = server
        self._rest = b""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        try:
            for chunk in self._response.stream(65536):
                *lines, self._rest = (self._rest + chunk).split(b"\n")
                for line in lines:
                    if line:
                        yield _event(json.loads(line))
        except (HTTPError, ValueError) as error:
            raise unreachable(self._server, error) from None
        finally:
            self._response.close()

    def close(self) -> None:
        """End the watch."""
        try:
            self._response.shutdown()
        except (OSError, RuntimeError, ValueError):
            return  # it has ended already


def _event(event: dict[str, Any]) -> dict[str, Any]:
    """The event; one of type ERROR is an answer like any other, only late."""
    if event["type"] == "ERROR":
        status = event["object"]
        raise answer_fault(int(status.get("code") or 500), status, "a watch", "the kubeconfig")
    return event


def unreachable(server: str, error: Exception) -> KubeUnreachable:
    """No answer from the server, in words."""
    cause = getattr(error, "reason", None) or error
    late = isinstance(error, ReadTimeoutError | ConnectTimeoutError) and not isinstance(error, NewConnectionError)
    told = "in time" if late else f"({_short(cause)})"
    address = urlsplit(server).netloc or server
    return KubeUnreachable(f"The Kubernetes API server {address} does not answer {told}.")


def _short(cause: object) -> str:
    """The last part of a chain of explanations: "Connection refused", "certificate verify failed: …"."""
    return str(cause).split("] ")[-1].split(" (_ssl.c")[0].strip()[:200] or type(cause).__name__
