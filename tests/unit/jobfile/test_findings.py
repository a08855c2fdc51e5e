"""Every finding that the job-file page promises, by its code, its place and its way out."""

import pytest
from sample_jobs import GUIDE_3_2_1, GUIDE_6_2, job

from slurmk8s.jobfile import ClusterFacts, Facts, Finding, PartitionFacts, Site, check
from slurmk8s.jobfile.facts import FileState

CLUSTER = ClusterFacts(
    partitions={
        "cpu": PartitionFacts("cpu", default=True, max_seconds=3600, nodes=2, cpus_per_node=8, memory_mb_per_node=16000,
                              gpus_per_node=0),
        "gpu": PartitionFacts("gpu", max_seconds=86400, nodes=4, max_nodes=2, cpus_per_node=32,
                              memory_mb_per_node=128000, gpus_per_node=4, gpu_types=("a100", "h100")),
        "old": PartitionFacts("old", up=False),
    },
    accounts=("lab",),
    qos=("normal", "long"),
)  # fmt: skip


def the_finding(data: bytes, code: str, facts: Facts | None = None) -> Finding:
    checked = check(data, facts or Facts())
    found = [finding for finding in checked.findings if finding.code == code]
    assert len(found) == 1, [(finding.code, finding.what) for finding in checked.findings]
    assert (checked.job is None) == any(finding.severity == "problem" for finding in checked.findings)
    return found[0]


@pytest.mark.parametrize("text", [GUIDE_3_2_1, GUIDE_6_2])
def test_the_guides_jobs_are_clean(text: str) -> None:
    checked = check(text.encode(), Facts())
    assert checked.findings == ()
    assert checked.job is not None
    assert checked.job.is_container
    assert checked.job.script == text.encode()


def test_a_job_carries_what_the_watcher_needs() -> None:
    data = job("#SBATCH -J 'my job' -p gpu -H --comment=note --chdir=/mnt/nas/x", "#K8S_SHM = 2G")
    checked = check(data, Facts())
    assert checked.job is not None
    assert checked.job.name == "my job"
    assert checked.job.partition == "gpu"
    assert checked.job.hold
    assert checked.job.comment == "note"
    assert checked.job.chdir == "/mnt/nas/x"
    assert checked.job.image == "nas-hub.local:5407/alpine"
    assert checked.job.k8s["SHM"].value == "2G"
    assert checked.job.interpreter == "/bin/bash"


def test_a_file_without_k8s_lines_is_a_plain_slurm_job() -> None:
    checked = check(b"#!/bin/sh\n#SBATCH --output=/home/kim/x.out\nsrun hostname\n", Facts())
    assert checked.findings == ()
    assert checked.job is not None
    assert not checked.job.is_container


def test_a_partitions_default_image_makes_a_container_job() -> None:
    facts = Facts(site=Site(partition_images={"gpu": "pytorch:2.0"}))
    checked = check(b"#!/bin/sh\n#SBATCH -p gpu\ntrue\n", facts)
    assert checked.job is not None
    assert checked.job.is_container
    assert checked.job.image == "nas-hub.local:5407/pytorch:2.0"


def test_all_is_found_at_once_in_the_order_of_the_file() -> None:
    data = job("#SBATCH --mem=8", "#SBATCH --tiem=1", "#K8S_IMAGES=x", "#K8S_SHM=2", body="echo\n#SBATCH --mem=1G")
    codes = [finding.code for finding in check(data, Facts()).findings]
    assert codes == ["memory-unit", "unknown-option", "unknown-k8s-line", "bad-size", "misplaced-directive"]


