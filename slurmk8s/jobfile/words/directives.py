"""The lines before the first command: `#!`, `#SBATCH` and `#K8S_` as lines, whatever they ask for."""

from slurmk8s.jobfile.words.entry import Findings, Phrases, Words

_IGNORED = "Slurm ignores the line silently: it must start with exactly #SBATCH in capitals."
_IGNORED_KO = "Slurm은 이 줄을 말없이 무시합니다. 줄이 대문자 #SBATCH로 정확히 시작해야 합니다."
_WRITE_SBATCH = "Write #SBATCH at the start of the line, or ##SBATCH to switch it off."
_WRITE_SBATCH_KO = "줄 맨 앞에 #SBATCH라고 쓰세요. 끄려면 ##SBATCH라고 쓰면 됩니다."
_ANOTHER_CHARACTER = "It looks right but is another character, which Slurm takes for part of a word."
_ANOTHER_CHARACTER_KO = "보기에는 같아도 다른 문자라서, Slurm은 낱말의 일부로 읽습니다."
_TO_THE_SHELL = "The shell takes it for part of a word."
_TO_THE_SHELL_KO = "셸은 이 문자를 낱말의 일부로 읽습니다."
_PLAIN_SPACE, _PLAIN_SPACE_KO = "Replace it by a plain space.", "보통 빈칸으로 바꾸세요."
_DELETE, _DELETE_KO = "Delete it (retype the word).", "지우고 낱말을 다시 입력하세요."

