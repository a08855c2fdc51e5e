"""From a kubeconfig to a connection, by the official client's own reading of it: tokens, certificates, plugins."""

import base64
import os
import socket
import ssl
import tempfile
from pathlib import Path
from typing import Any

import urllib3
import yaml
from kubernetes.client.configuration import Configuration
from kubernetes.client.rest import RESTClientObject
from kubernetes.config.config_exception import ConfigException
from kubernetes.config.kube_config import load_kube_config

from slurmk8s.errors import SetupError
from slurmk8s.kube.client import Kube

CONNECTIONS = 12
"""Kept open: the watch, the backend's threads, and a few for what comes at once."""
ALIVE = [
    *urllib3.connection.HTTPConnection.default_socket_options,
    # A server that lost its power says nothing: the kernel asks after 20 s of silence, and gives up 30 s later.
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 20),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
]
NEXT = "Ask for a kubeconfig, or name one with --kubeconfig or $KUBECONFIG."


def connect(kubeconfig: Path, seconds: float = 10) -> Kube:
    """A connection by that file. Nothing is sent yet, so the server may be away. `seconds` bounds each request."""
    return _connect(str(kubeconfig), seconds)


def of_admin(path: Path | None, head: Path | None = None, seconds: float = 10) -> Kube:
    """An admin's command's: --kubeconfig, else $KUBECONFIG, else ~/.kube/config, else the head node's (`head`)."""
    if path is not None:
        return connect(path, seconds)
    named = os.environ.get("KUBECONFIG", "")
    if named:
        return _connect(named, seconds)  # may be several, as kubectl takes it
    own = Path("~/.kube/config").expanduser()
    if not own.exists() and head is not None and os.access(head, os.R_OK):
        return connect(head, seconds)
    return connect(own, seconds)


def _connect(kubeconfig: str, seconds: float) -> Kube:
    return Kube(lambda: _Access(kubeconfig), seconds)


class _Access:
    """The server and the credential as the file says now."""

    def __init__(self, kubeconfig: str) -> None:
        self.name = kubeconfig
        self._configuration = Configuration()
        self._configuration.retries = False  # a retry is our decision: some requests may not be sent twice
        self._configuration.connection_pool_maxsize = CONNECTIONS
        self._configuration.socket_options = ALIVE
        # The client unpacks keys into files and leaves them in /tmp, where they outlive a killed agent, or are swept
        # away under a living one. They are read once, here, and are gone.
        with tempfile.TemporaryDirectory(prefix="slurmk8s-") as folder:
            _load(kubeconfig, self._configuration, folder)
            self.trust = _trust(self._configuration)
            self.pool = RESTClientObject(self._configuration).pool_manager
            if self._configuration.host.startswith("https:"):
                _with_context(self.pool, self._configuration, kubeconfig)
        self.host: str = self._configuration.host.rstrip("/")

    def headers(self) -> dict[str, str]:
        """A token, renewed by the client itself where its plugin says when it ends."""
        token = self._configuration.get_api_key_with_prefix("BearerToken")
        return {"Authorization": token} if token else {}


def _load(kubeconfig: str, configuration: Configuration, folder: str) -> None:
    names = [Path(name).expanduser() for name in kubeconfig.split(":") if name]
    if not any(name.exists() for name in names):
        raise SetupError(f"There is no kubeconfig {kubeconfig}.", NEXT)
    try:
        load_kube_config(  # type: ignore[no-untyped-call]
            kubeconfig, client_configuration=configuration, persist_config=False, temp_file_path=folder
        )
    except OSError as error:
        raise SetupError(f"The kubeconfig {kubeconfig} cannot be read: {error.strerror}.", NEXT) from None
    except (ConfigException, yaml.YAMLError, TypeError, KeyError, ValueError, AttributeError) as error:
        said = " ".join(str(error).split()).rstrip(".")
        raise SetupError(f"The kubeconfig {kubeconfig} is not valid: {said}.", NEXT) from None


def _trust(configuration: Configuration) -> dict[str, Any]:
    if not configuration.verify_ssl:
        return {"insecure-skip-tls-verify": True}
    if not configuration.ssl_ca_cert:
        return {}
    return {"certificate-authority-data": base64.b64encode(Path(configuration.ssl_ca_cert).read_bytes()).decode()}


def _with_context(pool: urllib3.PoolManager, configuration: Configuration, kubeconfig: str) -> None:
    """Certificates and key in memory, instead of files that each new connection would read again."""
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # clusters' own CAs often lack what newer Pythons insist on
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    try:
        if configuration.cert_file:
            context.load_cert_chain(configuration.cert_file, configuration.key_file)
    except (ssl.SSLError, OSError) as error:
        raise SetupError(f"The client certificate in {kubeconfig} cannot be used: {error}.", NEXT) from None
    settings = pool.connection_pool_kw
    for key in ("ca_certs", "ca_cert_data", "cert_file", "key_file"):
        settings.pop(key, None)
    settings["ssl_context"] = context
