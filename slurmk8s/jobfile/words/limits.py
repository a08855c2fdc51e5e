"""What is asked for against what the cluster has and what one person may hold."""

from slurmk8s.jobfile.words.entry import Findings, Phrases, Words

_REFUSED, _REFUSED_KO = "Slurm refuses the job.", "Slurm이 작업을 거부합니다."

FINDINGS: Findings = {
    "too-many": {
        "en": Words(
            "the job asks for {asked}",
            "The most that {where} has is {most}, so it would wait for ever.",
            "Ask for {most} or less, or take another partition.",
        ),
        "ko": Words(
            "작업이 요청한 양: {asked}",
            "{where}에서 쓸 수 있는 최대는 {most}이므로, 시작하지 못하고 계속 기다리게 됩니다.",
            "{most} 이하로 요청하거나, 다른 파티션을 쓰세요.",
        ),
    },
    "too-many/none": {
        "en": Words(
            "the job asks for {asked}",
            "The most that {where} has is 0, so it would wait for ever.",
            "Take another partition.",
        ),
        "ko": Words(
            "작업이 요청한 양: {asked}",
            "{where}에는 하나도 없으므로, 시작하지 못하고 계속 기다리게 됩니다.",
            "다른 파티션을 쓰세요.",
        ),
    },
    "too-long": {
        "en": Words(
            "--time={value} is longer than {where} allows",
            "The limit is {most}, so the job would wait for ever.",
            "Write --time={most} or less.",
        ),
        "ko": Words(
            "--time={value}: {where}의 시간 제한보다 깁니다",
            "제한은 {most}이므로, 작업이 시작하지 못하고 계속 기다리게 됩니다.",
            "--time={most} 이하로 쓰세요.",
        ),
    },
    "unknown-gpu-type": {
        "en": Words(
            "there is no GPU of type {kind!r} in {where}", "The job would wait for ever.", "The types are: {types}."
        ),
        "ko": Words(
            "{where}에 없는 GPU 종류입니다: {kind!r}",
            "작업이 시작하지 못하고 계속 기다리게 됩니다.",
            "쓸 수 있는 종류: {types}",
        ),
    },
    "no-partition": {
        "en": Words(
            "the file names no partition, and this cluster has no default",
            _REFUSED,
            "Write #SBATCH --partition=… with one of: {names}.",
        ),
        "ko": Words(
            "파일에 파티션이 없고, 이 클러스터에는 기본 파티션이 없습니다",
            _REFUSED_KO,
            "다음 중 하나를 골라 #SBATCH --partition=… 줄을 쓰세요: {names}",
        ),
    },
    "unknown-partition": {
        "en": Words("there is no partition {name!r}", _REFUSED, "{fix}"),
        "ko": Words("없는 파티션입니다: {name!r}", _REFUSED_KO, "{fix}"),
    },
    "partition-down": {
        "en": Words(
            "partition {name} is down",
            "The job will wait until an admin turns it on.",
            "Wait, or take another partition.",
        ),
        "ko": Words(
            "{name} 파티션이 꺼져 있습니다(down)",
            "관리자가 켤 때까지 작업이 기다립니다.",
            "기다리거나, 다른 파티션을 쓰세요.",
        ),
    },
    "unknown-account": {
        "en": Words("you may not use the account {name!r}", _REFUSED, "{fix}"),
        "ko": Words("쓸 수 없는 Slurm 계정(account)입니다: {name!r}", _REFUSED_KO, "{fix}"),
    },
    "unknown-qos": {
        "en": Words("you may not use the qos {name!r}", _REFUSED, "{fix}"),
        "ko": Words("쓸 수 없는 QOS입니다: {name!r}", _REFUSED_KO, "{fix}"),
    },
    "over-quota": {
        "en": Words(
            "the job asks for {asked}",
            "One person may hold {most} at the same time, so it could never start.",
            "Ask for {most} or less, or ask the admins for a larger quota.",
        ),
        "ko": Words(
            "작업이 요청한 양: {asked}",
            "한 사람이 동시에 쓸 수 있는 할당량은 {most}이므로, 이 작업은 시작할 수 없습니다.",
            "{most} 이하로 요청하거나, 관리자에게 할당량을 늘려 달라고 요청하세요.",
        ),
    },
}

PHRASES: Phrases = {
    "in-partition": {"en": "partition {name}", "ko": "{name} 파티션"},
    "in-any-partition": {"en": "any of these partitions", "ko": "이 파티션들"},
    "cpus-on-one-node": {"en": "{number} CPUs on one node", "ko": "노드 하나에 CPU {number}개"},
    "memory-on-one-node": {"en": "{number} MB of memory on one node", "ko": "노드 하나에 메모리 {number} MB"},
    "gpus-on-one-node": {"en": "{number} GPUs on one node", "ko": "노드 하나에 GPU {number}개"},
    "gpus-in-all": {"en": "{number} GPUs", "ko": "GPU {number}개"},
    "nodes-in-all": {"en": "{number} nodes", "ko": "노드 {number}개"},
    "one-cpu": {"en": "1 CPU", "ko": "CPU 1개"},
    "cpus": {"en": "{number} CPUs", "ko": "CPU {number}개"},
    "one-gpu": {"en": "1 GPU", "ko": "GPU 1개"},
    "gpus": {"en": "{number} GPUs", "ko": "GPU {number}개"},
    "memory": {"en": "{amount} of memory", "ko": "메모리 {amount}"},
    "meant-partition": {
        "en": "Did you mean {name}? There are: {names}.",
        "ko": "혹시 {name} 아닌가요? 있는 파티션: {names}",
    },
    "ask-the-admins": {"en": "Ask the admins for one.", "ko": "관리자에게 사용 권한을 요청하세요."},
}
