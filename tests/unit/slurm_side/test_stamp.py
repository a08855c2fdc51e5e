"""Stamps and the words in comments. Needs nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmk8s.errors import PersonFault
from slurmk8s.slurm import stamp

KEY = "0123456789abcdef" * 2


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_any_lines_come_back_and_are_one_plain_word(lines: str) -> None:
    encoded = stamp.encode(lines)
    assert stamp.decode(encoded) == lines
    assert not set(encoded.removeprefix(stamp.PREFIX)) & set(" =\n\t\"'#")


def test_bytes_that_are_not_utf8_come_back() -> None:
    lines = b"#K8S_WORKDIR=/\xff".decode(errors="surrogateescape")
    assert stamp.decode(stamp.encode(lines)) == lines


@pytest.mark.parametrize("other", ["", "slurmk8s", "an admin's note", "xslurmk8s/1:a"])
def test_what_is_not_ours_holds_no_lines(other: str) -> None:
    assert stamp.decode(other) == ""
    assert not stamp.is_stamped(other)


@pytest.mark.parametrize(
    "broken", ["slurmk8s/2:a", "slurmk8s/1:%4", "slurmk8s/1:%zz", "slurmk8s/1:a b", "slurmk8s/1:a=b", "slurmk8s/1:a\n"]
)
def test_a_broken_stamp_is_an_error(broken: str) -> None:
    with pytest.raises(ValueError, match="not one of version 1"):
        stamp.decode(broken)


def test_the_key_follows_the_persons_words() -> None:
    assert stamp.with_key("my words", KEY) == f"my words slurmk8s-key={KEY}"
    assert stamp.with_key("", KEY) == f"slurmk8s-key={KEY}"
    assert stamp.key_of(f"my words slurmk8s-key={KEY} slurmk8s") == KEY


def test_a_copied_key_is_replaced() -> None:
    other = "f" * 32
    assert stamp.with_key(f"x slurmk8s-key={other} slurmk8s", KEY) == f"x slurmk8s slurmk8s-key={KEY}"
    assert stamp.key_of(f"slurmk8s-key={other} slurmk8s-key={KEY}") == KEY


@pytest.mark.parametrize(
    "comment", ["", "slurmk8s-key=", f"xslurmk8s-key={KEY}", f"slurmk8s-key={KEY}0", f"slurmk8s-key={KEY.upper()}"]
)
def test_only_a_whole_word_is_a_key(comment: str) -> None:
    assert stamp.key_of(comment) is None


def test_a_comment_that_no_longer_fits_is_told_in_bytes() -> None:
    room = 1024 - len(f" slurmk8s-key={KEY} slurmk8s")
    assert len(stamp.with_key("x" * room, KEY)) + len(" slurmk8s") == 1024
    with pytest.raises(PersonFault, match=r"1026 bytes, and Slurm takes 1024\. Shorten --comment by 2 bytes"):
        stamp.with_key("x" * (room - 1) + "한", KEY)


def test_a_requeue_reason_replaces_the_one_before_and_never_grows_too_long() -> None:
    once = stamp.with_requeue_reason("mine slurmk8s", "the  registry\nis down")
    assert once == "mine slurmk8s requeued: the registry is down"
    assert stamp.with_requeue_reason(once, "again") == "mine slurmk8s requeued: again"
    assert len(stamp.with_requeue_reason("mine", "한" * 1000).encode()) <= 1024
    assert stamp.with_requeue_reason("x" * 1020, "no room") == "x" * 1020


def test_a_stamp_counts_how_often_the_job_only_waited() -> None:
    lines = "#K8S_IMAGE=a!b:1"
    first = stamp.encode(lines)
    assert stamp.waits(first) == 0
    third = stamp.with_wait(stamp.with_wait(stamp.with_wait(first)))
    assert stamp.waits(third) == 3
    assert stamp.decode(third) == lines
    assert stamp.is_stamped(third)


@pytest.mark.parametrize("other", ["", "somebody's own words", "slurmk8s/2:x!4", "slurmk8s/1:x!", "slurmk8s/1:x!-1"])
def test_what_is_no_stamp_has_waited_never(other: str) -> None:
    assert stamp.waits(other) == 0


def test_a_key_tells_when_its_drop_was_taken() -> None:
    key = stamp.new_key("a secret", 1700000000.25)
    assert stamp.key_of(stamp.with_key("mine", key)) == key
    comment = stamp.with_key("mine", key)
    assert stamp.dropped_at(comment, 1700000001.0) == 1700000000.25
    assert stamp.dropped_at("mine", 1700000001.0) is None
    assert stamp.new_key("another secret", 1700000000.25) != key


@pytest.mark.parametrize("key", [KEY, "f" * 32, "0" * 32])
def test_a_key_of_somebodys_own_tells_no_time(key: str) -> None:
    assert stamp.dropped_at(f"slurmk8s-key={key}", 1700000001.0) is None


def test_no_drop_is_taken_after_its_job_was_submitted() -> None:
    key = stamp.new_key("a secret", 1700000100.0)
    assert stamp.dropped_at(f"slurmk8s-key={key}", 1700000001.0) is None
