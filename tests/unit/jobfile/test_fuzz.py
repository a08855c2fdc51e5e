"""No bytes whatever make the check raise: the answer is always findings."""

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sample_jobs import GUIDE_3_2_1, GUIDE_6_2

from slurmk8s.jobfile import ClusterFacts, Facts, PartitionFacts, Site, check, paths_of_interest, render
from slurmk8s.language import Language

LANGUAGES: tuple[Language, ...] = ("en", "ko")

KNOWING = Facts(
    site=Site(partition_images={"gpu": "x"}, mount_targets={"nas": "/mnt/nas"}),
    cluster=ClusterFacts(
        partitions={"gpu": PartitionFacts("gpu", True, True, 60, 1, 1, 1, 1, 1, ("a",))}, accounts=(), qos=()
    ),
    image_programs={"nas-hub.local:5407/alpine:latest": frozenset({"python"})},
)

PIECES = [
    "#SBATCH ", "#SBATCH", "#K8S_IMAGE=", "#K8S_SCRIPT=", "#K8S_MOUNT=", "#K8S_", "# SBATCH --", "--mem=", "--time=",
    "--gres=gpu:", "-c", "--", "-", "=", " ", "\n", "\r\n", "\t", "'", '"', "\\", "#", "hetjob", "\u3000", "“", "—",
    "\u200b", "한글", "\u1112\u1161\u11ab", "<<EOF\n", "EOF\n", "srun ", "$(", "8", "G", "/mnt/nas/", "%j", "\x1b[31m",
    "\0", "\ufeff", "٣", "\U0001f600", "\x85", "\u2028",
]  # fmt: skip


def everything(data: bytes) -> None:
    for facts in (Facts(), KNOWING):
        checked = check(data, facts)
        assert (checked.job is None) == bool(checked.problems)
        for finding in checked.findings:
            assert finding.what
            assert finding.why
            assert finding.fix
            assert "\n" not in finding.what + finding.why + finding.fix
            assert finding.line >= 0
            assert finding.column >= 1
            assert finding.length >= 1
            if finding.line:
                lines = checked.text.split("\n")
                assert finding.line <= len(lines)
                if checked.text:
                    assert finding.column <= len(lines[finding.line - 1]) + 1
        for language in LANGUAGES:
            plain = render("job.sh", checked.text, checked.findings, language, colour=False)
            assert "\x1b" not in plain
            plain.encode()
            render("job.sh", checked.text, checked.findings, language, colour=True)
    assert all(path.startswith("/") for path in paths_of_interest(data))


@given(st.binary(max_size=400))
@example(b"#!/bin/sh\n#SBATCH \\")
@example(b"#!/bin/sh\n#SBATCH -c\\ 4 '")
@example(b"#!/bin/sh\n#K8S_IMAGE=#")
def test_arbitrary_bytes(data: bytes) -> None:
    everything(data)


@given(st.lists(st.sampled_from(PIECES), max_size=40))
def test_pieces_of_job_files(pieces: list[str]) -> None:
    everything(("#!/bin/bash\n" + "".join(pieces)).encode())


@settings(max_examples=200)
@given(st.data())
def test_mutated_job_files(data: st.DataObject) -> None:
    content = data.draw(st.sampled_from([GUIDE_3_2_1.encode(), GUIDE_6_2.encode()]))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        end = data.draw(st.integers(start, min(len(content), start + 12)))
        piece = data.draw(st.one_of(st.binary(max_size=6), st.sampled_from(PIECES).map(str.encode)))
        content = content[:start] + piece + content[end:]
    everything(content)


@given(st.text(max_size=200))
def test_the_repaired_script_has_unix_line_ends_and_no_mark(text: str) -> None:
    data = ("#!/bin/sh\r\n" + text).encode(errors="replace")
    checked = check(data, Facts())
    if checked.job is not None:
        assert b"\r\n" not in checked.job.script
        assert checked.job.script.startswith(b"#!")
        assert check(checked.job.script, Facts()).job is not None


HOSTILE = [
    b"#SBATCH --zzzzzz\n",
    b"#SBACH -\n",
    b"#K8S_IMAGEE=x\n",
    b"#K8S_SHM=2G\n",
    b"#SBATCH '\n",
    b";A=;A=;A=;A= srun\n",
    b" " * 9000 + b"; srun x\n",
    "\u00a0echo “\n".encode(),
    b"#SBATCH " + b"a " * 100_000 + b"\n",
    b"#K8S_MOUNT=" + b"a,b1,c2," * 30_000 + b"\n",
    b"#K8S_SHM=" + b" " * 250_000 + b"x\n",
    b"#K8S_IMAGE=" + b"a-" * 120_000 + b"\n",
]


@pytest.mark.parametrize("piece", HOSTILE, ids=[piece[:20] for piece in HOSTILE])
def test_a_hostile_file_does_not_keep_the_check_busy(piece: bytes) -> None:
    data = b"#!/bin/sh\n" + piece * (4_000_000 // len(piece))
    start = time.process_time()
    findings = check(data, KNOWING).findings
    assert time.process_time() - start < 5
    assert len(findings) < 500
