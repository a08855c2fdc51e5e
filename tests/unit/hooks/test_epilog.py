"""The Epilog returns when the pod is gone for certain, and at once where there never was one."""

from collections.abc import Callable
from typing import Any

import pytest

SHORT = "hook['main'].__globals__['SECONDS_FOR_THE_AGENT'] = 0.7"


def test_done_is_success(node: Any, agent: Callable[..., Any]) -> None:
    node.record.touch()
    with agent({"done": True}) as listening:
        assert node.run("epilog")[:2] == (0, "")
    assert listening.questions == [{"ask": "finish", "job_id": 7}]
    assert "job 7: pod gone" in node.log("epilog")


def test_not_done_is_asked_again(node: Any, agent: Callable[..., Any]) -> None:
    node.record.touch()
    with agent({"done": False, "sentence": "podman hangs."}, {"done": True}) as listening:
        assert node.run("epilog")[0] == 0
    assert len(listening.questions) == 2


def test_a_job_without_a_record_asks_the_agent_all_the_same(node: Any, agent: Callable[..., Any]) -> None:
    """The agent may be just about to make a pod."""
    node.hint.touch()
    with agent({"done": True}) as listening:
        assert node.run("epilog")[0] == 0
    assert len(listening.questions) == 1


def test_no_agent_and_no_record_is_success_and_the_hint_stays_for_the_agent(node: Any) -> None:
    node.hint.touch()
    code, said, seconds = node.run("epilog")
    assert (code, said) == (0, "")
    assert seconds < 2
    assert node.hint.exists()
    assert "it made no pod: done" in node.log("epilog")


def test_twice_is_success(node: Any) -> None:
    assert node.run("epilog")[0] == 0
    assert node.run("epilog")[0] == 0


def test_an_agent_that_restarts_is_waited_for(
    node: Any, agent: Callable[..., Any], wait_for: Callable[..., object]
) -> None:
    """It dies in the middle of the answer and comes back: the record says that there may be a pod."""
    node.record.touch()
    with agent(None) as first:
        process = node.start("epilog")
        wait_for(lambda: first.questions, "the first question", 10)
    with agent({"done": True}) as second:
        said, _ = process.communicate(timeout=10)
    assert (process.returncode, said) == (0, "")
    assert second.questions == [{"ask": "finish", "job_id": 7}]


def test_an_agent_away_with_a_record_fails_in_the_end_and_says_why(node: Any) -> None:
    node.record.touch()
    code, said, _ = node.run("epilog", SHORT)
    assert code == 1
    assert said.startswith("slurmk8s epilog: job 7: the agent does not answer (")
    assert "FAILED, the node will be drained: the agent does not answer" in node.log("epilog")
    assert node.record.exists()


def test_a_pod_that_will_not_die_fails_with_the_agents_words(node: Any, agent: Callable[..., Any]) -> None:
    node.record.touch()
    with agent(*[{"done": False, "sentence": "podman hangs."}] * 50):
        code, said, _ = node.run("epilog", SHORT)
    assert (code, said) == (1, "slurmk8s epilog: job 7: podman hangs.\n")


@pytest.mark.usefixtures("full_socket")
def test_an_agent_that_hangs_is_waited_for_within_the_budget(node: Any) -> None:
    node.record.touch()
    code, _, seconds = node.run("epilog", SHORT)
    assert code == 1
    assert seconds < 5
