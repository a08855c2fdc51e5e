"""Everything the check can say is said in every language, about the same values, in whole sentences."""

import re
import string
from collections import Counter
from collections.abc import Iterator
from typing import get_args

import pytest
from sample_jobs import job
from test_findings import BODIES, CLUSTER, CLUSTER_CASES, FILES, HEADER, IMAGES, TEXTS, THE_FILES, with_file

from slurmk8s.jobfile import Facts, Finding, PartitionFacts, Site, check
from slurmk8s.jobfile.facts import ClusterFacts, Limits
from slurmk8s.jobfile.finding import WHOLE_FILE, problem
from slurmk8s.jobfile.phrase import Phrase
from slurmk8s.jobfile.words import FINDINGS, PHRASES, TOPICS
from slurmk8s.language import Language

LANGUAGES: tuple[Language, ...] = get_args(Language)
HANGUL = re.compile("[가-힣]")
# A particle whose form depends on the last sound of what stands before it, which a value's is not known.
GUESSED_PARTICLE = re.compile(r"\}['\"]? ?(?:은|는|이|가|을|를|과|와|으로|로|이라고|라고|이라는|라는)(?![가-힣])")


def texts(language: Language) -> Iterator[tuple[str, str]]:
    """Every template with its name."""
    for key, finding in FINDINGS.items():
        words = finding[language]
        yield from ((f"{key} what", words.what), (f"{key} why", words.why), (f"{key} fix", words.fix))
    yield from ((key, phrase[language]) for key, phrase in PHRASES.items())


def placeholders(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}


def test_no_entry_stands_twice() -> None:
    for kind in ("FINDINGS", "PHRASES"):
        counted = Counter(key for topic in TOPICS for key in getattr(topic, kind))
        assert [key for key, count in counted.items() if count > 1] == []


@pytest.mark.parametrize("entries", [FINDINGS, PHRASES], ids=["findings", "phrases"])
def test_every_entry_has_every_language(entries: dict[str, dict[str, object]]) -> None:
    assert [key for key, entry in entries.items() if set(entry) != set(LANGUAGES)] == []


@pytest.mark.parametrize("key", FINDINGS)
def test_a_finding_tells_the_same_values_in_each_language(key: str) -> None:
    told = [
        set().union(*(placeholders(text) for text in (words.what, words.why, words.fix)))
        for words in (FINDINGS[key][language] for language in LANGUAGES)
    ]
    assert told == [told[0]] * len(LANGUAGES)


@pytest.mark.parametrize("key", PHRASES)
def test_a_phrase_tells_the_same_values_in_each_language(key: str) -> None:
    told = [placeholders(PHRASES[key][language]) for language in LANGUAGES]
    assert told == [told[0]] * len(LANGUAGES)


def test_korean_is_korean() -> None:
    bare = {key for key, text in texts("ko") if not HANGUL.search(text) and placeholders(text) == set()}
    assert bare == set()
    assert [key for key, text in texts("en") if HANGUL.search(text)] == []


def test_no_korean_particle_depends_on_a_value() -> None:
    assert [(key, text) for key, text in texts("ko") if GUESSED_PARTICLE.search(text)] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_reason_is_a_whole_sentence(language: Language) -> None:
    assert [key for key, finding in FINDINGS.items() if not finding[language].why.endswith(".")] == []
    assert [key for key, finding in FINDINGS.items() if finding[language].what.endswith(".")] == []


CONTAINER = "nas-hub.local:5407/alpine"
PYTHONLESS = Facts(image_programs={CONTAINER: frozenset({"python", "python3"})})
PYTHON3 = Facts(image_programs={CONTAINER: frozenset({"python"})})
BARE = Facts(site=Site(allowed_images=(), mounts=(), priorities=()), cluster=ClusterFacts(accounts=(), qos=()))
ONE_EACH = Facts(site=Site(limits=Limits(cpus=1, memory_mb=1024, gpus=1)))
NO_DEFAULT = Facts(cluster=ClusterFacts(partitions={"gpu": PartitionFacts("gpu")}))
DIGEST = "alpine@sha256:12"
NOT_TEXT = [
    b"\x7fELF", b"MZ", b"PK\x03\x04", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"(\xb5/\xfd", b"%PDF", b"\x89PNG",
    b"\xff\xd8\xff", b"\xd0\xcf\x11\xe0", b"{\\rtf",
]  # fmt: skip
# What the cases of the other files leave out.
LINES = [
    "#K8S_XYZ=1", "#SBATCH -y", "#SBATCH --qzx=1", "#SBATCH word", "#SBATCH --time=9999999999", "#SBATCH -N x",
    "#SBATCH --gres=gpu:a/b:1", "#SBATCH --gres=gpu:a/b", "#SBATCH --array=x", "#SBATCH --array=1-9:0",
    "#SBATCH --signal=9@70000", "#SBATCH --clusters=a", "#SBATCH --usage", "#SBATCH --mem=\u20098G",
    "#SBATCH --mem=\u200d8G", "#SBATCH --mem=\ufeff8G", "#K8S_SHM=0G", "#K8S_SHM=999999999999999T", "#K8S_MOUNT=zz",
    "#K8S_WORKDIR=/a\x01", "#K8S_WORKDIR=/" + "a" * 5000, "#K8S_PRIORITY=zz", "#K8S_PRIORITY=high-priorit",
]  # fmt: skip
REFERENCES = [
    "a" * 1100, "alpine:", "alpine:" + "b" * 200, "a" * 300, "[x]/alpine", "hub-.local/alpine", "a" * 64, DIGEST,
    "alpine@md5:1", "hub.local//x", "hub.local/", "@sha256:" + "0" * 64, "a..b", "한글",
]  # fmt: skip
BODIES_TOO = ["sbatch x", "squeue", "scancel 1", "echo\u200bhi"]


