"""Rooms are told in plain words, and one room's trouble is nobody else's."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from slurmk8s.after.item import Owner

Make = Callable[..., Any]


def url_file(nas: Path, *urls: str) -> str:
    path = nas / f"urls-{abs(hash(urls))}"
    path.write_text("# a room\n" + "\n".join(urls) + "\n")
    path.chmod(0o600)
    return str(path)


def test_a_room_gets_plain_words(bench: Make, job_item: Make, web_server: Any, nas: Path) -> None:
    """apprise's own JSON service, over a real socket."""
    url = url_file(nas, f"json://127.0.0.1:{web_server.port}/room")
    made = bench(chats={"lab": {"url_file": url}})
    made.hand_over(job_item(name="<!channel> *x* @everyone"))
    made.run(made.is_idle)
    (path, body), *more = web_server.got
    assert (path, more) == ("/room", [])
    told = json.loads(body)
    assert told["title"] == "lab: Job 7 ?!channel? ?x? ?everyone: completed"
    assert "results: " in told["message"]


def test_mattermost_gets_it_in_its_own_form(bench: Make, job_item: Make, web_server: Any, nas: Path) -> None:
    token = "3ccdd113474722377935511fc85d3dd4"
    made = bench(chats={"lab": {"url_file": url_file(nas, f"mmost://127.0.0.1:{web_server.port}/{token}")}})
    made.hand_over(job_item(state="failed", cause="The body ended with exit code 3."))
    made.run(made.is_idle)
    ((path, body),) = web_server.got
    assert path == f"/hooks/{token}"
    assert "lab: Job 7 train: failed" in json.loads(body)["text"]
    assert "exit code 3" in json.loads(body)["text"]


def test_bursts_are_folded_and_a_room_that_is_down_gets_them_later(
    bench: Make, job_item: Make, web_server: Any, nas: Path
) -> None:
    made = bench(chats={"lab": {"url_file": url_file(nas, f"json://127.0.0.1:{web_server.port}/")}})
    web_server.status = 503
    made.hand_over(*(job_item(n) for n in range(1, 31)))
    made.run(lambda: len(web_server.got) >= 2)
    web_server.status = 200
    web_server.got.clear()
    made.run(made.is_idle)
    assert len(web_server.got) == 1
    assert json.loads(web_server.got[0][1])["title"] == "lab: 30 jobs: 30 completed"


def test_a_room_that_hangs_delays_nobody_else(
    bench: Make, job_item: Make, web_server: Any, mail_settings: Any, mail_server: Any, nas: Path
) -> None:
    web_server.silent.set()
    chat = {"url_file": url_file(nas, f"json://127.0.0.1:{web_server.port}/"), "timeout_seconds": 3}
    made = bench(chats={"lab": chat}, mail=mail_settings)
    made.hand_over(job_item())
    made.run(lambda: len(made.spool.names()) == 1)
    assert len(mail_server.got) == 1
    assert [name.split(".", 3)[3] for name in made.spool.names()] == ["chat.lab.json"]
    made.run(lambda: any((item := made.spool.load(name)) and item.tries for name in made.spool.names()))
    (name,) = made.spool.names()
    assert "longer than 3 seconds" in made.spool.load(name).problem


def test_rooms_choose_by_state_partition_and_who_asked(
    bench: Make, job_item: Make, owner: Owner, web_server: Any, nas: Path
) -> None:
    url = f"json://127.0.0.1:{web_server.port}"
    made = bench(
        chats={
            "bad": {"url_file": url_file(nas, f"{url}/bad"), "states": ["failed"]},
            "cpu": {"url_file": url_file(nas, f"{url}/cpu"), "in_partitions": ["cpu"]},
            "asked": {"url_file": url_file(nas, f"{url}/asked"), "asked": True},
        }
    )
    made.hand_over(job_item(1, owner=replace(owner, mail_types=())), job_item(2, state="failed", partition="cpu"))
    made.run(made.is_idle)
    assert sorted((path, json.loads(body)["title"][5:10]) for path, body in web_server.got) == [
        ("/asked", "Job 2"), ("/bad", "Job 2"), ("/cpu", "Job 2"),
    ]  # fmt: skip


def test_an_address_that_everybody_can_read_is_not_used(
    bench: Make, job_item: Make, nas: Path, web_server: Any
) -> None:
    path = url_file(nas, f"json://127.0.0.1:{web_server.port}/")
    os.chmod(path, 0o644)
    made = bench(chats={"lab": {"url_file": path}})
    made.hand_over(job_item())
    made.run(lambda: any((item := made.spool.load(name)) and item.tries for name in made.spool.names()))
    (name,) = made.spool.names()
    assert "chmod 600" in made.spool.load(name).problem
    assert web_server.got == []
