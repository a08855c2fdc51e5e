"""What the head node asks a real Slurm for: who has container jobs, and which nodes cannot be reached."""

from typing import Any

import pytest

from slurmk8s.slurm.client import Identity
from slurmk8s.slurm.owners import stamped_owners, unreachable_nodes

pytestmark = pytest.mark.slurm

BODY = b"#!/bin/sh\n#K8S_IMAGE=alpine\nsleep 60\n"


def test_only_owners_of_container_jobs_are_named(bare_slurm: Any, alice: Identity, bob: Identity) -> None:
    programs = bare_slurm.commands.programs
    assert stamped_owners(programs) == {}
    bare_slurm.commands.submit(b"#!/bin/sh\ntrue\n", ["--hold", "--output=/dev/null"], bob)
    waiting = bare_slurm.commands.submit(BODY, ["--hold", "--output=/dev/null", "--array=1-3"], alice)
    assert stamped_owners(programs) == {alice.uid: alice.name}
    bare_slurm.commands.cancel([waiting])
    running = bare_slurm.commands.submit(BODY, ["--output=/dev/null"], alice)
    bare_slurm.until_state(running, "RUNNING")
    assert stamped_owners(programs) == {alice.uid: alice.name}
    bare_slurm.commands.cancel([running])
    bare_slurm.until(lambda: running not in bare_slurm.commands.live_jobs(), "the job is over")
    assert stamped_owners(programs) == {}


def test_nobody_gets_a_namespace_by_a_clever_name(bare_slurm: Any, bob: Identity) -> None:
    """Whatever a person writes stands in no field that is asked for."""
    stamp = "slurmk8s/1:%23K8S_IMAGE=alpine"
    options = ["--hold", "--output=/dev/null", f"--comment={stamp}", f"--job-name=x\n{stamp}"]
    bare_slurm.commands.submit(b"#!/bin/sh\ntrue\n", options, bob)
    assert stamped_owners(bare_slurm.commands.programs) == {}


def test_a_node_that_is_down_is_unreachable(bare_slurm: Any) -> None:
    programs = bare_slurm.commands.programs
    assert unreachable_nodes(programs) == set()
    bare_slurm.run("scontrol", "update", "NodeName=node2", "State=DOWN", "Reason=test")
    try:
        assert unreachable_nodes(programs) == {"node2"}
    finally:
        bare_slurm.run("scontrol", "update", "NodeName=node2", "State=RESUME")
    bare_slurm.until(lambda: unreachable_nodes(programs) == set(), "the node is back")
    bare_slurm.run("scontrol", "update", "NodeName=node2", "State=DRAIN", "Reason=test")
    try:
        assert unreachable_nodes(programs) == set()  # out of service, and there
    finally:
        bare_slurm.run("scontrol", "update", "NodeName=node2", "State=RESUME")
