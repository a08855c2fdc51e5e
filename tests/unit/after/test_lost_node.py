"""A node that was lost comes back while the head node completes its jobs' bundles: people are told once."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from slurmk8s.after.runner import Runner
from slurmk8s.after.spool import Spool
from slurmk8s.agent.debts import Debts
from slurmk8s.agent.record import Record, Store
from slurmk8s.ops.last_seen import Book
from slurmk8s.ops.lost_jobs import LostJobs
from slurmk8s.results.summary import HEAD, NODE, NODE_AFTER_HEAD, Summary, Times

Make = Callable[..., Any]


@pytest.fixture
def summary(owner: Any) -> Summary:
    """The head node's account."""
    return Summary(
        *("lab", 7, None, "train", owner.user, owner.uid, "", "gpu", 0, "node1", ("node1",), "image", None, "/w"),
        *("body", (), 1, 1, Times(), "node_fail", None, None, "Node node1 was lost.", "node"),
        written_by=HEAD,
    )


@pytest.fixture
def head(
    bench: Make, mail_settings: Any, nas: Path, everyones_python: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Any, Store, Callable[[], None]]:
    """The head node with its spool and its debts, and a look at which every node answers."""
    monkeypatch.setattr(sys, "executable", str(everyones_python))
    monkeypatch.setattr(LostJobs, "_asked", lambda *_: Book())
    made, store = bench(mail=mail_settings), Store(nas / "head")
    slurm: Any = made.slurm

    def look() -> None:
        runner = Runner(made.config, "head", made.spool, slurm, store.is_owed)
        debts = Debts("head", made.config, slurm, store, runner)
        asyncio.run(LostJobs(made.config, slurm).look(made.config, store, debts, runner))

    return made, store, look


def owe(store: Store, summary: Summary) -> None:
    store.owe(
        Record(
            summary.job_id, summary.attempt, summary.name, summary.user, summary.uid, summary.uid, (), "", "gpu",
            summary.nodes, None, may_requeue=False, time_limit="1:00", cpus=1, memory_mb=1, gpus=(), submitted=1.0,
            started=2.0, state="node_fail", summarised=True,
        )
    )  # fmt: skip


def write(nas: Path, summary: Summary) -> None:
    folder = nas / "results" / str(summary.job_id)
    folder.mkdir(exist_ok=True)
    (folder / "summary.json").write_bytes(summary.encode())
    subprocess.run(["chown", "-R", f"{summary.uid}:{summary.uid}", folder], check=True)


@pytest.mark.parametrize(
    ("written_by", "from_head", "from_node"), [(HEAD, 1, 0), (NODE_AFTER_HEAD, 1, 0), (NODE, 0, 1), (None, 0, 1)]
)
def test_who_wrote_the_first_summary_tells_when_the_node_is_back(
    head: Any, bench: Make, mail_server: Any, mail_settings: Any, nas: Path, summary: Summary, owner: Any,
    written_by: str | None, from_head: int, from_node: int,
) -> None:  # fmt: skip
    made, store, look = head
    made.spool.expect(owner, summary.to_json())
    owe(store, summary)
    if written_by:
        write(nas, replace(summary, written_by=written_by))
    look()
    assert list(store.owed()) == []
    made.run(made.is_idle)
    assert len(mail_server.got) == from_head
    node = bench(mail=mail_settings)
    node.spool = Spool(nas / "node1").prepare()
    node.spool.expect(owner, replace(summary, written_by=NODE).to_json())
    # What its worker finds in the bundle then: its own account, after the head node's or without one.
    node.spool.complete(7, 0, {"written_by": NODE if written_by in (NODE, None) else NODE_AFTER_HEAD})
    node.run(node.is_idle)
    assert len(mail_server.got) == from_head + from_node == 1


def test_while_the_bundle_cannot_be_seen_the_debt_stays(head: Any, nas: Path, summary: Summary, owner: Any) -> None:
    made, store, look = head
    made.spool.expect(owner, summary.to_json())
    owe(store, summary)
    nowhere = made.config.nas.model_copy(update={"require_mountpoint": True})
    made.config = made.config.model_copy(update={"nas": nowhere})
    look()
    assert len(list(store.owed())) == 1
    assert os.listdir(nas / "after" / "coming") == ["7.0.json"]


def test_the_head_node_tells_though_the_node_has_written_anew_meanwhile(
    head: Any, mail_server: Any, summary: Summary, owner: Any
) -> None:
    """It has hashed to the end, and finds in the bundle that the node was faster with its own account."""
    made, _, _ = head
    made.spool.expect(owner, summary.to_json())
    made.spool.complete(7, 0, {"checksums": "complete", "complete": True, "written_by": NODE_AFTER_HEAD})
    made.run(made.is_idle)
    assert len(mail_server.got) == 1
