"""The `#K8S_` lines, apart from the image."""

from slurmk8s.jobfile.words.entry import Findings, Phrases, Words

FINDINGS: Findings = {
    "unknown-k8s-line": {
        "en": Words("there is no line #K8S_{name}", "It would be ignored, so it is refused.", "{fix}"),
        "ko": Words("#K8S_{name}: 없는 줄입니다", "그대로 두면 무시되므로 받지 않습니다.", "{fix}"),
    },
    "missing-value/k8s": {
        "en": Words("#K8S_{name} has no value", "The value stands behind an equals sign.", "Write #K8S_{name}=…"),
        "ko": Words("#K8S_{name} 줄에 값이 없습니다", "값은 등호(=) 뒤에 씁니다.", "이렇게 쓰세요: #K8S_{name}=…"),
    },
    "missing-value/k8s-equals": {
        "en": Words(
            "there is no = after #K8S_{name}", "The value stands behind an equals sign.", "Write #K8S_{name}={value}"
        ),
        "ko": Words(
            "#K8S_{name} 뒤에 등호(=)가 없습니다", "값은 등호(=) 뒤에 씁니다.", "이렇게 쓰세요: #K8S_{name}={value}"
        ),
    },
    "repeated-k8s-line": {
        "en": Words(
            "#K8S_{name} stands twice (also on line {line})",
            "It is not certain which one is meant.",
            "Remove one of them.",
        ),
        "ko": Words(
            "#K8S_{name} 줄이 두 번 있습니다({line}번째 줄에도 있습니다)",
            "어느 것을 뜻하는지 알 수 없습니다.",
            "하나를 지우세요.",
        ),
    },
    "bad-path/workdir": {
        "en": Words("{value!r} cannot be the working folder", "{reason}.", "Write #K8S_WORKDIR=/workspace."),
        "ko": Words(
            "작업 폴더로 쓸 수 없는 경로입니다: {value!r}", "{reason}.", "이렇게 쓰세요: #K8S_WORKDIR=/workspace"
        ),
    },
    "workdir-not-kept": {
        "en": Words(
            "{path} is a folder of the image",
            "What the job writes there is gone when it ends.",
            "Use #K8S_WORKDIR=/workspace, or write what must be kept to $SLURMK8S_OUTPUTS.",
        ),
        "ko": Words(
            "이미지 안에 있는 폴더입니다: {path}",
            "여기에 쓴 것은 작업이 끝나면 사라집니다.",
            "#K8S_WORKDIR=/workspace 로 바꾸거나, 남겨야 할 것은 $SLURMK8S_OUTPUTS 에 쓰세요.",
        ),
    },
    "no-workdir": {
        "en": Words(
            "the working folder {path} {state}",
            "The job starts there.",
            "Create it, or use #K8S_WORKDIR=/workspace.",
        ),
        "ko": Words(
            "작업 폴더 {path}: {state}",
            "작업이 이 폴더에서 시작합니다.",
            "폴더를 만들거나, #K8S_WORKDIR=/workspace 를 쓰세요.",
        ),
    },
    "bad-path/script": {
        "en": Words("{value!r} cannot be run", "{reason}.", "Put the file under {places} and write its full path."),
        "ko": Words(
            "실행할 수 없는 경로입니다: {value!r}",
            "{reason}.",
            "파일을 공유 폴더({places}) 아래에 두고 전체 경로를 쓰세요.",
        ),
    },
    "not-shared/script": {
        "en": Words(
            "{path} is not on the share",
            "The container sees only {places}.",
            "Put the file under {places} and write its full path.",
        ),
        "ko": Words(
            "공유 폴더에 있지 않습니다: {path}",
            "컨테이너에서 보이는 폴더는 다음뿐입니다: {places}.",
            "파일을 공유 폴더({places}) 아래에 두고 전체 경로를 쓰세요.",
        ),
    },
    "no-script": {
        "en": Words(
            "{path} {state}",
            "The job would fail at once.",
            "Check the spelling (capitals count) and that the file is on the share and readable by you.",
        ),
        "ko": Words(
            "{path}: {state}",
            "작업이 시작하자마자 실패합니다.",
            "철자(대소문자 구분)를 확인하고, 파일이 공유 폴더에 있으며 본인이 읽을 수 있는지 확인하세요.",
        ),
    },
    "unknown-priority": {
        "en": Words(
            "this site has no priority {value!r}",
            "The site's configuration names each priority that a job may use.",
            "{fix}",
        ),
        "ko": Words(
            "이곳에 없는 우선순위입니다: {value!r}",
            "작업이 쓸 수 있는 우선순위는 이곳의 설정에 정해져 있습니다.",
            "{fix}",
        ),
    },
    "unknown-mount": {
        "en": Words(
            "this site has no mount {value!r}", "The site's configuration names each mount that a job may use.", "{fix}"
        ),
        "ko": Words(
            "이곳에 없는 마운트입니다: {value!r}",
            "작업이 쓸 수 있는 마운트는 이곳의 설정에 정해져 있습니다.",
            "{fix}",
        ),
    },
    "bad-size": {
        "en": Words("{value!r} is not a size for /dev/shm", "{reason}.", "Write #K8S_SHM=2G or the like."),
        "ko": Words(
            "공유 메모리(/dev/shm)의 크기로 쓸 수 없는 값입니다: {value!r}",
            "{reason}.",
            "예를 들어 이렇게 쓰세요: #K8S_SHM=2G",
        ),
    },
    "shm-too-large": {
        "en": Words(
            "#K8S_SHM={value} is more than the job's memory (--mem={memory})",
            "Shared memory counts as the job's memory: filling it ends the job.",
            "Raise --mem, or make it smaller.",
        ),
        "ko": Words(
            "#K8S_SHM={value}: 작업의 메모리(--mem={memory})보다 큽니다",
            "공유 메모리도 작업의 메모리로 셉니다. 가득 채우면 작업이 강제로 끝납니다.",
            "--mem 을 늘리거나, 이 값을 줄이세요.",
        ),
    },
}

PHRASES: Phrases = {
    "the-lines-are": {"en": "The lines are {names}.", "ko": "쓸 수 있는 줄: {names}"},
    "take-one-of": {"en": "Take one of: {names}.", "ko": "다음 중 하나를 쓰세요: {names}"},
    "remove-the-line": {"en": "Remove the line.", "ko": "이 줄을 지우세요."},
    # Why a path cannot be used.
    "path-not-full": {"en": "it must be a full path that starts with /", "ko": "/로 시작하는 전체 경로여야 합니다"},
    "path-with-dots": {"en": "it must not hold ..", "ko": "경로에 .. 을 쓸 수 없습니다"},
    "path-unprintable": {"en": "it holds characters that cannot be shown", "ko": "표시할 수 없는 문자가 들어 있습니다"},
    "path-too-long": {"en": "it is longer than Linux allows", "ko": "Linux에서 쓸 수 있는 길이를 넘습니다"},
}
