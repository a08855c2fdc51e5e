"""Image references, by the grammar of the distribution project (registry clients and Kubernetes use the same)."""

import re
from dataclasses import dataclass

from slurmk8s.jobfile.finding import shown
from slurmk8s.jobfile.phrase import Malformed, Phrase, malformed, phrase

# (?a): ASCII only; \Z, not $: `$` would let a final newline pass.
_HOST = re.compile(
    r"(?a)[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*(?::[0-9]+)?\Z"
)
_IPV6 = re.compile(r"(?a)\[[a-fA-F0-9:]+\](?::[0-9]+)?\Z")
_PART = re.compile(r"(?a)[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*\Z")
_TAG = re.compile(r"(?a)\w[\w.-]{0,127}\Z")
_DIGESTS = {"sha256": 64, "sha384": 96, "sha512": 128}
_HEX = re.compile(r"[a-f0-9]+\Z")
_LONGEST_NAME = 255
# Longer than any reference the grammar allows; nothing beyond it is looked at.
_LONGEST = 1024


@dataclass(frozen=True)
class Reference:
    """The parts of a reference; registry, tag and digest may be empty."""

    registry: str
    path: str
    tag: str
    digest: str

    def __str__(self) -> str:
        name = f"{self.registry}/{self.path}" if self.registry else self.path
        return name + (f":{self.tag}" if self.tag else "") + (f"@{self.digest}" if self.digest else "")


def parse(text: str) -> Reference:
    """Take a reference apart; Malformed with the reason if it is none.

    The first part is a registry only if it looks like a host (a dot, a port, capitals or `localhost`), as docker
    decides it: `team/pytorch` is a path.
    """
    if not text:
        raise malformed("image-empty")
    if len(text) > _LONGEST:
        raise malformed("image-too-long")
    if "://" in text:
        raise malformed("image-url")
    rest, at, digest = text.partition("@")
    if at:
        _check_digest(digest)
    name, tag = rest, ""
    slash, colon = rest.rfind("/"), rest.rfind(":")
    if colon > slash:
        name, tag = rest[:colon], rest[colon + 1 :]
        if not _TAG.match(tag):
            raise malformed("tag-characters", tag=shown(tag)) if tag else malformed("tag-empty")
    if len(name) > _LONGEST_NAME:
        raise malformed("name-too-long")
    first, has_slash, others = name.partition("/")
    registry, path = (first, others) if has_slash and _is_host(first) else ("", name)
    if registry and not (_HOST.match(registry) or _IPV6.match(registry)):
        raise malformed("no-host-name", registry=shown(registry))
    for part in path.split("/"):
        if not _PART.match(part):
            raise Malformed(_why_not_a_part(part, name))
    if not registry and re.match(r"[a-f0-9]{64}\Z", path):
        raise malformed("image-id")
    return Reference(registry, path, tag, digest)


def qualified(text: str, registry: str) -> str:
    """The full reference: a bare name means the site's own registry."""
    reference = parse(text)
    if reference.registry:
        return str(reference)
    return str(Reference(registry, reference.path, reference.tag, reference.digest))


def allowed(full: str, prefixes: tuple[str, ...]) -> bool:
    """Whether a full reference lies under an allowed prefix, cut at a boundary.

    `hub:5407` does not allow `hub:54070/x`, and `hub/team` does not allow `hub/team-of-others`.
    """
    return any(
        full.startswith(prefix) and (prefix.endswith(("/", ":", "@")) or full[len(prefix) :][:1] in ("", "/", ":", "@"))
        for prefix in prefixes
        if prefix
    )


def _is_host(first: str) -> bool:
    return first == "localhost" or "." in first or ":" in first or first != first.lower() or first.startswith("[")


def _check_digest(digest: str) -> None:
    algorithm, _, value = digest.partition(":")
    if algorithm not in _DIGESTS:
        raise malformed("no-digest")
    if len(value) != _DIGESTS[algorithm] or not _HEX.match(value):
        raise malformed("digest-length", algorithm=algorithm, digits=_DIGESTS[algorithm])


def _why_not_a_part(part: str, name: str) -> Phrase:
    if not part:
        return phrase("part-empty") if name else phrase("name-missing")
    if part != part.lower():
        return phrase("lower-case", part=shown(part))
    if not part.isascii():
        return phrase("name-characters", part=shown(part))
    if any(char.isspace() for char in part):
        return phrase("space-in-name")
    return phrase("name-separators", part=shown(part))
