"""Bytes to text: what editors and other systems do to a file, repaired where the meaning is certain, else told."""

import codecs
from dataclasses import dataclass

from slurmk8s.jobfile.finding import WHOLE_FILE, Finding, Spot, problem, warning

# slurmctld refuses longer scripts unless SchedulerParameters=max_script_size says otherwise.
LARGEST_SCRIPT = 4 * 1024 * 1024

_SAVE_AS_UTF8 = "Save it as UTF-8 (Notepad: Save as, Encoding: UTF-8)."

# The first bytes of what people drop by mistake, and what it is.
_NOT_TEXT = {
    b"\x7fELF": "a Linux program",
    b"MZ": "a Windows program",
    b"PK\x03\x04": "a zip archive or an office document",
    b"\x1f\x8b": "a gzip archive",
    b"BZh": "a bzip2 archive",
    b"\xfd7zXZ": "an xz archive",
    b"(\xb5/\xfd": "a zstd archive",
    b"%PDF": "a PDF document",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"\xd0\xcf\x11\xe0": "an old office document",
    b"{\\rtf": "a rich-text document",
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
        findings.append(
            warning(
                WHOLE_FILE,
                "byte-order-mark",
                "the file starts with a byte order mark, which was removed",
                "Windows editors write it, and sbatch then does not see the #! line.",
                "Nothing to do for a drop; for sbatch save it as UTF-8 without BOM.",
            )
        )
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
        return problem(
            WHOLE_FILE,
            "too-large",
            f"the file has {len(data):,} bytes",
            "Slurm takes scripts of at most 4 MB.",
            "Put data and programs into files of their own on the NAS and call them from the job.",
        )
    if not data.strip():
        return _empty()
    if _looks_like_utf16(data):
        return problem(
            WHOLE_FILE,
            "utf-16",
            "the file is saved as UTF-16 (Notepad calls it Unicode)",
            "Slurm and the shell read bytes, and half of these are zero.",
            _SAVE_AS_UTF8,
        )
    for start, kind in _NOT_TEXT.items():
        if data.startswith(start):
            return problem(
                WHOLE_FILE,
                "not-text",
                f"the file is {kind}, not a script",
                "A job file is plain text whose first line starts with #!.",
                "Submit a script that calls it, saved as plain text.",
            )
    if b"\0" in data:
        at = data.index(b"\0")
        line_start = data.rfind(b"\n", 0, at) + 1
        return problem(
            Spot(data.count(b"\n", 0, at) + 1, len(data[line_start:at].decode(errors="replace")) + 1, 1),
            "nul-byte",
            "the file holds a NUL byte",
            "Slurm refuses scripts with NUL bytes; the file is binary or was damaged by a copy.",
            "Copy it again, or submit a script that calls this file.",
        )
    return None


def _empty() -> Finding:
    return problem(
        WHOLE_FILE,
        "empty",
        "the file is empty",
        "There is nothing to run; a copy may have been cut off.",
        "Copy it again, and start it with #!/bin/bash.",
    )


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
    return data, [
        warning(
            Spot(line, 1, 1),
            "dos-line-ends",
            f"{count} line(s) ended with a carriage return, which was removed",
            "Windows editors write it; sbatch refuses such files and the shell takes it for part of the last word.",
            "Nothing to do for a drop; for sbatch run `dos2unix` on the file.",
        )
    ]


def _undecodable(data: bytes, start: int) -> Finding:
    line_start = data.rfind(b"\n", 0, start) + 1
    line = data.count(b"\n", 0, start) + 1
    column = len(data[line_start:start].decode(errors="replace")) + 1
    try:
        data.decode("cp949")
    except UnicodeDecodeError:
        guess = "The bytes there belong to no character; the file may be binary or in another encoding."
    else:
        guess = "It looks like EUC-KR (CP949), which Korean Windows writes."
    return problem(Spot(line, column, 1), "not-utf-8", "the text is not UTF-8", guess, _SAVE_AS_UTF8)