def said() -> Iterator[Finding]:
    """What is found in a job file of each kind."""
    cases: list[tuple[bytes, Facts]] = [(data, Facts()) for data, _ in TEXTS]
    cases += [(data, Facts()) for data in NOT_TEXT]
    cases += [(job(*case[0].split("\n")), Facts()) for case in HEADER]
    cases += [(job(line), Facts()) for line in LINES]
    cases += [(job(line), BARE) for line in ("#SBATCH --account=x --qos=y", "#K8S_PRIORITY=x")]
    cases += [(f"#!/bin/sh\n#K8S_IMAGE={image}\n:\n".encode(), Facts()) for image, _ in IMAGES]
    cases += [(f"#!/bin/sh\n#K8S_IMAGE={image}\n:\n".encode(), BARE) for image in REFERENCES]
    cases += [(job(line), Facts(cluster=CLUSTER)) for line, _, _ in CLUSTER_CASES]
    cases += [(job("#SBATCH -p cpu,gpu -c 64"), Facts(cluster=CLUSTER)), (job(), NO_DEFAULT)]
    cases += [(job("#SBATCH -c 2 --mem=2G --gres=gpu:2"), ONE_EACH)]
    cases += [(job(body=body), Facts()) for body in (*(case[0] for case in BODIES), *BODIES_TOO)]
    cases += [(job(body="python x"), PYTHONLESS), (job(body="python x"), PYTHON3)]
    cases += [(job("#K8S_SCRIPT=/mnt/nas/a.py", body=""), PYTHONLESS), (job("#K8S_SCRIPT=/mnt/nas/a.py"), Facts())]
    cases += [(job(body="set -e\n#SBATCH --mem=8G"), Facts()), (b"#!/bin/sh\n#K8S_SHM=2G\n:\n", Facts())]
    cases += [(b"\xef\xbb\xbf#!/bin/sh\r\n:\r\n", Facts()), (b"#!/bin/sh\n" + b"#SBATCH x\n" * 150, Facts())]
    cases += [(b"#!/bin/sh\n" + b"#SBATCH '\n" * 150, Facts())]
    for line, state, code, _, _ in FILES:
        cases.append((with_file(line), Facts(files={THE_FILES[code]: state}, submitter="kim")))
    cases.append((with_file("#SBATCH -o /mnt/nas/w/%j"), Facts(files={"/mnt/nas/w/": "unwritable"})))
    for data, facts in cases:
        yield from check(data, facts).findings
    yield problem(WHOLE_FILE, "unreadable", reason="Permission denied")  # by the command, which opens the file


def test_a_reason_starts_with_a_capital_only_in_english() -> None:
    (finding,) = check(job("#SBATCH --gres=gpu:"), Facts()).findings
    assert finding.words("en").why.startswith("It must be name:count")
    assert finding.words("ko").why.startswith("gpu:1이나 gpu:a100:2처럼")


def phrases(values: tuple[tuple[str, object], ...]) -> Iterator[Phrase]:
    for _, value in values:
        if isinstance(value, Phrase):
            yield value
            yield from phrases(value.values)


def test_every_entry_is_said_about_some_file_and_reads_well() -> None:
    found = list(said())
    assert sorted(set(FINDINGS) - {finding.key for finding in found}) == []
    spoken = {phrase.name for finding in found for phrase in phrases(finding.values)}
    assert set(PHRASES) - spoken == {"image-empty"}  # a line without a value has its own finding; commands say it
    for finding in found:
        english, korean = (finding.words(language) for language in ("en", "ko"))
        assert (english.what, english.why, english.fix) == (finding.what, finding.why, finding.fix)
        for text in (korean.what, korean.why, korean.fix):
            assert HANGUL.search(text), (finding.key, text)
            assert "  " not in text
        for words in (english, korean):
            assert "Phrase(" not in words.what + words.why + words.fix
