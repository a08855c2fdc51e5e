"""Bytes to text: what editors and other systems do to a file, repaired where the meaning is certain, else told."""

import codecs
from dataclasses import dataclass

from slurmk8s.jobfile.finding import WHOLE_FILE, Finding, Spot, problem, warning
from slurmk8s.jobfile.phrase import phrase

# slurmctld refuses longer scripts unless SchedulerParameters=max_script_size says otherwise.
LARGEST_SCRIPT = 4 * 1024 * 1024

# The first bytes of what people drop by mistake, and what it is to the catalogue of words.
_NOT_TEXT = {
    b"\x7fELF": "linux-program",
    b"MZ": "windows-program",
    b"PK\x03\x04": "zip",
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"(\xb5/\xfd": "zstd",
    b"%PDF": "pdf",
    b"\x89PNG": "picture",
    b"\xff\xd8\xff": "picture",
    b"\xd0\xcf\x11\xe0": "office",
    b"{\\rtf": "rich-text",
}


@dataclass(frozen=True)
class Text:
    """The file as text. `script` is None when a problem left no certain text to go on with."""

    text: str
    script: bytes | None
    findings: tuple[Finding, ...]


def read(data: bytes) -> Text:
    """The text of the file with carriage returns and byte order mark repaired, and what was found on the way."""
    refusal = _refusal(data)
    if refusal is not None:
        return Text(data.decode(errors="replace") if refusal.line else "", None, (refusal,))
    findings = []
    if data.startswith(codecs.BOM_UTF8):
        data = data[len(codecs.BOM_UTF8) :]
        findings.append(warning(WHOLE_FILE, "byte-order-mark"))
    data, repaired = _unix_line_ends(data)
    findings += repaired
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        text = data.decode(errors="replace")
        return Text(text, None, (*findings, _undecodable(data, error.start)))
    if not text.strip():
        return Text(text, None, (*findings, _empty()))
    return Text(text, data, tuple(findings))


def _refusal(data: bytes) -> Finding | None:
    """The one problem that makes reading on senseless."""
    if len(data) > LARGEST_SCRIPT:
        return problem(WHOLE_FILE, "too-large", size=len(data))
    if not data.strip():
        return _empty()
    if _looks_like_utf16(data):
        return problem(WHOLE_FILE, "utf-16")
    for start, kind in _NOT_TEXT.items():
        if data.startswith(start):
            return problem(WHOLE_FILE, "not-text", kind=phrase(kind))
    if b"\0" in data:
        at = data.index(b"\0")
        line_start = data.rfind(b"\n", 0, at) + 1
        column = len(data[line_start:at].decode(errors="replace")) + 1
        return problem(Spot(data.count(b"\n", 0, at) + 1, column, 1), "nul-byte")
    return None


def _empty() -> Finding:
    return problem(WHOLE_FILE, "empty")


def _looks_like_utf16(data: bytes) -> bool:
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return True
    # Without a mark: `#!` with a zero byte beside each letter.
    return data.startswith((b"#\0", b"\0#"))


def _unix_line_ends(data: bytes) -> tuple[bytes, list[Finding]]:
    at = data.find(b"\r\n")
    if at >= 0:
        line = data.count(b"\n", 0, at) + 1
        count = data.count(b"\r\n")
        data = data.replace(b"\r\n", b"\n")
    elif b"\r" in data and b"\n" not in data:  # Mac OS before 10
        line, count = 1, data.count(b"\r")
        data = data.replace(b"\r", b"\n")
    else:
        return data, []
    return data, [warning(Spot(line, 1, 1), "dos-line-ends", count=count)]


def _undecodable(data: bytes, start: int) -> Finding:
    line_start = data.rfind(b"\n", 0, start) + 1
    line = data.count(b"\n", 0, start) + 1
    column = len(data[line_start:start].decode(errors="replace")) + 1
    try:
        data.decode("cp949")
    except UnicodeDecodeError:
        return problem(Spot(line, column, 1), "not-utf-8")
    return problem(Spot(line, column, 1), "not-utf-8/korean")
