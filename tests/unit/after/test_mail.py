"""Who asks for mail gets it once, whatever dies meanwhile, and not too much of it."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from slurmk8s.after.item import Owner

Make = Callable[..., Any]


def test_one_mail_once_the_bundle_is_complete(
    bench: Make, mail_settings: Any, mail_server: Any, job_item: Make
) -> None:
    made = bench(mail=mail_settings)
    item = job_item()
    made.spool.expect(item.owner, {**item.summary, "complete": False, "checksums": "pending"})
    made.run(lambda: not made.spool.names())
    assert mail_server.got == []
    made.spool.complete(7, 0, {"complete": True, "checksums": "complete"})
    made.run(made.is_idle)
    assert mail_server.subjects == ["[lab] Job 7 train: completed"]
    assert mail_server.to == [["alice@example.org"]]
    text = mail_server.got[0].get_content()
    assert "checksums: complete" in text
    assert mail_server.got[0]["Auto-Submitted"] == "auto-generated"


def test_who_did_not_ask_gets_none(
    bench: Make, mail_settings: Any, mail_server: Any, job_item: Make, owner: Owner
) -> None:
    made = bench(mail=mail_settings)
    made.hand_over(
        job_item(owner=replace(owner, mail_types=())), job_item(8, owner=replace(owner, mail_types=("FAIL",)))
    )
    made.run(made.is_idle)
    assert mail_server.got == []


def test_what_the_agent_may_hand_over_again_is_not_begun(
    bench: Make, mail_settings: Any, mail_server: Any, job_item: Make
) -> None:
    """The debt is paid after the hand-over: until then a crash repeats it."""
    made = bench(mail=mail_settings)
    made.owed = {(7, 0)}
    made.hand_over(job_item(), job_item(8))
    made.run(lambda: len(mail_server.got) == 1)
    made.hand_over(job_item())
    made.owed = set()
    made.run(made.is_idle)
    assert sorted(mail_server.subjects) == ["[lab] Job 7 train: completed", "[lab] Job 8 train: completed"]


def test_a_server_that_is_down_for_a_while_loses_nothing(
    bench: Make, mail_settings: Any, mail_server: Any, job_item: Make
) -> None:
    mail_server.refuse = "451 try later"
    made = bench(mail=mail_settings)
    made.hand_over(job_item(), job_item(8))

    def tries() -> int:
        return sum(item.tries for name in made.spool.names() if (item := made.spool.load(name)))

    made.run(lambda: tries() >= 2)
    assert "451" in next(item.problem for name in made.spool.names() if (item := made.spool.load(name)) and item.tries)
    mail_server.refuse = ""
    made.run(made.is_idle)
    assert len(mail_server.got) == 2


def test_a_closed_port_and_a_recipient_that_is_refused_for_good(
    bench: Make, mail_settings: Any, mail_server: Any, job_item: Make
) -> None:
    made = bench(mail={**mail_settings, "port": 1})
    made.hand_over(job_item())
    made.run(lambda: any((item := made.spool.load(name)) and item.tries for name in made.spool.names()))
    mail_server.refuse = "550 no such person"
    again = bench(mail=mail_settings)
    again.run(again.is_idle)
    assert [(item.job_id, "550" in item.problem) for item in again.spool.given_up()] == [(7, True)]


def test_above_the_hours_number_the_rest_comes_in_one(
    bench: Make, mail_settings: Any, mail_server: Any, job_item: Make, owner: Owner
) -> None:
    made = bench(mail={**mail_settings, "per_hour": 3})
    other = replace(owner, user="bob", mail_user="bob", uid=54322)
    made.hand_over(*(job_item(n) for n in range(1, 31)), job_item(99, owner=other))
    made.run(made.is_idle)
    mine = [message["Subject"] for message, to in zip(mail_server.got, mail_server.to, strict=True) if "alice" in to[0]]
    assert mine == ["[lab] Job 1 train: completed", "[lab] Job 2 train: completed", "[lab] 28 jobs: 28 completed"]
    assert "[lab] 작업 99 train: 완료" in mail_server.subjects  # in his own language
    assert len(mail_server.got) == 4
    made.hand_over(job_item(40), job_item(41))
    made.run(lambda: len(made.spool.names()) == 2)
    started = time.monotonic()
    made.run(lambda: time.monotonic() > started + 1)  # several rounds
    assert len(mail_server.got) == 4


def test_no_wording_of_an_address_is_a_way_past_the_hours_number(
    bench: Make, mail_settings: Any, mail_server: Any, job_item: Make, owner: Owner
) -> None:
    made = bench(mail={**mail_settings, "per_hour": 3})
    made.hand_over(*(job_item(n, owner=replace(owner, mail_user="bob" + "," * n)) for n in range(1, 31)))
    made.run(made.is_idle)
    assert mail_server.to == [["bob@example.org"]] * 3
    assert mail_server.subjects[2] == "[lab] 28 jobs: 28 completed"


def test_what_is_for_others_waits_for_the_next_place_and_is_not_lost(
    bench: Make, mail_settings: Any, mail_server: Any, job_item: Make, owner: Owner
) -> None:
    made = bench(mail={**mail_settings, "per_hour": 2})
    asked = ["bob", "bob,alice", "carol", "alice,bob", "carol"]
    for number, mail_user in enumerate(asked, 1):
        made.hand_over(job_item(number, owner=replace(owner, mail_user=mail_user)))
        made.spool.split(next(made.spool.ready()), ["mail"])

    def waiting() -> list[int]:
        return [item.job_id for name in made.spool.names() if (item := made.spool.load(name))]

    made.run(lambda: len(waiting()) == 2)
    started = time.monotonic()
    made.run(lambda: time.monotonic() > started + 1)  # several rounds
    assert mail_server.to == [["bob@example.org"], ["bob@example.org", "alice@example.org"]]
    assert waiting() == [3, 5]
    (made.spool.folder / "sent" / f"{owner.uid}.json").unlink()  # an hour later
    made.run(made.is_idle)
    assert mail_server.to[2:] == [["carol@example.org"]] * 2


def test_a_mail_of_a_bundle_that_could_not_be_written(
    bench: Make, mail_settings: Any, mail_server: Any, job_item: Make, owner: Owner
) -> None:
    made = bench(mail=mail_settings)
    item = job_item(owner=replace(owner, mail_user="eve@evil.example"))
    made.spool.expect(item.owner, item.summary)
    made.spool.complete(7, 0, {"complete": False, "checksums": "failed: The folder belongs to somebody else."})
    made.run(made.is_idle)
    assert "checksums: failed: The folder belongs to somebody else." in mail_server.got[0].get_content()
    assert mail_server.to == [["alice@example.org"]]
    assert "does not send to" in mail_server.got[0].get_content()


CRASHING = """
import asyncio, os, signal, sys, json
from pathlib import Path
from slurmk8s.after.item import from_json
from slurmk8s.after.runner import Runner
from slurmk8s.after.spool import Spool
from slurmk8s.config import parse
settings = json.loads(sys.stdin.read())
folder, owed = Path(settings["folder"]), Path(settings["owed"])
count = 0
def at(event, args):
    global count
    if event in ("os.rename", "os.remove") and str(args[0]).startswith(str(folder)):
        count += 1
        if count == settings["die_at"]:
            os.kill(os.getpid(), signal.SIGKILL)
