"""What people read: subject and text of a message about one job, several, or an array. Pure.

A job's name, its folder and parts of its cause are the person's own text. In a header none of it can begin a line, and
in a chat room none of it can become a link, a mention or markup.
"""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from slurmk8s.after.item import Item, Summary
from slurmk8s.language import Language

LONGEST_NAME = 80
LONGEST_LINE = 400
MOST_LINES = 50
# What Slack, Discord, Mattermost and Telegram read something into, besides letters and digits of any language.
_CHAT_SAFE = frozenset(" \n.,;:!?'\"()+-=/%#_·…→—")

_STATES: dict[Language, dict[str, str]] = {
    "en": {
        "completed": "completed",
        "failed": "failed",
        "cancelled": "was cancelled",
        "timeout": "ran into its time limit",
        "requeued": "goes back to the queue",
        "node_fail": "lost its node",
        "preempted": "was pre-empted",
        "out_of_memory": "ran out of memory",
    },
    "ko": {
        "completed": "완료",
        "failed": "실패",
        "cancelled": "취소됨",
        "timeout": "시간 제한 초과",
        "requeued": "대기열로 돌아감",
        "node_fail": "노드 장애",
        "preempted": "선점됨",
        "out_of_memory": "메모리 부족",
    },
}
_LABELS: dict[Language, dict[str, str]] = {
    "en": {
        "job": "Job {id} {name}: {state}",
        "array": "Job array {id} {name}: {counts}",
        "many": "{count} jobs: {counts}",
        "partition": "partition",
        "node": "node",
        "running": "running",
        "queued": "queued",
        "results": "results",
        "checksums": "checksums",
        "exit": "exit code",
        "more": "… and {count} more",
        "folded": "These came faster than one by one is useful, so they are in one message.",
        "task": "task",
        "complete": "complete",
        "allowed": "--mail-user names an address that this site does not send to; it allows {domains}.",
    },
    "ko": {
        "job": "작업 {id} {name}: {state}",
        "array": "작업 배열 {id} {name}: {counts}",
        "many": "작업 {count}개: {counts}",
        "partition": "파티션",
        "node": "노드",
        "running": "실행 시간",
        "queued": "대기 시간",
        "results": "결과",
        "checksums": "체크섬",
        "exit": "종료 코드",
        "more": "… 외 {count}개",
        "folded": "짧은 시간에 여러 작업이 끝나 하나의 메시지로 묶었습니다.",
        "task": "태스크",
        "complete": "모두 있음",
        "allowed": "--mail-user에 이 사이트가 보내지 않는 주소가 있습니다. 허용된 도메인: {domains}",
    },
}


@dataclass(frozen=True)
class Message:
    """What is sent."""

    subject: str
    text: str


def about_job(summary: Summary, cluster: str, results: str, language: Language = "en", allowed: str = "") -> Message:
    """One job; with the domains that mail is allowed to, if the person asked for another."""
    words = _LABELS[language]
    durations = summary.get("durations") or {}
    rows = [
        (words["exit"], summary.get("exit_code")),
        (words["partition"], summary.get("partition")),
        (words["node"], ", ".join(map(str, summary.get("nodes") or ()))),
        (words["queued"], duration(durations.get("queued"))),
        (words["running"], duration(durations.get("running"))),
        (words["results"], f"{results}/{summary['job_id']}"),
        (words["checksums"], words["complete"] if summary.get("checksums") == "complete" else summary.get("checksums")),
    ]
    table = [f"{name}: {value}" for name, value in rows if value not in (None, "")]
    lines = [str(summary.get("cause", "")), "", *table, *_remark(allowed, language)]
    return _message(headline(summary, language), lines, cluster)


