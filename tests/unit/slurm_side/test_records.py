"""Reading squeue and scontrol. The texts are as 22.05 prints them. Needs nothing."""

import time

import pytest

from slurmk8s.errors import PersonFault
from slurmk8s.slurm import records

VALUES = dict.fromkeys(records.FIELDS, "") | {
    "JobID": "7",
    "ArrayJobID": "7",
    "ArrayTaskID": "N/A",
    "HetJobID": "N/A",
    "HetJobOffset": "N/A",
    "UserID": "1001",
    "GroupID": "1002",
    "UserName": "kim",
    "State": "RUNNING",
    "Reason": "None",
    "exit_code": "0",
    "RestartCnt": "2",
    "Requeue": "1",
    "NodeList": "node[1-3]",
    "SubmitTime": "1794796030",
    "StartTime": "1794796031",
    "EndTime": "1794796099",
    "PreemptTime": "N/A",
    "WorkDir": "/tmp",
}

SHOWN = (
    "JobId=7 JobName=x UserId=kim(1001) TRES=cpu=3 Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=* JOB_GRES=gpu:5 "
    "  Nodes=node[1-2] CPU_IDs=0-1,4 Mem=1000 GRES=gpu:a100:2(IDX:0,3)   Nodes=node3 CPU_IDs=0 Mem=500 "
    "GRES=gpu:a100:1(IDX:2),gpu:t4:2(IDX:5-6),shard:t4:1(5:1) MinCPUsNode=1 MinMemoryNode=1000M Network=(null) "
    "Command=(null) WorkDir=/tmp AdminComment=slurmk8s/1:abc  Comment=c  StdErr=/tmp/e r StdIn=/dev/null "
    "StdOut=/tmp/o u Power= TresPerNode=gres:gpu:1 \n"
)


def row(**changes: str) -> dict[str, str]:
    return VALUES | changes


def test_each_node_has_its_own_share() -> None:
    found = records.detail(SHOWN, row())
    assert found.cpus == {"node1": 3, "node2": 3, "node3": 1}
    assert found.memory_mb == {"node1": 1000, "node2": 1000, "node3": 500}
    assert found.gpus == {"node1": (0, 3), "node2": (0, 3), "node3": (2, 5, 6)}
    assert (found.admin_comment, found.stdout, found.stderr) == ("slurmk8s/1:abc", "/tmp/o u", "/tmp/e r")


def test_who_is_to_be_written_to_is_printed_last() -> None:
    shown = SHOWN.replace(" \n", " MailUser=kim@lab.example MailType=END,FAIL,ARRAY_TASKS \n")
    shown = shown.replace("Comment=c", "Comment=c MailUser=eve MailType=ALL")
    found = records.detail(shown, row())
    assert (found.mail_user, found.mail_types) == ("kim@lab.example", ("END", "FAIL", "ARRAY_TASKS"))
    assert found.stdout == "/tmp/o u"
    assert records.detail(SHOWN, row()).mail_types == ()
    assert records.detail(SHOWN.replace(" \n", " MailUser=kim MailType=NONE \n"), row()).mail_types == ()


def test_a_job_without_nodes_has_no_share() -> None:
    shown = "X NtasksPerN:B:S:C=0:0:*:* CoreSpec=* MinCPUsNode=1 WorkDir=/tmp StdErr=/e StdIn=/i StdOut=/o Power= \n"
    assert records.detail(shown, row()) == records.Detail("", "/o", "/e")


@pytest.mark.parametrize("anchor", records.ALLOCATION)
def test_a_second_anchor_anywhere_is_refused(anchor: str) -> None:
    for shown in (f"JobId=7 JobName={anchor}x {SHOWN}", SHOWN.replace("Comment=c", f"Comment=c{anchor}")):
        with pytest.raises(PersonFault, match="Job 7 cannot be read"):
            records.detail(shown, row())


def test_a_record_without_anchors_is_refused() -> None:
    with pytest.raises(PersonFault):
        records.detail("", row())


def test_a_comment_changed_between_the_questions_is_no_stamp() -> None:
    """The comment is the one text of a running job that its owner can still change."""
    plain = SHOWN.replace("AdminComment=slurmk8s/1:abc  ", "").replace(
        "Comment=c", "Comment=c AdminComment=slurmk8s/1:evil "
    )
    assert records.detail(plain, row(Comment="harmless")).admin_comment == ""


def test_rows_are_divided_by_the_word_alone() -> None:
    word = records.divider()
    assert word != records.divider()
    evil = {"Name": "a\nb|c", "Comment": "x\n"}
    printed = "".join(
        "".join(f"{value}{word}" for value in each.values()) + "\n" for each in (row(**evil), row(JobID="8"))
    )
    first, second = records.rows(printed, word)
    assert (first["Name"], first["Comment"], second["JobID"]) == ("a\nb|c", "x\n", "8")
    assert list(records.rows("", word)) == []
    with pytest.raises(ValueError, match="not a multiple"):
        list(records.rows(f"7{word}", word))


@pytest.mark.parametrize(
    ("reason", "status", "state"),
    [
        ("TimeLimit", 15, "TIMEOUT"),
        ("NonZeroExitCode", 768, "FAILED"),
        ("RaisedSignal:9", 9, "FAILED"),
        ("OutOfMemory", 0, "OUT_OF_MEMORY"),
        ("NodeDown", 0, "NODE_FAIL"),
        ("None", 15, "CANCELLED"),
        ("None", 0, "COMPLETING"),
    ],
)
def test_the_end_of_a_completing_job_is_read_from_its_reason(reason: str, status: int, state: str) -> None:
    job = records.job(row(State="COMPLETING", Reason=reason, exit_code=str(status)), records.Detail())
    assert (job.state, job.completing) == (state, True)


def test_exit_codes_are_written_as_scontrol_does() -> None:
    for status, written in ((0, "0:0"), (768, "3:0"), (15, "0:15"), (9, "0:9"), (36608, "143:0"), (4021, "0:53")):
        assert records.job(row(exit_code=str(status)), records.Detail()).exit_code == written


def test_expected_times_are_not_taken_for_real_ones() -> None:
    later = str(int(time.time()) + 3600)
    waiting = records.job(row(State="PENDING", StartTime=later), records.Detail())
    assert (waiting.started, waiting.ended) == (None, None)
    assert records.job(row(EndTime=later), records.Detail()).ended is None
    assert records.job(row(State="COMPLETING", EndTime=later), records.Detail()).ended is None
    assert records.job(row(State="COMPLETED"), records.Detail()).ended == 1794796099


def test_scontrol_is_asked_for_exactly_one_record() -> None:
    assert records.show_name(row()) == "7"
    assert records.show_name(row(ArrayJobID="5", ArrayTaskID="3")) == "5_3"
    assert records.show_name(row(ArrayJobID="7", ArrayTaskID="4-9%2")) == "7_4"
    assert records.show_name(row(HetJobID="6", HetJobOffset="1")) == "6+1"
