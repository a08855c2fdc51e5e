"""The conversation with the agent, over a real socket."""

import json
import select
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurmk8s.run.link import AgentAway, Link, Patience


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "agent.sock"))
        listener.listen(1)
        yield listener


@pytest.fixture
def link(tmp_path: Path) -> Iterator[Link]:
    link = Link(tmp_path / "agent.sock")
    yield link
    link.close()


def arrived(link: Link) -> list[dict]:
    assert select.select([link.fileno()], [], [], 5)[0]
    return link.messages()


def test_the_question_is_one_line_of_json(agent: socket.socket, link: Link) -> None:
    link.ask({"ask": "pod", "job_id": 7})
    connection, _ = agent.accept()
    with connection:
        assert json.loads(connection.recv(100)) == {"ask": "pod", "job_id": 7}


def test_messages_come_whole_however_they_were_cut(agent: socket.socket, link: Link) -> None:
    link.ask({})
    connection, _ = agent.accept()
    with connection:
        connection.sendall(b'{"stage":"planned"}\n{"stage":"no')
        assert arrived(link) == [{"stage": "planned"}]
        assert link.messages() == []
        connection.sendall('te","sentence":"한글"}\n'.encode())
        assert arrived(link) == [{"stage": "note", "sentence": "한글"}]


def test_no_agent_is_told_as_away(link: Link) -> None:
    with pytest.raises(AgentAway, match="No such file"):
        link.ask({})
    assert link.fileno() is None
    with pytest.raises(AgentAway):
        link.messages()


def test_an_agent_whose_line_is_full_is_away(agent: socket.socket, tmp_path: Path, link: Link) -> None:
    """It accepts nobody, so the kernel refuses at once."""
    callers = []
    try:
        with pytest.raises(BlockingIOError):  # noqa: PT012 - as many as the kernel lets wait
            for _ in range(100):
                callers.append(socket.socket(socket.AF_UNIX))
                callers[-1].setblocking(False)
                callers[-1].connect(str(tmp_path / "agent.sock"))
        with pytest.raises(AgentAway):
            link.ask({})
    finally:
        for caller in callers:
            caller.close()


def test_an_agent_that_dies_is_away_and_can_be_asked_again(agent: socket.socket, link: Link) -> None:
    link.ask({})
    connection, _ = agent.accept()
    connection.sendall(b'{"half')
    connection.close()
    with pytest.raises(AgentAway):  # noqa: PT012 - the half message may come first
        while True:
            arrived(link)
    link.ask({})
    connection, _ = agent.accept()
    with connection:
        connection.sendall(b'{"stage":"planned"}\n')
        assert arrived(link) == [{"stage": "planned"}]


def test_patience_starts_once_and_ends_with_an_answer() -> None:
    patience = Patience(0)
    assert not patience.over
    assert patience.start()
    assert not patience.start()
    assert patience.over
    patience.end()
    assert not patience.over
    assert patience.start()


def test_patience_lasts_its_time() -> None:
    patience = Patience(3600)
    patience.start()
    assert not patience.over