spool = Spool(folder).prepare()
sys.addaudithook(at)
async def go():
    runner = Runner(parse(settings["config"], "x"), "node1", spool, None, lambda *_: owed.exists(), None, 0.2)
    item = from_json(settings["item"])
    if owed.exists():
        runner.expect(item.owner, item.summary)
        runner.complete(7, 0, {})
        owed.unlink()
    task = asyncio.create_task(runner.run())
    while spool.names() or list(spool.ready()):
        await asyncio.sleep(0.01)
    task.cancel()
asyncio.run(go())
print(count)
"""


def test_killed_at_every_step_it_is_still_told(
    bench: Make, mail_settings: Any, mail_server: Any, job_item: Make, nas: Path
) -> None:
    """kill -9 before each rename and removal, then a restart: one mail, or twice the same by its Message-ID."""
    made = bench(mail=mail_settings)
    config = made.config.model_dump(mode="json", exclude={"mounts"})
    request = {"config": config, "item": job_item().to_json()}
    steps, twice = 99, []
    for die_at in range(1, steps):
        folder, owed = nas / f"spool-{die_at}", nas / f"owed-{die_at}"
        owed.touch()
        mail_server.got.clear()
        data = json.dumps({**request, "folder": str(folder), "owed": str(owed), "die_at": die_at})
        first = subprocess.run(
            [sys.executable, "-c", CRASHING], input=data, text=True, capture_output=True, check=False
        )
        if first.returncode == 0:
            assert len(mail_server.got) == 1
            break
        assert first.returncode == -9, first.stderr
        data = json.dumps({**request, "folder": str(folder), "owed": str(owed), "die_at": 0})
        subprocess.run([sys.executable, "-c", CRASHING], input=data, text=True, capture_output=True, check=True)
        assert len({message["Message-ID"] for message in mail_server.got}) == 1
        twice += [die_at] if len(mail_server.got) > 1 else []
        assert not list(folder.glob("*/*.json*")) or {path.parent.name for path in folder.glob("*/*.json*")} == {"sent"}
    assert die_at > 5
    assert len(twice) <= 1  # between the server's word and ours
