"""Values that sbatch would not take, and why. A reason is the end of a sentence in English, a sentence in Korean."""

from slurmk8s.jobfile.words.entry import Findings, Phrases, Words

_NOT_TAKEN = "--{name}={value} is not a value that sbatch takes"
_NOT_TAKEN_KO = "--{name}={value}: sbatch가 받지 않는 값입니다"

FINDINGS: Findings = {
    "bad-value": {
        "en": Words(_NOT_TAKEN, "{reason}.", "Write --{name}={better}"),
        "ko": Words(_NOT_TAKEN_KO, "{reason}.", "이렇게 쓰세요: --{name}={better}"),
    },
    "bad-value/example": {
        "en": Words(_NOT_TAKEN, "{reason}.", "Write --{name}={example} or the like."),
        "ko": Words(_NOT_TAKEN_KO, "{reason}.", "예를 들어 이렇게 쓰세요: --{name}={example}"),
    },
}

PHRASES: Phrases = {
    "time-format": {
        "en": "Slurm writes times as minutes, minutes:seconds, hours:minutes:seconds or days-hours:minutes:seconds",
        "ko": "Slurm의 시간은 분, 분:초, 시:분:초, 일-시:분:초 형식으로 씁니다",
    },
    "time-too-long": {
        "en": "it is more seconds than Slurm can count",
        "ko": "Slurm이 셀 수 있는 초보다 깁니다",
    },
    "memory-format": {
        "en": "Slurm writes memory as a whole number with K, M, G or T behind it",
        "ko": "Slurm의 메모리는 정수 뒤에 K, M, G, T를 붙여 씁니다",
    },
    "memory-too-large": {"en": "no machine has that much memory", "ko": "메모리가 그만큼 있는 컴퓨터는 없습니다"},
    "size-format": {
        "en": "it needs a whole number with K, M, G or T behind it",
        "ko": "정수 뒤에 K, M, G, T를 붙여 써야 합니다",
    },
    "size-zero": {"en": "zero is no size", "ko": "크기가 0일 수는 없습니다"},
    "not-whole": {"en": "it needs a whole number", "ko": "정수를 써야 합니다"},
    "out-of-range": {"en": "the number is out of range", "ko": "수가 허용 범위를 벗어났습니다"},
    "nodes-format": {
        "en": "it needs a number of nodes, or a range such as 2-4",
        "ko": "노드 수나 2-4 같은 범위를 써야 합니다",
    },
    "nodes-backwards": {"en": "the most is less than the least", "ko": "최댓값이 최솟값보다 작습니다"},
    "gres-format": {
        "en": "it must be name:count or name:type:count, such as gpu:1 or gpu:a100:2",
        "ko": "gpu:1이나 gpu:a100:2처럼 이름:개수 또는 이름:종류:개수로 써야 합니다",
    },
    "gres-no-number": {"en": "{text!r} is not a number", "ko": "{text!r}: 수가 아닙니다"},
    "gres-placeholder": {
        "en": "{text} stands for a number",
        "ko": "안내서의 {text} 자리에는 실제 개수를 써야 합니다",
    },
    "gres-neither": {"en": "{text!r} is neither a number nor a type", "ko": "{text!r}: 개수도 종류도 아닙니다"},
    "array-format": {
        "en": "it must be numbers and ranges, such as 1-10 or 0-99:10%4",
        "ko": "1-10이나 0-99:10%4처럼 번호와 범위로 써야 합니다",
    },
    "array-backwards": {"en": "a range must go upwards", "ko": "범위는 작은 수에서 큰 수로 써야 합니다"},
    "array-no-step": {"en": "the step must not be zero", "ko": "간격이 0일 수는 없습니다"},
    "signal-format": {
        "en": "it must be a signal and seconds, such as USR1@60 or B:TERM@120",
        "ko": "USR1@60이나 B:TERM@120처럼 신호와 초로 써야 합니다",
    },
    "signal-too-early": {
        "en": "the time before the end must be at most 65535 seconds",
        "ko": "종료 전 시간은 65535초 이하여야 합니다",
    },
}