# line(s), code, severity, (line, column, length), part of the fix
HEADER = [
    ("# SBATCH --mem=8G", "misspelt-directive", "problem", (3, 1, 8), "#SBATCH"),
    ("#sbatch --mem=8G", "misspelt-directive", "problem", (3, 1, 7), "#SBATCH"),
    ("  #SBATCH --mem=8G", "misspelt-directive", "problem", (3, 1, 9), "start of the line"),
    ("#SBACTH --mem=8G", "misspelt-directive", "problem", (3, 1, 7), "#SBATCH"),
    ("# sbatch --array=1-3 this.sh", "misspelt-directive", "warning", (3, 1, 8), "#SBATCH"),
    ("#SBATCH--mem=8G", "no-space", "warning", (3, 1, 15), "#SBATCH --mem=8G"),
    ("#SLURM --mem=8G", "old-directive", "warning", (3, 1, 6), "#SBATCH"),
    ("#k8s_shm=2G", "misspelt-directive", "problem", (3, 1, 8), "#K8S_SHM"),
    ("# K8S_SHM=2G", "misspelt-directive", "problem", (3, 1, 9), "#K8S_SHM"),
    ("#K8S_WORKDIRS=/x", "unknown-k8s-line", "problem", (3, 1, 13), "Did you mean #K8S_WORKDIR?"),
    ("#K8S_SHM", "missing-value", "problem", (3, 1, 8), "#K8S_SHM="),
    ("#K8S_SHM 2G", "missing-value", "problem", (3, 1, 8), "#K8S_SHM=2G"),
    ("#K8S_IMAGE=alpine", "repeated-k8s-line", "problem", (3, 12, 6), "Remove"),
    ("#SBATCH --cpus-per-taks=4", "unknown-option", "problem", (3, 9, 17), "--cpus-per-task"),
    ("#SBATCH --mpi=pmix", "unknown-option", "problem", (3, 9, 10), "Take it out"),
    ("#SBATCH --no=1", "unknown-option", "problem", (3, 9, 6), "--nodes"),
    ("#SBATCH -mem=8G", "one-dash", "problem", (3, 9, 7), "--mem=8G"),
    ("#SBATCH mem=8G", "stray-word", "problem", (3, 9, 6), "--mem=8G"),
    ("#SBATCH --job-name=my job", "stray-word", "problem", (3, 23, 3), '--job-name="my job"'),
    ("#SBATCH --time = 01:00:00", "space-around-equals", "problem", (3, 9, 17), "--time=01:00:00"),
    ("#SBATCH --time= 01:00:00", "space-around-equals", "problem", (3, 9, 16), "--time=01:00:00"),
    ("#SBATCH --time\n#SBATCH -c 4", "missing-value", "problem", (3, 9, 6), "--time="),
    ("#SBATCH --time --mem=8G", "missing-value", "problem", (3, 9, 6), "--time="),
    ("#SBATCH --hold=yes", "unwanted-value", "problem", (3, 9, 10), "--hold"),
    ("#SBATCH --comment='x", "open-quote", "problem", (3, 19, 1), "Close"),
    ("#SBATCH --mem=1G\n#SBATCH --mem=2G", "repeated-option", "warning", (3, 9, 8), "Remove"),
    ("#SBATCH --mem=8", "memory-unit", "problem", (3, 15, 1), "--mem=8G"),
    ("#SBATCH --mem=8GB", "memory-unit", "warning", (3, 15, 3), "--mem=8G"),
    ("#SBATCH --mem=8Gi", "bad-mem", "problem", (3, 15, 3), "--mem=8G"),
    ("#SBATCH --mem=1.5G", "bad-mem", "problem", (3, 15, 4), "--mem=1536M"),
    ("#SBATCH --mem=XG", "bad-mem", "problem", (3, 15, 2), "--mem=8G"),
    ("#SBATCH --mem=99999999T", "bad-mem", "problem", (3, 15, 9), "--mem=8G or"),
    ("#SBATCH --mem=1G --mem-per-cpu=1G", "memory-twice", "problem", (3, 18, 16), "Keep one"),
    ("#SBATCH --time=2h", "bad-time", "problem", (3, 16, 2), "--time=2:00:00"),
    ("#SBATCH --time=HH:MM:SS", "bad-time", "problem", (3, 16, 8), "--time=02:00:00"),
    ("#SBATCH -t 1:2:3:4", "bad-time", "problem", (3, 12, 7), "--time=02:00:00"),
    ("#SBATCH --time=0", "no-time-limit", "warning", (3, 16, 1), "--time="),
    ("#SBATCH --gres=gpu:N", "bad-gres", "problem", (3, 16, 5), "gpu:1"),
    ("#SBATCH --gres=gpu:a100:two", "bad-gres", "problem", (3, 16, 12), "gpu:1"),
    ("#SBATCH --gres=gpu:", "bad-gres", "problem", (3, 16, 4), "gpu:1"),
    ("#SBATCH --gpus=-1", "bad-gpus", "problem", (3, 16, 2), "--gpus=1"),
    ("#SBATCH --cpus-per-task=N", "bad-cpus-per-task", "problem", (3, 25, 1), "--cpus-per-task=4"),
    ("#SBATCH -c0", "bad-cpus-per-task", "problem", (3, 11, 1), "--cpus-per-task=4"),
    ("#SBATCH --ntasks=99999999999", "bad-ntasks", "problem", (3, 18, 11), "--ntasks=4"),
    ("#SBATCH --nodes=4-2", "bad-nodes", "problem", (3, 17, 3), "--nodes=1"),
    ("#SBATCH --array=10-1", "bad-array", "problem", (3, 17, 4), "1-10"),
    ("#SBATCH --signal=@60", "bad-signal", "problem", (3, 18, 3), "USR1@60"),
    ("#SBATCH --partition=gpu|cpu", "bad-partition", "problem", (3, 21, 7), "--partition=gpu"),
    ("#SBATCH --wrap=hostname", "owned-option", "problem", (3, 9, 15), "body"),
    ("#SBATCH --uid=1000", "owned-option", "problem", (3, 9, 10), "that person"),
    ("#SBATCH --gid=1000", "owned-option", "problem", (3, 9, 10), "Remove"),
    ("#SBATCH --container=/x", "owned-option", "problem", (3, 9, 14), "#K8S_IMAGE"),
    ("#SBATCH --wait", "owned-option", "problem", (3, 9, 6), "Remove"),
    ("#SBATCH --test-only", "owned-option", "problem", (3, 9, 11), "slurmk8s check"),
    ("#SBATCH --comment=" + "가" * 400, "comment-too-long", "problem", (3, 19, 400), "Shorten"),
    ("#SBATCH --comment=slurmk8s-key=1", "reserved-comment", "problem", (3, 19, 14), "Remove"),
    ("#SBATCH --output=/home/kim/%j.out", "not-shared", "warning", (3, 18, 16), "/mnt/nas"),
    ("#SBATCH --chdir=/home/kim", "not-shared", "warning", (3, 17, 9), "/mnt/nas"),
    ("#SBATCH --nodes=2", "several-nodes", "problem", (3, 17, 1), "--nodes=1"),
    ("#SBATCH hetjob", "hetjob", "problem", (3, 1, 14), "jobs of their own"),
    ("#K8S_WORKDIR=work", "bad-path", "problem", (3, 14, 4), "/workspace"),
    ("#K8S_WORKDIR=/mnt/nas/../../etc", "bad-path", "problem", (3, 14, 18), "/workspace"),
    ("#K8S_WORKDIR=/opt/app", "workdir-not-kept", "warning", (3, 14, 8), "SLURMK8S_OUTPUTS"),
    ("#K8S_SCRIPT=/home/kim/작업.py", "not-shared", "problem", (3, 13, 15), "/mnt/nas"),
    ("#K8S_SCRIPT=train.py", "bad-path", "problem", (3, 13, 8), "full path"),
    ("#K8S_PRIORITY=hi", "unknown-priority", "problem", (3, 15, 2), "high-priority"),
    ("#K8S_MOUNT=nas,data", "unknown-mount", "problem", (3, 16, 4), "nas"),
    ("#K8S_SHM=2", "bad-size", "problem", (3, 10, 1), "2G"),
    ("#SBATCH --mem=1G\n#K8S_SHM=2G", "shm-too-large", "warning", (4, 10, 2), "--mem"),
    ("#SBATCH\u00a0--mem=8G", "odd-space", "problem", (3, 8, 1), "plain space"),
    ("#SBATCH --mem=8G\u3000--hold", "odd-space", "problem", (3, 17, 1), "plain space"),
    ("#SBATCH --mem=\u200b8G", "odd-space", "problem", (3, 15, 1), "Delete"),
    ("#SBATCH --comment=“x”", "smart-quote", "problem", (3, 19, 1), '"'),
    ("#SBATCH —mem=8G", "odd-dash", "problem", (3, 9, 1), "hyphens"),
    ("#K8S_SHM＝2G", "odd-equals", "problem", (3, 9, 1), "plain ="),
    ("#SBATCH --job-name=\u1112\u1161\u11ab", "decomposed-name", "warning", (3, 20, 3), "uconv"),
    ("#K8S_SCRIPT=/mnt/nas/\u1112\u1161\u11ab.py", "decomposed-name", "warning", (3, 13, 15), "uconv"),
]  # fmt: skip


