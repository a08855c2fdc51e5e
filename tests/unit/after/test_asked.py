"""Who is written to, when, where and how often: what people ask for within what the site allows."""

import pytest

from slurmk8s.after import cap
from slurmk8s.after.asked import recipients, wants, wants_array
from slurmk8s.after.choose import chosen
from slurmk8s.after.item import Item, Owner
from slurmk8s.config import parse
from slurmk8s.config.after import After, Mail
from slurmk8s.errors import SetupError

MAIL = Mail(host="mx", domain="example.org", allowed_domains=("lab.example",))


@pytest.mark.parametrize(
    ("types", "state", "wanted"),
    [
        (("END",), "completed", True),
        (("END",), "failed", True),
        (("END",), "cancelled", True),
        (("FAIL",), "completed", False),
        (("FAIL",), "cancelled", False),
        (("FAIL",), "timeout", True),
        (("FAIL",), "out_of_memory", True),
        (("ALL",), "completed", True),
        (("ALL",), "requeued", True),
        (("END", "FAIL"), "requeued", False),
        (("REQUEUE",), "requeued", True),
        (("BEGIN", "TIME_LIMIT_80"), "completed", False),
        ((), "failed", False),
    ],
)
def test_mail_types_mean_what_slurm_makes_of_them(types: tuple[str, ...], state: str, *, wanted: bool) -> None:
    assert wants(types, state) is wanted


def test_an_array_that_ended_well_is_no_news_to_who_asks_for_failures() -> None:
    assert not wants_array(("FAIL",), ["completed", "completed"])
    assert wants_array(("FAIL",), ["completed", "timeout"])
    assert wants_array(("END",), ["completed"])


@pytest.mark.parametrize(
    ("asked", "got", "told"),
    [
        ("", ("alice@example.org",), False),
        ("alice", ("alice@example.org",), False),
        ("bob@lab.example", ("bob@lab.example",), False),
        ("bob@LAB.example,alice", ("bob@LAB.example", "alice@example.org"), False),
        ("eve@evil.example", ("alice@example.org",), True),
        ("eve@evil.example,bob@lab.example", ("bob@lab.example",), True),
        ("x@example.org.evil.example", ("alice@example.org",), True),
        ("a b@example.org", ("alice@example.org",), True),
        ("-oQ/tmp@example.org", ("alice@example.org",), True),
        ('"x\ny"@example.org', ("alice@example.org",), True),
        ("bob@evil.example@example.org", ("alice@example.org",), True),
        (",".join(f"u{n}@example.org" for n in range(9)), tuple(f"u{n}@example.org" for n in range(5)), True),
    ],
)
def test_mail_goes_to_allowed_domains_only(asked: str, got: tuple[str, ...], *, told: bool) -> None:
    addresses, allowed = recipients("alice", asked, MAIL)
    assert addresses == got
    assert bool(allowed) is told


def test_above_the_cap_the_rest_goes_together_then_waits() -> None:
    now = 10_000.0
    assert cap.portion(3, [], 5, now) == cap.Portion(3, 0)
    assert cap.portion(5, [], 5, now) == cap.Portion(5, 0)
    assert cap.portion(90, [], 5, now) == cap.Portion(4, 86)
    assert cap.portion(90, [now - 10] * 4, 5, now) == cap.Portion(0, 90)
    assert cap.portion(2, [now - 3000, *[now - 10] * 4], 5, now) == cap.Portion(0, 0, now + 600)
    assert cap.portion(2, [now - 4000] * 9, 5, now) == cap.Portion(2, 0)
    assert cap.portion(2, [], 1, now) == cap.Portion(0, 2)


@pytest.mark.parametrize(
    ("after", "words"),
    [
        ({"mail": {"host": "mx"}}, "needs `domain`"),
        ({"mail": {"host": "mx", "domain": "x.org", "sender": "a\nb@x.org"}}, "is not an address"),
        ({"commands": {"x": {"run": ["tool"]}}}, "whole path"),
        ({"commands": {"../x": {"run": ["/bin/true"]}}}, "after.commands"),
        ({"chats": {"lab": {}}}, "url_file"),
        ({"chats": {"lab": {"url_fil": "/x"}}}, "did you mean 'url_file'"),
    ],
)
def test_mistakes_in_the_configuration_are_told(after: dict[str, object], words: str) -> None:
    with pytest.raises(SetupError, match=words.replace("[", r"\[")):
        parse({"after": after}, "config.toml")


@pytest.mark.parametrize(
    ("writer", "actions"),
    [
        ("node", ["mail", "chat.room", "command.book"]),
        ("head node", ["mail", "chat.room", "command.book"]),
        ("node after head node", ["command.book"]),
    ],
)
def test_nobody_is_written_to_again_when_a_lost_node_tells_after_the_head_node(writer: str, actions: list[str]) -> None:
    settings = After.model_validate(
        {
            "mail": {"host": "mx", "domain": "example.org"},
            "chats": {"room": {"url_file": "/etc/room"}},
            "commands": {"book": {"run": ["/bin/true"]}},
        }
    )
    owner = Owner("kim", 1000, 1000, (1000,), mail_types=("FAIL",))
    item = Item("", 7, 0, owner, {"state": "node_fail", "written_by": writer}, 0.0)
    assert chosen(item, settings) == actions