FINDINGS: Findings = {
    "header-too-large": {
        "en": Words(
            "the directives from here on were not read",
            "There are more than 256 KB of them, or more than a hundred findings; the file may be damaged.",
            "Mend what was found, and check again.",
        ),
        "ko": Words(
            "여기부터는 지시문을 읽지 않았습니다",
            "지시문이 256 KB를 넘거나 발견된 것이 100건을 넘습니다. 파일이 손상되었을 수 있습니다.",
            "앞에서 알려 드린 것을 고친 뒤 다시 검사하세요.",
        ),
    },
    "bad-interpreter": {
        "en": Words(
            "the #! line names {interpreter!r}, not a program",
            "Linux needs the full path of the program that runs the script.",
            "Write #!/bin/bash (or #!/usr/bin/env python3 and the like).",
        ),
        "ko": Words(
            "#! 줄에 적힌 {interpreter!r}: 프로그램의 경로가 아닙니다",
            "Linux에는 스크립트를 실행할 프로그램의 전체 경로가 필요합니다.",
            "#!/bin/bash(또는 #!/usr/bin/env python3 등)라고 쓰세요.",
        ),
    },
    "bad-interpreter/empty": {
        "en": Words(
            "the #! line is empty",
            "Linux needs the full path of the program that runs the script.",
            "Write #!/bin/bash (or #!/usr/bin/env python3 and the like).",
        ),
        "ko": Words(
            "#! 줄이 비어 있습니다",
            "Linux에는 스크립트를 실행할 프로그램의 전체 경로가 필요합니다.",
            "#!/bin/bash(또는 #!/usr/bin/env python3 등)라고 쓰세요.",
        ),
    },
    "no-interpreter": {
        "en": Words(
            "the first line does not start with #!",
            "sbatch refuses a script that does not name its interpreter.",
            "Write #!/bin/bash as the first line.",
        ),
        "ko": Words(
            "첫 줄이 #!로 시작하지 않습니다",
            "sbatch는 실행할 프로그램이 적혀 있지 않은 스크립트를 거부합니다.",
            "첫 줄에 #!/bin/bash라고 쓰세요.",
        ),
    },
    "no-interpreter/later": {
        "en": Words(
            "the first line does not start with #!",
            "sbatch refuses a script that does not name its interpreter.",
            "Move line {later} to the very start of the file.",
        ),
        "ko": Words(
            "첫 줄이 #!로 시작하지 않습니다",
            "sbatch는 실행할 프로그램이 적혀 있지 않은 스크립트를 거부합니다.",
            "{later}번째 줄을 파일의 맨 처음으로 옮기세요.",
        ),
    },
    "old-directive": {
        "en": Words(
            "#SLURM is the old word",
            "Slurm still takes it, with an error message.",
            "Write #SBATCH.",
        ),
        "ko": Words(
            "#SLURM은 예전에 쓰던 표기입니다",
            "Slurm이 아직 받아 주기는 하지만 오류 메시지를 냅니다.",
            "#SBATCH라고 쓰세요.",
        ),
    },
    "no-space": {
        "en": Words(
            "there is no space after #SBATCH",
            "sbatch takes it, other tools that read these lines do not.",
            "Write #SBATCH {rest}",
        ),
        "ko": Words(
            "#SBATCH 뒤에 빈칸이 없습니다",
            "sbatch는 받아 주지만, 이 줄을 읽는 다른 도구는 그렇지 않습니다.",
            "이렇게 쓰세요: #SBATCH {rest}",
        ),
    },
    "open-quote": {
        "en": Words(
            "the quote {quote} is never closed",
            "sbatch refuses the file.",
            "Close it with {quote} on the same line.",
        ),
        "ko": Words(
            "따옴표({quote})를 닫지 않았습니다",
            "sbatch가 파일을 거부합니다.",
            "같은 줄에서 따옴표({quote})로 닫으세요.",
        ),
    },
    "misspelt-directive": {
        "en": Words("{written} is not #SBATCH", _IGNORED, _WRITE_SBATCH),
        "ko": Words("여기 적힌 것은 #SBATCH가 아닙니다: {written}", _IGNORED_KO, _WRITE_SBATCH_KO),
    },
    "misspelt-directive/indented": {
        "en": Words("the directive {written} is indented", _IGNORED, _WRITE_SBATCH),
        "ko": Words("지시문을 들여 썼습니다: {written}", _IGNORED_KO, _WRITE_SBATCH_KO),
    },
    "misspelt-directive/note": {
        "en": Words(
            "{written} is not a directive",
            "It is a comment to Slurm; fine if it is a note on how to submit this file.",
            _WRITE_SBATCH,
        ),
        "ko": Words(
            "여기 적힌 것은 지시문이 아닙니다: {written}",
            "Slurm은 주석으로 읽습니다. 제출 방법을 적어 둔 메모라면 그대로 두어도 됩니다.",
            _WRITE_SBATCH_KO,
        ),
    },
    "misspelt-directive/k8s": {
        "en": Words(
            "{written} is not read",
            "A line is ours only if it starts with exactly #K8S_ in capitals.",
            "Write #K8S_{name}= at the start of the line, or ## to switch it off.",
        ),
        "ko": Words(
            "이 줄은 읽히지 않습니다: {written}",
            "대문자 #K8S_로 정확히 시작하는 줄만 slurmk8s가 읽습니다.",
            "줄 맨 앞에 #K8S_{name}=… 형태로 쓰세요. 끄려면 ##으로 시작하면 됩니다.",
        ),
    },
    "misplaced-directive": {
        "en": Words(
            "this line stands after the first command ({command}, line {first})",
            "Slurm reads directives only up to the first command and ignores this one silently.",
            "Move it above line {first}, or write ## to switch it off.",
        ),
        "ko": Words(
            "이 줄이 첫 명령({first}번째 줄, {command})보다 뒤에 있습니다",
            "Slurm은 첫 명령 앞에 있는 지시문만 읽고, 이 줄은 말없이 무시합니다.",
            "{first}번째 줄보다 위로 옮기세요. 끄려면 ##으로 시작하면 됩니다.",
        ),
    },
    "odd-space": {
        "en": Words("there is {name} in this line", _ANOTHER_CHARACTER, _PLAIN_SPACE),
        "ko": Words("이 줄에 {name} 있습니다", _ANOTHER_CHARACTER_KO, _PLAIN_SPACE_KO),
    },
    "odd-space/invisible": {
        "en": Words("there is {name} in this line", _ANOTHER_CHARACTER, _DELETE),
        "ko": Words(
            "이 줄에 {name} 있습니다", "눈에 보이지 않아도 문자라서, Slurm은 낱말의 일부로 읽습니다.", _DELETE_KO
        ),
    },
    "odd-space/body": {
        "en": Words("there is {name} here", _TO_THE_SHELL, _PLAIN_SPACE),
        "ko": Words("여기에 {name} 있습니다", _TO_THE_SHELL_KO, _PLAIN_SPACE_KO),
    },
    "odd-space/invisible-in-body": {
        "en": Words("there is {name} here", _TO_THE_SHELL, _DELETE),
        "ko": Words("여기에 {name} 있습니다", _TO_THE_SHELL_KO, _DELETE_KO),
    },
    "smart-quote": {
        "en": Words("there is the typographic quote {char} in this line", _ANOTHER_CHARACTER, "Replace it by {plain}"),
        "ko": Words(
            "이 줄에 둥근 따옴표({char})가 있습니다", _ANOTHER_CHARACTER_KO, "보통 따옴표({plain})로 바꾸세요."
        ),
    },
    "smart-quote/body": {
        "en": Words("there is the typographic quote {char} here", _TO_THE_SHELL, "Replace it by {plain}"),
        "ko": Words("여기에 둥근 따옴표({char})가 있습니다", _TO_THE_SHELL_KO, "보통 따옴표({plain})로 바꾸세요."),
    },
    "odd-dash": {
        "en": Words(
            "there is the typographic dash {char} in this line", _ANOTHER_CHARACTER, "Replace it by two plain hyphens."
        ),
        "ko": Words("이 줄에 긴 줄표({char})가 있습니다", _ANOTHER_CHARACTER_KO, "보통 하이픈 두 개(--)로 바꾸세요."),
    },
    "odd-equals": {
        "en": Words("there is the full-width sign {char} in this line", _ANOTHER_CHARACTER, "Replace it by a plain =."),
        "ko": Words("이 줄에 전각 기호({char})가 있습니다", _ANOTHER_CHARACTER_KO, "보통 = 기호로 바꾸세요."),
    },
}

# The Korean names bring their particle with them.
PHRASES: Phrases = {
    "non-breaking-space": {"en": "a non-breaking space", "ko": "줄바꿈 방지 빈칸(NBSP)이"},
    "full-width-space": {"en": "a full-width space", "ko": "전각 빈칸이"},
    "typographic-space": {"en": "a typographic space", "ko": "특수 빈칸이"},
    "invisible-mark": {"en": "an invisible byte order mark", "ko": "보이지 않는 BOM 문자가"},
    "zero-width-space": {"en": "an invisible zero-width space", "ko": "보이지 않는, 폭이 없는 빈칸이"},
    "invisible-character": {"en": "an invisible character", "ko": "보이지 않는 문자가"},
}
