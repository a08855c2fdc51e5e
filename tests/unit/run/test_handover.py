"""What the body gets: exactly the words and variables that were meant, through any sh."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from slurmk8s.run import handover

# As an image's /bin/sh they are all called `sh`, which makes bash keep to POSIX.
SHELLS = {"dash": ["dash"], "bash": ["bash", "--posix"], "busybox": ["busybox", "sh"]}
TELL = r'. "$0" && umask && printf "%s\000" "$@" && exec /usr/bin/env -0'

words = st.one_of(
    st.binary(max_size=30).map(lambda data: data.replace(b"\0", b"").decode("utf-8", "surrogateescape")),
    st.text(alphabet="'\"\\$`\n\t !*?~#&|;<>(){}[]=%-한글a", max_size=30),
)
names = st.one_of(
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,10}", fullmatch=True),
    st.sampled_from(sorted(handover.SHELLS_OWN)),
    st.sampled_from(["HOME", "ENV", "BASH_ENV", "PS4", "CDPATH", "POSIXLY_CORRECT", "a-b", "a b", "", "1a"]),
)


def sourced(shell: Sequence[str], file: Path, count: int) -> tuple[int, list[str], dict[str, str]]:
    """Umask, words and environment after a shell has read the command file."""
    command = [*shell, "-c", TELL, str(file)]
    done = subprocess.run(command, env={"PATH": "/usr/bin:/bin"}, capture_output=True, timeout=10, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    umask, _, rest = done.stdout.decode("utf-8", "surrogateescape").partition("\n")
    parts = rest.split("\0")
    return int(umask, 8), parts[:count], dict(part.split("=", 1) for part in parts[count:] if part)


@pytest.mark.parametrize("shell", SHELLS.values(), ids=SHELLS)
@given(variables=st.dictionaries(names, words, max_size=6), command=st.lists(words, min_size=1, max_size=5))
@example(variables={"A": "it's\n$(echo bad)`x`\\"}, command=["-e", "--", "", "'", "\n", "\udcff\udc80"])
@example(variables=dict.fromkeys(handover.SHELLS_OWN, "it's"), command=["x"])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_sh_reads_back_exactly_what_was_written(
    shell: list[str], variables: Mapping[str, str], command: list[str], tmp_path: Path
) -> None:
    chosen = handover.environment(variables, {}, ["*"])
    file = tmp_path / "command"
    file.write_bytes(handover.command_file(chosen, 0o027, command))
    umask, got_words, got = sourced(shell, file, len(command))
    assert umask == 0o027
    assert got_words == command
    assert {name: got.get(name) for name in chosen} == chosen


LINES = [
    "INTERPRETER",
    "  INTERPRETER",
    "\tINTERPRETER\t-l",
    "INTERPRETER  -e  -u x ",
    "INTERPRETER 'one two' \"three\"",
    "INTERPRETER -S python3\t-u",
    "INTERPRETER -e\r",
    "INTERPRETER \x0b-e",
    "INTERPRETER -a\x0c b",
    "INTERPRETER \u00a0-e",
    "INTERPRETER -\udcff",
    "INTERPRETER \\n $HOME `x`",
]


@pytest.mark.parametrize("line", LINES)
def test_the_interpreter_line_is_split_as_the_kernel_splits_it(tmp_path: Path, line: str) -> None:
    """The kernel itself is asked: it runs a script with that first line."""
    interpreter = tmp_path / "interpreter"
    interpreter.write_text(f"#!{sys.executable} -IS\nimport json, sys\nprint(json.dumps(sys.argv))\n")
    interpreter.chmod(0o755)
    line = line.replace("INTERPRETER", str(interpreter))
    script = tmp_path / "script"
    script.write_bytes(b"#!" + os.fsencode(line) + b"\nbody\n")
    script.chmod(0o755)
    shown = subprocess.run([script], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"}).stdout
    assert [*handover.interpreter(line), str(script)] == json.loads(shown)


def test_the_script_gets_its_own_first_line_back() -> None:
    written = b"#!/opt/slurmk8s-run /bin/bash -l\necho \xff\r\n# end"
    assert handover.original_script(written, "/bin/bash -l") == b"#!/bin/bash -l\necho \xff\r\n# end"


def test_a_script_of_one_line_stays_one() -> None:
    assert handover.original_script(b"#!/opt/slurmk8s-run /bin/true", "/bin/true") == b"#!/bin/true"


def test_a_first_line_that_is_not_utf8_is_kept_byte_for_byte() -> None:
    line = b"/bin/sh \xff".decode("utf-8", "surrogateescape")
    assert handover.original_script(b"#!/run /bin/sh \xff\nx", line) == b"#!/bin/sh \xff\nx"


@pytest.mark.parametrize(
    ("path", "first_line", "expected"),
    [
        ("/nas/train.py", None, ["/usr/bin/env", "python3", "/nas/train.py"]),
        ("/nas/train.py", "#!/opt/python -u", ["/usr/bin/env", "python3", "/nas/train.py"]),
        ("/nas/run.sh", None, ["/bin/bash", "/nas/run.sh"]),
        ("/nas/run", "#!/bin/sh -eu", ["/bin/sh", "-eu", "/nas/run"]),
        ("/nas/run", "#! /usr/bin/env -S perl -w", ["/usr/bin/env", "-S perl -w", "/nas/run"]),
    ],
)
def test_a_named_script_is_run_by_its_ending_or_its_first_line(
    path: str, first_line: str | None, expected: list[str]
) -> None:
    assert handover.command_of_file(path, first_line) == expected


@pytest.mark.parametrize("first_line", [None, "", "echo hello", "#!", "#! \t"])
def test_a_named_script_that_nothing_can_run_is_told_in_a_sentence(first_line: str | None) -> None:
    sentence = handover.command_of_file("/nas/run", first_line)
    assert isinstance(sentence, str)
    assert "/nas/run" in sentence
    assert sentence.endswith(".")
