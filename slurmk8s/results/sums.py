"""Lines of checksums.txt, exactly as `sha256sum` of GNU coreutils writes and reads them."""

import re

_LINE = re.compile(rb"(\\?)([0-9a-f]{64}) [ *](.+)", re.DOTALL)
_ESCAPES = {b"\\": b"\\\\", b"\n": b"\\n", b"\r": b"\\r"}
_UNESCAPES = {escaped: plain for plain, escaped in _ESCAPES.items()}


def line(digest: str, name: bytes) -> bytes:
    """One line with its newline. A leading backslash says that the name has escapes."""
    escaped = re.sub(rb"[\\\n\r]", lambda match: _ESCAPES[match[0]], name)
    return b"%s%s  %s\n" % (b"\\" if escaped != name else b"", digest.encode(), escaped)


def parse(data: bytes) -> tuple[str, bytes] | None:
    """Digest and name of a line, or None if it is none."""
    match = _LINE.fullmatch(data.removesuffix(b"\n"))
    if match is None:
        return None
    is_escaped, digest, name = match.groups()
    if is_escaped:
        if re.sub(rb"\\[\\nr]", b"", name).count(b"\\"):
            return None
        name = re.sub(rb"\\[\\nr]", lambda escape: _UNESCAPES[escape[0]], name)
    return digest.decode(), name