def about_several(items: Sequence[Item], cluster: str, results: str, language: Language = "en") -> Message:
    """Jobs of one person that came too fast to be told one by one."""
    words = _LABELS[language]
    states = [str(item.summary.get("state", "")) for item in items]
    subject = words["many"].format(count=len(items), counts=counts(states, language))
    lines = [f"{headline(item.summary, language)}. {item.summary.get('cause', '')}" for item in items[:MOST_LINES]]
    if len(items) > MOST_LINES:
        lines.append(words["more"].format(count=len(items) - MOST_LINES))
    return _message(subject, [*lines, "", words["folded"], results], cluster)


def about_array(item: Item, cluster: str, results: str, language: Language = "en", allowed: str = "") -> Message:
    """All tasks of an array; those that did not end well come by name."""
    words = _LABELS[language]
    states = [state for _, _, state in item.tasks]
    name = one_line(str(item.summary.get("name", "")), LONGEST_NAME)
    subject = words["array"].format(id=item.array, name=name, counts=counts(states, language))
    bad = [task for task in item.tasks if task[2] != "completed"]
    lines = [f"{words['task']} {task}: {_state(state, language)} → {results}/{job}" for task, job, state in bad]
    lines = [*lines[:MOST_LINES], *([words["more"].format(count=len(bad) - MOST_LINES)] if bad[MOST_LINES:] else [])]
    if not bad:
        jobs = sorted(job for _, job, _ in item.tasks)
        lines = [f"{words['results']}: {results}/{{{jobs[0]}…{jobs[-1]}}}"] if jobs else []
    return _message(subject, [*lines, *_remark(allowed, language)], cluster)


def _remark(allowed: str, language: Language) -> list[str]:
    return ["", _LABELS[language]["allowed"].format(domains=allowed)] if allowed else []


def headline(summary: Summary, language: Language = "en") -> str:
    """One job in one line."""
    array = summary.get("array")
    shown = f"{array['job_id']}_{array['task_id']}" if isinstance(array, dict) else str(summary.get("job_id"))
    name = one_line(str(summary.get("name", "")), LONGEST_NAME)
    return _LABELS[language]["job"].format(id=shown, name=name, state=_state(str(summary.get("state")), language))


def counts(states: Sequence[str], language: Language = "en") -> str:
    """`8 completed, 2 failed`."""
    return ", ".join(f"{count} {_state(state, language)}" for state, count in Counter(states).most_common())


def for_chat(message: Message) -> Message:
    """The same, with nothing that a chat service could read something into."""
    cluster, _, subject = message.subject.removeprefix("[").partition("] ")
    return Message(chat_safe(f"{cluster}: {subject}"), chat_safe(message.text))


def one_line(text: str, longest: int = LONGEST_LINE) -> str:
    """Without line breaks, control signs and marks that turn the direction of writing."""
    kept = "".join(sign if _is_shown(sign) else " " for sign in text)
    kept = " ".join(kept.split())
    return kept if len(kept) <= longest else kept[: longest - 1] + "…"


def chat_safe(text: str) -> str:
    """No mention, link, code, picture or markup can be made of what is left."""
    kept = "".join(sign if sign.isalnum() or sign in _CHAT_SAFE else "?" for sign in text)
    return kept.replace("://", ": //").replace("www.", "www .")


def duration(seconds: object) -> str:
    """`1 h 02 min`, `3 min 20 s`, `12 s`."""
    if not isinstance(seconds, int | float):
        return ""
    whole = int(seconds)
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02} min"
    return f"{whole // 60} min {whole % 60:02} s" if whole >= 60 else f"{whole} s"


def _message(subject: str, lines: Sequence[str], cluster: str) -> Message:
    return Message(one_line(f"[{cluster}] {subject}", 200), "\n".join(one_line(line) for line in lines).strip() + "\n")


def _state(state: str, language: Language) -> str:
    return _STATES[language].get(state, one_line(state, 20))


def _is_shown(sign: str) -> bool:
    """Cc: control signs; Cf: direction and zero width; Cs, Co, Cn: no signs at all; Zl, Zp: line breaks."""
    return unicodedata.category(sign) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
