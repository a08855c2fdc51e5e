"""`slurmk8s status` against a real slurmctld: progress, places in the queue, ends, and a controller that is away.

Needs: Slurm, munge, root.
"""

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from slurmk8s import config as configuration
from slurmk8s.ops import overview
from slurmk8s.ops.overview import Overview, Question
from slurmk8s.results import files, index, marker
from slurmk8s.results.entry import RUNNING, Entry
from slurmk8s.results.marker import Marker
from slurmk8s.slurm.client import Identity

pytestmark = pytest.mark.slurm

SLEEP = b"#!/bin/bash\nexec sleep 300\n"


@pytest.fixture
def results(bare_slurm: Any) -> Path:
    """An empty results folder with an index."""
    folder = Path(bare_slurm.folder) / f"results-{time.monotonic_ns()}"
    folder.mkdir()
    folder.chmod(0o1777)
    (folder / index.FOLDER).mkdir()
    (folder / index.FOLDER).chmod(0o1733)
    return folder


@pytest.fixture
def look(bare_slurm: Any, results: Path) -> Any:
    """Ask as root."""
    config = configuration.Config(slurm=bare_slurm.commands.programs.config)

    def ask(who: Identity | None) -> Overview:
        now = time.time()
        asked = Question(None if who is None else who.uid, now - 3600, now, 10)
        return overview.gather(asked, config, bare_slurm.commands, results)

    return ask


def submit(bare_slurm: Any, who: Identity, *options: str, script: bytes = SLEEP) -> int:
    job_id: int = bare_slurm.commands.submit(script, [f"--output={bare_slurm.outputs}/%j.out", *options], who)
    return job_id


def put(results: Path, who: Identity, *entries: Entry) -> None:
    """Lines of somebody's index, with the bundles they are of."""
    own = results / index.FOLDER / str(who.uid)
    own.mkdir(mode=0o700)
    for entry in entries:
        folder = results / str(entry.job_id)
        folder.mkdir()
        with files.folder(str(folder)) as opened:
            marker.write(opened, Marker(entry.attempt, entry.submitted, entry.name, None), 0o600, files.nothing)
        for path in (*folder.iterdir(), folder):
            os.chown(path, who.uid, who.gid)
    month = time.strftime("%Y-%m", time.gmtime())
    (own / f"{month}.node1.jsonl").write_bytes(b"".join(index.entry.encode(entry) for entry in entries))
    for path in (*own.iterdir(), own):
        os.chown(path, who.uid, who.gid)


def test_a_running_job_has_its_node_and_how_much_of_its_time_has_passed(
    bare_slurm: Any, alice: Identity, look: Any
) -> None:
    job_id = submit(bare_slurm, alice, "--time=20", "--nodelist=node2", "--job-name=학습")
    bare_slurm.until_state(job_id, "RUNNING")
    (one,) = look(alice).running
    assert (one.job, one.name, one.user, one.nodes) == (str(job_id), "학습", alice.name, ("node2",))
    assert one.limit == 1200
    assert 0 <= one.elapsed <= 120
    assert one.stage == "running (plain Slurm job)"


def test_a_container_job_shows_its_stage(bare_slurm: Any, alice: Identity, look: Any, results: Path) -> None:
    """Lua stamps every job of partition `boxed`; what slurmk8s-run would say, the job itself says here."""
    script = b"#!/bin/bash\necho 'slurmk8s: pulling image pytorch:2.0 ... 41 s' >&2; exec sleep 300\n"
    job_id = submit(bare_slurm, alice, "--partition=boxed", script=script)
    bare_slurm.until_state(job_id, "RUNNING")
    said = "waits for its image (pulling image pytorch:2.0 ... 41 s)"
    bare_slurm.until(lambda: look(alice).running[0].stage == said, "the log is read")
    put(results, alice, Entry(time.time(), job_id, 0, RUNNING, name="x"))
    (results / str(job_id) / "stdout.log").write_text("epoch 1\n")
    os.chown(results / str(job_id) / "stdout.log", alice.uid, alice.gid)
    assert look(alice).running[0].stage.startswith("body runs and last printed something")


