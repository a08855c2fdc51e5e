"""What a job meets on Kubernetes alone: GPUs by the device plugin or by number, both sets of books, mounts by claim."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_images import rootfs
from test_journey import ALPINE, body
from test_many import HOLD, SHOW_GPUS, go, read

RUNTIMES = ("kubernetes",)
UUID = re.compile(r"GPU-000000(\d)(\d)-[-0-9a-f]+")  # the test cluster's: number of the node, number on the node
SMI = """\
#!/bin/sh
# One program for both nodes of this machine: who asks says which.
case $(tr '\\0' ' ' </proc/$PPID/cmdline) in
*"--node node2"*) exec {folder}/kube2/gpus/nvidia-smi "$@" ;;
*) exec {folder}/kube1/gpus/nvidia-smi "$@" ;;
esac
"""


def three_at_once(cluster: Any) -> dict[int, dict[str, Any]]:
    """Two jobs with one GPU each on node1 and one on node2, all running at the same time: what each saw."""
    script = body(f"{SHOW_GPUS}\n{HOLD}")
    jobs = {
        int(cluster.sbatch(script, "--gres=gpu:1", f"--nodelist={node}", "--mem=200M")): node
        for node in ("node1", "node1", "node2")
    }
    for job_id in jobs:
        cluster.wait_for(lambda job_id=job_id: "nvidia" in read(cluster, job_id), f"job {job_id} running", 60)
    assert {cluster.state(job_id) for job_id in jobs} == {"RUNNING"}
    seen: dict[int, dict[str, Any]] = {}
    for job_id, node in jobs.items():
        first, *devices = cluster.stdout(job_id).splitlines()
        match = UUID.fullmatch(first.split()[0])
        assert match, first
        seen[job_id] = {"node": node, "uuid": (int(match[1]), int(match[2])), "devices": devices}
    for job_id in jobs:
        go(cluster, job_id)
        assert cluster.wait(job_id)["JobState"] == "COMPLETED"
        seen[job_id]["slurm"] = [int(index) for index in cluster.summary(job_id)["gpus"]]
    return seen


def test_two_gpu_jobs_on_one_node_and_one_on_the_other_each_have_their_own(cluster: Any) -> None:
    """Mode `count`: the device plugin picks, so only the number must be Slurm's; nobody shares."""
    seen = three_at_once(cluster)
    for job in seen.values():
        assert job["devices"] == [f"nvidia{job['uuid'][1]}"]
        assert job["uuid"][0] == int(job["node"].removeprefix("node"))
        assert len(job["slurm"]) == 1
    assert sorted(job["uuid"][1] for job in seen.values() if job["node"] == "node1") == [0, 1]


def test_pinned_jobs_have_the_very_gpus_that_slurm_chose(new_cluster: Callable[..., Any], kubernetes: Any) -> None:
    smi = Path(f"/var/tmp/slurmk8s-smi-{kubernetes.testbed.layout.number}")
    smi.write_text(SMI.format(folder=kubernetes.testbed.folder))
    smi.chmod(0o755)
    try:
        pinned = new_cluster(nodes=2, gpus=2, config_overrides={"gpu.mode": "pinned", "gpu.smi": str(smi)})
        seen = three_at_once(pinned)
        for job in seen.values():
            (index,) = job["slurm"]
            assert job["uuid"] == (int(job["node"].removeprefix("node")), index)
            assert job["devices"] == [f"nvidia{index}"]
        both = pinned.sbatch(body(SHOW_GPUS), "--gres=gpu:2")
        none = pinned.sbatch(body(f"{SHOW_GPUS} || true", image=ALPINE))
        assert pinned.wait(both)["JobState"] == "COMPLETED"
        assert pinned.stdout(both).splitlines()[1:] == ["nvidia0", "nvidia1"]
        pinned.wait(none)
        assert pinned.stdout(none) == "void\n"
    finally:
        smi.unlink()


RUNTIME = """\
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: forgetful}
handler: runc
"""


def test_a_runtime_that_gives_other_gpus_than_slurm_is_a_fault_of_the_node(
    new_cluster: Callable[..., Any], kubernetes: Any
) -> None:
    """The body never runs; both lists are told; no further job comes to that node."""
    kubernetes.shared.kubectl("apply", "-f", "-", text=RUNTIME)
    try:
        smi = kubernetes.testbed.layout.nodes[0].nvidia_smi
        settings = {"gpu.mode": "pinned", "gpu.smi": str(smi), "gpu.runtime_class": "forgetful"}
        wrong = new_cluster(nodes=1, gpus=2, config_overrides=settings)
        job_id = wrong.sbatch(body("echo never"), "--gres=gpu:1", "--no-requeue")
        assert wrong.wait(job_id)["JobState"] == "FAILED"
        summary = wrong.summary(job_id)
        assert summary["fault"] == "node"
        assert re.search(r"Slurm allocated the GPU\(s\) GPU-00000010-\S+; the pod has none", summary["cause"])
        assert read(wrong, job_id) == ""
        assert "the pod has none" in wrong.run("sinfo", "--noheader", "--list-reasons", "--format=%100E").stdout
        assert wrong.pods() == []
    finally:
        kubernetes.shared.kubectl("delete", "runtimeclass", "forgetful")


