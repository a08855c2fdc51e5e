"""Five thousand files at once, from behind, while the watcher dies fifty times and slurmctld comes and goes."""

import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from intake_bed import ALICE, Intake, person_options

FILES, KILLS = 5000, 50
# They are let go and wait for their time: five thousand jobs that run would only be slower to count.
HEAD = "#!/bin/bash\n#SBATCH --mem=50M\n#SBATCH --begin=now+30days\n"
LAST = "echo the last line\n"

# One process writes all files as a person's script would: a third bad, some with their whole size reserved first and
# then filled in several parts, as clients of shares do.
WRITER = f"""
import os, sys, time
folder, count = sys.argv[1], int(sys.argv[2])
head, last = {HEAD!r}, {LAST!r}
growing = []
for number in range(count):
    kind = ("good", "good", "good", "bad", "bad", "growing")[number % 6]
    file = open(os.path.join(folder, f"{{kind}}-{{number}}.sh"), "w")
    if kind == "good":
        file.write(head + last)
    elif kind == "bad":
        file.write("#!/bin/bash\\n#SBATCH --mem=8\\n" + last)
    else:
        file.truncate(len(head + last))
        growing.append(file)
    if kind != "growing":
        file.close()
for part in (*head.splitlines(keepends=True), last):
    for file in growing:
        file.write(part)
        file.flush()
        time.sleep(0.005)
"""


def jobs(intake: Intake) -> Counter[str]:
    """How many jobs have each name, cancelled ones left out, and those of other tests that Slurm still knows."""
    lines = intake.query("squeue", "-h", "--states=all", "-o", "%j %T").splitlines()
    found = [line.split() for line in lines if line.startswith(("good-", "bad-", "growing-"))]
    return Counter(name for name, state in found if state != "CANCELLED")


def answers(intake: Intake) -> tuple[Counter[str], Counter[str]]:
    """How many receipts and how many refusals each file has."""
    receipts = [name for name in intake.names("processed") if name.endswith(".receipt.txt")]
    refusals = [name for name in intake.names("failed") if name.endswith(".error.txt")]
    return Counter(name.split(".sh")[0] + ".sh" for name in receipts), Counter(
        name.split(".sh")[0] + ".sh" for name in refusals
    )


@pytest.mark.timeout(1500)
def test_each_of_five_thousand_files_is_one_job_or_one_answer(
    intake: Intake, behind: Path, wait_for: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    seed = random.randrange(10**6)
    chance = random.Random(seed)
    submit = behind / "slurm-jobs" / "submit"
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(submit), str(FILES)], **person_options(ALICE))
    names = [f"{('good', 'good', 'good', 'bad', 'bad', 'growing')[number % 6]}-{number}.sh" for number in range(FILES)]
    good = {name for name in names if not name.startswith("bad")}
    bad = set(names) - good
    begun = time.monotonic()
    try:
        for kill in range(KILLS):
            watcher = intake.start()
            if kill in (12, 27, 41):
                intake.slurm.stop("slurmctld")
            if kill in (15, 29, 44):
                intake.slurm.start_slurmctld()
            time.sleep(chance.uniform(0.6, 2.4))  # any moment of its work
            watcher.kill()
            watcher.wait()
        assert writer.wait(120) == 0
        intake.start()

        def all_told() -> bool:
            receipts, refusals = answers(intake)
            return len(receipts) + len(refusals) >= FILES and not intake.names("submit")

        wait_for(all_told, "an answer for every file", seconds=600)
        # A job that Slurm accepted twice is held, and is cancelled when it is noticed.
        wait_for(lambda: not [name for name, count in jobs(intake).items() if count > 1], "no second job", seconds=120)
    finally:
        writer.kill()
        writer.wait()
    receipts, refusals = answers(intake)
    found = jobs(intake)
    held = intake.query("squeue", "-h", "-o", "%j %r").count("JobHeld")
    whole = all(
        (intake.jobs / "processed" / text.name.removesuffix(".receipt.txt")).read_text().endswith(LAST)
        for text in (intake.jobs / "processed").glob("growing-*.receipt.txt")
    )
    with capsys.disabled():
        print(
            f"\n{FILES} files, {KILLS} kills, seed {seed}: {len(found)} jobs for {len(good)} good files, "
            f"{len(refusals)} refusals for {len(bad)} bad ones, {time.monotonic() - begun:.0f} s"
        )
    assert (set(found), set(found.values())) == (good, {1})
    assert (set(receipts), set(receipts.values())) == (good, {1})
    assert (set(refusals), set(refusals.values())) == (bad, {1})
    assert held == 0, "a job was never let go"
    assert whole, "a file was taken while it grew"
