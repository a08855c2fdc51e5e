"""One sentence about a job, from what was found. Needs nothing."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from why_samples import NODE, NOW, SUMMARY, running, seen

from slurmk8s.ops import overview, stage
from slurmk8s.ops.evidence import Evidence, Results
from slurmk8s.ops.stage import Stage
from slurmk8s.ops.why import explain
from slurmk8s.slurm.queue import Place

ROOT = Path("/mnt/nas/results")
NOTHING = Results(ROOT)


def found(**changes: Any) -> Evidence:
    return replace(Evidence("7", NOTHING, now=NOW), **changes)


def test_a_waiting_job_is_told_with_its_place_and_the_evidence() -> None:
    answer = explain(found(seen=seen("Resources"), place=Place("gpu", 1, 4), nodes={"gpu1": NODE}))
    assert answer.state == "pending"
    assert answer.sentence.startswith("Job 7 (train) waits because what it asks for is not free now (4 CPUs,")
    assert answer.sentence.endswith("it is 1st of 4 in partition gpu.")
    assert answer.evidence[0] == "Slurm: JobState=PENDING Reason=Resources Priority=500 Partition=gpu"
    assert answer.evidence[1].startswith("partition gpu: 1 of 1 node takes jobs; the freest, gpu1, has 2 of 8 CPUs")


def test_nodes_are_no_evidence_for_a_job_that_is_held() -> None:
    answer = explain(found(seen=seen("JobHeldUser"), nodes={"gpu1": NODE}))
    assert len(answer.evidence) == 1


def test_a_requeued_job_is_told_with_the_end_of_the_attempt_before() -> None:
    cause = "The registry does not answer. The next attempt follows."
    before = replace(SUMMARY, state="requeued", cause=cause, fault="cluster", exit_code=None)
    waiting = seen("BeginTime", job_restarts=1, expected_start=NOW + 60, job_comment="requeued: The registry …")
    answer = explain(found(seen=waiting, results=Results(ROOT, ROOT / "7", earlier=before)))
    assert answer.sentence.endswith("Its 1st attempt ended: The registry does not answer.")
    assert "comment: requeued: The registry …" in answer.evidence
    assert any(line.startswith("summary of the attempt before: state=requeued") for line in answer.evidence)


def test_a_running_job_is_told_with_its_stage_and_the_time_left() -> None:
    stages = (Stage(stage.BODY, "its body runs since noon", ("x: y",)),)
    answer = explain(found(seen=running(), nodes={"gpu1": NODE}, stages=stages))
    assert answer.state == "running"
    assert answer.sentence == (
        "Job 7 (train) has been on gpu1 for 10 min 0 s, and its body runs since noon. "
        "50 min 0 s are left of its time limit of 1:00:00."
    )
    assert answer.evidence == ("Slurm: JobState=RUNNING NodeList=gpu1 Restarts=0", "node gpu1: MIXED", "x: y")


def test_the_source_that_has_seen_the_job_furthest_is_believed_and_trouble_first() -> None:
    preparing = Stage(stage.PREPARING, "it is being prepared")
    waiting, trouble = Stage(stage.WAITING, "it waits"), Stage(stage.WAITING, "no such image", trouble=True)
    assert stage.furthest([preparing, trouble, waiting]) is trouble
    assert stage.furthest([trouble, Stage(stage.BODY, "runs")]) == Stage(stage.BODY, "runs")
    assert stage.furthest([]) is None


def test_what_cannot_be_seen_is_not_made_up() -> None:
    assert "cannot be seen from here" in explain(found(seen=running())).sentence
    plain = explain(found(seen=running(stamped=False, job_time_limit="UNLIMITED"))).sentence
    assert plain == "Job 7 (train) has been running on gpu1 for 10 min 0 s."


def test_a_node_that_does_not_answer_makes_the_job_unknown() -> None:
    silent = replace(NODE, states=("DOWN", "NOT_RESPONDING"), reason="Not responding", reason_since=NOW - 60)
    answer = explain(found(seen=running(), nodes={"gpu1": silent}))
    assert "gpu1 does not answer Slurm: whether it still runs is not known" in answer.sentence
    assert "SlurmdTimeout" in answer.step
    assert any(line.startswith("node gpu1: DOWN+NOT_RESPONDING (Not responding) since 20") for line in answer.evidence)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("CONFIGURING", "has got gpu1, which is being made ready"),
        ("SUSPENDED", "is suspended on gpu1"),
        ("STOPPED", "`scancel -s CONT 7` lets it go on"),
        ("STAGE_OUT", "is STAGE_OUT on gpu1"),
    ],
)
def test_other_states_on_a_node(state: str, words: str) -> None:
    assert words in explain(found(seen=running(job_state=state))).sentence


def test_the_end_of_a_completing_job_is_not_its_time_limit() -> None:
    assert overview.limit(running()) == 3600
    assert overview.limit(running(job_time_limit="UNLIMITED")) is None
    assert overview.limit(running(job_state="COMPLETING", job_completing=True, ends=NOW - 1)) is None


def test_a_completing_job_is_being_cleaned_up() -> None:
    answer = explain(found(seen=running(job_state="TIMEOUT", job_completing=True)))
    assert "has ended (TIMEOUT) and is being cleaned up on gpu1" in answer.sentence
    assert answer.evidence[0].startswith("Slurm: JobState=COMPLETING")


def test_the_summary_says_how_a_job_ended() -> None:
    ended = running(job_state="FAILED", job_exit_code="3:0")
    answer = explain(found(seen=ended, results=Results(ROOT, ROOT / "7", summary=SUMMARY)))
    assert answer.state == "ended"
    assert answer.sentence == "Job 7 (train) failed on gpu1: The body ended with exit code 3."
    assert answer.step == "Its logs, outputs and summary are in /mnt/nas/results/7."
    assert "results: /mnt/nas/results/7" in answer.evidence
    assert any("state=failed exit_code=3 fault=person ended 20" in line for line in answer.evidence)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"state": "completed", "cause": "Completed: the body ended with exit code 0.", "fault": "none"},
            "completed on gpu1: the body ended with exit code 0.",
        ),
        (
            {"state": "cancelled", "cause": "Cancelled before it had ended (scancel).", "fault": "none"},
            "was cancelled on gpu1: Cancelled before it had ended (scancel).",
        ),
        ({"fault": "cluster", "cause": "X."}, "failed on gpu1 (the cluster's fault, not the job's): X."),
        ({"cause": "\x1b[31mred"}, "failed on gpu1: \\x1b[31mred"),
    ],
)
def test_ends_by_the_summary(changes: dict[str, str], words: str) -> None:
    answer = explain(found(results=Results(ROOT, ROOT / "7", summary=replace(SUMMARY, **changes))))
    assert answer.sentence == f"Job 7 {words}"


@pytest.mark.parametrize(
    ("state", "code", "words"),
    [
        ("COMPLETED", "0:0", "ended well after 10 s, by what Slurm says."),
        ("FAILED", "3:0", "failed with exit code 3 after 10 s, by what Slurm says."),
        ("FAILED", "0:9", "failed by signal 9 (SIGKILL) after 10 s, by what Slurm says."),
        ("FAILED", "0:53", "did not start: Slurm could not open its output file /home/kim/slurm-7.out."),
        ("CANCELLED", "0:15", "was cancelled after 10 s."),
        ("TIMEOUT", "0:0", "was stopped at its time limit of 1:00:00."),
        ("NODE_FAIL", "0:0", "ended because its node failed after 10 s."),
        ("BOOT_FAIL", "0:0", "ended because its node did not boot."),
        ("OUT_OF_MEMORY", "0:125", "ran out of memory after 10 s, by what Slurm says."),
        ("PREEMPTED", "0:0", "was pre-empted by a job of higher priority after 10 s."),
        ("DEADLINE", "0:0", "was stopped at its deadline (--deadline)."),
        ("REVOKED", "0:0", "runs in another cluster of the federation."),
    ],
)
def test_without_a_summary_no_more_is_said_than_slurm_says(state: str, code: str, words: str) -> None:
    ended = running(job_state=state, job_exit_code=code, job_ended=NOW - 590)
    answer = explain(found(seen=ended))
    assert answer.sentence == f"Job 7 (train) {words}"
    assert "not written yet" in answer.step
    assert explain(found(seen=replace(ended, stamped=False))).step == ""


def test_a_job_that_no_node_can_hold_did_not_fail_by_a_signal() -> None:
    refused = seen("BadConstraints", job_state="FAILED", job_exit_code="0:1", job_ended=NOW)
    assert explain(found(seen=refused)).sentence.startswith(
        "Job 7 (train) did not start: no node can give what it asks for"
    )


def test_a_job_that_was_lost_with_its_node_is_told_who_will_write_its_summary() -> None:
    silent = replace(NODE, states=("DOWN", "NOT_RESPONDING"))
    answer = explain(found(seen=running(job_state="NODE_FAIL", job_ended=NOW), nodes={"gpu1": silent}))
    assert answer.step.startswith("Its node writes the summary when it is back; if it stays away, the head node does")


def test_a_cancelled_job_that_never_started() -> None:
    answer = explain(found(seen=seen("None", job_state="CANCELLED")))
    assert answer.sentence == "Job 7 (train) was cancelled before it started."


def test_an_unknown_job_is_said_to_be_unknown_with_where_to_look() -> None:
    answer = explain(found())
    assert (answer.state, answer.known) == ("unknown", False)
    assert answer.sentence == "Slurm does not know job 7 (any more); there are no results of it in /mnt/nas/results."
    assert "squeue --me" in answer.step
    assert answer.evidence == ("Slurm: does not know it (any more)",)


def test_somebody_elses_results_are_said_to_be_that() -> None:
    results = Results(ROOT, ROOT / "7", "belongs to lee, who alone may read it")
    answer = explain(found(results=results))
    assert not answer.known
    assert "/mnt/nas/results/7 belongs to lee, who alone may read it" in answer.sentence
    ended = explain(found(results=results, seen=running(job_state="COMPLETED")))
    assert ended.step == ""
    assert ended.evidence[-1] == "results: /mnt/nas/results/7 belongs to lee, who alone may read it"


def test_silence_of_slurm_is_unknown_unless_the_results_tell_the_end() -> None:
    answer = explain(found(slurm_fault="squeue did not reach Slurm."))
    assert not answer.known
    assert answer.sentence == "How job 7 is, is not known: Slurm does not answer."
    assert answer.evidence == ("Slurm: squeue did not reach Slurm.",)
    told = explain(found(slurm_fault="x", results=Results(ROOT, ROOT / "7", summary=SUMMARY)))
    assert (told.state, told.known) == ("ended", True)
    requeued = replace(SUMMARY, state="requeued")
    assert not explain(found(slurm_fault="x", results=Results(ROOT, ROOT / "7", summary=requeued))).known


def test_an_array_is_counted_and_one_task_is_told() -> None:
    one = running(job_array_job_id=7, job_array_task_id=1)
    rest = (running(job_job_id=9, job_array_job_id=7, job_array_task_id=2), seen(tasks="3-5"))
    answer = explain(found(seen=one, others=rest))
    assert answer.sentence.startswith("Job 7_1 (train) has been on gpu1")
    assert answer.evidence[-1] == "array 7: 1 PENDING, 2 RUNNING; this is 7_1"


def test_json_has_the_same_words() -> None:
    answer = explain(found(seen=seen("None")))
    assert answer.to_json() == {
        "job": "7",
        "state": "pending",
        "sentence": answer.sentence,
        "next": answer.step,
        "evidence": list(answer.evidence),
    }