@pytest.mark.parametrize("options", [("--exclusive",), ("--mem=0",), ("--exclusive", "--mem=0")])
def test_a_job_that_gets_the_whole_node_starts(cluster: Any, options: tuple[str, ...]) -> None:
    """Slurm's figures come from what Kubernetes can give, so the kubelet has room for all of it."""
    script = "#!/bin/sh\n#K8S_IMAGE=nas-hub.local:5407/alpine:latest\necho whole\n"
    job_id = cluster.sbatch(script, *options)
    assert cluster.wait(job_id)["JobState"] == "COMPLETED"
    assert cluster.stdout(job_id) == "whole\n"
    assert cluster.summary(job_id)["attempt"] == 0


def test_out_of_memory_is_told_with_the_limit_and_the_peak(cluster: Any) -> None:
    job_id = cluster.sbatch(body("python3 -c 'x = bytearray(600 << 20)'"), "--mem=200M")
    cluster.wait(job_id)
    cause = cluster.summary(job_id)["cause"]
    assert cluster.summary(job_id)["state"] == "out_of_memory"
    assert "200 MiB" in cause
    peak = re.search(r"peak.*?(\d+) MiB", cause)
    assert peak, cause
    assert 190 <= int(peak[1]) <= 200


def test_the_time_of_the_pull_is_told_apart_from_the_run(cluster: Any, tmp_path: Path) -> None:
    image = cluster.push_image(rootfs(tmp_path / "big.tar", {"big": os.urandom(60 << 20)}, busybox=True), "big:1")
    job_id = cluster.sbatch(body("sleep 1", image=image, shebang="#!/bin/sh"))
    assert cluster.wait(job_id)["JobState"] == "COMPLETED"
    durations = cluster.summary(job_id)["durations"]
    assert durations["pulling"] > 0.1
    assert 0.9 <= durations["running"] < 1.0 + durations["pulling"] + 3
    assert "pulled in" in (cluster.results(job_id) / "job_summary.txt").read_text()
    again = cluster.sbatch(body("true", image=image, shebang="#!/bin/sh"))
    cluster.wait(again)
    assert (cluster.summary(again)["durations"]["pulling"] or 0) < durations["pulling"]


CLAIM = """\
apiVersion: v1
kind: PersistentVolume
metadata: {{name: {name}}}
spec:
  capacity: {{storage: 1Gi}}
  accessModes: [ReadWriteMany]
  storageClassName: ""
  persistentVolumeReclaimPolicy: Retain
  claimRef: {{namespace: {namespace}, name: nas}}
  hostPath: {{path: {folder}, type: Directory}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: nas, namespace: {namespace}}}
spec:
  accessModes: [ReadWriteMany]
  storageClassName: ""
  volumeName: {name}
  resources: {{requests: {{storage: 1Gi}}}}
"""


def test_with_claims_no_pod_needs_a_path_of_its_node(new_cluster: Callable[..., Any], kubernetes: Any) -> None:
    """The namespace is `restricted` then, by Kubernetes' own admission, and the whole journey goes as before."""
    own = new_cluster(nodes=1, config_overrides={"mounts.nas.claim": "nas"})
    kubectl = kubernetes.shared.kubectl
    script = body("echo data > answer; id -u; echo $SLURMK8S_OUTPUTS; exit 3", directives="#K8S_WORKDIR=/workspace")
    job_id = own.sbatch(script, "--hold")
    namespace, name = kubernetes.namespace(own), own.layout.cluster
    own.wait_for(lambda: f"namespace/{namespace}" in kubectl("get", "ns", "-o", "name"), "the namespace")
    kubectl("apply", "-f", "-", text=CLAIM.format(name=name, namespace=namespace, folder=own.layout.nas))
    try:
        own.run("scontrol", "release", str(job_id))
        fields = own.wait(job_id)
        level = kubectl(
            "get", "ns", namespace, "-o", r"jsonpath={.metadata.labels.pod-security\.kubernetes\.io/enforce}"
        )
        assert level == "restricted"
        assert fields["ExitCode"] == "3:0"
        assert own.stdout(job_id).splitlines() == [str(own.uid), f"/mnt/nas/results/{job_id}/outputs"]
        assert (own.results(job_id) / "outputs" / "answer").read_text() == "data\n"
        assert own.summary(job_id)["cause"] == "The body ended with exit code 3."
        assert own.run("slurmk8s", "verify", str(job_id)).returncode == 0
        held = own.sbatch(body(f"echo up\n{HOLD}", image=ALPINE))
        own.wait_for(lambda: "up" in read(own, held), "the body", 60)
        volumes = kubernetes.pod(own, held)["spec"]["volumes"]
        assert not [volume for volume in volumes if "hostPath" in volume]
        own.run("scancel", str(held))
        own.wait(held)
        assert own.pods() == []
    finally:
        kubectl("delete", "pv", name, "--wait=false")
