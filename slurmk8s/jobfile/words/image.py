"""Images: references that are none, and those that this site does not run."""

from slurmk8s.jobfile.words.entry import Findings, Phrases, Words

FINDINGS: Findings = {
    "bad-image": {
        "en": Words(
            "{value!r} is not an image",
            "{reason}.",
            "Write registry/name:tag, such as {registry}/pytorch:2.0-cuda11.8.",
        ),
        "ko": Words(
            "이미지 이름이 올바르지 않습니다: {value!r}",
            "{reason}.",
            "레지스트리/이름:태그 형식으로 쓰세요. 예: {registry}/pytorch:2.0-cuda11.8",
        ),
    },
    "image-not-allowed": {
        "en": Words(
            "{image} is not from an allowed registry",
            "This site runs images from {places} only.",
            "Push it to {registry} and name it there, or ask the admins.",
        ),
        "ko": Words(
            "허용되지 않은 레지스트리의 이미지입니다: {image}",
            "이곳에서 실행할 수 있는 이미지의 위치: {places}.",
            "이미지를 {registry} 레지스트리에 올려 그 이름을 쓰거나, 관리자에게 문의하세요.",
        ),
    },
    "no-image": {
        "en": Words(
            "#K8S_{name} without an image",
            "Without #K8S_IMAGE this is a plain Slurm job, and its partition has no default image.",
            "Write #K8S_IMAGE={registry}/…, or remove the #K8S_ lines.",
        ),
        "ko": Words(
            "#K8S_{name} 줄이 있는데 이미지가 없습니다",
            "#K8S_IMAGE가 없으면 보통의 Slurm 작업이고, 이 파티션에는 기본 이미지가 없습니다.",
            "#K8S_IMAGE={registry}/… 줄을 쓰거나, #K8S_ 줄을 모두 지우세요.",
        ),
    },
}

PHRASES: Phrases = {
    "nowhere": {"en": "nowhere", "ko": "없음"},
    "image-empty": {"en": "it is empty", "ko": "비어 있습니다"},
    "image-too-long": {"en": "it is too long", "ko": "너무 깁니다"},
    "image-url": {"en": "an image has no https:// in front", "ko": "이미지 이름 앞에는 https://를 붙이지 않습니다"},
    "tag-empty": {"en": "the tag is empty", "ko": "태그가 비어 있습니다"},
    "tag-characters": {
        "en": "the tag {tag!r} may hold only letters, digits, '.', '_' and '-'",
        "ko": "태그에는 영문자, 숫자, '.', '_', '-'만 쓸 수 있습니다: {tag!r}",
    },
    "name-too-long": {"en": "the name is longer than 255 characters", "ko": "이름이 255자를 넘습니다"},
    "no-host-name": {"en": "{registry!r} is no host name", "ko": "레지스트리의 호스트 이름이 아닙니다: {registry!r}"},
    "image-id": {
        "en": "64 hexadecimal digits are an image's id, not its name",
        "ko": "16진수 64자리는 이미지의 이름이 아니라 ID입니다",
    },
    "no-digest": {
        "en": "what follows @ must be a digest such as sha256:…",
        "ko": "@ 뒤에는 sha256:… 같은 다이제스트가 와야 합니다",
    },
    "digest-length": {
        "en": "a {algorithm} digest has {digits} lower-case hexadecimal digits",
        "ko": "{algorithm} 다이제스트는 소문자 16진수 {digits}자리입니다",
    },
    "part-empty": {"en": "a part of the name is empty", "ko": "이름의 한 부분이 비어 있습니다"},
    "name-missing": {"en": "the name is missing", "ko": "이름이 없습니다"},
    "lower-case": {"en": "the name {part!r} must be in lower case", "ko": "이름은 소문자로 써야 합니다: {part!r}"},
    "name-characters": {
        "en": "the name {part!r} may hold only a-z, 0-9, '.', '_' and '-'",
        "ko": "이름에는 a-z, 0-9, '.', '_', '-'만 쓸 수 있습니다: {part!r}",
    },
    "space-in-name": {"en": "there is a space in it", "ko": "빈칸이 들어 있습니다"},
    "name-separators": {
        "en": "{part!r} may hold only a-z, 0-9 and single '.', '_' or '-' between them",
        "ko": "a-z와 0-9, 그 사이에 하나씩 넣은 '.', '_', '-'만 쓸 수 있습니다: {part!r}",
    },
}
