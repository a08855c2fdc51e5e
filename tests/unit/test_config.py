"""One TOML file: every mistake in it is told at once, with the key that was meant."""

import os
from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError

from slurmk8s import config
from slurmk8s.config import docs as config_docs
from slurmk8s.errors import SetupError


def problems(data: dict[str, object]) -> list[str]:
    with pytest.raises(SetupError) as caught:
        config.parse(data, "config.toml")
    first, *lines = caught.value.sentence.splitlines()
    assert first == f"config.toml has {len(lines)} problem(s):"
    assert "slurmk8s config docs" in caught.value.hint
    return [line.removeprefix("  - ") for line in lines]


def test_an_empty_file_is_all_defaults() -> None:
    settings = config.parse({}, "config.toml")
    assert settings.nas.results_folder == Path("/mnt/nas/results")
    assert settings.images.registry == "nas-hub.local:5407"
    assert settings.mounts["nas"].source == settings.mounts["nas"].target == Path("/mnt/nas")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"clustr": "x"}, "clustr: unknown key; did you mean 'cluster'?"),
        ({"nas": {"rot": "/x"}}, "nas.rot: unknown key; did you mean 'root'?"),
        ({"partitions": {"gpu": {"imag": "x"}}}, "partitions.gpu.imag: unknown key; did you mean 'image'?"),
        (
            {"mounts": {"data": {"source": "/a", "target": "/a", "readonly": True}}},
            "mounts.data.readonly: unknown key; did you mean 'read_only'?",
        ),
        (
            {"gpu": {"zzz": 1}},
            "gpu.zzz: unknown key; known keys are devices, mode, resource, runtime_class, shared_devices, smi",
        ),
        ({"agent": {"attempts": 0}}, "agent.attempts: Input should be greater than or equal to 1"),
        (
            {"agent": {"attempts": "many"}},
            "agent.attempts: Input should be a valid integer, unable to parse string as an integer",
        ),
        ({"nas": "/mnt/nas"}, "nas: Input should be a valid dictionary or instance of Nas"),
        ({"mounts": []}, "mounts: Input should be a valid dictionary"),
        ({"intake": {"patterns": "*.sh"}}, "intake.patterns: Input should be a valid tuple"),
        ({"backend": "docker"}, "backend: Input should be 'podman' or 'kubernetes'"),
        ({"mounts": {"data": {"source": "/a"}}}, "mounts.data.target: Field required"),
        (
            {"standard_mounts": ["nas", "data"]},
            "the file: Value error, standard_mounts names 'data', but there is no [mounts.data]",
        ),
    ],
)
def test_a_problem_names_its_key(data: dict[str, object], expected: str) -> None:
    assert problems(data) == [expected]


@pytest.mark.parametrize("name", ["Cluster", "a_b", "-a", "a" * 41, ""])
def test_a_cluster_that_cannot_be_a_label_is_refused(name: str) -> None:
    assert problems({"cluster": name})[0].startswith("cluster: ")


def test_all_problems_are_told_at_once() -> None:
    data = {"clustr": 1, "nas": {"rot": "/x"}, "agent": {"attempts": 0, "kil_grace_seconds": 3}}
    assert {problem.split(":")[0] for problem in problems(data)} == {
        "clustr",
        "nas.rot",
        "agent.attempts",
        "agent.kil_grace_seconds",
    }


def test_the_nas_can_be_mounted_elsewhere_in_pods() -> None:
    settings = config.parse({"mounts": {"nas": {"source": "/mnt/nas", "target": "/nas"}}}, "config.toml")
    assert settings.mounts["nas"].target == Path("/nas")


def test_people_may_read_another_language_than_the_site() -> None:
    intake = config.parse({"intake": {"language": "ko", "languages": {"smith": "en"}}}, "test").intake
    assert [intake.language_of(user) for user in ("smith", "kim", None)] == ["en", "ko", "ko"]
    with pytest.raises(SetupError, match=r"intake\.languages\.smith: .*'en' or 'ko'"):
        config.parse({"intake": {"languages": {"smith": "fr"}}}, "test")


def test_a_configuration_is_frozen() -> None:
    settings = config.parse({}, "config.toml")
    with pytest.raises(ValidationError, match="frozen"):
        settings.cluster = "other"
    with pytest.raises(ValidationError, match="frozen"):
        settings.nas.root = Path("/")


def test_a_missing_file_that_was_named_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SetupError, match="does not exist"):
        config.load(tmp_path / "none.toml")
    monkeypatch.setenv("SLURMK8S_CONFIG", str(tmp_path / "none.toml"))
    with pytest.raises(SetupError, match="does not exist") as caught:
        config.load()
    assert "SLURMK8S_CONFIG" in caught.value.hint


def test_a_missing_file_that_nobody_named_is_all_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURMK8S_CONFIG", raising=False)
    monkeypatch.setattr(config, "DEFAULT_PATH", tmp_path / "none.toml")
    assert config.load() == config.Config()


@pytest.mark.parametrize("data", [b"cluster = ", b"\xff = 1", b"[nas]\nroot='/a'\n[nas]\n"])
def test_what_is_no_toml_is_told_with_its_place(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(data)
    with pytest.raises(SetupError, match=r"config\.toml is not valid TOML: "):
        config.load(path)


def test_a_folder_in_the_place_of_the_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="cannot be read: Is a directory"):
        config.load(tmp_path)


def test_a_file_is_read_as_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('cluster = "lab"\n[nas]\nroot = "/데이터"\n[results]\nfolder_mode = 0o750\n', encoding="utf-8")
    settings = config.load(path)
    assert (settings.cluster, settings.nas.root, settings.results.folder_mode) == ("lab", Path("/데이터"), 0o750)


def sections() -> list[type[BaseModel]]:
    return config.Section.__subclasses__()


def test_every_key_says_what_it_is_for() -> None:
    """The reference page is made from these lines."""
    for section in sections():
        assert section.__doc__, section
        for name, field in section.model_fields.items():
            is_table = isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
            assert is_table or field.description, f"{section.__name__}.{name} has no docstring"


def test_every_key_with_a_time_says_its_unit() -> None:
    for section in sections():
        for name, field in section.model_fields.items():
            if name.endswith("_seconds"):
                assert "Unit: seconds" in (field.description or ""), f"{section.__name__}.{name}"


def test_the_reference_page_has_every_key() -> None:
    page = config_docs.page()
    for section in sections():
        for name, field in section.model_fields.items():
            is_table = isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
            assert f"- **`{name}`** (" in page or (is_table and f"## `[{name}]`" in page)
    assert "## `[mounts.<name>]`" in page
    assert "<class" not in page


def test_keys_are_known_at_every_level() -> None:
    assert "cluster" in config.known_keys(())
    assert "root" in config.known_keys(("nas",))
    assert "image" in config.known_keys(("partitions", "gpu"))
    assert "target" in config.known_keys(("mounts", "data"))
    assert "gpus" in config.known_keys(("kubernetes", "quotas", "kim"))
    assert "effect" in config.known_keys(("kubernetes", "tolerations", 0))
    assert config.known_keys(("priorities",)) == []


def test_modes_are_written_in_octal_as_people_read_them() -> None:
    assert "default `0o711`" in config_docs.page()


def test_the_path_in_use_is_the_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURMK8S_CONFIG", "/somewhere/config.toml")
    assert config.config_path() == Path("/somewhere/config.toml")
    assert os.fspath(config.DEFAULT_PATH) == "/etc/slurmk8s/config.toml"
