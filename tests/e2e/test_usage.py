"""What a job uses, from the drop to the bundle: measured on its node, and not lost when the agent is."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from test_journey import DEBIAN
from test_many import HOLD, go, read

from slurmk8s.agent import samples

MB = 1 << 20
# One core; 100 MB in /dev/shm and 100 MB that tail holds until its input ends.
SCRIPT = f"""\
#!/bin/bash
#SBATCH --nodelist=node1
#SBATCH --cpus-per-task=2
#SBATCH --mem=512M
#K8S_IMAGE={DEBIAN}
head -c {100 * MB} /dev/zero >/dev/shm/held
while :; do :; done &
echo start
{{ head -c {100 * MB} /dev/zero; {HOLD}; }} | tail -c {100 * MB} >/dev/null
kill %1
wait
times
"""


def measured(cluster: Any, job_id: int) -> tuple[samples.Sample, ...]:
    folder = Path(cluster.layout.agent_state.replace("%n", "node1"))
    return samples.read(folder / "usage" / f"{job_id}.0").samples


def test_the_figures_are_right_also_when_the_agent_was_killed_in_between(cluster: Any) -> None:
    cluster.drop("uses.sh", SCRIPT)
    job_id = cluster.dropped_job("uses.sh")
    cluster.wait_for(lambda: "start" in read(cluster, job_id), "the body", 60)
    cluster.wait_for(lambda: max([each.memory for each in measured(cluster, job_id)] or [0]) > 195 * MB, "its memory")
    old = cluster.kill("agent-node1")
    cluster.restarted("agent-node1", old)
    before = measured(cluster, job_id)
    cluster.wait_for(lambda: len(measured(cluster, job_id)) >= len(before) + 2, "the next agent's samples")
    assert measured(cluster, job_id)[: len(before)] == before
    go(cluster, job_id)
    cluster.wait(job_id)
    summary = cluster.summary(job_id)
    usage, running = summary["usage"], summary["durations"]["running"]
    assert 195 * MB < usage["memory_peak_bytes"] < 300 * MB
    # As its own shell counts it. The pod has a launcher besides; how much of a core it had is up to the other tests.
    told = sum(
        int(minutes) * 60 + float(rest) for minutes, rest in re.findall(r"(\d+)m([0-9.]+)s", read(cluster, job_id))
    )
    assert 0.9 * told < usage["cpu_seconds"] < told + 1
    assert usage["notes"] == []  # it was short
    assert summary["script_sha256"] == hashlib.sha256(SCRIPT.encode()).hexdigest()
    times = summary["times"]
    assert times["submitted"] - 30 < times["dropped"] <= times["submitted"] + 1  # Slurm counts whole seconds
    assert summary["durations"]["accepting"] is not None
    folder = cluster.results(job_id)
    assert "Memory used peak 2" in (folder / "job_summary.txt").read_text()
    ET.parse(folder / "usage.svg")
    assert (folder / "usage.svg").stat().st_uid == cluster.uid
    assert cluster.run("slurmk8s", "verify", str(job_id)).returncode == 0
    assert measured(cluster, job_id) == ()
    report = json.loads(cluster.run("slurmk8s", "report", "--json", "--by", "name").stdout)
    (line,) = (line for line in report["lines"] if line["group"] == "uses.sh")
    assert line["memory_use"] == pytest.approx(usage["memory_peak_bytes"] / (512 * MB), rel=0.01)
    # Of all the time that the job had its CPUs, not only while its body ran.
    while_running = usage["cpu_seconds"] / (2 * running)
    assert 0.2 * while_running < line["cpu_use"] < 1.05 * while_running


@pytest.mark.runtimes("podman")
def test_a_job_by_sbatch_was_never_dropped(cluster: Any) -> None:
    job_id = cluster.sbatch(f"#!/bin/bash\n#SBATCH --mem=256M\n#K8S_IMAGE={DEBIAN}\ntrue\n")
    cluster.wait(job_id)
    summary = cluster.summary(job_id)
    assert summary["times"]["dropped"] is None
    assert "Dropped" not in (cluster.results(job_id) / "job_summary.txt").read_text()
