"""slurmk8s.lua in a real slurmctld: which jobs are stamped, how, and that nobody else can. Needs: Slurm, root."""

import re
import secrets
import subprocess
from pathlib import Path
from typing import Any

import pytest

from slurmk8s.errors import PersonFault
from slurmk8s.slurm import stamp
from slurmk8s.slurm.client import Identity, Job

pytestmark = pytest.mark.slurm


def submitted(bare_slurm: Any, script: str, *options: str, identity: Any = None) -> Job:
    job_id = bare_slurm.commands.submit(script.encode(), ["--hold", "--output=/dev/null", *options], identity)
    job: Job = bare_slurm.commands.job(job_id)
    return job


def batch_script(bare_slurm: Any, job: Job) -> str:
    text: str = bare_slurm.run("scontrol", "write", "batch_script", str(job.job_id), "-")
    return text


def test_the_lines_are_kept_as_they_are(bare_slurm: Any, alice: Identity) -> None:
    lines = [
        "#K8S_IMAGE = alpine:3   # a remark",
        "#K8S_WORKDIR=/mnt/nas/실험 1 'q' \"q\" \\ % = UserId=root(0)",
        "#K8S_SHM=2G",
    ]
    first, second, third = lines
    body = f"#!/bin/bash\n#SBATCH --mem=10\n{first}\n\n  # indented\n\t\n{second}\n#\n{third}\n"
    body += "echo\n#K8S_SCRIPT=/late\n"
    job = submitted(bare_slurm, body, "--comment=mine", identity=alice)
    assert stamp.decode(job.admin_comment) == "\n".join(lines)
    assert job.comment == "mine slurmk8s"
    assert batch_script(bare_slurm, job) == body.replace("#!/bin/bash", f"#!{bare_slurm.run_program} /bin/bash")


@pytest.mark.parametrize(
    "body",
    [
        "#!/bin/bash\necho\n",
        "#!/bin/bash\necho\n#K8S_IMAGE=alpine\n",
        "#!/bin/bash\n# K8S_IMAGE=alpine\n #K8S_IMAGE=alpine\n##K8S_IMAGE=alpine\n#k8s_image=alpine\n",
        "#!/usr/bin/python3\nprint()\n",
    ],
)
def test_a_plain_job_is_left_alone(bare_slurm: Any, alice: Identity, body: str) -> None:
    job = submitted(bare_slurm, body, "--comment=about slurmk8s things", identity=alice)
    assert (job.admin_comment, job.comment) == ("", "about slurmk8s things")
    assert batch_script(bare_slurm, job) == body


def test_a_large_script_without_a_command_is_stamped(bare_slurm: Any, alice: Identity) -> None:
    body = "#!/bin/bash\n" + "# x\n" * 200_000 + "#K8S_IMAGE=alpine"
    assert stamp.decode(submitted(bare_slurm, body, identity=alice).admin_comment) == "#K8S_IMAGE=alpine"


