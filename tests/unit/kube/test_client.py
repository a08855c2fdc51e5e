"""Answers that only a server made for it gives; see played_server."""

import time
from typing import Any

import pytest
from played_server import ApiServer

from slurmk8s.errors import SetupError
from slurmk8s.kube import client
from slurmk8s.kube.connection import connect, of_admin
from slurmk8s.kube.faults import KubeUnreachable, NotFound, Refused


def test_all_pages_of_a_list_are_read(api_server: ApiServer) -> None:
    def answer(query: dict[str, str]) -> tuple[int, Any]:
        page = int(query.get("continue", "0"))
        following = str(page + 1) if page < 2 else ""
        return 200, {"metadata": {"resourceVersion": "7", "continue": following}, "items": [{"page": page}]}

    api_server.answer = answer
    assert api_server.kube().listing("/api/v1/pods", labelSelector="app=x") == ([{"page": n} for n in range(3)], "7")
    assert all(query["labelSelector"] == "app=x" for _, query in api_server.asked)


def test_a_list_whose_later_pages_are_gone_is_read_again(api_server: ApiServer) -> None:
    answers = [
        (200, {"metadata": {"continue": "old"}, "items": [{"n": 1}]}),
        (410, {"message": "The provided continue parameter is too old"}),
        (200, {"metadata": {"resourceVersion": "9"}, "items": [{"n": 1}, {"n": 2}]}),
    ]
    api_server.answer = lambda _: answers.pop(0)
    assert api_server.kube().items("/api/v1/pods") == [{"n": 1}, {"n": 2}]


def test_a_server_that_hangs_is_unknown_within_its_time(api_server: ApiServer) -> None:
    api_server.answer = lambda _: (api_server.release.wait(20), (200, {}))[1]
    begun = time.monotonic()
    with pytest.raises(KubeUnreachable, match="does not answer in time"):
        api_server.kube(seconds=0.3).find("/api/v1/namespaces/user-1/pods/a")
    assert time.monotonic() - begun < 3


def test_an_answer_that_is_no_json_is_unknown(api_server: ApiServer) -> None:
    """A captive portal or a load balancer's own page."""
    api_server.answer = lambda _: (200, b"<html>Please log in</html>")
    with pytest.raises(KubeUnreachable, match="does not answer as a Kubernetes API server"):
        api_server.kube().get("/api/v1/pods")


def test_a_missing_object_is_none_and_a_missing_namespace_is_named(api_server: ApiServer) -> None:
    status = {"reason": "NotFound", "message": 'namespaces "user-1" not found', "details": {"kind": "namespaces"}}
    api_server.answer = lambda _: (404, status)
    kube = api_server.kube()
    assert kube.find("/api/v1/namespaces/user-1/pods/a") is None
    assert kube.delete("/api/v1/namespaces/user-1/pods/a") is None
    with pytest.raises(NotFound) as raised:
        kube.create("/api/v1/namespaces/user-1/pods", {})
    assert raised.value.details == {"kind": "namespaces"}


def test_a_renewed_token_is_used_without_a_restart(api_server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "SECONDS_BETWEEN_CREDENTIALS", 0)
    api_server.answer = lambda _: (200 if api_server.tokens[-1] == "Bearer second" else 401, {})
    kube = api_server.kube()
    with pytest.raises(Refused, match=r"credential in .*kubeconfig is not valid"):
        kube.get("/api")
    api_server.token.write_text("second")
    assert kube.get("/api") == {}
    assert api_server.tokens == ["Bearer first", "Bearer first", "Bearer first", "Bearer second"]


def test_an_answer_that_breaks_off_is_unknown_and_the_next_one_counts(api_server: ApiServer) -> None:
    """As when the API server restarts."""
    answers: list[Any] = [(200, {}), iter([None]), (200, {"n": 1})]
    api_server.answer = lambda _: answers.pop(0)
    kube = api_server.kube()
    kube.get("/api")
    with pytest.raises(KubeUnreachable):
        kube.get("/api")
    assert kube.get("/api") == {"n": 1}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "There is no kubeconfig"),
        ("", "is not valid"),
        ("clusters: [", "is not valid"),
        ("current-context: x\ncontexts: []\n", "Expected object with name x"),
    ],
)
def test_a_kubeconfig_that_cannot_be_used_stops_with_a_next_step(tmp_path: Any, text: str | None, said: str) -> None:
    path = tmp_path / "kubeconfig"
    if text is not None:
        path.write_text(text)
    with pytest.raises(SetupError, match=said) as raised:
        connect(path)
    assert "--kubeconfig" in raised.value.hint


def test_an_admin_needs_to_name_no_file(api_server: ApiServer, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    api_server.answer = lambda _: (200, {})
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    assert of_admin(None, head=api_server.kubeconfig).get("/api") == {}
    with pytest.raises(SetupError, match=r"\.kube/config"):
        of_admin(None)
    monkeypatch.setenv("KUBECONFIG", f"/nonexistent:{api_server.kubeconfig}")
    assert of_admin(None).get("/api") == {}
    with pytest.raises(SetupError, match="/named"):
        of_admin(tmp_path / "named")
