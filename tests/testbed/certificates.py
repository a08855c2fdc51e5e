"""Who is who in the cluster: one certificate authority, the servers' certificates, a token for each component."""

import base64
import json
import secrets
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .layout import Layout


@dataclass(frozen=True)
class Account:
    """Somebody the API server knows by a token, for as long as the cluster lives."""

    name: str
    user: str
    groups: tuple[str, ...] = ()


def accounts(layout: Layout) -> list[Account]:
    """The admin and the components, with the names that Kubernetes' own roles are bound to."""
    return [
        Account("admin", "admin", ("system:masters",)),
        Account("kube-controller-manager", "system:kube-controller-manager"),
        Account("kube-scheduler", "system:kube-scheduler"),
        Account("metrics-server", "slurmk8s-testbed:metrics-server"),
        *(Account(f"kubelet-{node.name}", f"system:node:{node.name}", ("system:nodes",)) for node in layout.nodes),
    ]


def create(layout: Layout) -> None:
    """Make all of it."""
    pki = layout.pki
    pki.mkdir(mode=0o700)
    addresses = [node.address for node in layout.nodes]
    _certificate(pki / "ca", "/CN=slurmk8s-testbed", None)
    _certificate(pki / "server", "/CN=slurmk8s-testbed-server", pki / "ca", [*addresses, "127.0.0.1"])
    # What the API server shows to kubelets (logs, exec), and to metrics-server for whomever it asks.
    _certificate(pki / "to-kubelet", "/O=system:masters/CN=kube-apiserver", pki / "ca")
    _certificate(pki / "front-proxy", "/CN=front-proxy", pki / "ca")
    _openssl("genrsa", "-out", str(pki / "service-accounts.key"), "2048")
    lines = []
    for account in accounts(layout):
        token = secrets.token_hex(16)
        groups = ",".join(account.groups)
        lines.append(f'{token},{account.user},{account.user},"{groups}"\n')
        target = layout.admin if account.name == "admin" else layout.kubeconfig(account.name)
        write_private(target, _kubeconfig(layout, account.name, token))
    write_private(pki / "tokens.csv", "".join(lines))


def write_private(path: Path, text: str) -> None:
    """A file that only root can read from its first byte on."""
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")


def _kubeconfig(layout: Layout, name: str, token: str) -> str:
    """JSON is YAML as well."""
    cluster = {"server": layout.server, "certificate-authority": str(layout.pki / "ca.crt")}
    if name == "admin":  # this one is copied about, so it holds all it needs
        data = base64.b64encode((layout.pki / "ca.crt").read_bytes()).decode()
        cluster = {"server": layout.server, "certificate-authority-data": data}
    context = {"cluster": "testbed", "user": name}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "testbed", "cluster": cluster}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": "testbed", "context": context}],
        "current-context": "testbed",
    }
    return json.dumps(config, indent=1) + "\n"


def _certificate(path: Path, subject: str, issuer: Path | None, addresses: list[str] | None = None) -> None:
    command = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-days", "3650"]
    command += ["-subj", subject, "-keyout", f"{path}.key", "-out", f"{path}.crt"]
    if issuer:
        command += ["-CA", f"{issuer}.crt", "-CAkey", f"{issuer}.key", "-addext", "basicConstraints=CA:FALSE"]
    if addresses:
        command += ["-addext", "subjectAltName=" + ",".join(f"IP:{address}" for address in addresses)]
    _openssl(*command)


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
