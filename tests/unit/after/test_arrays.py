"""One message about all tasks of an array, wherever they ran."""

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from slurmk8s.after.item import Item, Owner
from slurmk8s.slurm.client import Job

Make = Callable[..., Any]


@pytest.fixture
def task_job() -> Make:
    def make(job_id: int, state: str = "COMPLETED", nodes: tuple[str, ...] = ("node1",)) -> Job:
        words = dict.fromkeys(
            ("name", "user", "partition", "account", "reason", "comment", "admin_comment", "batch_host"), ""
        )
        more: dict[str, Any] = dict.fromkeys(("work_folder", "stdout", "stderr", "time_limit"), "")
        times: dict[str, Any] = dict.fromkeys(("submitted", "started", "ended", "array_job_id", "array_task_id"))
        return Job(
            job_id=job_id, uid=1, gid=1, state=state, exit_code="0:0", restarts=0, requeue=True, nodes=nodes,
            **words, **more, **times,
        )  # fmt: skip

    return make


def tasks(job_item: Make, owner: Owner, *numbers: int, state: str = "completed", **changes: Any) -> list[Item]:
    owner = replace(owner, **changes)
    return [
        job_item(40 + number, owner=owner, array={"job_id": 40, "task_id": number}, state=state) for number in numbers
    ]


def test_an_array_on_two_nodes_is_one_message_when_all_is_over(
    bench: Make, mail_settings: Any, mail_server: Any, job_item: Make, owner: Owner, task_job: Make, nas: Path
) -> None:
    """Two agents, each with its own spool; the list on the NAS says which tasks ended and who tells."""
    one, two = bench(mail=mail_settings), bench(mail=mail_settings)
    two.spool.folder = nas / "after-two"
    two.spool.prepare()
    one.hand_over(*tasks(job_item, owner, 1, 2))
    one.slurm.arrays[40] = [task_job(41), task_job(42), task_job(43, "RUNNING"), task_job(40, "PENDING", ())]
    one.run(lambda: (nas / "results/.array-40").is_dir() and len(list((nas / "results/.array-40").iterdir())) == 2)
    assert mail_server.got == []
    # Task 3 ended badly on the other node, and the tasks that never ran were cancelled.
    over = [task_job(41), task_job(43, "FAILED"), task_job(40, "CANCELLED", ())]
    one.slurm.arrays[40] = over
    one.run(lambda: one.spool.names() and "43" not in str(list((nas / "results/.array-40").iterdir())))
    assert mail_server.got == []  # its bundle is not there yet
    two.slurm.arrays[40] = over
    two.hand_over(*tasks(job_item, owner, 3, state="failed"))
    two.run(two.is_idle, node="node2")
    one.run(one.is_idle)
    assert mail_server.subjects == ["[lab] Job array 40 train: 2 completed, 1 failed"]
    # A task that comes late makes no second message.
    two.hand_over(*tasks(job_item, owner, 4))
    two.run(two.is_idle, node="node2")
    assert len(mail_server.got) == 1


def test_an_array_of_thousands_is_told(
    bench: Make, mail_settings: Any, mail_server: Any, job_item: Make, owner: Owner, nas: Path
) -> None:
    made = bench(mail=mail_settings)
    folder = nas / "results" / ".array-40"
    folder.mkdir(mode=0o700)
    for number in range(5000):  # as other nodes have noted them
        (folder / f"{number}.{100_000 + number}.completed").touch()
    subprocess.run(["chown", "-R", f"{owner.uid}:{owner.gid}", folder], check=True)
    made.hand_over(*tasks(job_item, owner, 5000))
    made.run(made.is_idle)
    assert mail_server.subjects == ["[lab] Job array 40 train: 5001 completed"]


def test_with_array_tasks_each_is_told(
    bench: Make, mail_settings: Any, mail_server: Any, job_item: Make, owner: Owner
) -> None:
    made = bench(mail=mail_settings)
    made.hand_over(*tasks(job_item, owner, 1, 2, mail_types=("END", "ARRAY_TASKS")))
    made.run(made.is_idle)
    assert sorted(mail_server.subjects) == ["[lab] Job 40_1 train: completed", "[lab] Job 40_2 train: completed"]


def test_an_array_that_ended_well_is_no_news_to_who_asks_for_failures(
    bench: Make, mail_settings: Any, mail_server: Any, job_item: Make, owner: Owner
) -> None:
    made = bench(mail=mail_settings)
    made.hand_over(*tasks(job_item, owner, 1, 2, mail_types=("FAIL",)))
    made.run(made.is_idle)
    assert mail_server.got == []