@pytest.mark.parametrize(("lines", "code", "severity", "place", "fix"), HEADER, ids=[case[0][:40] for case in HEADER])
def test_header_line(lines: str, code: str, severity: str, place: tuple[int, int, int], fix: str) -> None:
    finding = the_finding(job(*lines.split("\n")), code)
    assert finding.severity == severity
    assert (finding.line, finding.column, finding.length) == place
    assert fix in finding.fix


GOOD_LINES = [
    "##SBATCH --mem=8 --nonsense",
    "# SBATCH options follow",
    "#SBATCH --job-name='한글 이름'  # trailing remark",
    '#SBATCH --job-name=한글 --comment="“typographic”\u3000text"',
    "#SBATCH --part=gpu --cpus-per-t=4",
    "#SBATCH --exclusive --requeue --nice=10",
    "#SBATCH -N1 -n 4 -c2 -Hs",
    "#SBATCH --gres=gpu:a100:2,shard:1",
    "#SBATCH --gres=gpu",
    "#SBATCH --gpus=2 --mem=0",
    "#SBATCH --array=1,3,5-9:2%4",
    "#SBATCH --signal=B:USR1@60",
    "#SBATCH --time=1-12",
    "#SBATCH --comment=",
    "#SBATCH --output=/dev/null",
    "#SBATCH --output=logs/%x-%j.out",
    "#K8S_MOUNT = nas   # the usual one",
    "#K8S_PRIORITY=high-priority",
    "#K8S_WORKDIR=/mnt/nas/work/kim",
    "#K8S_WORKDIR='/mnt/nas/my work'",
    "#SBATCH",
]


