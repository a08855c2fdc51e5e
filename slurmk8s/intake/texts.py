"""What people read: receipts, notes and the guide in `submit/`, in English and Korean. Pure."""

from dataclasses import dataclass

from slurmk8s.config import Intake
from slurmk8s.errors import ClusterFault, PersonFault, SlurmFull, SlurmUnreachable
from slurmk8s.language import Language


@dataclass(frozen=True)
class Told:
    """What a receipt is about."""

    file: str
    user: str
    key: str
    """So that an admin finds the line in the log that belongs to a receipt."""
    when: str


_JOB = {
    "en": """Submitted: job {job_id}

File:       {file}
As:         {user}
At:         {when}
Output:     {where}

How far is it:   squeue -j {job_id}
Cancel it:       scancel {job_id}, or an empty file cancel-{job_id} in submit/
{held}{remarks}
Reference: {key}
""",
    "ko": """제출되었습니다: 작업 {job_id}

파일:       {file}
사용자:     {user}
시각:       {when}
결과:       {where}

진행 상태:   squeue -j {job_id}
취소:        scancel {job_id}, 또는 submit/ 에 빈 파일 cancel-{job_id}
{held}{remarks}
참조 번호: {key}
""",
}

_HELD = {
    "en": "\nThe file asks for --hold, so the job waits until you run: scontrol release {job_id}\n",
    "ko": "\n파일에 --hold 가 있어 작업이 대기합니다. 시작하려면: scontrol release {job_id}\n",
}

_REMARKS = {"en": "\nPlease note:\n\n{text}\n", "ko": "\n참고하세요:\n\n{text}\n"}

_REFUSED = {
    "en": """Not submitted: {file}

{text}

The file lies beside this text, unchanged. Correct it and copy it into submit/ again.

At:        {when}
Reference: {key}
""",
    "ko": """제출되지 않았습니다: {file}

{text}

파일은 이 글 옆에 그대로 있습니다. 고친 뒤 submit/ 폴더에 다시 복사하세요.

시각:      {when}
참조 번호: {key}
""",
}

_WAITING = {
    "en": """Waiting: {file}

{reason}
This is so since {when}. Your file is safe and nothing is lost: it is submitted as soon as possible, without you
doing anything, and this note then goes away. Please do not copy the file again.

Reference: {key}
""",
    "ko": """대기 중: {file}

{reason}
{when} 부터 이 상태입니다. 파일은 안전하게 보관되어 있으며 잃어버린 것은 없습니다. 가능해지는 대로 자동으로 제출되고
이 메모는 사라집니다. 파일을 다시 복사하지 마세요.

참조 번호: {key}
""",
}

_CANCELLED = {"en": "Job {job} has been cancelled.", "ko": "작업 {job} 을(를) 취소했습니다."}

_DONE = {
    "en": """{text}

File:      {file}
As:        {user}
At:        {when}
Reference: {key}
""",
    "ko": """{text}

파일:      {file}
사용자:    {user}
시각:      {when}
참조 번호: {key}
""",
}

_CAUSES = {
    "slurm": {"en": "Slurm does not answer: {words}", "ko": "Slurm이 응답하지 않습니다. 시스템 메시지: {words}"},
    "other": {"en": "{words}", "ko": "공동으로 쓰는 시스템에 문제가 있습니다. 시스템 메시지: {words}"},
}

