"""`slurmk8s local`: up, down and all that must not be left behind. No agent is started: it is not the subject."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slurmk8s.errors import SetupError
from slurmk8s.local import images, lifecycle, network, plan, state
from slurmk8s.local.layout import Layout
from slurmk8s.local.plan import Plan

RUNTIMES = ("podman",)  # what is different with Kubernetes is in test_local_kubernetes.py
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec:
  restartPolicy: Never
  containers:
  - {name: main, image: IMAGE, command: [sleep, "1000"]}
"""


def traces_of(layout: Layout) -> list[str]:
    """Processes, mounts and cgroups that are left of a cluster on this machine."""
    folder, found = str(layout.folder), []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if f"{folder}/" in command or f"{folder} " in command:
            found.append(f"process {entry.name}: {command}")
    found += [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if folder in line]
    return found + [str(path) for path in Path("/sys/fs/cgroup").glob(f"**/{layout.cluster}")]


def traces(layout: Layout, subnet: str) -> list[str]:
    """All that is left of a cluster on this machine, besides its files."""
    found = traces_of(layout)
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    found += [line for line in links.splitlines() if layout.bridge in line]
    rules = subprocess.run(["iptables-save"], capture_output=True, text=True, check=True).stdout
    found += [" ".join(rule) for rule in network.leftovers(rules, layout.cluster, subnet)]
    return found


def start_pod(cluster: Any, name: str) -> None:
    manifest = POD.replace("NAME", name).replace("IMAGE", images.SAMPLE)
    cluster.run(
        "podman", "kube", "play", f"--network={cluster.layout.cluster}", "-", user="root", inside=True, input=manifest
    )


@pytest.fixture
def own(new_cluster: Callable[..., Any]) -> Any:
    """One for tests that stop it or leave it changed."""
    return new_cluster(services=False)


def test_slurm_works_for_the_person_from_outside_and_from_inside(plain: Any) -> None:
    script = "#!/bin/sh\n#SBATCH --output=/mnt/nas/results/%j.out\nid -un; pwd\n"
    outside, inside = plain.sbatch(script), plain.sbatch(script, inside=True)
    for job, folder in ((outside, plain.layout.nas / "work"), (inside, "/mnt/nas/work")):
        assert plain.wait(job)["JobState"] == "COMPLETED"
        assert (plain.layout.results / f"{job}.out").read_text() == f"{plain.user}\n{folder}\n"


def test_the_env_file_is_all_that_root_and_the_person_need(plain: Any) -> None:
    wanted = (
        f'. {plain.layout.env}; . {plain.layout.env}; squeue --noheader && slurmk8s --version && echo "$SLURM_CONF"'
    )
    for user in ("root", plain.user):
        done = plain.run("sh", "-c", wanted, user=user, env={"PATH": "/usr/bin:/bin", "SLURM_CONF": "", "HOME": "/"})
        assert str(plain.layout.slurm_conf) in done.stdout


def test_a_daemon_that_dies_is_started_again(own: Any) -> None:
    for name in ("munged", "slurmctld", "slurmd-node1", "registry"):
        own.restarted(name, own.kill(name))
    own.wait_for(lambda: not lifecycle.unready(own.decided), "everything ready again")
    assert own.wait(own.sbatch("#!/bin/sh\ntrue\n"))["JobState"] == "COMPLETED"


def test_orphans_are_reaped(plain: Any) -> None:
    pid = plain.run("sh", "-c", "sleep 0.1 >/dev/null 2>&1 & echo $!", inside=True).stdout.strip()
    # A zombie stays in /proc until its parent asks for its end.
    gone = ["sh", "-c", f"test ! -e /proc/{pid}"]
    plain.wait_for(lambda: plain.run(*gone, inside=True, check=False).returncode == 0, "the orphan's end")


@pytest.mark.parametrize("how", ["orderly", "killed"])
def test_down_leaves_no_process_mount_container_cgroup_or_rule(own: Any, how: str) -> None:
    """With a pod and a Slurm job running; also after the supervisor was killed by kill -9."""
    layout, subnet = own.layout, own.decided.subnet
    start_pod(own, "left-behind")
    job = own.sbatch("#!/bin/sh\nsleep 1000\n")
    own.wait_state(job, "RUNNING")
    assert any("conmon" in line for line in traces(layout, subnet))
    if how == "killed":
        os.kill(own.pid, signal.SIGKILL)
    lifecycle.down(layout, purge=False)
    own.wait_for(lambda: not traces(layout, subnet), "no trace")
    assert not list((layout.containers / "overlay-containers").glob("*/userdata"))
    assert layout.results.is_dir(), "data stays"

    lifecycle.up(own.decided.plan, lambda _: None)
    assert own.pods() == []
    next_job = own.sbatch("#!/bin/sh\ntrue\n")
    assert next_job > job, "job ids go on counting, or results would mix"
    assert own.wait(next_job)["JobState"] == "COMPLETED"


