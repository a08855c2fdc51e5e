"""sbatch's options: their names, and what is said of them apart from their values' grammar."""

from slurmk8s.jobfile.words.entry import Findings, Phrases, Words

_NOT_HERE = "--{name} does not belong in a job file"
_NOT_HERE_KO = "--{name} 옵션은 작업 파일에 쓰지 않습니다"
_REFUSED, _REFUSED_KO = "sbatch refuses the file.", "sbatch가 파일을 거부합니다."
_REMOVE, _REMOVE_KO = "Remove it.", "지우세요."

FINDINGS: Findings = {
    "unwanted-value": {
        "en": Words("--{name} takes no value", "sbatch refuses it.", "Write --{name}."),
        "ko": Words("--{name} 옵션에는 값을 쓰지 않습니다", "sbatch가 거부합니다.", "값 없이 --{name} 만 쓰세요."),
    },
    "one-dash": {
        "en": Words(
            "-{stem} has one dash", "sbatch reads it as -{letter} with the value {rest!r}.", "Write -{written}"
        ),
        "ko": Words(
            "-{stem} 앞의 하이픈이 하나입니다",
            "sbatch는 -{letter} 옵션에 {rest!r} 값을 준 것으로 읽습니다.",
            "이렇게 쓰세요: -{written}",
        ),
    },
    "missing-value": {
        "en": Words(
            "--{name} has no value", "sbatch would take the next option for it.", "Write --{name}=… with the value."
        ),
        "ko": Words(
            "--{name} 옵션에 값이 없습니다",
            "sbatch는 그다음 옵션을 값으로 읽습니다.",
            "--{name}=… 형태로 값을 쓰세요.",
        ),
    },
    "space-around-equals": {
        "en": Words(
            "there is a space around the = of --{name}",
            "sbatch takes the pieces for separate words.",
            "Write --{name}={value}",
        ),
        "ko": Words(
            "--{name} 옵션의 = 앞이나 뒤에 빈칸이 있습니다",
            "sbatch는 빈칸으로 나뉜 조각을 서로 다른 낱말로 읽습니다.",
            "이렇게 쓰세요: --{name}={value}",
        ),
    },
    "unknown-option": {
        "en": Words("sbatch has no option {option}", _REFUSED, "{fix}"),
        "ko": Words("sbatch에 없는 옵션입니다: {option}", _REFUSED_KO, "{fix}"),
    },
    "unknown-option/srun": {
        "en": Words("sbatch has no option {option}", "It is an option of srun, not of sbatch.", "Take it out."),
        "ko": Words("sbatch에 없는 옵션입니다: {option}", "sbatch가 아니라 srun의 옵션입니다.", _REMOVE_KO),
    },
    "stray-word": {
        "en": Words("{word!r} is not an option", "sbatch refuses the file (Invalid directive).", "{fix}"),
        "ko": Words("옵션이 아닌 낱말이 있습니다: {word!r}", "sbatch가 파일을 거부합니다(Invalid directive).", "{fix}"),
    },
    "repeated-option": {
        "en": Words("--{name} is given again on line {line}", "Slurm takes the last one.", "Remove this one."),
        "ko": Words(
            "--{name} 옵션이 {line}번째 줄에 또 있습니다", "Slurm은 마지막 것을 씁니다.", "이 줄의 것을 지우세요."
        ),
    },
    "owned-option/wrap": {
        "en": Words(_NOT_HERE, "The job file itself is the script.", "Write the command into the body of the file."),
        "ko": Words(_NOT_HERE_KO, "작업 파일 자체가 스크립트입니다.", "명령을 파일의 본문에 쓰세요."),
    },
    "owned-option/uid": {
        "en": Words(
            _NOT_HERE,
            "A job always runs as the person whose file it is.",
            "Remove it; drop or submit the file as that person.",
        ),
        "ko": Words(
            _NOT_HERE_KO,
            "작업은 언제나 파일 주인의 계정으로 실행됩니다.",
            "지우고, 그 사람의 계정으로 파일을 제출하세요.",
        ),
    },
    "owned-option/gid": {
        "en": Words(_NOT_HERE, "A job always runs with its owner's group.", _REMOVE),
        "ko": Words(_NOT_HERE_KO, "작업은 언제나 주인의 그룹으로 실행됩니다.", _REMOVE_KO),
    },
    "owned-option/container": {
        "en": Words(_NOT_HERE, "slurmk8s runs the container.", "Write #K8S_IMAGE=… with the image instead."),
        "ko": Words(_NOT_HERE_KO, "컨테이너는 slurmk8s가 실행합니다.", "대신 #K8S_IMAGE=… 로 이미지를 적으세요."),
    },
    "owned-option/cluster": {
        "en": Words(_NOT_HERE, "A job goes to the cluster it is handed to.", _REMOVE),
        "ko": Words(_NOT_HERE_KO, "작업은 제출받은 클러스터로 갑니다.", _REMOVE_KO),
    },
    "owned-option/wait": {
        "en": Words(_NOT_HERE, "sbatch would wait for the end of the job, and nobody is there to wait.", _REMOVE),
        "ko": Words(_NOT_HERE_KO, "sbatch가 작업이 끝날 때까지 기다리게 되는데, 기다릴 사람이 없습니다.", _REMOVE_KO),
    },
    "owned-option/test-only": {
        "en": Words(
            _NOT_HERE, "With it nothing is submitted.", "Remove it; `slurmk8s check` checks without submitting."
        ),
        "ko": Words(
            _NOT_HERE_KO,
            "이 옵션이 있으면 아무것도 제출되지 않습니다.",
            "지우세요. 제출하지 않고 검사만 하려면 `slurmk8s check`를 쓰세요.",
        ),
    },
    "owned-option/nothing": {
        "en": Words(_NOT_HERE, "With it nothing is submitted.", _REMOVE),
        "ko": Words(_NOT_HERE_KO, "이 옵션이 있으면 아무것도 제출되지 않습니다.", _REMOVE_KO),
    },
    "memory-twice": {
        "en": Words(
            "--{first} and --{second} are both given", "sbatch refuses more than one of them.", "Keep one of them."
        ),
        "ko": Words(
            "--{first}, --{second} 옵션이 함께 있습니다", "sbatch는 이 중 하나만 받습니다.", "하나만 남기세요."
        ),
    },
    "memory-unit": {
        "en": Words(
            "--{name}={written} asks for {amount} megabytes",
            "Slurm counts a number without a unit in megabytes, and that is surely not meant.",
            "Write --{name}={written}G, or --{name}={written}M if you do mean it.",
        ),
        "ko": Words(
            "--{name}={written}: 메모리를 {amount}메가바이트만 요청하고 있습니다",
            "Slurm은 단위가 없는 수를 메가바이트로 읽습니다. 그런 뜻은 아닐 것입니다.",
            "--{name}={written}G 라고 쓰세요. 정말 메가바이트라면 --{name}={written}M 이라고 쓰세요.",
        ),
    },
    "memory-unit/byte": {
        "en": Words(
            "--{name}={written} is taken as {plain}", "Slurm's own units are K, M, G and T.", "Write --{name}={plain}."
        ),
        "ko": Words(
            "--{name}={written}: {plain} 값으로 읽습니다",
            "Slurm이 쓰는 단위는 K, M, G, T입니다.",
            "이렇게 쓰세요: --{name}={plain}",
        ),
    },
    "no-time-limit": {
        "en": Words("the time limit is zero", "To Slurm a time of zero means no limit.", "Write --time=02:00:00."),
        "ko": Words("시간 제한이 0입니다", "Slurm에서 0은 제한이 없다는 뜻입니다.", "이렇게 쓰세요: --time=02:00:00"),
    },
    "bad-partition": {
        "en": Words(
            "{partition!r} is a choice, not a partition",
            "The bar in the guide means: one or the other.",
            "Write --partition={first}",
        ),
        "ko": Words(
            "{partition!r}: 파티션 이름이 아니라 선택 표시입니다",
            "안내서의 세로줄(|)은 둘 중 하나를 고르라는 뜻입니다.",
            "이렇게 쓰세요: --partition={first}",
        ),
    },
    "comment-too-long": {
        "en": Words(
            "the comment has {size:,} bytes",
            "Slurm takes 1,024, and slurmk8s needs some of them for its own words: {left} are left.",
            "Shorten it.",
        ),
        "ko": Words(
            "--comment 의 길이가 {size:,}바이트입니다",
            "Slurm은 1,024바이트까지 받고 그 일부는 slurmk8s가 쓰므로, {left}바이트까지 쓸 수 있습니다.",
            "더 짧게 쓰세요.",
        ),
    },
    "reserved-comment": {
        "en": Words(
            "the comment holds a reserved word",
            "slurmk8s recognises its jobs by this word in the comment.",
            _REMOVE,
        ),
        "ko": Words(
            "--comment 에 쓸 수 없는 낱말이 있습니다",
            "slurmk8s가 comment에 있는 이 낱말로 자기 작업을 알아봅니다.",
            _REMOVE_KO,
        ),
    },
    "decomposed-name": {
        "en": Words(
            "this name is stored letter by letter (decomposed Unicode, as macOS writes it)",
            "It looks the same but is another name: a file called so by Windows or Linux is not found.",
            "Retype it on Linux or Windows, or convert the file with `uconv -x any-nfc`.",
        ),
        "ko": Words(
            "이름이 자모로 풀려 저장되어 있습니다(macOS가 쓰는 유니코드 분해형)",
            "보기에는 같아도 다른 이름이라서, Windows나 Linux에서 만든 같은 이름의 파일을 찾지 못합니다.",
            "Linux나 Windows에서 다시 입력하거나, `uconv -x any-nfc`로 파일을 변환하세요.",
        ),
    },
    "not-shared/output": {
        "en": Words(
            "--{name}={path} is not on the share",
            "It is written on whichever node runs the job; the results have stdout.log and stderr.log anyway.",
            "Write it under {places}.",
        ),
        "ko": Words(
            "--{name}={path}: 공유 폴더에 있지 않습니다",
            "작업이 실행된 노드에 쓰이게 됩니다. 결과 폴더에는 어차피 stdout.log와 stderr.log가 있습니다.",
            "다음 폴더 아래의 경로를 쓰세요: {places}",
        ),
    },
    "not-shared/chdir": {
        "en": Words(
            "--chdir={path} is not on the share",
            "The container does not have that folder; the job starts in /workspace.",
            "Use a folder under {places}.",
        ),
        "ko": Words(
            "--chdir={path}: 공유 폴더에 있지 않습니다",
            "컨테이너에는 없는 폴더라서 작업이 /workspace에서 시작합니다.",
            "다음 폴더 아래의 경로를 쓰세요: {places}",
        ),
    },
    "no-output-folder": {
        "en": Words(
            "the folder {folder} {state}",
            "Slurm makes no folders, and a job whose output cannot be opened fails at once.",
            "Create it: mkdir -p {folder}",
        ),
        "ko": Words(
            "폴더 {folder}: {state}",
            "Slurm은 폴더를 만들지 않으며, 출력 파일을 열 수 없는 작업은 바로 실패합니다.",
            "폴더를 만드세요: mkdir -p {folder}",
        ),
    },
    "no-output-folder/unusable": {
        "en": Words(
            "the folder {folder} {state}",
            "A job whose output cannot be opened fails at once.",
            "Name a folder that you can write to, or ask its owner for the right.",
        ),
        "ko": Words(
            "폴더 {folder}: {state}",
            "출력 파일을 열 수 없는 작업은 바로 실패합니다.",
            "쓸 수 있는 폴더로 바꾸거나, 폴더 주인에게 권한을 요청하세요.",
        ),
    },
}