@pytest.mark.parametrize("line", GOOD_LINES)
def test_nothing_is_found_in_a_good_line(line: str) -> None:
    assert check(job(line), Facts()).findings == ()


IMAGES = [
    ("docker.io/library/alpine", "image-not-allowed"),
    ("nas-hub.local:54070/alpine", "image-not-allowed"),
    ("nas-hub.local:5407.evil.com/alpine", "bad-image"),
    ("nas-hub.local:5407/이미지:태그", "bad-image"),
    ("nas-hub.local:5407/PyTorch", "bad-image"),
    ("https://nas-hub.local:5407/alpine", "bad-image"),
    ("nas-hub.local:5407/../alpine", "bad-image"),
    ("alpine latest", "bad-image"),
]


@pytest.mark.parametrize(("image", "code"), IMAGES)
def test_an_image_must_be_a_reference_from_an_allowed_registry(image: str, code: str) -> None:
    data = f"#!/bin/sh\n#K8S_IMAGE={image}\ntrue\n".encode()
    finding = the_finding(data, code)
    assert finding.severity == "problem"
    assert (finding.line, finding.column, finding.length) == (2, 12, len(image))


def test_k8s_lines_without_an_image_are_refused() -> None:
    finding = the_finding(b"#!/bin/sh\n#K8S_SHM=2G\ntrue\n", "no-image")
    assert (finding.line, finding.column, finding.length) == (2, 1, 8)