def test_two_run_side_by_side(own: Any, new_cluster: Callable[..., Any]) -> None:
    other = new_cluster(services=False)
    for cluster in (own, other):
        start_pod(cluster, "same-name")
    assert own.pods() == other.pods() == ["same-name"]
    address = ["inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"]
    infra = ["ps", "--all", "--filter", "name=infra", "--format", "{{.ID}}"]
    first, second = (c.podman(*address, c.podman(*infra).strip()).strip() for c in (own, other))
    assert first.rpartition(".")[0] != second.rpartition(".")[0]
    lifecycle.down(other.layout, purge=False)
    assert own.pods() == ["same-name"]
    assert own.wait(own.sbatch("#!/bin/sh\ntrue\n"))["JobState"] == "COMPLETED"


def test_up_again_changes_nothing(plain: Any) -> None:
    before = plain.pid
    _, already = lifecycle.up(plain.decided.plan, lambda _: None)
    assert already
    assert plain.pid == before


def test_status_tells_the_truth(own: Any) -> None:
    status = ["slurmk8s", "local", "status"]
    assert own.run(*status).returncode == 0
    own.run("scontrol", "update", "nodename=node1", "state=drain", "reason=a test", user="root")
    shown = own.run(*status, check=False)
    assert shown.returncode == 1
    assert "problem: node1 is drained" in shown.stderr


def test_the_registry_is_real(plain: Any) -> None:
    assert "alpine" in plain.podman("pull", "--quiet", images.SAMPLE) or plain.podman("images", "--quiet")
    refused = plain.run("podman", "pull", f"{images.REGISTRY}/no-such:image", user="root", inside=True, check=False)
    assert refused.returncode
    assert "manifest unknown" in refused.stderr


def test_the_sample_image_has_sh_but_no_bash(plain: Any) -> None:
    for program, status in (("/bin/sh", 0), ("/usr/bin/env", 0), ("/bin/bash", 1)):
        done = plain.run(
            *("podman", "run", "--rm", "--network=none", images.SAMPLE, "test", "-x", program),
            user="root",
            inside=True,
            check=False,
        )
        assert done.returncode == status, (program, done.stderr)


def test_shell_goes_inside_as_the_person_or_as_root(plain: Any) -> None:
    command = [plain.layout.bin / "slurmk8s", "local", "shell", "--dir", plain.layout.folder]
    asked = ["--", "sh", "-c", "id -un; mountpoint /mnt/nas; exit 7"]
    for user, option in ((plain.user, []), ("root", ["--root"])):
        done = subprocess.run([*command, *option, *asked], capture_output=True, text=True, check=False)
        assert done.returncode == 7, done.stderr
        assert done.stdout == f"{user}\n/mnt/nas is a mountpoint\n"


def test_shell_refuses_who_is_not_root(plain: Any) -> None:
    refused = plain.run("slurmk8s", "local", "shell", check=False)
    assert refused.returncode == 2
    assert "sudo" in refused.stderr


def test_settings_of_a_test_replace_ours(new_cluster: Callable[..., Any]) -> None:
    cluster = new_cluster(
        services=False, slurm_overrides={"KillWait": "3"}, config_overrides={"intake.settle_seconds": 0.125}
    )
    assert re.search(r"KillWait\s*= 3 sec", cluster.run("scontrol", "show", "config").stdout)
    assert "settle_seconds = 0.125" in cluster.layout.config.read_text()


def test_a_folder_that_holds_other_files_is_refused() -> None:
    folder = Path(tempfile.mkdtemp(dir="/var/tmp"))
    thesis = folder / "thesis.tex"
    thesis.write_text("years of work")
    try:
        with pytest.raises(SetupError, match="not a local cluster's"):
            lifecycle.up(Plan(folder=folder), lambda _: None)
        assert not lifecycle.down(Layout(folder), purge=True).was_up
        assert thesis.exists()
    finally:
        shutil.rmtree(folder)


def test_a_drained_node_does_not_keep_it_from_coming_up_again(own: Any) -> None:
    own.run("scontrol", "update", "nodename=node1", "state=drain", "reason=a broken fan", user="root")
    lifecycle.down(own.layout, purge=False)
    lifecycle.up(own.decided.plan, lambda _: None)
    assert lifecycle.unready(own.decided) == ["node1 is drained"]


def test_root_is_no_person() -> None:
    with pytest.raises(SetupError, match="never run as root"):
        lifecycle.up(Plan(folder=Path("/var/tmp/slurmk8s-root"), user="root"), lambda _: None)
    assert not Path("/var/tmp/slurmk8s-root").exists()


def test_state_is_not_believed_when_its_process_is_another(plain: Any) -> None:
    """A pid is used again after a reboot: the birth of the process tells."""
    path = plain.layout.state
    data = json.loads(path.read_text())
    assert state.running(plain.layout)
    data["born"] = "1@" + data["born"].partition("@")[2]
    stale = Layout(plain.layout.folder / "nas")
    stale.state.write_text(json.dumps(data))
    assert state.running(stale) is None
    assert plan.read(stale) is None
