"""A script means in the container what it means under plain Slurm: interpreter, arguments, environment, folder."""

from typing import Any

import pytest
from test_journey import ALPINE, DEBIAN, body


def output(cluster: Any, script: str, *options: str, **how: Any) -> str:
    job_id = cluster.sbatch(script, *options, **how)
    fields = cluster.wait(job_id)
    assert fields["JobState"] == "COMPLETED", cluster.stderr(job_id)
    return str(cluster.stdout(job_id))


def test_a_login_shell_is_one(cluster: Any) -> None:
    assert output(cluster, body("shopt -q login_shell && echo login", shebang="#!/bin/bash -l")) == "login\n"


def test_python_by_env_runs_python(cluster: Any) -> None:
    script = body('import sys; print("python", sys.version_info[0])', shebang="#!/usr/bin/env python3")
    assert output(cluster, script) == "python 3\n"


def test_env_dash_s_splits_its_words(cluster: Any) -> None:
    script = body("import sys; print(sys.flags.dont_write_bytecode)", shebang="#!/usr/bin/env -S python3 -B")
    assert output(cluster, script) == "1\n"


def test_arguments_arrive_as_they_are(cluster: Any) -> None:
    arguments = ("one", "two words", "it's", '"quoted"', "*", "$HOME", "", "한글")
    text = 'for word; do printf "[%s]\\n" "$word"; done'
    assert output(cluster, body(text), arguments=arguments) == "".join(f"[{word}]\n" for word in arguments)


def test_export_reaches_the_body_and_the_rest_of_the_environment_does_not(cluster: Any) -> None:
    text = 'echo "$LR|$WITH_SPACE|${UNNAMED-unset}|$HF_HOME|$SLURM_JOB_NAME|$SLURM_CPUS_PER_TASK|$SLURM_NTASKS"'
    given = {"UNNAMED": "no", "HF_HOME": "/mnt/nas/hf", "WITH_SPACE": "a 'b' $c"}
    shown = output(
        cluster,
        body(text),
        "--export=ALL,LR=0.1,WITH_SPACE",
        "--job-name=이름",
        "--cpus-per-task=2",
        "--ntasks=1",
        env=given,
    )
    assert shown == "0.1|a 'b' $c|unset|/mnt/nas/hf|이름|2|1\n"


def test_the_images_own_path_is_kept(cluster: Any) -> None:
    shown = output(cluster, body("echo $PATH", image=ALPINE), env={"PATH": "/usr/bin:/bin:/nowhere/of/mine"})
    assert "/nowhere" not in shown


def test_chdir_on_the_share_is_the_working_folder(cluster: Any) -> None:
    assert output(cluster, body("pwd"), "--chdir=/mnt/nas/work") == "/mnt/nas/work\n"


def test_a_folder_that_is_not_shared_becomes_the_workspace(cluster: Any) -> None:
    assert output(cluster, body("pwd"), cwd="/tmp") == "/workspace\n"


def test_the_body_can_read_itself(cluster: Any) -> None:
    script = body('head -n 1 "$0"; tail -n 1 "$0"\n# the last line')
    assert output(cluster, script) == "#!/bin/bash\n# the last line\n"


@pytest.mark.parametrize("name", ["PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP"])
def test_a_persons_own_python_variables_harm_nothing(cluster: Any, name: str) -> None:
    assert output(cluster, body("echo fine"), env={name: "/nonexistent"}) == "fine\n"


def test_a_script_on_the_nas_runs_instead_of_the_body(cluster: Any) -> None:
    path = cluster.layout.nas / "work" / "train.py"
    path.write_text("import os, sys\nprint('trained', sys.argv[1:], os.getcwd())\n")
    script = body("echo never", directives="#K8S_SCRIPT=/mnt/nas/work/train.py\n#K8S_WORKDIR=/workspace")
    assert output(cluster, script, arguments=("--epochs", "3")) == "trained ['--epochs', '3'] /workspace\n"


def test_a_missing_interpreter_ends_the_job_with_a_sentence_that_names_it(cluster: Any) -> None:
    job_id = cluster.sbatch(body("print(1)", image=ALPINE, shebang="#!/usr/bin/env python3"))
    fields = cluster.wait(job_id)
    summary = cluster.summary(job_id)
    assert fields["ExitCode"] == "127:0"
    assert "python3" in summary["cause"]
    assert "python3" in cluster.stderr(job_id)
    assert summary["fault"] == "person"


def test_the_person_is_known_in_the_container(cluster: Any) -> None:
    text = "import os, pwd; e = pwd.getpwuid(os.getuid()); print(e.pw_name, os.environ['HOME'] == e.pw_dir)\n"
    text += "open(os.path.expanduser('~/note'), 'w').write('x'); print(os.access('/etc/passwd', os.W_OK))"
    shown = output(cluster, body(text, image=DEBIAN, shebang="#!/usr/bin/env python3"))
    assert shown == f"{cluster.user} True\nFalse\n"


def test_the_umask_is_the_submitters(cluster: Any) -> None:
    path = cluster.layout.nas / "work" / "umask.sh"
    path.write_text(body("umask"))
    job = cluster.run("sh", "-c", 'umask 027; sbatch --parsable "$1"', "sh", path).stdout
    cluster.wait(int(job))
    assert cluster.stdout(int(job)) == "0027\n"


def test_shared_memory_is_half_of_the_jobs_memory_or_what_was_asked(cluster: Any) -> None:
    text = "df --output=size -B1 /dev/shm | tail -n 1"
    assert int(output(cluster, body(text))) == 128 << 20
    assert int(output(cluster, body(text, directives="#K8S_SHM=80M"))) == 80 << 20