THE_FILES = {"no-script": "/mnt/nas/a.py", "no-workdir": "/mnt/nas/w/", "no-output-folder": "/mnt/nas/w/"}


def with_file(line: str) -> bytes:
    return f"#!/bin/sh\n#K8S_IMAGE=alpine\n{line}\n".encode()


FILES = [
    ("#K8S_SCRIPT=/mnt/nas/a.py", "missing", "no-script", "problem", "/mnt/nas/a.py does not exist"),
    ("#K8S_SCRIPT=/mnt/nas/a.py", "unreadable", "no-script", "problem", "/mnt/nas/a.py is not readable by kim"),
    ("#K8S_SCRIPT=/mnt/nas/a.py", "folder", "no-script", "problem", "/mnt/nas/a.py is a folder"),
    ("#K8S_SCRIPT=/mnt/nas/a.py", "special", "no-script", "problem", "/mnt/nas/a.py is not a regular file"),
    ("#K8S_SCRIPT=/mnt/nas/a.py", "hidden", "no-script", "problem",
     "/mnt/nas/a.py lies in a folder that kim may not enter"),
    ("#K8S_WORKDIR=/mnt/nas/w", "missing", "no-workdir", "problem", "the working folder /mnt/nas/w does not exist"),
    ("#K8S_WORKDIR=/mnt/nas/w", "unwritable", "no-workdir", "warning",
     "the working folder /mnt/nas/w is not writable by kim"),
    ("#SBATCH -o /mnt/nas/w/%j", "missing", "no-output-folder", "problem", "the folder /mnt/nas/w/ does not exist"),
    ("#SBATCH -o /mnt/nas/w/%j", "file", "no-output-folder", "problem", "the folder /mnt/nas/w/ is not a folder"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "state", "code", "severity", "what"), FILES)
def test_files_as_the_submitter_sees_them(line: str, state: FileState, code: str, severity: str, what: str) -> None:
    finding = the_finding(with_file(line), code, Facts(files={THE_FILES[code]: state}, submitter="kim"))
    assert (finding.severity, finding.what) == (severity, what)


def test_only_a_folder_that_is_not_there_is_to_be_made() -> None:
    data = with_file("#SBATCH -o /mnt/nas/w/%j")
    missing = the_finding(data, "no-output-folder", Facts(files={"/mnt/nas/w/": "missing"}))
    assert missing.fix == "Create it: mkdir -p /mnt/nas/w/"
    closed = the_finding(data, "no-output-folder", Facts(files={"/mnt/nas/w/": "unwritable"}))
    assert closed.what == "the folder /mnt/nas/w/ is not writable by you"
    assert "mkdir" not in closed.fix


