"""How findings look: like a compiler's, aligned under Korean, harmless to a terminal."""

import time

from sample_jobs import job

from slurmk8s.jobfile import Facts, Finding, check, render


def test_place_line_caret_and_fix() -> None:
    checked = check(job("#SBATCH --mem=8"), Facts())
    assert render("job.sh", checked.text, checked.findings, "en", colour=False) == (
        "job.sh:3:15: problem: --mem=8 asks for 8 megabytes [memory-unit]\n"
        "    #SBATCH --mem=8\n"
        "                  ^\n"
        "  why: Slurm counts a number without a unit in megabytes, and that is surely not meant.\n"
        "  fix: Write --mem=8G, or --mem=8M if you do mean it.\n"
    )


def test_the_same_in_korean() -> None:
    checked = check(job("#SBATCH --mem=8"), Facts())
    assert render("작업.sh", checked.text, checked.findings, "ko", colour=False) == (
        "작업.sh:3:15: 문제: --mem=8: 메모리를 8메가바이트만 요청하고 있습니다 [memory-unit]\n"
        "    #SBATCH --mem=8\n"
        "                  ^\n"
        "  이유: Slurm은 단위가 없는 수를 메가바이트로 읽습니다. 그런 뜻은 아닐 것입니다.\n"
        "  해결: --mem=8G 라고 쓰세요. 정말 메가바이트라면 --mem=8M 이라고 쓰세요.\n"
    )


def test_the_caret_stands_under_wide_letters() -> None:
    finding = Finding(1, 3, 2, "warning", "empty", "empty")
    lines = render("f", "작업이름", [finding], "en", colour=False).split("\n")
    assert lines[1:3] == ["    작업이름", "        ^^^^"]


def test_the_caret_stands_under_decomposed_korean() -> None:
    finding = Finding(1, 5, 1, "warning", "empty", "empty")
    assert render("f", "\u1112\u1161\u11ab=x", [finding], "en", colour=False).split("\n")[2] == "       ^"


def test_a_file_cannot_steer_the_terminal() -> None:
    finding = Finding(1, 1, 1, "problem", "empty", "empty")
    shown = render("a\x1b[2Jb", "\x1b]0;owned\x07", [finding], "en", colour=False)
    assert "\x1b" not in shown
    assert "\x07" not in shown


def test_a_finding_about_the_whole_file_has_no_line() -> None:
    checked = check(b"", Facts())
    assert render("job.sh", checked.text, checked.findings, "en", colour=False).startswith(
        "job.sh: problem: the file is empty"
    )


def test_colour_only_when_asked_for() -> None:
    checked = check(job("#SBATCH --mem=8"), Facts())
    assert "\x1b[" in render("job.sh", checked.text, checked.findings, "en", colour=True)


def test_an_endless_line_is_cut_around_the_caret() -> None:
    text = "x" * 500_000 + "HERE" + "y" * 500_000
    finding = Finding(1, 500_001, 4, "problem", "empty", "empty")
    lines = render("f", text, [finding], "en", colour=False).split("\n")
    assert len(lines[1]) < 130
    assert lines[1][lines[2].index("^") :].startswith("HERE")
    assert lines[2].strip() == "^^^^"


def test_a_check_takes_milliseconds_even_for_the_largest_file() -> None:
    small = job("#SBATCH --mem=8G")
    large = small + b"echo some line of the body\n" * 100_000
    for data, limit in ((small, 0.02), (large, 2.0)):
        fastest = min(_seconds(data) for _ in range(3))
        assert fastest < limit


def _seconds(data: bytes) -> float:
    start = time.process_time()
    check(data, Facts())
    return time.process_time() - start
