"""Figures are read over HTTP and from a textfile, and never stand in their daemon's way."""

import os
import socket
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from slurmk8s.config import Config
from slurmk8s.errors import SetupError
from slurmk8s.metrics import MOST_READERS, Metrics


@pytest.fixture
def metrics() -> Iterator[Metrics]:
    made = Metrics("watcher")
    yield made
    made.close()


def values(text: str) -> dict[str, float]:
    """Every sample by its name and labels."""
    samples = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
    return {sample.name + "".join(f" {word}" for word in sample.labels.values()): sample.value for sample in samples}


def read(metrics: Metrics) -> str:
    assert metrics.address is not None
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics.address[1]}/metrics", timeout=10) as answer:
        text: str = answer.read().decode()
    return text


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_both_ways_tell_the_same(metrics: Metrics, tmp_path: Path) -> None:
    drops = metrics.counter("drops", "Files taken from submit/.", ("outcome",))
    metrics.gauge("oldest_drop_seconds", "Age of the oldest.").set_function(lambda: 2.5)
    drops.labels(outcome="accepted").inc(3)
    path = tmp_path / "slurmk8s_watcher.prom"
    metrics.expose("127.0.0.1:0", path, 60)
    wait_for(path.exists)
    wait_for(lambda: path.stat().st_mode & 0o777 == 0o644)
    served, written = values(read(metrics)), values(path.read_text())
    assert served["slurmk8s_drops_total accepted"] == written["slurmk8s_drops_total accepted"] == 3
    assert served["slurmk8s_oldest_drop_seconds"] == written["slurmk8s_oldest_drop_seconds"] == 2.5
    assert os.listdir(tmp_path) == [path.name]


def test_the_textfile_follows_and_is_written_a_last_time(tmp_path: Path) -> None:
    metrics = Metrics("watcher")
    drops = metrics.counter("drops", "Files taken from submit/.")
    path = tmp_path / "slurmk8s_watcher.prom"
    metrics.expose(None, path, 0.01)
    drops.inc()
    wait_for(lambda: path.exists() and values(path.read_text())["slurmk8s_drops_total"] == 1)
    metrics.close()
    drops.inc()
    assert metrics.write()
    assert values(path.read_text())["slurmk8s_drops_total"] == 2


def test_an_address_that_is_taken_or_a_folder_that_is_missing_stops_nobody(metrics: Metrics, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        metrics.expose(f"127.0.0.1:{taken.getsockname()[1]}", tmp_path / "missing" / "x.prom", 60)
    assert metrics.address is None
    assert not metrics.write()


def test_held_connections_do_not_keep_others_out_for_ever(metrics: Metrics) -> None:
    """Whoever opens many connections and says nothing is let go, and never has more than a few."""
    metrics.expose("127.0.0.1:0")
    assert metrics.address is not None
    idle = [socket.create_connection(("127.0.0.1", metrics.address[1])) for _ in range(MOST_READERS * 4)]
    try:

        def is_answered() -> bool:
            try:
                return "slurmk8s_build_info" in read(metrics)
            except OSError:
                return False

        wait_for(is_answered)
    finally:
        for connection in idle:
            connection.close()


def test_nothing_is_opened_unless_asked_for(metrics: Metrics) -> None:
    metrics.expose(Config().metrics.agent_address, Config().metrics.textfile_of("agent_node1"))
    assert metrics.address is None
    assert metrics._threads == []


def test_an_address_without_a_port_is_a_mistake() -> None:
    from slurmk8s.config import parse

    with pytest.raises(SetupError, match=r"metrics\.agent_address"):
        parse({"metrics": {"agent_address": "localhost"}}, "config.toml")
