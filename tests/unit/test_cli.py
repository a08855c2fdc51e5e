"""The command as a whole: what it costs to start, and how it tells errors."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import slurmk8s
from slurmk8s import cli

PACKAGE = Path(slurmk8s.__file__).parents[1]


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    code = f"import sys; sys.path.insert(0, {str(PACKAGE)!r}); from slurmk8s.cli import main; main(sys.argv[1:])"
    return subprocess.run(
        [sys.executable, "-I", "-c", code, *arguments],
        env={"PATH": "/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_help_lists_every_command() -> None:
    shown = run("--help")
    assert shown.returncode == 0
    listed = [line.split()[0] for line in shown.stdout.partition("Commands:")[2].splitlines() if line.startswith("  ")]
    assert [word for word in listed if word in cli.COMMANDS] == list(cli.COMMANDS)


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_help(name: str) -> None:
    context = cli.group.make_context("slurmk8s", [name, "--help"], resilient_parsing=True)
    command = cli.group.get_command(context, name)
    assert command is not None
    assert command.name == name
    assert command.get_short_help_str(200)


def test_a_command_that_does_not_exist_is_told_in_short() -> None:
    shown = run("chek")
    assert shown.returncode == 2
    assert "No such command 'chek'" in shown.stderr
    assert "Traceback" not in shown.stderr


def test_an_error_with_a_sentence_is_told_without_a_traceback(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[nas]\nrot = 1\n")
    shown = run("config", "check", SLURMK8S_CONFIG=str(path))
    assert shown.returncode == 2
    assert shown.stdout == ""
    assert shown.stderr == (
        f"slurmk8s: {path} has 1 problem(s):\n  - nas.rot: unknown key; did you mean 'root'?\n"
        "  See `slurmk8s config docs` for every key.\n"
    )


def test_an_agent_without_its_configuration_does_not_start(tmp_path: Path) -> None:
    shown = run("agent", "--node", "node1", SLURMK8S_CONFIG=str(tmp_path / "none.toml"))
    assert shown.returncode == 2
    assert shown.stderr.startswith("slurmk8s: The configuration ")
    assert "Traceback" not in shown.stderr


def test_a_good_configuration_is_all_right(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('cluster = "lab"\n')
    shown = run("config", "check", SLURMK8S_CONFIG=str(path))
    assert (shown.returncode, shown.stdout) == (0, f"{path}: all right.\n")


def test_a_reader_that_goes_away_is_no_error() -> None:
    code = f"import sys; sys.path.insert(0, {str(PACKAGE)!r}); from slurmk8s.cli import main; main(['config', 'docs'])"
    with subprocess.Popen(
        [sys.executable, "-I", "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        process.wait(timeout=20)


def imported(module: str, flags: Sequence[str]) -> set[str]:
    """Top-level packages that importing a module brings in, beside the standard library."""
    code = (
        f"import sys; sys.path.insert(0, {str(PACKAGE)!r}); import {module}; "
        "print(*{name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names))"
    )
    shown = subprocess.run([sys.executable, *flags, "-c", code], capture_output=True, text=True, check=True)
    return set(shown.stdout.split()) - {"__main__", "__mp_main__"}


@pytest.mark.parametrize(
    "module", ["slurmk8s.run.__main__", "slurmk8s.results.worker", "slurmk8s.hooks.prolog", "slurmk8s.jobfile"]
)
def test_what_runs_for_every_job_needs_the_standard_library_alone(module: str) -> None:
    assert imported(module, ["-I", "-S"]) == {"slurmk8s"}


def test_starting_the_command_loads_no_heavy_library() -> None:
    assert not imported("slurmk8s.cli", ["-I"]) & {
        "pydantic",
        "loguru",
        "watchdog",
        "jinja2",
        "yaml",
        "rich",
        "stamina",
    }
