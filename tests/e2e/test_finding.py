"""A person finds a job without its id, while it runs and afterwards, with the commands and in a file manager."""

import json
import re
from typing import Any

ALPINE = "nas-hub.local:5407/alpine:latest"


def job(name: str, text: str) -> str:
    return f"#!/bin/sh\n#SBATCH --job-name={name}\n#SBATCH --mem=64M\n#SBATCH --time=5\n#K8S_IMAGE={ALPINE}\n{text}\n"


def test_a_job_is_seen_running_and_found_by_its_name_when_it_has_ended(cluster: Any) -> None:
    running = cluster.sbatch(job("찾기-run", "echo here; sleep 300"))
    cluster.wait_state(running, "RUNNING")
    failed = cluster.sbatch(job("찾기-bad", "exit 5"))
    cluster.summary(failed)

    def screen() -> dict[str, Any]:
        told: dict[str, Any] = json.loads(cluster.run("slurmk8s", "status", "--json").stdout)
        return told

    def stage() -> str:
        return next((one["stage"] for one in screen()["running"] if one["job"] == str(running)), "")

    cluster.wait_for(lambda: "body runs" in stage(), "the status to tell that the body runs")
    ended = {one["job"]: one for one in screen()["ended"]}
    assert ended[str(failed)]["cause"] == "The body ended with exit code 5."

    def found(*arguments: str) -> list[tuple[int, str]]:
        told = json.loads(cluster.run("slurmk8s", "results", "--json", *arguments).stdout)
        return [(one["job_id"], one["state"]) for one in told]

    assert found("--name", "찾기-") == [(failed, "failed"), (running, "running")]
    assert found("--name", "찾기-*", "--state", "failed", "--since", "1h") == [(failed, "failed")]
    cluster.run("scancel", str(running))
    cluster.summary(running)
    assert found("--name", "찾기-") == [(running, "cancelled"), (failed, "failed")]
    lines = (cluster.layout.results / f"{cluster.user}.txt").read_text("utf-8-sig").splitlines()
    assert re.search(rf" {running} +cancelled .* 찾기-run ", lines[1])
    assert re.search(rf" {failed} +failed .* 찾기-bad .* exit code 5", lines[2])
    told = json.loads(cluster.run("slurmk8s", "report", "--json", "--by", "name").stdout)
    assert {"찾기-run", "찾기-bad"} <= {line["group"] for line in told["lines"]}
    assert "exit code 5" in {cause["cause"] for cause in told["causes"]}
