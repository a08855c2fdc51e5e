"""After a job: who asks for a mail gets one, when the bundle is complete; Slurm's own mails go on for all else."""

import json
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mail_server import MailServer, serving

from slurmk8s.slurm import conf

RUNTIMES = ("podman",)
DEBIAN = "nas-hub.local:5407/debian:test"


def script(text: str, *options: str) -> str:
    lines = "".join(f"#SBATCH {option}\n" for option in options)
    return f"#!/bin/bash\n#SBATCH --mem=256M\n{lines}#K8S_IMAGE={DEBIAN}\n{text}\n"


@pytest.fixture
def mails() -> Iterator[MailServer]:
    with serving() as server:
        yield server


@pytest.fixture
def outside() -> Iterator[Path]:
    """A folder that every account can enter."""
    folder = Path(tempfile.mkdtemp(prefix="slurmk8s-outside-", dir="/var/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def mail_program(folder: Path) -> Path:
    """The site's MailProg: ours, in front of one that writes down what it is asked to send."""
    folder.mkdir()
    sent = folder / "sent"
    site = folder / "mail"
    site.write_text(f'#!/bin/sh\necho "$SLURM_JOB_ID $SLURM_JOB_MAIL_TYPE" >>{shlex.quote(str(sent))}\n')
    program = folder / "slurmk8s-mail"
    ours = conf.files() / "slurmk8s-mail"
    program.write_text(f'#!/bin/sh\n. {folder}/environment\nexec /bin/sh {ours} "$@"\n')
    for path in (site, program):
        path.chmod(0o755)
    return program


def test_exactly_one_mail_when_the_bundle_is_complete(new_cluster: Any, mails: MailServer, outside: Path) -> None:
    program = mail_program(outside / "mail")
    settings = {
        "after.mail.host": "127.0.0.1",
        "after.mail.port": mails.port,
        "after.mail.security": "none",
        "after.mail.domain": "example.org",
        "after.mail.allowed_domains": ["lab.example"],
        "after.archive.enabled": True,
        "after.commands.book.run": ["/bin/sh", "-c", f"cat >{outside}/book"],
        "metrics.textfile_folder": str(outside),
        "metrics.seconds": 1,
    }
    (outside / "book").touch()
    (outside / "book").chmod(0o666)
    cluster = new_cluster(
        nodes=2, test_image=True, config_overrides=settings, slurm_overrides={"MailProg": str(program)}
    )
    (outside / "mail" / "environment").write_text(
        f"export SLURM_CONF={cluster.layout.slurm_conf} SLURMK8S_MAIL_PROGRAM={outside}/mail/mail\n"
    )
    complete: dict[str, bool] = {}

    def look(message: Any) -> None:
        """What the bundle says at the moment at which the person is told."""
        for word in message.get_content().split():
            if word.startswith("/mnt/nas/results/"):
                path = cluster.results(int(word.rpartition("/")[2])) / "summary.json"
                complete[str(message["Subject"])] = json.loads(path.read_text())["complete"]

    mails.look = look
    asks = "--mail-type=BEGIN,END,FAIL", "--mail-user=kim@lab.example"
    good = cluster.sbatch(script("echo hello > x", *asks, "--job-name=good"))
    bad = cluster.sbatch(script("exit 3", "--mail-type=FAIL", "--job-name=bad"))
    quiet = cluster.sbatch(script("exit 3", "--job-name=quiet"))
    plain = cluster.sbatch("#!/bin/sh\n#SBATCH --mail-type=END --output=/dev/null\n:\n")
    array = cluster.sbatch(
        script("exit $((SLURM_ARRAY_TASK_ID == 2))", "--array=1-3", "--mail-type=END", "--job-name=many")
    )
    for job_id in (good, bad, quiet):
        cluster.summary(job_id)
    cluster.wait_for(lambda: len(mails.got) == 3, "three mails", 120)
    name = cluster.layout.cluster
    subjects = {
        f"[{name}] Job {good} good: completed",
        f"[{name}] Job {bad} bad: failed",
        f"[{name}] Job array {array} many: 2 completed, 1 failed",
    }
    assert set(mails.subjects) == subjects
    told = dict(zip(mails.subjects, mails.to, strict=True))
    assert told[f"[{name}] Job {good} good: completed"] == ["kim@lab.example"]
    assert told[f"[{name}] Job {bad} bad: failed"] == [f"{cluster.user}@example.org"]
    assert complete[f"[{name}] Job {good} good: completed"] is True
    assert complete[f"[{name}] Job {bad} bad: failed"] is True

    # What Slurm itself sends: the begin, and all of a plain job; not the ends that were told above.
    sent = outside / "mail" / "sent"
    cluster.wait_for(lambda: sent.exists() and f"{plain} " in sent.read_text(), "Slurm's mail about the plain job")
    slurms = sent.read_text().splitlines()
    assert f"{good} Began" in slurms
    assert [line for line in slurms if not line.endswith("Began")] == [f"{plain} Ended"]

    # The other actions have been carried out for the same jobs.
    archive = cluster.layout.results / f"{good}.tar.zst"
    cluster.wait_for(archive.exists, "the archive")
    assert archive.stat().st_uid == cluster.uid
    cluster.wait_for(lambda: "job_id" in (outside / "book").read_text(), "the program's book")

    def counted() -> int:
        texts = [path.read_text() for path in outside.glob("slurmk8s_agent_*.prom")]
        lines = [line for text in texts for line in text.splitlines() if line.startswith("slurmk8s_jobs_total")]
        return sum(int(float(line.rpartition(" ")[2])) for line in lines)

    cluster.wait_for(lambda: counted() == 6, "six jobs in the figures")
    states = [
        cluster.run("slurmk8s", "after", "status", "--node", node, user="root", inside=True)
        for node in ("node1", "node2")
    ]
    assert all("waiting: 0" in state.stdout and "given up: 0" in state.stdout for state in states)
    assert len(mails.got) == 3
