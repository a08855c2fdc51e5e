"""Lines of checksums.txt, exactly as `sha256sum` of GNU coreutils writes and reads them."""

import re
from collections.abc import Iterator
from typing import IO

# A thousand folders deep, each with the longest name there is.
LONGEST = 1 << 18
_LINE = re.compile(rb"(\\?)([0-9a-f]{64}) [ *](.+)", re.DOTALL)
_ESCAPES = {b"\\": b"\\\\", b"\n": b"\\n", b"\r": b"\\r"}
_UNESCAPES = {escaped: plain for plain, escaped in _ESCAPES.items()}


def line(digest: str, name: bytes) -> bytes:
    """One line with its newline. A leading backslash says that the name has escapes."""
    escaped = re.sub(rb"[\\\n\r]", lambda match: _ESCAPES[match[0]], name)
    return b"%s%s  %s\n" % (b"\\" if escaped != name else b"", digest.encode(), escaped)


def lines(file: IO[bytes]) -> Iterator[bytes]:
    """The lines of a file. One that is too long ends them, as an empty one: a sparse terabyte is a single line."""
    while data := file.readline(LONGEST + 1):
        if len(data) > LONGEST:
            yield b""
            return
        yield data


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
