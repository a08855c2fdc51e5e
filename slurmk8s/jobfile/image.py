"""Image references, by the grammar of the distribution project (registry clients and Kubernetes use the same)."""

import re
from dataclasses import dataclass

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
    """Take a reference apart; ValueError with the reason, as the end of a sentence, if it is none.

    The first part is a registry only if it looks like a host (a dot, a port, capitals or `localhost`), as docker
    decides it: `team/pytorch` is a path.
    """
    if not text:
        raise ValueError("it is empty")
    if len(text) > _LONGEST:
        raise ValueError("it is too long")
    if "://" in text:
        raise ValueError("an image has no https:// in front")
    rest, at, digest = text.partition("@")
    if at:
        _check_digest(digest)
    name, tag = rest, ""
    slash, colon = rest.rfind("/"), rest.rfind(":")
    if colon > slash:
        name, tag = rest[:colon], rest[colon + 1 :]
        if not _TAG.match(tag):
            raise ValueError(
                f"the tag {tag!r} may hold only letters, digits, '.', '_' and '-'" if tag else "the tag is empty"
            )
    if len(name) > _LONGEST_NAME:
        raise ValueError("the name is longer than 255 characters")
    first, has_slash, others = name.partition("/")
    registry, path = (first, others) if has_slash and _is_host(first) else ("", name)
    if registry and not (_HOST.match(registry) or _IPV6.match(registry)):
        raise ValueError(f"{registry!r} is no host name")
    for part in path.split("/"):
        if not _PART.match(part):
            raise ValueError(_why_not_a_part(part, name))
    if not registry and re.match(r"[a-f0-9]{64}\Z", path):
        raise ValueError("64 hexadecimal digits are an image's id, not its name")
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
        raise ValueError("what follows @ must be a digest such as sha256:…")
    if len(value) != _DIGESTS[algorithm] or not _HEX.match(value):
        raise ValueError(f"a {algorithm} digest has {_DIGESTS[algorithm]} lower-case hexadecimal digits")


def _why_not_a_part(part: str, name: str) -> str:
    if not part:
        return "a part of the name is empty" if name else "the name is missing"
    if part != part.lower():
        return f"the name {part!r} must be in lower case"
    if not part.isascii():
        return f"the name {part!r} may hold only a-z, 0-9, '.', '_' and '-'"
    if any(char.isspace() for char in part):
        return "there is a space in it"
    return f"{part!r} may hold only a-z, 0-9 and single '.', '_' or '-' between them"
