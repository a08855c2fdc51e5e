"""`slurmk8s why` against a real slurmctld: pending, running and ended jobs. Needs: Slurm, munge, root."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from slurmk8s import config as configuration
from slurmk8s.ops import evidence
from slurmk8s.ops.why import Answer, explain
from slurmk8s.results import files, marker
from slurmk8s.results.marker import Marker
from slurmk8s.results.summary import Summary, Times
from slurmk8s.results.summary_file import write_summary
from slurmk8s.slurm.client import Identity

pytestmark = pytest.mark.slurm

SLEEP = b"#!/bin/bash\nexec sleep 300\n"


@pytest.fixture
def results(bare_slurm: Any) -> Path:
    folder = Path(bare_slurm.folder) / "results"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o1777)
    return folder


@pytest.fixture
def why(bare_slurm: Any, results: Path) -> Any:
    """Ask as root."""
    config = configuration.Config(slurm=bare_slurm.commands.programs.config)

    def ask(job: object) -> Answer:
        return explain(evidence.gather(str(job), config, bare_slurm.commands, results, None))

    return ask


def submit(bare_slurm: Any, who: Identity, *options: str, script: bytes = SLEEP) -> int:
    job_id: int = bare_slurm.commands.submit(script, [f"--output={bare_slurm.outputs}/%j.out", *options], who)
    return job_id


def until_reason(bare_slurm: Any, job_id: int, reason: str) -> None:
    def now() -> bool:
        shown: str = bare_slurm.run("squeue", "-h", "-j", str(job_id), "-o", "%r", check=False)
        return reason in shown

    bare_slurm.until(now, f"job {job_id} waits for {reason}")


@pytest.fixture
def full(bare_slurm: Any, alice: Identity) -> list[int]:
    """Both nodes are taken."""
    jobs = [submit(bare_slurm, alice, "--exclusive", "--time=20") for _ in range(2)]
    for job_id in jobs:
        bare_slurm.until_state(job_id, "RUNNING")
    return jobs


def test_a_full_cluster_is_told_with_numbers_and_the_place_in_the_queue(
    bare_slurm: Any, alice: Identity, bob: Identity, full: list[int], why: Any
) -> None:
    first = submit(bare_slurm, alice, "--ntasks=4", "--mem=4000", "--gres=gpu:2", "--time=10")
    until_reason(bare_slurm, first, "Resources")
    second = submit(bare_slurm, bob, "--ntasks=1")
    held = submit(bare_slurm, bob, "--hold")
    until_reason(bare_slurm, second, "Priority")
    answer = why(first)
    assert answer.state == "pending"
    assert "what it asks for is not free now (4 CPUs, 3.9 GiB of memory and 2 GPUs on one node)" in answer.sentence
    assert "it is 1st of 2 in partition cpu" in answer.sentence
    assert "2 of 2 nodes take jobs; the freest, node" in answer.evidence[1]
    assert "has 0 of 4 CPUs" in answer.evidence[1]
    assert "other jobs go first; it is 2nd of 2 in partition cpu" in why(second).sentence
    assert why(held).sentence.endswith("waits because its owner holds it.")
    assert why(held).step == f"`scontrol release {held}` lets it go."


def test_a_drained_node_is_the_cause_with_the_agents_own_reason(bare_slurm: Any, alice: Identity, why: Any) -> None:
    bare_slurm.commands.drain("node1", "slurmk8s: The NAS is not mounted at /mnt/nas on node1.")
    try:
        wants = submit(bare_slurm, alice, "--nodelist=node1")
        until_reason(bare_slurm, wants, "ReqNodeNotAvail")
        answer = why(wants)
        reason = "IDLE+DRAIN (slurmk8s: The NAS is not mounted at /mnt/nas on node1"
        assert f"it asks for node1, and node1 is {reason})" in answer.sentence
        assert any(line.startswith(f"node node1: {reason}.) since 20") for line in answer.evidence)
        bare_slurm.run("scontrol", "update", "NodeName=node2", "State=DRAIN", "Reason=broken fan")
        other = submit(bare_slurm, alice)
        bare_slurm.until(lambda: why(other).evidence[0].count("Reason=None") == 0, "Slurm has looked at it")
        assert "none of the 2 nodes of partition cpu takes jobs" in why(other).sentence
        assert "node2 is IDLE+DRAIN (broken fan)" in why(other).sentence
    finally:
        bare_slurm.run("scontrol", "update", "NodeName=node1,node2", "State=RESUME")


def test_why_a_job_may_not_start_yet(bare_slurm: Any, alice: Identity, full: list[int], why: Any) -> None:
    begin = submit(bare_slurm, alice, "--begin=now+1hour")
    after = submit(bare_slurm, alice, f"--dependency=afterok:{full[0]}")
    closed = submit(bare_slurm, alice, "--partition=closed")
    array = submit(bare_slurm, alice, "--array=1-4%1")
    until_reason(bare_slurm, begin, "BeginTime")
    assert "it is not to start before 20" in why(begin).sentence
    assert why(begin).sentence.endswith("(--begin).")
    assert why(after).sentence.endswith(f"waits because it is to start after the good end of job {full[0]}.")
    until_reason(bare_slurm, closed, "PartitionDown")
    assert "partition closed is down" in why(closed).sentence
    assert why(f"{array}_3").sentence.startswith(f"Job {array}_3 (")
    assert why(array).sentence.startswith(f"Job {array} (")


def test_an_array_that_runs_one_task_at_a_time(bare_slurm: Any, alice: Identity, why: Any) -> None:
    array = submit(bare_slurm, alice, "--array=1-4%1")
    bare_slurm.until(lambda: "1 RUNNING" in " ".join(why(array).evidence), "one task runs")
    assert why(array).sentence.startswith(f"Job {array}_1 (")
    until_reason(bare_slurm, array, "JobArrayTaskLimit")
    assert "as many tasks of its array as may run at a time are running" in why(f"{array}_4").sentence


def test_a_requeue_by_the_agent_is_told_with_its_reason(bare_slurm: Any, alice: Identity, why: Any) -> None:
    job_id = submit(bare_slurm, alice)
    bare_slurm.until_state(job_id, "RUNNING")
    bare_slurm.commands.requeue(job_id, "The registry nas-hub.local:5407 does not answer.", 300, attempt=0)
    bare_slurm.until_state(job_id, "PENDING")
    answer = why(job_id)
    assert "put back into the queue (The registry nas-hub.local:5407 does not answer)" in answer.sentence
    assert "does not start it again before 20" in answer.sentence
    assert "comment: requeued: The registry nas-hub.local:5407 does not answer." in answer.evidence


def test_a_requeue_with_a_hold_is_told_as_that(bare_slurm: Any, alice: Identity, why: Any) -> None:
    job_id = submit(bare_slurm, alice)
    bare_slurm.until_state(job_id, "RUNNING")
    bare_slurm.run("scontrol", "requeuehold", str(job_id))
    bare_slurm.until(lambda: why(job_id).state == "pending", "it is in the queue again")
    assert "it was put back into the queue and held" in why(job_id).sentence
    assert why(job_id).step == f"`scontrol release {job_id}` lets it go."


def test_a_running_job_has_its_node_and_the_time_that_is_left(bare_slurm: Any, alice: Identity, why: Any) -> None:
    job_id = submit(bare_slurm, alice, "--time=20", "--nodelist=node2", "--job-name=evil MinCPUsNode=1\x1b[2J")
    bare_slurm.until_state(job_id, "RUNNING")
    answer = why(job_id)
    assert answer.state == "running"
    assert "\\x1b[2J) has been running on node2 for" in answer.sentence
    assert "are left of its time limit of 20:00." in answer.sentence
    assert answer.evidence[:2] == ("Slurm: JobState=RUNNING NodeList=node2 Restarts=0", "node node2: MIXED")


def test_a_container_jobs_log_tells_that_it_waits_for_its_image(
    bare_slurm: Any, alice: Identity, why: Any, wait_for: Any
) -> None:
    """Lua stamps every job of partition `boxed`; what slurmk8s-run would say, the job itself says here."""
    script = b"#!/bin/bash\nsleep 2; echo 'slurmk8s: pulling image pytorch:2.0 ... 41 s' >&2; exec sleep 300\n"
    job_id = submit(bare_slurm, alice, "--partition=boxed", script=script)
    bare_slurm.until_state(job_id, "RUNNING")
    assert "how far its container has come cannot be seen from here" in why(job_id).sentence
    said = "and it waits for its image (pulling image pytorch:2.0 ... 41 s)"
    bare_slurm.until(lambda: said in why(job_id).sentence, "the log is read")


def test_a_silent_node_is_said_to_be_silent(bare_slurm: Any, alice: Identity, why: Any) -> None:
    job_id = submit(bare_slurm, alice, "--nodelist=node2")
    bare_slurm.until_state(job_id, "RUNNING")
    bare_slurm.daemons["node2"].send_signal(signal.SIGSTOP)
    try:

        def is_silent() -> bool:
            # Again and again: what node2 said just before it was stopped may reach slurmctld only now.
            bare_slurm.run("scontrol", "update", "NodeName=node2", "State=NoResp")
            return "node2 does not answer Slurm: whether it still runs is not known" in why(job_id).sentence

        bare_slurm.until(is_silent, "it is said to be silent")
    finally:
        bare_slurm.stop("node2")
        bare_slurm.start("node2", "slurmd", "-D", "-N", "node2")
        bare_slurm.until(lambda: "*" not in bare_slurm.run("sinfo", "-h", "-n", "node2", "-o", "%t"), "node2 answers")


def test_a_completing_job_is_being_cleaned_up(bare_slurm: Any, alice: Identity, why: Any) -> None:
    hold = bare_slurm.folder / "hold-epilogs"
    hold.touch()
    job_id = submit(bare_slurm, alice, script=b"#!/bin/bash\nexit 3\n")
    bare_slurm.until_state(job_id, "COMPLETING")
    bare_slurm.until(lambda: "has ended (FAILED) and is being cleaned up on node" in why(job_id).sentence, "the end")
    hold.unlink()
    bare_slurm.until_state(job_id, "FAILED")
    assert "failed with exit code 3" in why(job_id).sentence
    assert why(job_id).evidence[0] == "Slurm: JobState=FAILED Reason=NonZeroExitCode ExitCode=3:0"


def test_an_unknown_job_and_a_dead_controller(bare_slurm: Any, alice: Identity, why: Any) -> None:
    assert why(999999).state == "unknown"
    assert "Slurm does not know job 999999 (any more)" in why(999999).sentence
    assert why("999999_3").state == "unknown"
    job_id = submit(bare_slurm, alice)
    bare_slurm.stop("slurmctld")
    try:
        answer = why(job_id)
    finally:
        bare_slurm.start_slurmctld()
    assert answer.sentence == f"How job {job_id} is, is not known: Slurm does not answer."
    assert not answer.known


def make_bundle(results: Path, who: Identity, job_id: int, submitted: float) -> Path:
    """What the agent would leave of a job that ran out of memory."""
    folder = results / str(job_id)
    folder.mkdir()
    summary = Summary(
        cluster="bare",
        job_id=job_id,
        array=None,
        name="train",
        user=who.name,
        uid=who.uid,
        account="",
        partition="cpu",
        attempt=0,
        node="node1",
        nodes=("node1",),
        image="pytorch:2.0",
        image_digest=None,
        workdir="/workspace",
        command="the job file's own body",
        gpus=(),
        cpus=1,
        memory_mb=100,
        times=Times(submitted=submitted, ended=time.time()),
        state="out_of_memory",
        exit_code=137,
        signal="SIGKILL",
        cause="Out of memory: it used more than its 100 MiB; ask for more with #SBATCH --mem.",
        fault="person",
    )
    with files.folder(str(folder)) as opened:
        marker.write(opened, Marker(0, submitted, "train", None), 0o600, files.nothing)
        write_summary(opened, summary, str(folder), 0o600, files.nothing)
    for path in (*folder.iterdir(), folder):
        os.chown(path, who.uid, who.gid)
    folder.chmod(0o711)
    return folder


def test_people_see_what_they_may(
    bare_slurm: Any, alice: Identity, bob: Identity, results: Path, everyones_python: Path
) -> None:
    """The command itself, run by two people: the owner hears the cause, the other one what Slurm tells everybody."""
    job_id = submit(bare_slurm, alice, script=b"#!/bin/bash\nkill -9 $$\n")
    bare_slurm.until_state(job_id, "FAILED")
    folder = make_bundle(results, alice, job_id, bare_slurm.commands.job(job_id).submitted)
    config = Path(bare_slurm.folder) / "why.toml"
    config.write_text(f'[slurm]\nconf = "{bare_slurm.conf}"\n')

    def ask(who: Identity, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [str(everyones_python), "-I", "-m", "slurmk8s", "why", *arguments],
            env={"PATH": "/usr/bin:/bin", "SLURMK8S_CONFIG": str(config), "SLURMK8S_RESULTS_ROOT": str(results)},
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            user=who.uid,
            group=who.gid,
            extra_groups=who.groups,
        )

    mine = ask(alice, str(job_id))
    assert mine.returncode == 0, mine.stderr
    assert "ran out of memory on node1: Out of memory: it used more than its 100 MiB" in mine.stdout
    assert f"  Its logs, outputs and summary are in {folder}." in mine.stdout
    theirs = ask(bob, "--json", str(job_id))
    assert theirs.returncode == 0, theirs.stderr
    told = json.loads(theirs.stdout)
    assert told["state"] == "ended"
    assert "failed by signal 9 (SIGKILL)" in told["sentence"]
    assert f"results: {folder} belongs to {alice.name}, who alone may read it" in told["evidence"]
    assert ask(bob, "999999").returncode == 1
    assert "is not a job id" in ask(bob, "nonsense").stderr
