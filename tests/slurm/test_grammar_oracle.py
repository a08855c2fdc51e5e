"""sbatch itself is the oracle: what we take it takes, what we refuse it refuses. Needs real Slurm."""

import re
import subprocess
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from slurmk8s.jobfile import Facts, check, values

pytestmark = pytest.mark.slurm

by_the_oracle = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def sbatch(cluster: Any, header: str) -> str:
    """What sbatch says about a script with this header, without submitting it."""
    done = subprocess.run(
        ["sbatch", "--test-only", "-v"],
        input=f"#!/bin/sh\n{header}\ntrue\n".encode(),
        env=cluster.environment,
        capture_output=True,
        check=False,
        timeout=60,
    )
    return done.stderr.decode(errors="replace")


def refuses(cluster: Any, option: str, value: str) -> bool:
    said = sbatch(cluster, f'#SBATCH --{option}="{value}"')
    refused = f"Invalid --{option} specification" in said or "Invalid numeric value" in said or "node count" in said
    assert refused or "defined options" in said, said
    return refused


def our_refusal(grammar: Any, value: str) -> str | None:
    try:
        grammar(value)
    except ValueError as error:
        return str(error)
    return None


times = st.one_of(
    st.text(alphabet="0123456789-:", min_size=1, max_size=9),
    st.from_regex(r"\A(\d{1,2}-)?\d{0,2}(:\d{0,2}){0,3}\Z").map(lambda text: text or "0"),
    st.sampled_from(["infinite", "UNLIMITED", "2h", "1.5", "HH:MM:SS", "10 ", "+5"]),
)


@by_the_oracle
@given(times)
@example("1-")
@example("1-:5")
@example("00:90:00")
@example("-1")
def test_time(cluster: Any, text: str) -> None:
    # sbatch takes a negative number of days, which cannot be meant, and overflows silently beyond 2**31 seconds.
    assume(text == "-1" or not text.startswith("-"))
    refusal = our_refusal(values.seconds, text)
    assume(refusal is None or "count" not in refusal)
    assert (refusal is not None) == refuses(cluster, "time", text)


memories = st.one_of(
    st.from_regex(r"\A[0-9]{1,7}[kKmMgGtTpP]?[bBi]?\Z"),
    st.text(alphabet="0123456789kKmMgGtTbBi.+ -", min_size=1, max_size=6),
)


@by_the_oracle
@given(memories)
@example("8GB")
@example("8Gi")
@example("8B")
@example("+8G")
@example(" 8G")
def test_memory(cluster: Any, text: str) -> None:
    refusal = our_refusal(values.megabytes, text)
    assume(refusal is None or "machine" not in refusal)
    assert (refusal is not None) == refuses(cluster, "mem", text)


@by_the_oracle
@given(st.text(alphabet="0123456789 +-N", min_size=1, max_size=5))
@example("0")
@example("4")
def test_counts(cluster: Any, text: str) -> None:
    assert (our_refusal(values.count, text) is not None) == refuses(cluster, "cpus-per-task", text)


@pytest.mark.parametrize("text", ["1", "2-4", "4-2", "1k", "x", "1-", "1.5", "2-4x"])
def test_nodes(cluster: Any, text: str) -> None:
    assert (our_refusal(values.nodes, text) is not None) == refuses(cluster, "nodes", text)


HEADERS = [
    "#SBATCH --comment=plain",
    "#SBATCH --comment=two words",
    '#SBATCH --comment="two words"',
    "#SBATCH --comment='two words' --job-name=x",
    '#SBATCH --comment="it\'s" -J y',
    '#SBATCH --comment=a"b c"d',
    r"#SBATCH --comment=a\ b",
    r"#SBATCH --comment=a\"b",
    r"#SBATCH --comment='a\'b'",
    "#SBATCH --comment=x#remark",
    "#SBATCH --comment=x # remark",
    "#SBATCH --comment='x # no remark'",
    "#SBATCH --comment 'apart'",
    "#SBATCH --comment '' --job-name=x",
    "#SBATCH --comment=open'",
    "#SBATCH--comment=close",
    "#SBATCHES",
    "#SBATCH\t--comment=tab\t-J\tz",
    "#SBATCH -Jattached",
    "#SBATCH -H -J one",
    "#SBATCH -HJ one",
    "#SBATCH --comm=abbreviated",
    "#SBATCH --no=ambiguous",
    "#SBATCH --tiem=1",
    "#SBATCH comment=x",
    "#SBATCH : --comment=x",
    "#SBATCH",
    "##SBATCH --comment=off",
    "# SBATCH remark",
    "\n# remark\n\n   # indented\n#SBATCH --comment=later",
    "true\n#SBATCH --comment=late",
    "#SBATCH --job-name=한글 --comment='한글 이름'",
    "#SBATCH --job-name=a\n#SBATCH --job-name=b",
    "#SBATCH --hold=1",
    "#SBATCH --exclusive=user --nice",
    "#SBATCH --mem=1G --mem-per-cpu=1G",
]


@pytest.mark.parametrize("header", HEADERS)
def test_header_lines_are_read_as_sbatch_reads_them(cluster: Any, header: str) -> None:
    said = sbatch(cluster, header)
    theirs = dict(re.findall(r"^sbatch: (comment|job-name) +: (.*)$", said, re.MULTILINE))
    accepted = "end of defined options" in said
    checked = check(f"#!/bin/sh\n{header}\ntrue\n".encode(), Facts())
    problems = {finding.code for finding in checked.problems} - {"misplaced-directive"}
    assert accepted == (not problems), (said, checked.findings)
    if checked.job is not None:
        ours = {"comment": checked.job.comment, "job-name": checked.job.name}
        assert {key: value for key, value in ours.items() if value} == theirs
