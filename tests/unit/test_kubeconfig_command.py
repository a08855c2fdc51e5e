"""`slurmk8s kubeconfig` for those who may not: whom to ask, in one line."""

import os
import pwd
from pathlib import Path

import pytest
from click.testing import CliRunner

from slurmk8s.cli.kubeconfig import kubeconfig
from slurmk8s.errors import SetupError

NOBODY = pwd.getpwnam("nobody")


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("KUBECONFIG", "SLURMK8S_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: NOBODY.pw_uid)
    monkeypatch.setattr(os, "getuid", lambda: NOBODY.pw_uid)


def refusal(*arguments: str) -> SetupError:
    error = CliRunner().invoke(kubeconfig, arguments).exception
    assert isinstance(error, SetupError)
    return error


def test_a_person_is_told_to_ask_an_admin(person: None) -> None:
    error = refusal()
    assert "There is no kubeconfig" in error.sentence
    assert error.hint == "Ask an admin to run `slurmk8s kubeconfig nobody` and to send you the file."


def test_somebody_unknown_is_told(person: None) -> None:
    assert refusal("no-such-person").sentence == "There is no account no-such-person on this machine."
    assert "There is no account 4294967290" in refusal("4294967290").sentence


def test_root_has_none(person: None) -> None:
    assert "root has no namespace" in refusal("root").sentence


def test_a_number_may_be_a_name_or_a_uid(person: None) -> None:
    assert "slurmk8s kubeconfig nobody" in refusal(str(NOBODY.pw_uid)).hint