PHRASES: Phrases = {
    "write-it-out": {"en": "Write it out: {names}.", "ko": "이름을 끝까지 쓰세요: {names}"},
    "did-you-mean": {"en": "Did you mean {name}?", "ko": "혹시 {name} 아닌가요?"},
    "see-man-sbatch": {"en": "See `man sbatch` for the options.", "ko": "옵션은 `man sbatch`에서 볼 수 있습니다."},
    "two-dashes": {"en": "Write --{word}", "ko": "이렇게 쓰세요: --{word}"},
    "quotes-around": {
        "en": 'Put quotes around a value with spaces: --{name}="{value} {word}"',
        "ko": '빈칸이 있는 값은 따옴표로 묶으세요: --{name}="{value} {word}"',
    },
    "what-options-are": {
        "en": "Options start with two dashes, such as --mem=8G; a remark starts with #.",
        "ko": "옵션은 --mem=8G처럼 하이픈 두 개로, 설명은 #으로 시작합니다.",
    },
    # What a path is to the submitter; the end of an English sentence.
    "missing": {"en": "does not exist", "ko": "존재하지 않습니다"},
    "hidden": {
        "en": "lies in a folder that {who} may not enter",
        "ko": "들어갈 권한이 없는 폴더 안에 있습니다(사용자: {who})",
    },
    "folder": {"en": "is a folder", "ko": "파일이 아니라 폴더입니다"},
    "file": {"en": "is not a folder", "ko": "폴더가 아닙니다"},
    "special": {"en": "is not a regular file", "ko": "일반 파일이 아닙니다"},
    "unreadable": {"en": "is not readable by {who}", "ko": "읽을 권한이 없습니다(사용자: {who})"},
    "unwritable": {"en": "is not writable by {who}", "ko": "쓸 권한이 없습니다(사용자: {who})"},
    "you": {"en": "you", "ko": "본인"},
}