@pytest.mark.parametrize(
    "line", ["#K8S_IMAGE=alpine{}x", "#K8S_IMAGE={}alpine{}# remark", "#K8S_IMAGE=alpine{}", "#K8S_{}=x"]
)
def test_no_line_keeps_slurmctld_busy(bare_slurm: Any, alice: Identity, line: str) -> None:
    """A million spaces once, which would take days if anything looked at them twice; others are answered meanwhile."""
    body = f"#!/bin/bash\n{line.replace('{}', ' ' * 1_000_000)}\necho\n"
    asker = subprocess.Popen(
        ["sbatch", "--hold", "--output=/dev/null"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=bare_slurm.environment,
        user=alice.uid,
        group=alice.gid,
        extra_groups=[],
        cwd="/",
    )
    _, words = asker.communicate(body.encode(), timeout=30)
    assert len(words) < 2000
    assert bare_slurm.commands.job(submitted(bare_slurm, "#!/bin/sh\ntrue\n", identity=alice).job_id) is not None


def test_a_partition_can_have_an_image(bare_slurm: Any, alice: Identity) -> None:
    job = submitted(bare_slurm, "#!/bin/sh\n", "--partition=boxed", identity=alice)
    assert stamp.decode(job.admin_comment) == "#K8S_IMAGE=nas-hub.local:5407/default:1"
    job = submitted(bare_slurm, "#!/bin/sh\n#K8S_SHM=1G\n", "--partition=boxed", identity=alice)
    assert stamp.decode(job.admin_comment) == "#K8S_SHM=1G\n#K8S_IMAGE=nas-hub.local:5407/default:1"
    job = submitted(bare_slurm, "#!/bin/sh\n#K8S_IMAGE=alpine\n", "--partition=boxed", identity=alice)
    assert stamp.decode(job.admin_comment) == "#K8S_IMAGE=alpine"


def test_a_wrapped_command_is_plain(bare_slurm: Any) -> None:
    job_id = int(bare_slurm.run("sbatch", "--parsable", "--hold", "--wrap", "true"))
    assert bare_slurm.commands.job(job_id).admin_comment == ""


def test_the_watchers_key_stays_in_front_of_the_marker(bare_slurm: Any, alice: Identity) -> None:
    key = secrets.token_hex(16)
    comment = stamp.with_key("mine", key)
    job = submitted(bare_slurm, "#!/bin/sh\n#K8S_IMAGE=alpine\n", f"--comment={comment}", identity=alice)
    assert job.comment == f"mine slurmk8s-key={key} slurmk8s"
    assert stamp.key_of(job.comment) == key


def test_every_task_of_an_array_has_the_stamp(bare_slurm: Any, alice: Identity) -> None:
    script = b"#!/bin/bash\n#K8S_IMAGE=alpine\nsleep 60\n"
    first = bare_slurm.commands.submit(script, ["--array=1-2", "--output=/dev/null"], alice)
    bare_slurm.until(lambda: first + 1 in bare_slurm.commands.live_jobs(), "both tasks have started")
    stamps = [bare_slurm.commands.job(job_id).admin_comment for job_id in (first, first + 1)]
    assert stamps == [stamp.encode("#K8S_IMAGE=alpine")] * 2


@pytest.mark.parametrize(
    ("shebang", "body", "said"),
    [
        ("#!/bin/bash", 'echo "$1|$2"; shopt login_shell || true', ["[/bin/bash]", "a b|c", "off"]),
        ("#!/bin/bash -l", 'echo "$1|$2"; shopt login_shell', ["[/bin/bash -l]", "a b|c", "on"]),
        ("#! /bin/sh  ", 'echo "$1|$2"', ["[/bin/sh]", "a b|c"]),
        (
            "#!/usr/bin/env python3",
            "import sys; print('|'.join(sys.argv[1:]))",
            ["[/usr/bin/env python3]", "a b|c"],
        ),
        (
            "#!/usr/bin/env -S python3 -u -X dev",
            "import sys; print('|'.join(sys.argv[1:]), sys.flags.dev_mode)",
            ["[/usr/bin/env -S python3 -u -X dev]", "a b|c True"],
        ),
    ],
)
def test_it_keeps_its_meaning(bare_slurm: Any, shebang: str, body: str, said: list[str]) -> None:
    script = Path(bare_slurm.outputs) / "script"
    script.write_text(f"{shebang}\n#K8S_IMAGE=alpine\n{body}\n")
    log = Path(bare_slurm.outputs) / "interpreter.out"
    bare_slurm.run("sbatch", "--wait", f"--output={log}", str(script), "a b", "c")
    text = log.read_text()
    assert all(part in text for part in said), text


def test_a_script_from_slurms_spool_is_not_wrapped_twice(bare_slurm: Any, alice: Identity) -> None:
    job = submitted(bare_slurm, "#!/bin/bash -l\n#K8S_IMAGE=alpine\necho\n", identity=alice)
    copy = batch_script(bare_slurm, job)
    assert batch_script(bare_slurm, submitted(bare_slurm, copy, identity=alice)) == copy


def test_a_line_that_the_kernel_would_cut_is_refused(bare_slurm: Any, alice: Identity) -> None:
    room = 127 - len(f"#!{bare_slurm.run_program} ")
    fits = "/" + "x" * (room - 1)
    submitted(bare_slurm, f"#!{fits}\n#K8S_IMAGE=alpine\n", identity=alice)
    with pytest.raises(PersonFault, match=f"has {room + 1} characters and the kernel takes {room};"):
        submitted(bare_slurm, f"#!{fits}x\n#K8S_IMAGE=alpine\n", identity=alice)


@pytest.mark.parametrize(
    ("lines", "options", "words"),
    [
        ("#K8S_IMAGES=alpine", [], "line 2: there is no #K8S_IMAGES; the lines are #K8S_IMAGE,"),
        ("#K8S_IMAGE=a\n#K8S_IMAGE=b", [], "line 3: #K8S_IMAGE stands twice"),
        ("#K8S_IMAGE=", [], "line 2: #K8S_IMAGE has no value"),
        ("#K8S_IMAGE alpine", [], "line 2: #K8S_IMAGE has no value"),
        ("#K8S_IMAGE= # none", [], "line 2: #K8S_IMAGE has no value"),
        (
            "#K8S_IMAGE=docker.io/library/x",
            [],
            "line 2: docker.io/library/x may not be used here; images must come from",
        ),
        ("#K8S_IMAGE=nas-hub.local:54070/x", [], "may not be used here"),
        ("#K8S_IMAGE=localhost/x", [], "may not be used here"),
        ("#K8S_IMAGE=a b", [], "line 2: 'a b' is not an image"),
        ("#K8S_SHM=1G", [], "line 2: the job has #K8S_ lines but names no image"),
        ("#K8S_IMAGE=a\n#SBATCH hetjob\n#SBATCH --mem=20", [], "a heterogeneous job cannot run in containers"),
        ("", ["--partition=cpu,boxed"], "the partitions cpu,boxed have different default images"),
        ("#K8S_IMAGE=a", ["--comment=" + "x" * 1016], r"the comment with slurmk8s's words has 1025 bytes"),
    ],
)
def test_each_is_one_sentence(bare_slurm: Any, alice: Identity, lines: str, options: list[str], words: str) -> None:
    with pytest.raises(PersonFault) as refused:
        submitted(bare_slurm, f"#!/bin/sh\n{lines}\n", *options, identity=alice)
    assert re.match(r"sbatch: (?:0: )?slurmk8s: ", refused.value.sentence)  # sbatch counts the parts of a hetjob
    assert words in refused.value.sentence
    assert "Unspecified error" not in refused.value.sentence


def test_a_comment_of_1024_bytes_fits(bare_slurm: Any, alice: Identity) -> None:
    job = submitted(bare_slurm, "#!/bin/sh\n#K8S_IMAGE=a\n", "--comment=" + "x" * 1015, identity=alice)
    assert len(job.comment) == 1024


def as_person(bare_slurm: Any, person: Any, *command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=bare_slurm.environment | {"HOME": person.home, "USER": person.name},
        user=person.uid,
        group=person.gid,
        extra_groups=person.groups,
        cwd="/",
        timeout=30,
        check=False,
    )


def test_a_person_cannot_change_the_stamp(bare_slurm: Any, alice: Identity) -> None:
    job = submitted(bare_slurm, "#!/bin/sh\n#K8S_IMAGE=alpine\n", identity=alice)
    for text in ("slurmk8s/1:evil", "other", ""):
        change = ("scontrol", "update", f"JobId={job.job_id}", f"AdminComment={text}")
        done = as_person(bare_slurm, alice, *change)
        assert done.returncode != 0 or not text
    assert bare_slurm.commands.job(job.job_id).admin_comment == job.admin_comment


def test_a_person_cannot_stamp_a_plain_job(bare_slurm: Any, alice: Identity) -> None:
    job = submitted(bare_slurm, "#!/bin/sh\n", identity=alice)
    as_person(bare_slurm, alice, "scontrol", "update", f"JobId={job.job_id}", "AdminComment=slurmk8s/1:evil")
    assert bare_slurm.commands.job(job.job_id).admin_comment == ""


def test_a_changed_comment_keeps_our_words(bare_slurm: Any, alice: Identity) -> None:
    key = secrets.token_hex(16)
    comment = stamp.with_key("old", key)
    job = submitted(bare_slurm, "#!/bin/sh\n#K8S_IMAGE=alpine\n", f"--comment={comment}", identity=alice)
    change = ("scontrol", "update", f"JobId={job.job_id}", "Comment=new words")
    assert as_person(bare_slurm, alice, *change).returncode == 0
    assert bare_slurm.commands.job(job.job_id).comment == f"new words slurmk8s-key={key} slurmk8s"


def test_a_plain_jobs_comment_is_its_owners(bare_slurm: Any, alice: Identity) -> None:
    job = submitted(bare_slurm, "#!/bin/sh\n", "--comment=old", identity=alice)
    as_person(bare_slurm, alice, "scontrol", "update", f"JobId={job.job_id}", "Comment=new")
    assert bare_slurm.commands.job(job.job_id).comment == "new"


def test_a_requeue_reason_keeps_our_words(bare_slurm: Any, alice: Identity) -> None:
    script = b"#!/bin/sh\n#K8S_IMAGE=alpine\nsleep 60\n"
    job_id = bare_slurm.commands.submit(script, ["--output=/dev/null"], alice)
    bare_slurm.until_state(job_id, "RUNNING")
    bare_slurm.commands.requeue(job_id, "the registry is down", attempt=0)
    bare_slurm.until_state(job_id, "PENDING")
    job = bare_slurm.commands.job(job_id)
    assert job.comment == "slurmk8s requeued: the registry is down"
    assert stamp.is_stamped(job.admin_comment)


def test_interactive_work_is_left_alone(bare_slurm: Any) -> None:
    assert bare_slurm.run("srun", "--partition=boxed", "echo", "hello").splitlines()[-1] == "hello"
    assert "hello" in bare_slurm.run("salloc", "--partition=boxed", "srun", "echo", "hello")


def test_slurm_has_what_the_include_asks_for(bare_slurm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The include as a whole is taken by slurmctld, and `slurm-conf --check` finds only what the fixture changed."""
    from click.testing import CliRunner

    from slurmk8s.cli.slurm_conf import slurm_conf

    monkeypatch.setenv("SLURM_CONF", str(bare_slurm.conf))
    found = CliRunner().invoke(slurm_conf, ["--check"], standalone_mode=False)
    assert found.return_value == 1
    assert sorted(line.split()[0] for line in found.output.splitlines()) == ["KillWait", "MessageTimeout", "Prolog"]