_README = {
    "en": """Copy a job file into {place} and it is submitted to Slurm, as you.

A job file is a Slurm batch script, named {patterns}. For example hello.sh:

    #!/bin/bash
    #SBATCH --job-name=hello
    #SBATCH --cpus-per-task=1
    #SBATCH --mem=1G
    #SBATCH --time=00:05:00
    #K8S_IMAGE={registry}/alpine:latest

    echo "Hello from $(hostname)"

A few seconds later the file is gone from here and you find, beside this folder,

    processed/hello.sh.1234               what was submitted; 1234 is the number of your job
    processed/hello.sh.1234.receipt.txt   where its results come and how to cancel it
or
    failed/hello.sh                       your file, unchanged
    failed/hello.sh.error.txt             what is wrong with it, in which line, and how to correct it

While Slurm does not answer, hello.sh.waiting.txt here says so. Nothing is lost: do not copy the file again.
The results come to {results}/<number of the job>/.

To cancel your job 1234, put an empty file called cancel-1234 there.
{kept}""",
    "ko": """작업 파일을 {place}에 복사하면 본인 계정으로 Slurm에 제출됩니다.

작업 파일은 Slurm 배치 스크립트이며 이름은 {patterns} 입니다. 예: hello.sh

    #!/bin/bash
    #SBATCH --job-name=hello
    #SBATCH --cpus-per-task=1
    #SBATCH --mem=1G
    #SBATCH --time=00:05:00
    #K8S_IMAGE={registry}/alpine:latest

    echo "Hello from $(hostname)"

몇 초 뒤 파일이 여기에서 사라지고, 이 폴더 옆에 다음이 생깁니다.

    processed/hello.sh.1234               제출된 내용. 1234는 작업 번호입니다
    processed/hello.sh.1234.receipt.txt   결과가 오는 곳과 취소하는 방법
또는
    failed/hello.sh                       원래 파일 그대로
    failed/hello.sh.error.txt             몇 번째 줄이 왜 잘못되었고 어떻게 고치는지

Slurm이 응답하지 않으면 여기에 hello.sh.waiting.txt 가 생깁니다. 잃어버린 것은 없으니 파일을 다시 복사하지 마세요.
결과는 {results}/<작업 번호>/ 에 저장됩니다.

본인의 작업 1234 를 취소하려면 같은 폴더에 cancel-1234 라는 빈 파일을 넣으세요.
{kept}""",
}

_PLACE = {
    "owner": {"en": "this folder", "ko": "이 폴더"},
    "folder": {"en": "your own folder in here, submit/<your user name>/,", "ko": "본인의 폴더 submit/<사용자 이름>/ "},
}

_KEPT = {
    "en": "Receipts, and the files beside them, are removed after {days} days.\n",
    "ko": "접수증과 그 옆의 파일은 {days}일 뒤에 삭제됩니다.\n",
}

