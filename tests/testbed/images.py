"""Images made here and pushed to the cluster's registry; no other registry can be reached from the tests."""

import hashlib
import io
import json
import platform
import tarfile
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from slurmk8s.local.images import PATH, busybox_tar

from .layout import REGISTRY, Layout

ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
PAUSE = "trap 'exit 0' TERM INT; while :; do sleep 2147483647 & wait $!; done"


def push(
    layout: Layout,
    tar: bytes | Path,
    name: str,
    *,
    config: Mapping[str, Any] | None = None,
    architecture: str = ARCHITECTURE,
) -> str:
    """Offer a root file system as `nas-hub.local:5407/NAME`; gives the image's name with its digest.

    `name` is `alpine:latest` or the like, `config` what an image says of itself: Env, Cmd, Entrypoint, User, …
    """
    repository, _, tag = name.partition(":")
    base = f"http://{layout.registry_address}/v2/{repository}"
    data = tar if isinstance(tar, bytes) else tar.read_bytes()
    layer = _upload(base, data)
    described = {
        "architecture": architecture,
        "os": "linux",
        "config": {"Env": [f"PATH={PATH}"], "Cmd": ["/bin/sh"], **(config or {})},
        "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {"mediaType": "application/vnd.oci.image.config.v1+json", **_upload(base, _json(described))},
        "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar", **layer}],
    }
    text = _json(manifest)
    _request("PUT", f"{base}/manifests/{tag or 'latest'}", text, MANIFEST)
    return f"{REGISTRY}/{repository}@{_digest(text)}"


def offer_all(layout: Layout) -> None:
    """The image that holds a pod's namespaces, and what the guide's jobs name."""
    rootfs = busybox_tar()
    push(layout, rootfs, "pause:latest", config={"Entrypoint": ["/bin/sh", "-c", PAUSE], "Cmd": None})
    for name in ("alpine:latest", "busybox:latest"):
        push(layout, rootfs, name)


def with_files(rootfs: bytes, files: Mapping[str, str], mode: int = 0o644) -> bytes:
    """The same root file system with some files more, or other ones: an /etc/group, say."""
    result = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(rootfs)) as old, tarfile.open(fileobj=result, mode="w") as new:
        for entry in old:
            if entry.name not in files:
                new.addfile(entry, old.extractfile(entry) if entry.isreg() else None)
        for name, text in files.items():
            added = tarfile.TarInfo(name)
            added.size, added.mode = len(text.encode()), mode
            new.addfile(added, io.BytesIO(text.encode()))
    return result.getvalue()


def _upload(base: str, data: bytes) -> dict[str, Any]:
    """Send a blob unless it is there."""
    digest = _digest(data)
    try:
        _request("HEAD", f"{base}/blobs/{digest}")
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
        place = _request("POST", f"{base}/blobs/uploads/")["Location"]
        _request("PUT", f"{place}{'&' if '?' in place else '?'}digest={digest}", data, "application/octet-stream")
    return {"digest": digest, "size": len(data)}


def _request(method: str, url: str, data: bytes | None = None, kind: str = "") -> Mapping[str, str]:
    request = urllib.request.Request(url, data=data, method=method)
    if kind:
        request.add_header("Content-Type", kind)
    # No proxy of the environment: the registry is on this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=60) as answer:
        return dict(answer.headers.items())


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value).encode()


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
