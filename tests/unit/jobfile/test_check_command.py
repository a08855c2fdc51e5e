"""`slurmk8s check` as a person or a program calls it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from sample_jobs import GUIDE_6_2, job

from slurmk8s.config import parse
from slurmk8s.jobfile import Facts, check
from slurmk8s.site import file_facts, probe, pwd_name, site_of
from slurmk8s.slurm.client import Identity

ROOT = Path(__file__).parents[3]


def run(*arguments: str, stdin: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "slurmk8s", "check", *arguments],
        input=stdin,
        capture_output=True,
        check=False,
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **environment},
    )


def test_a_good_file_exits_with_zero(tmp_path: Path) -> None:
    path = tmp_path / "job.sh"
    path.write_text(GUIDE_6_2, encoding="utf-8")
    done = run("--offline", str(path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode() == f"{path}: fine (container job in nas-hub.local:5407/alpine:latest)\n"
    assert done.stderr == b""


def test_a_problem_exits_with_one_and_no_colour_in_a_pipe() -> None:
    done = run("--offline", "-", stdin=job("#SBATCH --mem=8"))
    assert done.returncode == 1
    assert b"-:3:15: problem: --mem=8 asks for 8 megabytes" in done.stdout
    assert done.stdout.endswith(b"-: 1 problem\n")
    assert b"\x1b" not in done.stdout


def test_several_files_and_one_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "작업.sh"
    path.write_text(GUIDE_6_2, encoding="utf-8")
    done = run("--offline", str(path), str(tmp_path / "gone.sh"))
    assert done.returncode == 1
    assert "gone.sh: problem: the file cannot be read" in done.stdout.decode()


def test_json_for_programs() -> None:
    done = run("--offline", "--json", "-", stdin=job("#SBATCH --mem=8GB"))
    assert done.returncode == 0
    (verdict,) = json.loads(done.stdout)
    assert verdict["ok"]
    assert verdict["job"]["image"] == "nas-hub.local:5407/alpine"
    (finding,) = verdict["findings"]
    assert finding["code"] == "memory-unit"
    assert (finding["line"], finding["column"], finding["length"]) == (3, 15, 3)
    assert set(finding) == {"line", "column", "length", "severity", "code", "what", "why", "fix"}


def test_the_person_s_language(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    me = pwd_name(os.geteuid())
    config.write_text(f'[intake.languages]\n"{me}" = "ko"\n')
    done = run("--offline", "-", stdin=job("#SBATCH --mem=8"), SLURMK8S_CONFIG=str(config))
    assert done.stdout.decode().endswith("\n\n-: 문제 1건\n")
    assert "-:3:15: 문제: --mem=8: 메모리를 8메가바이트만" in done.stdout.decode()
    fine = run("--offline", "-", stdin=GUIDE_6_2.encode(), SLURMK8S_CONFIG=str(config))
    assert fine.stdout.decode() == "-: 이상 없음 (컨테이너 작업, 이미지 nas-hub.local:5407/alpine:latest)\n"
    other = run("--offline", "--language=en", "-", stdin=job("#SBATCH --mem=8"), SLURMK8S_CONFIG=str(config))
    assert other.stdout.endswith(b"-: 1 problem\n")


def test_json_speaks_the_language_and_keeps_the_codes() -> None:
    data = job("#SBATCH --mem=8")
    english, korean = (
        json.loads(run("--offline", "--json", f"--language={language}", "-", stdin=data).stdout)[0]["findings"][0]
        for language in ("en", "ko")
    )
    assert {name for name in english if english[name] != korean[name]} == {"what", "why", "fix"}
    assert korean["fix"].startswith("--mem=8G 라고 쓰세요.")


def test_without_slurm_the_text_is_judged_and_one_line_says_so(tmp_path: Path) -> None:
    (tmp_path / "scontrol").write_text(
        "#!/bin/sh\necho 'Unable to contact slurm controller (connect failure)' >&2\nexit 1\n"
    )
    (tmp_path / "scontrol").chmod(0o755)
    done = run("-", stdin=GUIDE_6_2.encode(), PATH=f"{tmp_path}:/usr/bin:/bin")
    assert done.returncode == 0, done.stdout
    assert done.stderr.count(b"\n") == 1
    assert b"partitions and limits were not checked" in done.stderr


def test_the_sites_own_policy_is_used(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[images]\nregistry = "hub:1"\nallowed = ["hub:1/"]\n')
    done = run("--offline", "-", stdin=GUIDE_6_2.encode(), SLURMK8S_CONFIG=str(config))
    assert done.returncode == 1
    assert b"hub:1/ only" in done.stdout


def test_paths_are_probed_as_the_person(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents:
        if parent.stat().st_uid == os.geteuid() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o055)
    secret = tmp_path / "secret.py"
    secret.write_text("x")
    secret.chmod(0o600)
    (tmp_path / "closed").mkdir(mode=0o700)
    (tmp_path / "closed" / "a").write_text("x")
    paths = [str(secret), f"{tmp_path}/gone", f"{tmp_path}/", str(tmp_path), f"{secret}/", f"{tmp_path}/closed/a"]
    mine = probe(paths)
    assert [mine[path] for path in paths] == ["ok", "missing", "ok", "folder", "file", "ok"]
    theirs = probe(paths, Identity("nobody", 65534, 65534, (), "/"))
    if os.geteuid() != 0:
        assert theirs == {}  # nobody else can be asked for: not known, rather than judged by our own eyes
    else:
        expected = ["unreadable", "missing", "unwritable", "folder", "file", "hidden"]
        assert [theirs[path] for path in paths] == expected


def test_a_share_that_is_not_here_tells_nothing(tmp_path: Path) -> None:
    data = job(f"#K8S_SCRIPT={tmp_path}/nas/gone.py", f"#SBATCH -o {tmp_path}/nas/logs/%j")
    (tmp_path / "nas").mkdir()
    here = parse({"nas": {"root": str(tmp_path / "nas"), "require_mountpoint": False}}, "test")
    unmounted = parse({"nas": {"root": str(tmp_path / "nas")}}, "test")
    assert file_facts(data, unmounted) == {}
    assert set(file_facts(data, here).values()) == {"missing"}
    found = check(data, Facts(site=site_of(here), files=file_facts(data, here))).findings
    assert {finding.code for finding in found} == {"no-script", "no-output-folder", "body-not-run"}


@pytest.mark.parametrize("name", ["nas", "data"])
def test_the_site_is_the_configuration(name: str) -> None:
    config = parse(
        {"mounts": {"data": {"source": "/srv/data", "target": "/data"}}, "partitions": {"gpu": {"image": "x"}}}, "test"
    )
    site = site_of(config)
    assert name in site.mounts
    assert site.shared_paths == ("/mnt/nas",)
    assert site.mount_targets == {"nas": "/mnt/nas", "data": "/data"}
    assert site.partition_images == {"gpu": "x"}
