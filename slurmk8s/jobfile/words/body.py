"""The body, and what a container job cannot be."""

from slurmk8s.jobfile.words.entry import Findings, Phrases, Words

FINDINGS: Findings = {
    "no-body": {
        "en": Words(
            "there is no command in the file",
            "The job would do nothing.",
            "Write the commands below the directives, or name a script with #K8S_SCRIPT=…",
        ),
        "ko": Words(
            "파일에 명령이 없습니다",
            "작업이 아무 일도 하지 않습니다.",
            "지시문 아래에 명령을 쓰거나, #K8S_SCRIPT=… 로 스크립트를 지정하세요.",
        ),
    },
    "body-not-run": {
        "en": Words(
            "the body is not run, because #K8S_SCRIPT={script} is",
            "#K8S_SCRIPT replaces the body.",
            "Remove the body, or remove the #K8S_SCRIPT line and call the script from the body.",
        ),
        "ko": Words(
            "본문은 실행되지 않습니다. 대신 실행되는 것: #K8S_SCRIPT={script}",
            "#K8S_SCRIPT가 있으면 본문 대신 그 스크립트를 실행합니다.",
            "본문을 지우거나, #K8S_SCRIPT 줄을 지우고 본문에서 스크립트를 부르세요.",
        ),
    },
    "missing-program": {
        "en": Words(
            "{name} is not in the container",
            "The image brings its own programs; Slurm's and the host's are not in the container.",
            "{fix}",
        ),
        "ko": Words(
            "컨테이너에 없는 프로그램입니다: {name}",
            "컨테이너에는 이미지의 프로그램만 있고, Slurm이나 호스트의 프로그램은 없습니다.",
            "{fix}",
        ),
    },
    "missing-program/image": {
        "en": Words("the image has no {name}", "The command will not be found.", "{fix}"),
        "ko": Words("이미지에 없는 프로그램입니다: {name}", "명령을 찾지 못하게 됩니다.", "{fix}"),
    },
    "missing-program/script": {
        "en": Words(
            "{path} needs python3, which the image does not have", "It is run by python3.", "Use an image with python3."
        ),
        "ko": Words(
            "{path}: python3가 필요한데 이미지에 없습니다",
            "이 스크립트는 python3로 실행됩니다.",
            "python3가 있는 이미지를 쓰세요.",
        ),
    },
    "hetjob": {
        "en": Words(
            "a heterogeneous job (hetjob) cannot run in containers",
            "All nodes of a container job get the same pod.",
            "Submit the parts as jobs of their own.",
        ),
        "ko": Words(
            "이종 작업(hetjob)은 컨테이너에서 실행할 수 없습니다",
            "컨테이너 작업의 노드는 모두 같은 pod를 받습니다.",
            "각 부분을 별도의 작업으로 제출하세요.",
        ),
    },
    "several-nodes": {
        "en": Words(
            "a container job runs on one node, and --nodes={nodes} asks for more",
            "Each node would run the body on its own, into the same logs.",
            "Write --nodes=1, or leave it out.",
        ),
        "ko": Words(
            "컨테이너 작업은 노드 하나에서 실행되는데, 노드를 더 요청하고 있습니다(--nodes={nodes})",
            "노드마다 따로 본문을 실행하면서 같은 로그에 쓰게 됩니다.",
            "--nodes=1 이라고 쓰거나, 쓰지 마세요.",
        ),
    },
}

PHRASES: Phrases = {
    "instead-of-srun": {
        "en": "Call the program itself: the body runs in the job's own allocation.",
        "ko": "프로그램을 바로 부르세요. 본문은 이미 작업에 할당된 자원 안에서 실행됩니다.",
    },
    "instead-of-scontrol": {
        "en": "Use the job's variables, such as $SLURM_JOB_ID and $SLURM_CPUS_PER_TASK.",
        "ko": "$SLURM_JOB_ID, $SLURM_CPUS_PER_TASK 같은 작업의 변수를 쓰세요.",
    },
    "instead-of-mpirun": {
        "en": "Call the program itself, or torchrun --standalone for several GPUs.",
        "ko": "프로그램을 바로 부르세요. GPU가 여러 개라면 torchrun --standalone을 쓰세요.",
    },
    "instead-of-sbatch": {
        "en": "Submit follow-up jobs from outside, for example with --dependency=afterok:ID.",
        "ko": "이어지는 작업은 밖에서 제출하세요. 예: --dependency=afterok:작업번호",
    },
    "instead-of-scancel": {
        "en": "End the job with `exit`; cancel others from outside.",
        "ko": "작업을 끝내려면 `exit`를 쓰고, 다른 작업은 밖에서 취소하세요.",
    },
    "instead-of-asking": {"en": "Ask from outside the container.", "ko": "컨테이너 밖에서 실행하세요."},
    "write-python3": {"en": "Write python3.", "ko": "python3라고 쓰세요."},
    "another-image": {"en": "Use another image.", "ko": "다른 이미지를 쓰세요."},
}
