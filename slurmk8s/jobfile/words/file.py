"""The file as a whole: its bytes, its encoding, and whether it can be read at all."""

from slurmk8s.jobfile.words.entry import Findings, Phrases, Words

_SAVE_AS_UTF8 = "Save it as UTF-8 (Notepad: Save as, Encoding: UTF-8)."
_SAVE_AS_UTF8_KO = "UTF-8로 저장하세요(메모장: 다른 이름으로 저장, 인코딩: UTF-8)."

FINDINGS: Findings = {
    "byte-order-mark": {
        "en": Words(
            "the file starts with a byte order mark, which was removed",
            "Windows editors write it, and sbatch then does not see the #! line.",
            "Nothing to do for a drop; for sbatch save it as UTF-8 without BOM.",
        ),
        "ko": Words(
            "파일 맨 앞에 있던 BOM(바이트 순서 표시)을 제거했습니다",
            "Windows 편집기가 붙이는 것으로, 이것이 있으면 sbatch가 #! 줄을 알아보지 못합니다.",
            "제출 폴더에 넣을 때는 그대로 두어도 됩니다. sbatch로 제출하려면 BOM 없는 UTF-8로 저장하세요.",
        ),
    },
    "dos-line-ends": {
        "en": Words(
            "{count} line(s) ended with a carriage return, which was removed",
            "Windows editors write it; sbatch refuses such files and the shell takes it for part of the last word.",
            "Nothing to do for a drop; for sbatch run `dos2unix` on the file.",
        ),
        "ko": Words(
            "{count}개 줄의 끝에 있던 캐리지 리턴(CR)을 제거했습니다",
            "Windows 편집기가 붙이는 문자입니다. sbatch는 이런 파일을 거부하고, 셸은 줄의 마지막 낱말에 붙여 읽습니다.",
            "제출 폴더에 넣을 때는 그대로 두어도 됩니다. sbatch로 제출하려면 파일에 `dos2unix`를 실행하세요.",
        ),
    },
    "too-large": {
        "en": Words(
            "the file has {size:,} bytes",
            "Slurm takes scripts of at most 4 MB.",
            "Put data and programs into files of their own on the NAS and call them from the job.",
        ),
        "ko": Words(
            "파일 크기가 {size:,}바이트입니다",
            "Slurm은 4 MB 이하의 스크립트만 받습니다.",
            "데이터와 프로그램은 NAS에 별도의 파일로 두고 작업에서 불러 쓰세요.",
        ),
    },
    "utf-16": {
        "en": Words(
            "the file is saved as UTF-16 (Notepad calls it Unicode)",
            "Slurm and the shell read bytes, and half of these are zero.",
            _SAVE_AS_UTF8,
        ),
        "ko": Words(
            "파일이 UTF-16(메모장에서는 '유니코드')으로 저장되어 있습니다",
            "Slurm과 셸은 파일을 바이트 단위로 읽는데, 이 파일은 바이트의 절반이 0입니다.",
            _SAVE_AS_UTF8_KO,
        ),
    },
    "not-text": {
        "en": Words(
            "the file is {kind}, not a script",
            "A job file is plain text whose first line starts with #!.",
            "Submit a script that calls it, saved as plain text.",
        ),
        "ko": Words(
            "스크립트가 아니라 {kind}입니다",
            "작업 파일은 첫 줄이 #!로 시작하는 일반 텍스트여야 합니다.",
            "이 파일을 불러 쓰는 스크립트를 일반 텍스트로 저장해서 제출하세요.",
        ),
    },
    "nul-byte": {
        "en": Words(
            "the file holds a NUL byte",
            "Slurm refuses scripts with NUL bytes; the file is binary or was damaged by a copy.",
            "Copy it again, or submit a script that calls this file.",
        ),
        "ko": Words(
            "파일에 NUL 바이트가 있습니다",
            "Slurm은 NUL 바이트가 있는 스크립트를 거부합니다. 바이너리 파일이거나 복사 중에 손상된 파일입니다.",
            "다시 복사하거나, 이 파일을 불러 쓰는 스크립트를 제출하세요.",
        ),
    },
    "empty": {
        "en": Words(
            "the file is empty",
            "There is nothing to run; a copy may have been cut off.",
            "Copy it again, and start it with #!/bin/bash.",
        ),
        "ko": Words(
            "파일이 비어 있습니다",
            "실행할 내용이 없습니다. 복사가 중간에 끊겼을 수 있습니다.",
            "다시 복사하세요. 첫 줄은 #!/bin/bash로 시작해야 합니다.",
        ),
    },
    "not-utf-8": {
        "en": Words(
            "the text is not UTF-8",
            "The bytes there belong to no character; the file may be binary or in another encoding.",
            _SAVE_AS_UTF8,
        ),
        "ko": Words(
            "텍스트가 UTF-8이 아닙니다",
            "이 위치의 바이트는 어떤 문자도 아닙니다. 바이너리 파일이거나 다른 인코딩으로 저장된 파일일 수 있습니다.",
            _SAVE_AS_UTF8_KO,
        ),
    },
    "not-utf-8/korean": {
        "en": Words(
            "the text is not UTF-8",
            "It looks like EUC-KR (CP949), which Korean Windows writes.",
            _SAVE_AS_UTF8,
        ),
        "ko": Words(
            "텍스트가 UTF-8이 아닙니다",
            "한글 Windows에서 쓰는 EUC-KR(CP949)로 저장된 것 같습니다.",
            _SAVE_AS_UTF8_KO,
        ),
    },
    "unreadable": {
        "en": Words("the file cannot be read", "{reason}.", "Check its name and its rights."),
        "ko": Words("파일을 읽을 수 없습니다", "시스템 메시지: {reason}.", "파일 이름과 권한을 확인하세요."),
    },
}

PHRASES: Phrases = {
    "linux-program": {"en": "a Linux program", "ko": "Linux 프로그램"},
    "windows-program": {"en": "a Windows program", "ko": "Windows 프로그램"},
    "zip": {"en": "a zip archive or an office document", "ko": "zip 압축 파일이나 오피스 문서"},
    "gzip": {"en": "a gzip archive", "ko": "gzip 압축 파일"},
    "bzip2": {"en": "a bzip2 archive", "ko": "bzip2 압축 파일"},
    "xz": {"en": "an xz archive", "ko": "xz 압축 파일"},
    "zstd": {"en": "a zstd archive", "ko": "zstd 압축 파일"},
    "pdf": {"en": "a PDF document", "ko": "PDF 문서"},
    "picture": {"en": "a picture", "ko": "그림 파일"},
    "office": {"en": "an old office document", "ko": "옛 형식의 오피스 문서"},
    "rich-text": {"en": "a rich-text document", "ko": "서식 있는 텍스트(RTF) 문서"},
}