CLUSTER_CASES = [
    ("#SBATCH -p gup", "unknown-partition", "Did you mean gpu?"),
    ("#SBATCH -p gpu,nope", "unknown-partition", "cpu, gpu, old"),
    ("#SBATCH -p old", "partition-down", "another partition"),
    ("#SBATCH --cpus-per-task=9", "too-many-cpus", "Ask for 8"),
    ("#SBATCH -N1 -n 9", "too-many-cpus", "Ask for 8"),
    ("#SBATCH --ntasks-per-node=3 -c 3", "too-many-cpus", "Ask for 8"),
    ("#SBATCH --mincpus=9", "too-many-cpus", "Ask for 8"),
    ("#SBATCH --mem=16G", "too-many-megabytes", "Ask for 16000"),
    ("#SBATCH --mem-per-cpu=4G -c 8", "too-many-megabytes", "Ask for 16000"),
    ("#SBATCH --gres=gpu:1", "too-many-gpus", "another partition"),
    ("#SBATCH -p gpu --gres=gpu:5", "too-many-gpus", "Ask for 4"),
    ("#SBATCH -p gpu --gpus=9", "too-many-gpus", "Ask for 8"),
    ("#SBATCH -p gpu --gpus-per-task=3 --ntasks-per-node=2", "too-many-gpus", "Ask for 4"),
    ("#SBATCH -p gpu --gres=gpu:v100:1", "unknown-gpu-type", "a100, h100"),
    ("#SBATCH --nodes=3", "too-many-nodes", "Ask for 2"),
    ("#SBATCH -p gpu --nodes=3", "too-many-nodes", "Ask for 2"),
    ("#SBATCH --time=01:00:01", "too-long", "--time=01:00:00"),
    ("#SBATCH -p gpu --time=UNLIMITED", "too-long", "--time=1-00:00:00"),
    ("#SBATCH --account=other", "unknown-account", "lab"),
    ("#SBATCH --qos=high", "unknown-qos", "normal, long"),
]


@pytest.mark.parametrize(("line", "code", "fix"), CLUSTER_CASES, ids=[case[0] for case in CLUSTER_CASES])
def test_what_the_cluster_cannot_give(line: str, code: str, fix: str) -> None:
    finding = the_finding(job(line), code, Facts(cluster=CLUSTER))
    assert finding.severity == ("warning" if code == "partition-down" else "problem")
    assert finding.line == 3
    assert fix in finding.fix


FITTING = [
    "#SBATCH -c 8 --mem=15G --time=60",
    "#SBATCH -p cpu,gpu -c 32 --gres=gpu:a100:4 --time=1-0",
    "#SBATCH -p gpu --gpus=4 --ntasks=4",
    "#SBATCH -p gpu --mem=0 --gres=gpu:1",
    "#SBATCH --account=lab --qos=long",
    "#SBATCH -p cpu -n 16",
]


@pytest.mark.parametrize("line", FITTING)
def test_what_the_cluster_can_give(line: str) -> None:
    assert check(job(line), Facts(cluster=CLUSTER)).findings == ()


def test_no_partition_where_there_is_no_default() -> None:
    facts = Facts(cluster=ClusterFacts(partitions={"gpu": PartitionFacts("gpu")}))
    assert "gpu" in the_finding(job(), "no-partition", facts).fix


BODIES = [
    ("srun python3 train.py", "missing-program", (4, 1, 4), "itself"),
    ("A=1 B=2 srun x", "missing-program", (4, 9, 4), "itself"),
    ("if true; then srun x; fi", "missing-program", (4, 15, 4), "itself"),
    ("M=$(scontrol show hostnames | head -1)", "missing-program", (4, 5, 8), "SLURM_JOB_ID"),
    ("cd /x && mpirun -n 4 a.out", "missing-program", (4, 10, 6), "torchrun"),
    ("echo “hi”", "smart-quote", (4, 6, 1), '"'),
    ("echo\u00a0hi", "odd-space", (4, 5, 1), "plain space"),
    ("# nothing but a remark", "no-body", (4, 1, 22), "K8S_SCRIPT"),
]


@pytest.mark.parametrize(("body", "code", "place", "fix"), BODIES)
def test_body(body: str, code: str, place: tuple[int, int, int], fix: str) -> None:
    finding = the_finding(job(body=body), code)
    assert finding.severity == "warning"
    assert (finding.line, finding.column, finding.length) == place
    assert fix in finding.fix


