"""How far a running job has come, by its node's folder, its logs and its pod. Needs nothing (root for one case)."""

import os
import socket
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from why_samples import JOB, NOW

from slurmk8s import config as configuration
from slurmk8s.config import Config
from slurmk8s.ops import pod_stage, stage
from slurmk8s.rendezvous import Rendezvous
from slurmk8s.results.paths import Bundle

MINE = replace(JOB, uid=os.getuid(), state="RUNNING", nodes=("gpu1",), started=NOW - 600)


@pytest.fixture
def site(tmp_path: Path) -> Config:
    return configuration.parse({"agent": {"run_folder": str(tmp_path / "run-%n")}}, "test")


def answering_agent(site: Config, node: str, answer: bytes) -> socket.socket:
    folder = site.agent.run_folder_of(node)
    folder.mkdir(exist_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "agent.sock"))
    listener.listen()

    def serve() -> None:
        try:
            while True:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(4096)
                    connection.sendall(answer)
        except OSError:
            return  # closed

    threading.Thread(target=serve, daemon=True).start()
    return listener


def words_here(site: Config) -> list[str]:
    return [each.words for each in stage.on_this_node(site, "gpu1", 7)]


def test_the_nodes_own_folder_tells_each_step(site: Config) -> None:
    with answering_agent(site, "gpu1", b'{"node": "gpu1", "ready": true, "jobs": 1}\n'):
        assert words_here(site) == ["the node's agent has not prepared its pod yet"]
        meeting = Rendezvous.of(str(site.agent.run_folder), "gpu1", 7)
        meeting.handover.mkdir(parents=True)
        assert words_here(site) == ["its pod is being made"]
        meeting.command.touch()
        assert words_here(site) == ["it waits for its image or for its container to start"]
        meeting.shell.touch()
        assert words_here(site)[0].startswith("its body runs since 20")
        meeting.exit.write_text("3\n")
        assert words_here(site) == ["its body has just ended with exit code 3"]


def test_an_agent_that_is_away_is_trouble_but_a_running_body_is_not_denied(site: Config) -> None:
    site.agent.run_folder_of("gpu1").mkdir()
    socket_path = site.agent.run_folder_of("gpu1") / "agent.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(socket_path))  # nobody listens
    assert words_here(site) == ["it waits for the agent of gpu1, which does not answer"]
    meeting = Rendezvous.of(str(site.agent.run_folder), "gpu1", 7)
    meeting.handover.mkdir(parents=True)
    meeting.shell.touch()
    best = stage.furthest(stage.on_this_node(site, "gpu1", 7))
    assert best is not None
    assert best.words.startswith("its body runs")


def test_another_machine_and_another_nodes_agent_tell_nothing(site: Config) -> None:
    assert stage.on_this_node(site, "gpu1", 7) == []
    with answering_agent(site, "gpu1", b'{"node": "gpu2", "ready": true, "jobs": 1}\n'):
        assert stage.on_this_node(site, "gpu1", 7) == []


def test_what_the_body_printed_says_that_it_runs(tmp_path: Path) -> None:
    bundle = Bundle(tmp_path)
    bundle.stdout.touch()
    bundle.stderr.touch()
    assert stage.in_logs(MINE, "", bundle, NOW) == []
    bundle.stderr.write_text("epoch 1\n")
    os.utime(bundle.stderr, (NOW - 20, NOW - 20))
    (found,) = stage.in_logs(MINE, "", bundle, NOW)
    assert (found.reached, found.words) == (stage.BODY, "its body runs and last printed something 20 s ago")


def test_a_pull_is_told_from_the_log_as_long_as_it_is_news(tmp_path: Path) -> None:
    log = tmp_path / "slurm-7.out"
    log.write_text("hello\nslurmk8s: pulling image pytorch:2.0 … 11 s\nslurmk8s: pulling image pytorch:2.0 … 41 s\n")
    os.utime(log, (NOW - 5, NOW - 5))
    (found,) = stage.in_logs(MINE, str(log), None, NOW)
    assert (found.reached, found.words) == (stage.WAITING, "it waits for its image (pulling image pytorch:2.0 … 41 s)")
    assert found.evidence == ("log: “pulling image pytorch:2.0 … 41 s” (5.0 s ago)",)
    os.utime(log, (NOW - 300, NOW - 300))
    (found,) = stage.in_logs(MINE, str(log), None, NOW)
    assert found.reached == stage.UNKNOWN
    os.utime(log, (NOW - 900, NOW - 900))  # before this attempt
    assert stage.in_logs(MINE, str(log), None, NOW) == []


def test_no_link_and_nobody_elses_file_is_read(tmp_path: Path) -> None:
    log, link = tmp_path / "log", tmp_path / "link"
    log.write_text("slurmk8s: secret\n")
    os.utime(log, (NOW - 5, NOW - 5))
    link.symlink_to(log)
    os.mkfifo(tmp_path / "fifo")
    assert stage.in_logs(MINE, str(link), None, NOW) == []
    assert stage.in_logs(MINE, str(tmp_path / "fifo"), None, NOW) == []
    assert stage.in_logs(MINE, str(tmp_path / "none"), None, NOW) == []
    assert stage.in_logs(replace(MINE, uid=MINE.uid + 1), str(log), None, NOW) == []


