"""The documents tell the truth about the program: commands, keys, links, translations. Needs nothing."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from urllib.parse import unquote

import click
import pytest

from slurmk8s import __version__, config
from slurmk8s.cli import docs, group
from slurmk8s.config import docs as config_docs

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
# Pages that are made from the program are in English only.
GENERATED = {"commands.md": ["slurmk8s.cli.docs"], "configuration.md": ["slurmk8s", "config", "docs"]}
FENCED = re.compile(r"(?ms)^```.*?^```$")
LINK = re.compile(r"\]\(([^)\s]+)\)")


def names(pages: list[Path]) -> list[str]:
    return [str(page.relative_to(ROOT)) for page in pages]


@pytest.mark.parametrize("name", GENERATED)
def test_a_generated_page_is_what_the_program_says_now(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a process of its own, as `make docs` does: click remembers how a command's help was first asked for."""
    monkeypatch.delenv("SLURMK8S_LOCAL_DIR", raising=False)
    made = subprocess.run([sys.executable, "-m", *GENERATED[name]], capture_output=True, text=True, check=True).stdout
    old = f"docs/{name} is not what the program says any more: run `make docs` and look at the difference."
    assert (DOCS / name).read_text(encoding="utf-8") == made, old


def test_every_command_and_option_that_people_see_is_documented() -> None:
    page = (DOCS / "commands.md").read_text(encoding="utf-8")
    found = list(docs.commands(group, ["slurmk8s"], None))
    assert len(found) > 15
    for path, context in found:
        title = f"# `{' '.join(path)}`\n"
        assert title in page
        section = page.partition(title)[2].partition("\n#")[0]
        for option in context.command.params:
            if isinstance(option, click.Option) and not option.hidden:
                assert all(name in section for name in (*option.opts, *option.secondary_opts)), (path, option.opts)


def test_every_key_of_the_configuration_is_documented() -> None:
    page = config_docs.page()
    for key in config.known_keys(()):
        assert f"`[{key}]`" in page or f"**`{key}`**" in page, key
        for name in config.known_keys((key,)):
            assert f"**`{name}`**" in page, (key, name)


def test_the_example_of_the_configuration_is_valid() -> None:
    config.parse(tomllib.loads(config_docs.EXAMPLE), "the example")


@pytest.mark.parametrize("page", PAGES, ids=names(PAGES))
def test_relative_links_lead_to_files(page: Path) -> None:
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    targets = [unquote(link.partition("#")[0]) for link in LINK.findall(text) if not re.match(r"[a-z]+:", link)]
    missing = [target for target in targets if target and not (page.parent / target).exists()]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=names(PAGES))
def test_paths_of_the_repository_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:tests|systemd|slurm-conf|demo|docs|slurmk8s)/[\w./-]+)`", text))
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("name", sorted(page.name for page in DOCS.glob("*.md") if page.name not in GENERATED))
def test_what_people_read_is_there_in_korean_too(name: str) -> None:
    english, korean = DOCS / name, DOCS / "ko" / name
    assert korean.exists(), f"docs/ko/{name} is missing"
    assert re.search("[가-힣]", korean.read_text(encoding="utf-8"))
    if name != "README.md":  # the Korean index also introduces the project, whose README is English
        assert headings(korean) == headings(english)


def headings(page: Path) -> list[int]:
    """The levels of a page's headings: a translation has the same sections."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    return [len(marks) for marks in re.findall(r"(?m)^(#+) ", text)]


def test_every_page_can_be_found_from_the_index() -> None:
    for index in (DOCS / "README.md", DOCS / "ko" / "README.md"):
        text = index.read_text(encoding="utf-8")
        pages = {page.name for page in DOCS.glob("*.md")} - {"README.md"}
        assert not [name for name in sorted(pages) if f"{name})" not in text], index


def test_the_readme_names_the_two_commands() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.search(r"(?m)^make demo\b", readme)
    assert re.search(r"(?m)^make test\b", readme)


def test_the_readmes_job_file_is_right() -> None:
    from slurmk8s.jobfile import Facts, check
    from slurmk8s.site import site_of

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    body = re.search(r"(?ms)^```bash\n(#!.*?)^```$", readme)
    assert body
    checked = check(body[1].encode(), Facts(site=site_of(config.parse({}, "defaults"))))
    assert checked.job
    assert not checked.findings


def test_the_change_log_knows_this_version() -> None:
    log = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"(?m)^## \[(.+?)\]", log)[:2] == ["Unreleased", __version__]


def test_the_wheel_that_the_installation_names_is_this_version() -> None:
    for page in (DOCS / "install.md", DOCS / "ko" / "install.md"):
        assert set(re.findall(r"slurmk8s-(\d[\w.]*)-py3", page.read_text(encoding="utf-8"))) == {__version__}


def test_what_must_pass_is_the_same_command_everywhere() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    commands = [line for line in script.splitlines() if line and not line.startswith(("#", "set ", "cd "))]
    assert commands == ["exec make test"]


@pytest.mark.parametrize("page", PAGES, ids=names(PAGES))
def test_pages_name_no_place_of_the_machine_they_were_written_on(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"/(?:tmp|root|home)/", text)
    assert set(re.findall(r"\b([\w.-]+\.\w+:\d{4,5})/", text)) <= {"nas-hub.local:5407"}