@pytest.mark.parametrize(
    "body",
    [
        "echo srun is not called here",
        "# srun x\ntrue",
        "python train.py",
        "./srun.sh",
        'echo "그는 “안녕”이라고"',
        "cat > later.sh <<'EOF'\n#!/bin/bash\n#SBATCH --mem=1G\nEOF",
        "cat <<< word\ntrue",
    ],
)
def test_nothing_is_found_in_a_good_body(body: str) -> None:
    assert check(job(body=body), Facts()).findings == ()


def test_python_is_missed_only_where_the_image_is_known_to_lack_it() -> None:
    facts = Facts(image_programs={"nas-hub.local:5407/alpine": frozenset({"python"})})
    finding = the_finding(job(body="python train.py"), "missing-program", facts)
    assert finding.fix == "Write python3."


def test_each_amount_of_memory_beside_the_first_is_told() -> None:
    findings = check(job("#SBATCH --mem=1G --mem-per-cpu=1G --mem-per-gpu=1G"), Facts()).findings
    assert [finding.what for finding in findings] == [
        "--mem and --mem-per-cpu are both given",
        "--mem and --mem-per-gpu are both given",
    ]


def test_the_body_beside_k8s_script_is_not_run() -> None:
    finding = the_finding(job("#K8S_SCRIPT=/mnt/nas/a.sh", body="echo other"), "body-not-run")
    assert (finding.severity, finding.line) == ("warning", 5)


def test_a_directive_after_the_first_command_names_that_command() -> None:
    finding = the_finding(job(body="set -e\n#SBATCH --mem=8G"), "misplaced-directive")
    assert finding.line == 5
    assert "set -e, line 4" in finding.what


TEXTS = [
    (b"", "empty"),
    (b" \n\t\n", "empty"),
    (b"\xef\xbb\xbf \n", "empty"),
    (b"#!/bin/sh\n" + b"#" * (4 * 1024 * 1024), "too-large"),
    ("#!/bin/sh\necho\n".encode("utf-16"), "utf-16"),
    ("#!/bin/sh\necho\n".encode("utf-16-le"), "utf-16"),
    ("#!/bin/sh\necho\n".encode("utf-16-be"), "utf-16"),
    (b"#!/bin/sh\necho \0\n", "nul-byte"),
    (b"\x7fELF\x02\x01\x01", "not-text"),
    (b"PK\x03\x04 word document", "not-text"),
    (b"{\\rtf1\\ansi}", "not-text"),
    ("#!/bin/sh\necho 한글\n".encode("cp949"), "not-utf-8"),
    (b"#!/bin/sh\necho \xff\xfe\n", "not-utf-8"),
    (b"echo hello\n", "no-interpreter"),
    (b"\n#!/bin/sh\necho\n", "no-interpreter"),
    (b"#/bin/bash\necho\n", "no-interpreter"),
    (b"#!\necho\n", "bad-interpreter"),
    (b"#!bash\necho\n", "bad-interpreter"),
]


@pytest.mark.parametrize(("data", "code"), TEXTS, ids=range(len(TEXTS)))
def test_what_is_not_a_script(data: bytes, code: str) -> None:
    assert the_finding(data, code).severity == "problem"


def test_korean_windows_text_is_recognised_and_located() -> None:
    finding = the_finding("#!/bin/sh\necho 한글\n".encode("cp949"), "not-utf-8")
    assert (finding.line, finding.column) == (2, 6)
    assert "CP949" in finding.why


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (GUIDE_6_2.replace("\n", "\r\n").encode(), "dos-line-ends"),
        (GUIDE_6_2.replace("\n", "\r").encode(), "dos-line-ends"),
        (b"\xef\xbb\xbf" + GUIDE_6_2.encode(), "byte-order-mark"),
    ],
)
def test_what_windows_does_is_repaired_and_told(data: bytes, code: str) -> None:
    checked = check(data, Facts())
    assert [(finding.code, finding.severity) for finding in checked.findings] == [(code, "warning")]
    assert checked.job is not None
    assert checked.job.script == GUIDE_6_2.encode()
