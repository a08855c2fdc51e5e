"""Why a drop waits, and where drops are taken, as people read it."""

from typing import Literal

import pytest

from slurmk8s.config import Intake
from slurmk8s.errors import SlurmFull, SlurmUnreachable
from slurmk8s.intake import texts
from slurmk8s.slurm import full

LIMITS = [*full.SUBMIT_LIMITS, "MaxJobCount", "rate", "closed"]


@pytest.mark.parametrize("limit", LIMITS)
def test_every_limit_has_its_sentence_in_korean(limit: str) -> None:
    told = texts.cause("ko", SlurmFull("full", limit=limit, user="kim", most=10))
    assert any("가" <= letter <= "힣" for letter in told)
    assert "{" not in told
    assert ("10" in told) == (limit not in ("rate", "closed"))


def test_a_number_that_is_not_known_leaves_no_gap() -> None:
    told = texts.cause("ko", SlurmFull("full", limit="AssocMaxSubmitJobLimit", user="kim"))
    assert "작업 수에 도달" in told
    assert "kim" in told


def test_in_english_the_fault_speaks_for_itself() -> None:
    assert texts.cause("en", SlurmFull("No room.", limit="MaxJobCount")) == "No room."
    assert texts.cause("ko", SlurmUnreachable("No answer.")).endswith("No answer.")


@pytest.mark.parametrize(("identity", "place"), [("owner", "into this folder"), ("folder", "submit/<your user name>/")])
def test_the_guide_says_where_files_are_taken(identity: Literal["owner", "folder"], place: str) -> None:
    assert place in texts.readme("en", Intake(identity=identity), "hub", "/mnt/nas/results").splitlines()[0]