def test_waiting_jobs_have_their_places_and_reasons(bare_slurm: Any, alice: Identity, bob: Identity, look: Any) -> None:
    full = [submit(bare_slurm, bob, "--exclusive", f"--nodelist=node{number}") for number in (1, 2)]
    for job_id in full:
        bare_slurm.until_state(job_id, "RUNNING")
    others = submit(bare_slurm, bob, "--exclusive")
    mine = submit(bare_slurm, alice, "--exclusive", "--job-name=mine")
    held = submit(bare_slurm, alice, "--hold")
    array = submit(bare_slurm, alice, "--array=1-4%1", "--exclusive")
    places = lambda: {one.job: (one.position, one.of) for one in look(alice).waiting}  # noqa: E731
    bare_slurm.until(lambda: places().get(str(mine)) == (2, 3), "its place")
    waiting = {one.job: one for one in look(alice).waiting}
    assert set(waiting) == {str(mine), str(held), f"{array}_[1-4%1]"}
    assert waiting[str(held)].position is None
    assert waiting[str(held)].because == "its owner holds it"
    assert str(held) in waiting[str(held)].step
    assert str(others) in {one.job for one in look(None).waiting}
    assert {one.user for one in look(None).running} == {bob.name}


def test_what_has_ended_is_told_by_the_results_or_else_by_slurm(
    bare_slurm: Any, alice: Identity, look: Any, results: Path
) -> None:
    bad = submit(bare_slurm, alice, script=b"#!/bin/bash\nexit 3\n")
    known = submit(bare_slurm, alice, script=b"#!/bin/bash\nexit 1\n")
    never = submit(bare_slurm, alice, "--hold")
    bare_slurm.run("scancel", str(never))
    for job_id in (bad, known):
        bare_slurm.until_state(job_id, "FAILED")
    cause = "Out of memory: it was killed at its limit."
    put(results, alice, Entry(time.time(), known, 0, "out_of_memory", cause=cause), Entry(1.7e9, 99999, 0, "failed"))
    ended = {one.job: one for one in look(alice).ended}
    assert "99999" not in ended  # long ago
    assert (ended[str(known)].state, ended[str(known)].cause) == ("out_of_memory", cause)
    assert ended[str(bad)].cause.startswith("Failed with exit code 3")
    assert ended[str(never)].cause == "Was cancelled before it started."


def test_a_requeued_job_is_waiting_and_not_ended(bare_slurm: Any, alice: Identity, look: Any, results: Path) -> None:
    job_id = submit(bare_slurm, alice)
    bare_slurm.until_state(job_id, "RUNNING")
    bare_slurm.commands.requeue(job_id, "The registry does not answer.", 300, attempt=0)
    bare_slurm.until_state(job_id, "PENDING")
    put(results, alice, Entry(time.time(), job_id, 0, "requeued", cause="The registry does not answer."))
    found = look(alice)
    assert str(job_id) not in {one.job for one in found.ended}
    (one,) = found.waiting
    assert "The registry does not answer" in one.because


def test_with_the_controller_away_the_results_still_tell(
    bare_slurm: Any, alice: Identity, results: Path, everyones_python: Path
) -> None:
    """The command itself, by an ordinary person without any credential."""
    now = time.time()
    put(
        results,
        alice,
        Entry(now - 600, 99901, 0, RUNNING, name="학습", submitted=now - 700),
        Entry(now, 99902, 0, "failed", name="eval", cause="The body ended with exit code 1.", ended=now),
    )
    config = Path(bare_slurm.folder) / "status.toml"
    config.write_text(f'[slurm]\nconf = "{bare_slurm.conf}"\n')

    def ask(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [str(everyones_python), "-I", "-m", "slurmk8s", "status", *arguments],
            env={"PATH": "/usr/bin:/bin", "SLURMK8S_CONFIG": str(config), "SLURMK8S_RESULTS_ROOT": str(results)},
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            user=alice.uid,
            group=alice.gid,
            extra_groups=alice.groups,
        )

    answered = ask()
    assert answered.returncode == 0, answered.stderr
    assert answered.stdout.startswith("0 running · 0 waiting · ")
    assert "The body ended with exit code 1." in answered.stdout
    bare_slurm.stop("slurmctld")
    try:
        plain, told = ask(), ask("--json")
    finally:
        bare_slurm.start_slurmctld()
    assert plain.returncode == 1
    assert "Slurm does not answer: " in plain.stdout
    assert "1 running · waiting: not known · 1 ended" in plain.stdout
    assert "had started; no end known" in plain.stdout
    assert "\x1b" not in plain.stdout
    found = json.loads(told.stdout)
    assert found["slurm_fault"]
    assert [one["job"] for one in found["running"]] == ["99901"]
    assert [one["job"] for one in found["ended"]] == ["99902"]