_REASONS = {
    "open-folder": {
        "en": "Others than {folder} can write to the folder submit/{folder}/, so nobody knows whose this file is.\n"
        "Close it (chmod o-w) and copy the file again, or ask the admin to.",
        "ko": "submit/{folder}/ 폴더에 {folder} 외의 다른 사람도 쓸 수 있어 누구의 파일인지 알 수 없습니다.\n"
        "폴더를 닫고(chmod o-w) 다시 복사하거나, 관리자에게 요청하세요.",
    },
    "no-such-job": {
        "en": "Slurm has no job {job} of yours.\nThe receipt in processed/ has the number of your job; a job that "
        "ended some minutes ago is no longer known.",
        "ko": "Slurm에 본인의 작업 {job} 이(가) 없습니다.\n작업 번호는 processed/ 의 접수증에 있습니다. 끝난 지 "
        "몇 분이 지난 작업은 더 이상 조회되지 않습니다.",
    },
    "job-has-ended": {
        "en": "Job {job} has ended already ({state}); there is nothing left to cancel.",
        "ko": "작업 {job} 은(는) 이미 끝났습니다({state}). 취소할 것이 없습니다.",
    },
    "wrong-name": {
        "en": "Job files are named {patterns}, and this one is not.\n"
        "Rename it if it is a job file; keep data elsewhere on the NAS.",
        "ko": "작업 파일의 이름은 {patterns} 이어야 하는데, 이 파일은 그렇지 않습니다.\n"
        "작업 파일이라면 이름을 바꾸고, 데이터는 NAS의 다른 곳에 두세요.",
    },
    "not-ours": {
        "en": "The file belongs to {owner}, but this watcher runs as {user} and can submit only that account's files.",
        "ko": "파일의 소유자는 {owner} 인데, 이 감시 프로그램은 {user} 계정으로 실행되어 "
        "그 계정의 파일만 제출할 수 있습니다.",
    },
    "unknown-owner": {
        "en": "The file belongs to user number {uid}, which this machine does not know, so it cannot be submitted as "
        "anyone.\nAsk the admin which account your files on the NAS belong to.",
        "ko": "파일의 소유자는 사용자 번호 {uid} 인데, 이 컴퓨터에 없는 계정이라 제출할 수 없습니다.\n"
        "NAS의 파일이 어느 계정의 것인지 관리자에게 문의하세요.",
    },
    "no-own-folder": {
        "en": "This site knows people by their own folder submit/<user name>/, which must belong to that person (or "
        "the admin) and be writable by nobody else; this file does not lie in such a folder.\n"
        "Put it into submit/<your user name>/, or ask the admin to make that folder.",
        "ko": "이곳에서는 submit/<사용자 이름>/ 폴더로 사용자를 구분합니다. 그 폴더는 본인(또는 관리자)의 것이고 "
        "다른 사람이 쓸 수 없어야 하는데, 이 파일은 그런 폴더에 있지 않습니다.\n"
        "submit/<사용자 이름>/ 에 넣거나, 관리자에게 폴더를 만들어 달라고 하세요.",
    },
    "system-account": {
        "en": "The file belongs to {owner}, a system account, and those submit no jobs here.\n"
        "Copy the file again as yourself.",
        "ko": "파일의 소유자는 시스템 계정 {owner} 이며, 시스템 계정은 작업을 제출할 수 없습니다.\n"
        "본인 계정으로 다시 복사하세요.",
    },
    "hard-link": {
        "en": "The file has {links} names (hard links), so it may be somebody else's file.\n"
        "Copy it instead of linking it.",
        "ko": "파일에 이름이 {links}개(하드 링크) 있어 다른 사람의 파일일 수 있습니다.\n링크하지 말고 복사하세요.",
    },
    "open-file": {
        "en": "Everybody can write to this file, so it may hold somebody else's words, and would run as you.\n"
        "Close it (`chmod o-w` on the file) and copy it into submit/ again.",
        "ko": "누구나 이 파일에 쓸 수 있어 다른 사람이 쓴 내용이 본인 이름으로 실행될 수 있습니다.\n"
        "파일을 닫고(`chmod o-w 파일`) submit/ 에 다시 복사하세요.",
    },
    "symbolic-link": {
        "en": "This is a symbolic link, and only plain files can be job files.\nCopy the job file itself into submit/.",
        "ko": "이것은 심볼릭 링크입니다. 일반 파일만 작업 파일이 될 수 있습니다.\n"
        "작업 파일 자체를 submit/ 에 복사하세요.",
    },
    "folder": {
        "en": "This is a folder, and only plain files can be job files.\n"
        "Copy the job file itself into submit/ and keep its data elsewhere on the NAS.",
        "ko": "이것은 폴더입니다. 일반 파일만 작업 파일이 될 수 있습니다.\n"
        "작업 파일 자체를 submit/ 에 복사하고, 데이터는 NAS의 다른 곳에 두세요.",
    },
    "special": {
        "en": "This is a device, a socket or a pipe, and only plain files can be job files.",
        "ko": "이것은 장치, 소켓 또는 파이프입니다. 일반 파일만 작업 파일이 될 수 있습니다.",
    },
    "too-large": {
        "en": "The file has {size} bytes, and Slurm takes job files of at most {limit}; this is hardly a script.\n"
        "Keep data elsewhere on the NAS and name its path in the job file.",
        "ko": "파일 크기가 {size} 바이트입니다. Slurm 작업 파일은 최대 {limit} 바이트입니다.\n"
        "데이터는 NAS의 다른 곳에 두고 작업 파일에는 그 경로를 적으세요.",
    },
    "unreadable": {
        "en": "You yourself may not read the file.\nGive it the permission (chmod u+r) and copy it again.",
        "ko": "본인에게 이 파일의 읽기 권한이 없습니다.\n권한을 주고(chmod u+r) 다시 복사하세요.",
    },
    "slurm": {
        "en": "Slurm refused the job, in its own words:\n\n    {words}",
        "ko": "Slurm이 작업을 거부했습니다. Slurm의 메시지:\n\n    {words}",
    },
}


