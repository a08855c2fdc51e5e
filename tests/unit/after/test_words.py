"""What people read holds no more than what we meant to say, whatever a job is called."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmk8s.after import words
from slurmk8s.after.item import Item
from slurmk8s.after.send import composed
from slurmk8s.language import Language

HEADERS = {"From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted"}
MIME = {"Content-Type", "Content-Transfer-Encoding", "MIME-Version"}


def mail(subject: str, text: str) -> Any:
    return composed(
        {
            "from": "slurmk8s@example.org",
            "to": ["alice@example.org"],
            "subject": subject,
            "text": text,
            "message_id": "<1@example.org>",
        }
    )


def test_a_mail_says_why_where_and_how_long(job_item: Any) -> None:
    message = words.about_job(
        job_item(cause="Out of memory.", state="out_of_memory").summary, "lab", "/mnt/nas/results"
    )
    assert message.subject == "[lab] Job 7 train: ran out of memory"
    assert message.text.splitlines()[0] == "Out of memory."
    assert "results: /mnt/nas/results/7" in message.text
    assert "running: 1 h 00 min" in message.text


def test_the_same_in_korean(job_item: Any) -> None:
    message = words.about_job(job_item(state="failed").summary, "lab", "/mnt/nas/results", "ko")
    assert message.subject == "[lab] 작업 7 train: 실패"
    assert "결과: /mnt/nas/results/7" in message.text
    assert "체크섬: 모두 있음" in message.text


@given(name=st.text(max_size=300), cause=st.text(max_size=600))
def test_no_name_makes_a_header_or_a_second_line(name: str, cause: str) -> None:
    summary = {"job_id": 7, "name": name, "state": "failed", "cause": cause, "nodes": [name], "partition": name}
    message = words.about_job(summary, "lab", "/r")
    sent = mail(message.subject, message.text)
    assert set(sent.keys()) == HEADERS | MIME
    # As read by another program, from the bytes on the wire.
    head = sent.as_bytes().partition(b"\n\n")[0]
    starts = [line.partition(b":")[0].decode() for line in head.splitlines() if not line.startswith((b" ", b"\t"))]
    assert set(starts) == HEADERS | MIME
    assert len(message.text.splitlines()) <= 12


def test_a_line_break_in_a_name_stays_in_its_line(job_item: Any) -> None:
    item = job_item(name="x\r\nBcc: eve@evil.example\r\n\r\nhello\u2028\u202egnp.exe")
    message = words.about_job(item.summary, "lab", "/r")
    assert message.subject == "[lab] Job 7 x Bcc: eve@evil.example hello gnp.exe: completed"
    assert mail(message.subject, message.text)["Bcc"] is None


@given(name=st.text(max_size=200))
def test_nothing_is_left_that_a_chat_room_reads_something_into(name: str) -> None:
    summary = {"job_id": 7, "name": name, "state": "failed", "cause": name, "partition": name}
    told = words.for_chat(words.about_job(summary, "lab", "/r"))
    assert not set("@<>[]`*|~\\&{}$^") & set(told.subject + told.text)
    assert "://" not in told.subject + told.text


@pytest.mark.parametrize("name", ["@everyone", "<!channel>", "[free](https://evil.example)", "`rm`", "<b>x</b>"])
def test_mentions_and_links_lose_what_makes_them(name: str, job_item: Any) -> None:
    told = words.for_chat(words.about_job(job_item(name=name).summary, "lab", "/r"))
    assert name not in told.subject


def test_many_jobs_in_one_message_are_counted_and_cut(job_item: Any) -> None:
    items = [job_item(job_id=n, state="failed" if n % 4 == 0 else "completed") for n in range(1, 101)]
    message = words.about_several(items, "lab", "/r")
    assert message.subject == "[lab] 100 jobs: 75 completed, 25 failed"
    assert "… and 50 more" in message.text


def test_an_array_names_the_tasks_that_did_not_end_well(job_item: Any) -> None:
    item: Item = job_item(array={"job_id": 40, "task_id": 3})
    tasks = ((1, 41, "completed"), (2, 42, "failed"), (3, 40, "completed"))
    message = words.about_array(replace(item, tasks=tasks), "lab", "/r")
    assert message.subject == "[lab] Job array 40 train: 2 completed, 1 failed"
    assert message.text == "task 2: failed → /r/42\n"


@pytest.mark.parametrize(
    ("language", "said"),
    [("en", "does not send to; it allows @example.org."), ("ko", "허용된 도메인: @example.org")],
)
def test_an_address_that_is_not_allowed_is_told_in_the_persons_language(
    job_item: Any, language: Language, said: str
) -> None:
    item: Item = job_item(state="failed")
    assert said in words.about_job(item.summary, "lab", "/r", language, "@example.org").text
    array = replace(item, tasks=((1, 7, "failed"),))
    assert said in words.about_array(array, "lab", "/r", language, "@example.org").text
