"""Needs nothing. The worker is killed after each of its steps; asked again, it leaves the bundle that it would have."""

from typing import Any

import pytest

from slurmk8s.results import steps

SHELL = "echo out > stdout.log; echo err > stderr.log; mkdir -p outputs/d; echo 1 > outputs/a; echo 2 > outputs/d/b"
FIRST = {"op": "prepare", "attempt": 0, "submitted": 1.0}
HASH = {"op": "checksums", "attempt": 0}


def scenarios(make_summary: Any, course: Any) -> dict[str, tuple[list[Any], dict[str, Any]]]:
    """What comes before, and the request that is cut short."""
    finish = {"op": "finish", "attempt": 0, "summary": make_summary(), "course": course}
    requeued = {"op": "finish", "attempt": 0, "summary": make_summary(state="requeued"), "course": course}
    again = {"op": "prepare", "attempt": 1, "submitted": 2.0, "handover": True}
    return {
        "first prepare": ([], FIRST),
        "prepare after a requeue": ([FIRST, SHELL, requeued, HASH], again),
        "prepare of another job with the same number": ([FIRST, SHELL, finish, HASH], {**FIRST, "submitted": 9.0}),
        "finish of another job with the same number": ([FIRST, SHELL, finish, HASH], {**finish, "submitted": 9.0}),
        "finish": ([{**FIRST, "handover": True}, SHELL], finish),
        "finish without any prepare": ([], finish),
        "finish after the next attempt began": ([FIRST, SHELL, again], requeued),
        "checksums": ([FIRST, SHELL, finish], HASH),
        "checksums of an earlier attempt": ([FIRST, SHELL, requeued, again], HASH),
    }


def run(person: Any, earlier: list[Any]) -> None:
    """A bundle that has come so far."""
    person.run(["sh", "-c", f"rm -rf {person.root}/12*"])
    for one in earlier:
        if isinstance(one, str):
            person.sh(one)
        else:
            assert person.ask(**one)["ok"]


@pytest.mark.parametrize("name", scenarios(lambda **_: {}, {}))
def test_killed_after_any_step_and_asked_again_the_bundle_is_the_same(
    person: Any, make_summary: Any, course: Any, snapshot: Any, name: str
) -> None:
    earlier, request = scenarios(make_summary, course)[name]
    run(person, earlier)
    whole = person.ask_and_die(None, **request)
    assert whole is not None
    assert whole[0]["ok"]
    expected = snapshot(person.root)
    for step in dict.fromkeys(whole[1]):
        run(person, earlier)
        assert person.ask_and_die(step, **request) is None, step
        assert person.ask(**request)["ok"]
        assert snapshot(person.root) == expected, f"killed after: {step}"


def test_every_step_of_the_list_is_reached_and_every_step_reached_is_in_the_list(
    person: Any, make_summary: Any, course: Any
) -> None:
    """So that a new effect on a bundle cannot be left out of the test above."""
    reached: dict[str, set[str]] = {"prepare": set(), "finish": set(), "checksums": set()}
    for earlier, request in scenarios(make_summary, course).values():
        run(person, earlier)
        done = person.ask_and_die(None, **request)
        assert done is not None
        reached[request["op"]] |= set(done[1])
    assert reached["prepare"] == set(steps.PREPARE)
    assert reached["checksums"] == set(steps.CHECKSUMS)
    # A finish without any prepare makes the bundle too.
    assert reached["finish"] == {*steps.FINISH, "earlier bundle aside", *steps.put(".slurmk8s.json")}