_FULL = {
    "MaxJobCount": "Slurm 대기열이 가득 찼습니다{most}. 다른 작업이 끝나면 새 작업을 받습니다.",
    "AssocMaxSubmitJobLimit": "{user} 님이 이 계정(account)에서 제출할 수 있는 작업 수{most}에 도달했습니다.",
    "AssocGrpSubmitJobsLimit": "{user} 님의 계정(account) 전체가 제출할 수 있는 작업 수{most}에 도달했습니다.",
    "QOSMaxSubmitJobPerUserLimit": "{user} 님이 이 QOS에서 제출할 수 있는 작업 수{most}에 도달했습니다.",
    "MaxSubmitJobsPerAccount": "{user} 님의 계정(account)이 이 QOS에서 제출할 수 있는 작업 수{most}에 도달했습니다.",
    "QOSGrpSubmitJobsLimit": "이 QOS 전체가 제출할 수 있는 작업 수{most}에 도달했습니다.",
    "rate": "Slurm이 지금은 {user} 님의 요청을 더 받지 않습니다.",
    "closed": "Slurm이 지금은 새 작업을 받지 않습니다.",
}
"""Why a drop waits although Slurm answers, by SlurmFull's limit. In English the fault says it itself."""


class Refused(PersonFault):
    """A drop that becomes no job, by a reason of this file; it can be said in either language."""

    def __init__(self, code: str, **values: object) -> None:
        self.code = code
        self.values = values
        super().__init__(self.text("en"))

    def text(self, language: Language) -> str:
        """The reason, and what to do."""
        return _REASONS[self.code][language].format(**self.values)


def reason(language: Language, fault: PersonFault) -> str:
    """Any refusal as the person reads it; what others have said stays in their words."""
    return fault.text(language) if isinstance(fault, Refused) else str(fault)


def cause(language: Language, fault: ClusterFault) -> str:
    """What a drop waits for as the person reads it; what the system has said stays in its words."""
    if isinstance(fault, SlurmFull):
        return fault.sentence if language == "en" else _full(fault)
    kind = "slurm" if isinstance(fault, SlurmUnreachable) else "other"
    return _CAUSES[kind][language].format(words=fault.sentence)


def _full(fault: SlurmFull) -> str:
    """In Korean. Slurm's own name of a limit stays, for whoever asks the admin."""
    most = "" if fault.most is None else f"({fault.most})"
    name = "" if fault.limit in ("rate", "closed") else f" [{fault.limit}]"
    return _FULL[fault.limit].format(user=fault.user, most=most) + name


def job(language: Language, told: Told, job_id: int, where: str, remarks: str, *, held: bool) -> str:
    """The receipt of a submitted job."""
    return _JOB[language].format(
        job_id=job_id,
        file=told.file,
        user=told.user,
        when=told.when,
        key=told.key,
        where=where,
        held=_HELD[language].format(job_id=job_id) if held else "",
        remarks=_REMARKS[language].format(text=remarks) if remarks else "",
    )


def refused(language: Language, told: Told, text: str) -> str:
    """Why a drop became no job."""
    return _REFUSED[language].format(file=told.file, text=text, when=told.when, key=told.key)


def waiting(language: Language, told: Told, reason: str) -> str:
    """Why a drop is not a job yet."""
    return _WAITING[language].format(file=told.file, reason=reason, when=told.when, key=told.key)


def cancelled(language: Language, job: str) -> str:
    """That a job was cancelled."""
    return _CANCELLED[language].format(job=job)


def done(language: Language, told: Told, text: str) -> str:
    """The receipt of a request that was no job."""
    return _DONE[language].format(text=text, file=told.file, user=told.user, when=told.when, key=told.key)


def readme(language: Language, intake: Intake, registry: str, results: str) -> str:
    """The guide for people who only see the share."""
    kept = _KEPT[language].format(days=intake.keep_receipts_days) if intake.keep_receipts_days else ""
    patterns, place = listed(intake.patterns), _PLACE[intake.identity][language]
    return _README[language].format(place=place, patterns=patterns, registry=registry, results=results, kept=kept)


def listed(patterns: tuple[str, ...]) -> str:
    """The patterns as people read them."""
    return ", ".join(patterns)
