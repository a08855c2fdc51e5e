"""Slurm's own programs, run by us against a real slurmctld. Needs: Slurm, munge, root."""

import secrets
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from slurmk8s import config as configuration
from slurmk8s.errors import PersonFault, SlurmUnreachable
from slurmk8s.slurm import records, stamp
from slurmk8s.slurm.client import Identity
from slurmk8s.slurm.commands import SlurmCommands

pytestmark = pytest.mark.slurm

SLEEP = b"#!/bin/bash\nexec sleep 300\n"


def options(bare_slurm: Any, *more: str) -> list[str]:
    return [f"--output={bare_slurm.outputs}/%j.out", *more]


def output(bare_slurm: Any, job_id: int) -> str:
    bare_slurm.until_state(job_id, "COMPLETED", "FAILED")
    text: str = (Path(bare_slurm.outputs) / f"{job_id}.out").read_text()
    return text


def test_a_job_runs_as_the_person_with_nothing_of_our_environment(
    bare_slurm: Any, alice: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SBATCH_JOB_NAME", "leaked")
    monkeypatch.setenv("SECRET_OF_THE_SERVICE", "leaked")
    script = b"#!/bin/bash\nid -u; id -G; echo $HOME $USER $LOGNAME; umask; env\n"
    said = output(bare_slurm, bare_slurm.commands.submit(script, options(bare_slurm), alice))
    lines = said.splitlines()
    assert lines[0] == str(alice.uid)
    assert lines[1].split() == [str(group) for group in alice.groups]
    assert lines[2] == f"{alice.home} {alice.name} {alice.name}"
    assert lines[3] == "0022"
    assert "leaked" not in said
    assert "SLURM_TIME_FORMAT" not in said


def test_a_refusal_carries_sbatchs_own_words(bare_slurm: Any, alice: Identity) -> None:
    with pytest.raises(PersonFault, match="invalid partition specified: nosuch"):
        bare_slurm.commands.submit(SLEEP, ["--partition=nosuch"], alice)
    with pytest.raises(PersonFault, match="Invalid --time specification"):
        bare_slurm.commands.submit(SLEEP, ["--time=Unable to contact slurm controller"], alice)


@pytest.mark.parametrize(
    "option", ["--nosuch=%s", "--mail-type=%s", "--mem=%s", "--signal=%s", "--dependency=%s", "--gres=%s"]
)
def test_no_option_can_look_like_a_dead_controller(bare_slurm: Any, alice: Identity, option: str) -> None:
    """Else its file would be tried again for ever."""
    with pytest.raises(PersonFault):
        bare_slurm.commands.submit(SLEEP, [option % "x: Unable to contact slurm controller"], alice)


def test_it_has_what_every_node_gives(bare_slurm: Any, alice: Identity) -> None:
    script = b"#!/bin/bash\nsleep 300\n"
    asked = options(
        bare_slurm, "--nodes=2", "--ntasks=3", "--mem=1G", "--gres=gpu:2", "--job-name=작업", "--no-requeue"
    )
    before = time.time() - 1
    job_id = bare_slurm.commands.submit(script, [*asked, "--chdir=/tmp", "--time=90"], alice)
    bare_slurm.until_state(job_id, "RUNNING")
    job = bare_slurm.commands.job(job_id)
    assert (job.job_id, job.name, job.user, job.uid, job.gid) == (job_id, "작업", alice.name, alice.uid, alice.gid)
    assert (job.partition, job.state, job.exit_code, job.restarts, job.requeue) == (
        "cpu",
        "RUNNING",
        "0:0",
        0,
        False,
    )
    assert (job.batch_host, job.nodes) == ("node1", ("node1", "node2"))
    assert sorted(job.cpus.values()) == [1, 2]
    assert job.memory_mb == {"node1": 1024, "node2": 1024}
    assert job.gpus == {"node1": (0, 1), "node2": (0, 1)}
    assert (job.work_folder, job.stdout, job.time_limit) == (
        "/tmp",
        f"{bare_slurm.outputs}/{job_id}.out",
        "1:30:00",
    )
    assert before <= job.submitted <= job.started <= time.time() + 1
    assert (job.ended, job.array_job_id, job.array_task_id, job.completing) == (None, None, None, False)


def test_single_gpus_are_told_apart(bare_slurm: Any, alice: Identity) -> None:
    asked = options(bare_slurm, "--gres=gpu:1", "--nodelist=node1")
    ids = [bare_slurm.commands.submit(SLEEP, asked, alice) for _ in range(2)]
    for job_id in ids:
        bare_slurm.until_state(job_id, "RUNNING")
    assert sorted(bare_slurm.commands.job(job_id).gpus["node1"] for job_id in ids) == [(0,), (1,)]


def test_an_unknown_job_is_none(bare_slurm: Any) -> None:
    assert bare_slurm.commands.job(4000000) is None


def test_an_array_task_is_found_by_its_own_id(bare_slurm: Any, alice: Identity) -> None:
    first = bare_slurm.commands.submit(SLEEP, [f"--output={bare_slurm.outputs}/%A-%a", "--array=3,5%1"], alice)
    bare_slurm.until(lambda: first + 1 in bare_slurm.commands.live_jobs(), "a task has started")
    waiting, started = bare_slurm.commands.job(first), bare_slurm.commands.job(first + 1)
    assert (waiting.array_job_id, waiting.array_task_id, waiting.state) == (first, 5, "PENDING")
    assert (started.array_job_id, started.array_task_id) == (first, 3)
    assert started.stdout == f"{bare_slurm.outputs}/{first}-3"


@pytest.mark.parametrize(
    ("asked", "user", "types"),
    [
        ([], "", set()),
        (["--mail-type=END,FAIL"], "alice", {"END", "FAIL"}),
        (["--mail-type=ALL,ARRAY_TASKS", "--mail-user=a@x.org"], "a@x.org", {"END", "FAIL", "REQUEUE", "ARRAY_TASKS"}),
        (["--mail-user=a@x.org"], "", set()),
        (["--mail-type=NONE"], "", set()),
    ],
)
def test_who_asks_for_mail_is_known(
    bare_slurm: Any, alice: Identity, asked: list[str], user: str, types: set[str]
) -> None:
    job = bare_slurm.commands.job(bare_slurm.commands.submit(SLEEP, options(bare_slurm, "--hold", *asked), alice))
    wanted = alice.name if user == "alice" else user
    found = set(job.mail_types) | ({"END", "FAIL", "REQUEUE"} if "ALL" in job.mail_types else set())
    assert (job.mail_user if types else "", types <= found, bool(types)) == (wanted, True, bool(job.mail_types))


def test_an_array_is_over_when_its_last_task_is(bare_slurm: Any, alice: Identity) -> None:
    asked = ["--output=/dev/null", "--array=1-3%1"]
    first = bare_slurm.commands.submit(b"#!/bin/sh\nexit $((SLURM_ARRAY_TASK_ID == 2))\n", asked, alice)
    assert {job.array_job_id for job in bare_slurm.commands.parts(str(first))} == {first}

    def ended() -> bool:
        return all(
            job.state in records.FINISHED and not job.completing for job in bare_slurm.commands.parts(str(first))
        )

    bare_slurm.until(ended, "all tasks have ended", 60)
    jobs = {job.array_task_id: job for job in bare_slurm.commands.parts(str(first))}
    assert {task: job.state for task, job in jobs.items()} == {1: "COMPLETED", 2: "FAILED", 3: "COMPLETED"}
    assert all(job.nodes for job in jobs.values())
    cancelled = bare_slurm.commands.submit(SLEEP, [*asked, "--hold"], alice)
    bare_slurm.commands.cancel([cancelled])
    assert [(job.state, job.nodes) for job in bare_slurm.commands.parts(str(cancelled))] == [("CANCELLED", ())]
    assert bare_slurm.commands.parts("999999") == []


def test_an_array_that_waits_as_a_whole_has_no_task(bare_slurm: Any, alice: Identity) -> None:
    first = bare_slurm.commands.submit(SLEEP, options(bare_slurm, "--array=1-4", "--hold"), alice)
    job = bare_slurm.commands.job(first)
    assert (job.array_job_id, job.array_task_id, job.reason) == (first, None, "JobHeldUser")


# Whatever people put into the fields that are theirs, the others stay what Slurm says.
LIE = "x\n UserId=root(0) GroupId=root(0) JobState=COMPLETED Restarts=9\nJobId=1 'q' \"q\" \\ | % =,"


@pytest.mark.parametrize(
    "option", ["--job-name", "--comment", "--account", "--network", "--wckey", "--chdir", "--output"]
)
def test_a_lie_in_one_field_changes_no_other(bare_slurm: Any, alice: Identity, option: str) -> None:
    value = f"/tmp/{LIE}" if option in ("--chdir", "--output") else LIE
    job_id = bare_slurm.commands.submit(SLEEP, ["--hold", f"{option}={value}"], alice)
    job = bare_slurm.commands.job(job_id)
    assert (job.job_id, job.uid, job.gid, job.user) == (job_id, alice.uid, alice.gid, alice.name)
    assert (job.state, job.restarts, job.admin_comment) == ("PENDING", 0, "")
    kept = {"--job-name": job.name, "--comment": job.comment, "--chdir": job.work_folder}
    assert kept.get(option, value) == value


ALLOCATION = (
    "x NtasksPerN:B:S:C=0:0:*:* CoreSpec=* JOB_GRES=gpu:2"
    "   Nodes=node1 CPU_IDs=0-3 Mem=8000 GRES=gpu:tesla:2(IDX:0-1) MinCPUsNode=1"
)


# Not --account: Slurm writes it in lower case, so it imitates nothing.
@pytest.mark.parametrize("option", ["--job-name", "--comment", "--network", "--chdir", "--error"])
def test_nobody_writes_themselves_a_gpu(bare_slurm: Any, alice: Identity, option: str) -> None:
    value = f"/tmp/{ALLOCATION}" if option in ("--chdir", "--error") else ALLOCATION
    job_id = bare_slurm.commands.submit(SLEEP, ["--hold", f"{option}={value}"], alice)
    with pytest.raises(PersonFault, match="imitates"):
        bare_slurm.commands.job(job_id)


STAMP = f"x AdminComment={stamp.encode('#K8S_IMAGE=evil')} "


@pytest.mark.parametrize("option", ["--job-name", "--comment", "--account", "--network", "--chdir", "--error"])
def test_nobody_writes_themselves_a_stamp(bare_slurm: Any, alice: Identity, option: str) -> None:
    value = f"/tmp/{STAMP}" if option in ("--chdir", "--error") else STAMP
    job_id = bare_slurm.commands.submit(SLEEP, ["--hold", f"{option}={value}"], alice)
    if option in ("--network", "--chdir"):  # they stand where a stamp may follow
        with pytest.raises(PersonFault, match="imitates"):
            bare_slurm.commands.job(job_id)
    else:
        assert bare_slurm.commands.job(job_id).admin_comment == ""


def test_a_script_name_may_hold_anything(bare_slurm: Any, alice: Identity) -> None:
    path = Path(bare_slurm.outputs) / STAMP.replace("/", "%2F")
    path.write_bytes(SLEEP)
    job_id = int(bare_slurm.run("sbatch", "--parsable", "--hold", str(path)))
    with pytest.raises(PersonFault, match="imitates"):
        bare_slurm.commands.job(job_id)


def test_a_job_is_found_by_its_owner_and_key(bare_slurm: Any, alice: Identity, bob: Identity) -> None:
    key = secrets.token_hex(16)
    comment = f"--comment={stamp.with_key('my words', key)}"
    ids = [bare_slurm.commands.submit(SLEEP, ["--hold", comment], alice) for _ in range(2)]
    bare_slurm.commands.submit(SLEEP, ["--hold", comment], bob)
    bare_slurm.commands.submit(SLEEP, ["--hold", f"--comment={stamp.with_key('', secrets.token_hex(16))}"], alice)
    found = bare_slurm.commands.ids_by_key(alice.uid)
    assert found[key] == ids
    assert secrets.token_hex(16) not in found


def test_an_array_is_one_job(bare_slurm: Any, alice: Identity) -> None:
    key = secrets.token_hex(16)
    asked = ["--array=1-3", f"--comment={stamp.with_key('', key)}", "--output=/dev/null"]
    first = bare_slurm.commands.submit(SLEEP, asked, alice)
    bare_slurm.until(lambda: first + 2 in bare_slurm.commands.live_jobs(), "all tasks have started")
    assert bare_slurm.commands.ids_by_key(alice.uid)[key] == [first]


def test_a_finished_job_is_still_found(bare_slurm: Any, alice: Identity) -> None:
    key = secrets.token_hex(16)
    job_id = bare_slurm.commands.submit(b"#!/bin/sh\n", [f"--comment={stamp.with_key('', key)}", "-o/dev/null"], alice)
    bare_slurm.until_state(job_id, "COMPLETED")
    assert bare_slurm.commands.ids_by_key(alice.uid)[key] == [job_id]
    assert job_id not in bare_slurm.commands.live_jobs()


def test_held_jobs_run_when_released_and_gone_ones_are_no_error(bare_slurm: Any, alice: Identity) -> None:
    ended = bare_slurm.commands.submit(b"#!/bin/sh\n", options(bare_slurm), alice)
    bare_slurm.until_state(ended, "COMPLETED")
    held = [bare_slurm.commands.submit(SLEEP, options(bare_slurm, "--hold"), alice) for _ in range(3)]
    bare_slurm.commands.release([held[0], 4000000, held[1], ended, held[2]])
    for job_id in held:
        bare_slurm.until_state(job_id, "RUNNING")
    bare_slurm.commands.release(held)
    bare_slurm.commands.cancel([4000000, *held, ended])
    for job_id in held:
        bare_slurm.until_state(job_id, "CANCELLED")
    bare_slurm.commands.cancel(held)
    bare_slurm.commands.release([])


def test_a_requeued_job_keeps_its_id_and_says_why(bare_slurm: Any, alice: Identity) -> None:
    job_id = bare_slurm.commands.submit(SLEEP, options(bare_slurm, "--comment=mine"), alice)
    bare_slurm.until_state(job_id, "RUNNING")
    bare_slurm.commands.requeue(job_id, "the registry\nis down", 600, attempt=0)
    bare_slurm.until_state(job_id, "PENDING")
    job = bare_slurm.commands.job(job_id)
    assert (job.restarts, job.comment, job.ended) == (1, "mine requeued: the registry is down", None)
    shown = bare_slurm.run("env", "SLURM_TIME_FORMAT=%s", "squeue", "-h", "-j", str(job_id), "-O", "EligibleTime:")
    assert float(shown) > time.time() + 500


def test_another_attempt_than_ours_is_left_alone(bare_slurm: Any, alice: Identity) -> None:
    job_id = bare_slurm.commands.submit(SLEEP, options(bare_slurm), alice)
    bare_slurm.until_state(job_id, "RUNNING")
    bare_slurm.commands.requeue(job_id, "said by an agent of long ago", attempt=1)
    job = bare_slurm.commands.job(job_id)
    assert (job.state, job.restarts, job.comment) == ("RUNNING", 0, "")


def test_a_job_that_only_waited_carries_how_often(bare_slurm: Any, alice: Identity) -> None:
    job_id = bare_slurm.commands.submit(SLEEP, options(bare_slurm), alice)
    bare_slurm.until_state(job_id, "RUNNING")
    bare_slurm.run("scontrol", "update", f"JobId={job_id}", f"AdminComment={stamp.encode('#K8S_IMAGE=a:1')}")
    bare_slurm.commands.requeue(job_id, "the quota is full", 600, attempt=0, waited=True)
    bare_slurm.until_state(job_id, "PENDING")
    job = bare_slurm.commands.job(job_id)
    assert (stamp.decode(job.admin_comment), stamp.waits(job.admin_comment)) == ("#K8S_IMAGE=a:1", 1)


def test_an_ended_job_is_not_run_again(bare_slurm: Any, alice: Identity) -> None:
    job_id = bare_slurm.commands.submit(b"#!/bin/sh\n", options(bare_slurm), alice)
    bare_slurm.until_state(job_id, "COMPLETED")
    bare_slurm.commands.requeue(job_id, "too late", attempt=0)
    job = bare_slurm.commands.job(job_id)
    assert (job.state, job.restarts, job.comment) == ("COMPLETED", 0, "")


def test_no_requeue_is_respected(bare_slurm: Any, alice: Identity) -> None:
    job_id = bare_slurm.commands.submit(SLEEP, options(bare_slurm, "--no-requeue"), alice)
    bare_slurm.until_state(job_id, "RUNNING")
    with pytest.raises(PersonFault, match="disabled"):
        bare_slurm.commands.requeue(job_id, "whatever", attempt=0)
    assert bare_slurm.state(job_id) == "RUNNING"


def test_a_drained_node_says_why(bare_slurm: Any) -> None:
    bare_slurm.commands.drain("node2", "slurmk8s: pod slurm-job-5\ncannot be killed = bad")
    try:
        shown = bare_slurm.run("scontrol", "show", "node", "node2")
        assert "State=IDLE+DRAIN" in shown
        assert "Reason=slurmk8s: pod slurm-job-5 cannot be killed = bad [" in shown
    finally:
        bare_slurm.run("scontrol", "update", "NodeName=node2", "State=RESUME")


@pytest.mark.parametrize(
    ("script", "cancelled", "shown", "final"),
    [
        (b"#!/bin/bash\nexit 3\n", False, "FAILED", "FAILED"),
        (b"#!/bin/bash\nkill -TERM $$\n", False, "FAILED", "FAILED"),
        (SLEEP, True, "CANCELLED", "CANCELLED"),
        (b"#!/bin/bash\ntrap 'exit 3' TERM; while :; do sleep 0.1; done\n", True, "CANCELLED", "CANCELLED"),
        # Slurm shows no difference between these two until the Epilog is over.
        (b"#!/bin/bash\ntrap 'exit 0' TERM; while :; do sleep 0.1; done\n", True, "COMPLETING", "CANCELLED"),
        (b"#!/bin/bash\n", False, "COMPLETING", "COMPLETED"),
    ],
)
def test_the_end_is_told_while_the_epilog_runs(
    bare_slurm: Any, alice: Identity, script: bytes, cancelled: bool, shown: str, final: str
) -> None:
    hold = bare_slurm.folder / "hold-epilogs"
    hold.touch()
    job_id = bare_slurm.commands.submit(script, options(bare_slurm), alice)
    if cancelled:
        bare_slurm.until_state(job_id, "RUNNING")
        bare_slurm.until(lambda: bare_slurm.run("squeue", "-h", "-s", "-j", str(job_id)), "the batch step runs")
        bare_slurm.commands.cancel([job_id])
    bare_slurm.until_state(job_id, "COMPLETING")
    # The exit code arrives when the batch step has ended, which is after scancel.
    bare_slurm.until(lambda: bare_slurm.commands.job(job_id).state == shown, f"{shown} is shown")
    job = bare_slurm.commands.job(job_id)
    assert job.completing
    assert job.ended is not None
    assert job_id in bare_slurm.commands.live_jobs()
    hold.unlink()
    bare_slurm.until_state(job_id, final)
    job = bare_slurm.commands.job(job_id)
    assert (job.state, job.completing) == (final, False)
    assert job_id not in bare_slurm.commands.live_jobs()


def ask_everything(commands: SlurmCommands, alice: Identity) -> None:
    """All at the same time: each of Slurm's programs tries for some seconds."""
    questions: tuple[Callable[[], object], ...] = (
        lambda: commands.submit(SLEEP, [], alice),
        lambda: commands.job(1),
        lambda: commands.ids_by_key(alice.uid),
        lambda: commands.release([1, 2]),
        lambda: commands.cancel([1, 2]),
        lambda: commands.requeue(1, "reason", attempt=0),
        lambda: commands.drain("node1", "reason"),
        commands.live_jobs,
        commands.facts,
    )
    with ThreadPoolExecutor(len(questions)) as pool:
        asked = [pool.submit(question) for question in questions]
    for answer in asked:
        with pytest.raises(SlurmUnreachable):
            answer.result()


def test_a_dead_controller_is_unknown(bare_slurm: Any, alice: Identity) -> None:
    bare_slurm.stop("slurmctld")
    try:
        ask_everything(bare_slurm.commands, alice)
    finally:
        bare_slurm.start_slurmctld()


def test_a_hung_controller_is_unknown_and_the_job_may_appear_later(bare_slurm: Any, alice: Identity) -> None:
    commands = SlurmCommands(configuration.Slurm(conf=bare_slurm.conf, command_seconds=0.5))
    key = secrets.token_hex(16)
    daemon = bare_slurm.daemons["slurmctld"]
    daemon.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(SlurmUnreachable, match=r"no answer within 0\.5 seconds"):
            commands.submit(SLEEP, ["--hold", f"--comment={stamp.with_key('', key)}"], alice)
        with pytest.raises(SlurmUnreachable):
            commands.live_jobs()
    finally:
        daemon.send_signal(signal.SIGCONT)
    bare_slurm.until(lambda: key in bare_slurm.commands.ids_by_key(alice.uid), "the job that nobody heard of")


def test_no_munge_and_no_configuration_are_unknown(bare_slurm: Any, alice: Identity, tmp_path: Path) -> None:
    text = bare_slurm.conf.read_text().replace("munge/socket", "munge/nothing")
    broken = Path(bare_slurm.folder) / "no-munge.conf"
    broken.write_text(text)
    with pytest.raises(SlurmUnreachable):
        SlurmCommands(configuration.Slurm(conf=broken)).submit(SLEEP, [], alice)
    with pytest.raises(SlurmUnreachable):
        SlurmCommands(configuration.Slurm(bin_folder=tmp_path)).live_jobs()


def test_facts_are_the_largest_that_a_partition_gives(bare_slurm: Any, alice: Identity) -> None:
    facts = bare_slurm.commands.facts(alice)
    cpu, closed = facts.partitions["cpu"], facts.partitions["closed"]
    assert (cpu.default, cpu.up, cpu.max_seconds, cpu.nodes, cpu.max_nodes) == (True, True, 88200, 2, None)
    assert (cpu.cpus_per_node, cpu.memory_mb_per_node, cpu.gpus_per_node, cpu.gpu_types) == (4, 8000, 2, ("tesla",))
    assert (closed.default, closed.up, closed.max_seconds, closed.nodes, closed.max_nodes) == (False, False, None, 1, 1)
    assert (facts.accounts, facts.qos) == (None, None)
