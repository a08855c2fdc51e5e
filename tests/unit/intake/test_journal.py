import os
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slurmk8s.intake import journal
from slurmk8s.intake.journal import Answer, Submission


def test_the_first_writer_of_a_fact_wins(tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        assert journal.read(folder, journal.ANSWER) is None
        assert journal.record(folder, journal.ANSWER, b"first")
        assert not journal.record(folder, journal.ANSWER, b"second")
        assert journal.read(folder, journal.ANSWER) == b"first"
    finally:
        os.close(folder)
    assert [path.name for path in tmp_path.iterdir()] == [journal.ANSWER]


@given(script=st.binary(), options=st.lists(st.text()), remarks=st.text(), release=st.booleans())
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_a_submission_comes_back_as_it_was(script: bytes, options: list[str], remarks: str, release: bool) -> None:
    submission = Submission(script, tuple(options), release, "/results/%j", remarks)
    assert Submission.from_bytes(submission.to_bytes()) == submission


@given(st.none() | st.integers(1, 2**32), st.text(), st.booleans())
def test_an_answer_comes_back_as_it_was(job_id: int | None, text: str, release: bool) -> None:
    answer = Answer(job_id, text, release)
    assert Answer.from_bytes(answer.to_bytes()) == answer
