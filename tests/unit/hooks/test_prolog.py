"""The Prolog never waits and never fails: a failing one drains the node, a waiting one cannot be cancelled."""

import shutil
from collections.abc import Callable
from typing import Any

import pytest


def test_the_agent_gets_a_hint(node: Any, agent: Callable[..., Any], wait_for: Callable[..., object]) -> None:
    with agent() as listening:
        assert node.run("prolog")[:2] == (0, "")
        wait_for(lambda: listening.questions, "the hint", 5)
    assert listening.questions == [{"ask": "hint", "job_id": 7}]
    assert node.hint.exists()
    assert node.hint.stat().st_mode & 0o777 == 0o600
    assert "job 7: hint given to the agent" in node.log("prolog")


def test_without_an_agent_it_is_gone_at_once_and_leaves_the_hint(node: Any) -> None:
    code, said, seconds = node.run("prolog")
    assert (code, said) == (0, "")
    assert seconds < 2
    assert node.hint.exists()
    assert "slurmk8s-run will ask it" in node.log("prolog")


def test_a_second_prolog_of_the_same_job_is_no_trouble(node: Any) -> None:
    """A requeued job comes again."""
    node.run("prolog")
    assert node.run("prolog")[0] == 0


@pytest.mark.usefixtures("full_socket")
def test_an_agent_that_hangs_does_not_hold_it(node: Any) -> None:
    code, _, seconds = node.run("prolog")
    assert code == 0
    assert seconds < 2  # its own budget is half a second
    assert node.hint.exists()


def test_a_state_folder_that_cannot_be_written_is_logged(node: Any) -> None:
    shutil.rmtree(node.state)
    node.state.write_text("a file in the place of the folder")
    assert node.run("prolog")[0] == 0
    assert "got no hint" in node.log("prolog")


def test_a_log_that_cannot_be_written_does_not_matter(node: Any) -> None:
    (node.folder / "prolog_node1.log").mkdir()
    code, said, _ = node.run("prolog")
    assert code == 0
    assert "job 7" in said
    assert node.hint.exists()