def test_what_a_path_leads_to_is_looked_at_before_it_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening a device may do something, and a link in the middle of the path leads to any."""
    (tmp_path / "d").symlink_to("/dev")
    opened: list[str] = []
    really = os.open

    def noting(path: Any, flags: int, *more: Any, **named: Any) -> int:
        if not flags & os.O_PATH:
            opened.append(str(path))
        return really(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", noting)
    assert stage.in_logs(MINE, str(tmp_path / "d" / "null"), None, NOW) == []
    assert opened == []


def test_a_log_in_a_folder_that_is_a_link_is_read(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "home").symlink_to(tmp_path / "real")
    log = tmp_path / "home" / "log"
    log.write_text("slurmk8s: its pod is being made\n")
    os.utime(log, (NOW - 5, NOW - 5))
    (found,) = stage.in_logs(MINE, str(log), None, NOW)
    assert found.words == "its log last said: its pod is being made"


def pod(state: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    containers = [{"name": "job", "state": state}] if state else []
    return {
        "metadata": {"name": "slurm-job-7", "namespace": "user-1001", "uid": "a"},
        "spec": {"nodeName": "gpu1", "containers": [{"name": "job", "image": "nas-hub.local:5407/pytorch:2.0"}]},
        "status": {"phase": "Pending", "startTime": "2026-11-16T18:00:00Z", "containerStatuses": containers, **status},
    }


def event(reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    return {"reason": reason, "message": message, "involvedObject": {"uid": "a"}, **more}


CREATING = {"waiting": {"reason": "ContainerCreating"}}


@pytest.mark.parametrize(
    ("given", "events", "reached", "words"),
    [
        (None, [], stage.PREPARING, "its pod does not exist yet"),
        (pod(CREATING), [event("Pulling")], stage.WAITING, "the node pulls its image nas-hub.local:5407/pytorch:2.0"),
        (pod(CREATING), [event("Pulling"), event("Pulled")], stage.WAITING, "its container is being made"),
        (pod(startTime=None), [], stage.PREPARING, "the kubelet of gpu1 has not taken up its pod yet"),
        (
            pod({"running": {"startedAt": "2026-11-16T18:00:05Z"}}, phase="Running"),
            [],
            stage.CONTAINER,
            "its container runs since 2026",
        ),
        (
            pod({"terminated": {"reason": "OOMKilled", "exitCode": 137}}, phase="Failed"),
            [],
            stage.ENDED,
            "its pod has ended (OOMKilled, exit code 137)",
        ),
    ],
)
def test_the_pods_stage(given: dict[str, Any] | None, events: list[Any], reached: int, words: str) -> None:
    found = pod_stage.of(given, events, "user-1001/slurm-job-7")
    assert found.reached == reached
    assert found.words.startswith(words)
    assert not found.trouble
    assert found.evidence[0].startswith("pod user-1001/slurm-job-7: ")


def test_an_image_that_cannot_be_pulled_is_told_in_the_agents_own_words() -> None:
    said = 'failed to resolve reference "nas-hub.local:5407/pytorch:2.0": not found'
    stuck = pod({"waiting": {"reason": "ErrImagePull", "message": said}})
    found = pod_stage.of(stuck, [event("Failed", f"Failed to pull image: {said}", type="Warning")], "u/p")
    assert found.trouble
    assert "nas-hub.local:5407/pytorch:2.0" in found.words
    assert found.evidence[-1].startswith("event: Failed: Failed to pull image")


def test_a_pod_that_its_kubelet_refused_is_told_in_the_agents_own_words() -> None:
    said = "Node didn't have enough resource: cpu, requested: 400000, used: 0, capacity: 2000"
    found = pod_stage.of(pod(phase="Failed", reason="OutOfcpu", message=said), [], "u/p")
    assert (found.reached, found.trouble) == (stage.ENDED, True)
    assert found.words.startswith("its pod has ended: Kubernetes has no room for the job on gpu1")
    assert "OutOfcpu" in found.evidence[0]


def test_a_pod_that_goes_is_told_so_and_foreign_events_do_not_count() -> None:
    going = pod(CREATING)
    going["metadata"]["deletionTimestamp"] = "2026-11-16T18:10:00Z"
    assert pod_stage.of(going, [], "u/p").words.startswith("its pod is being removed")
    earlier = {**event("Pulling"), "involvedObject": {"uid": "b"}}
    assert pod_stage.of(pod(CREATING), [earlier], "u/p").words == "its container is being made"


def test_a_refusal_by_kubernetes_is_evidence_not_an_error() -> None:
    from slurmk8s.kube.faults import Refused

    class Closed:
        def find(self, path: str) -> None:
            assert path == "/api/v1/namespaces/user-1001/pods/slurm-job-7"
            raise Refused("The Kubernetes API server refused GET.", code=403)

    found = pod_stage.look(Closed(), Config(), JOB)  # type: ignore[arg-type]
    assert (found.reached, found.words) == (stage.UNKNOWN, "")
    assert found.evidence == ("pod: not known: The Kubernetes API server refused GET.",)
