"""Which of the submitter's variables reach the body."""

import pytest

from slurmk8s.run.handover import environment, exported_names


@pytest.mark.parametrize(
    ("export", "expected"),
    [
        ("ALL", set()),
        ("NONE", set()),
        ("NIL", set()),
        ("ALL,LR=0.1", {"LR"}),
        ("LR=0.1,ALL", {"LR"}),
        ("LR,WORKERS", {"LR", "WORKERS"}),
        ("NONE,LR=0.1", {"LR"}),
        ("ALL, LR=0.1", {"LR"}),
        ("ALL=1", {"ALL"}),
        ("ALL,A='x,B=2',C=3", {"A", "C"}),
        ('ALL,A="x,B=2",C=3', {"A", "C"}),
        ("ALL,A=x=y", {"A"}),
        ("", set()),
        (",,", set()),
    ],
)
def test_export_names_variables(export: str, expected: set[str]) -> None:
    assert exported_names(export) == expected


def test_the_submitters_own_variables_stay_outside() -> None:
    """PATH and the libraries of the host are wrong in the image."""
    submitted = {"PATH": "/opt/host", "LD_LIBRARY_PATH": "/opt/lib", "PYTHONHOME": "/opt", "HOME": "/home/a"}
    assert environment(submitted, {"SLURM_EXPORT_ENV": "ALL"}, ["HF_*"]) == {}


def test_without_an_export_option_nothing_is_named() -> None:
    assert environment({"LR": "0.1"}, {}, []) == {}


def test_named_variables_are_handed_on_whatever_they_are() -> None:
    submitted = {"LR": "0.1", "PATH": "/mine", "OTHER": "x"}
    slurm = {"SLURM_EXPORT_ENV": "ALL,LR=0.1,PATH=/mine"}
    assert environment(submitted, slurm, []) == {"LR": "0.1", "PATH": "/mine"}


def test_patterns_of_the_site_are_case_sensitive_shell_patterns() -> None:
    submitted = {"HF_TOKEN": "1", "hf_token": "2", "XHF_A": "3", "LC_ALL": "ko_KR.UTF-8", "LANG": "C"}
    assert environment(submitted, {}, ["HF_*", "LANG", "LC_*"]) == {
        "HF_TOKEN": "1",
        "LC_ALL": "ko_KR.UTF-8",
        "LANG": "C",
    }


def test_slurms_variables_are_the_batch_scripts_not_the_steps() -> None:
    submitted = {"SLURM_NTASKS": "1", "SLURM_STEP_ID": "0", "SLURM_JOB_ID": "7"}
    slurm = {"SLURM_NTASKS": "4", "SLURM_JOB_ID": "7", "SLURM_EXPORT_ENV": "ALL,SLURM_STEP_ID"}
    assert environment(submitted, slurm, ["*"]) == {"SLURM_NTASKS": "4", "SLURM_JOB_ID": "7"}


def test_what_points_at_the_hosts_slurm_stays_outside() -> None:
    assert environment({}, {"SLURM_CONF": "/etc/slurm/slurm.conf", "SLURM_EXPORT_ENV": "NONE"}, []) == {}


@pytest.mark.parametrize("name", ["SLURMK8S_RESULTS", "SLURMK8S_WORKDIR", "slurmk8s_handover"])
def test_nobody_can_set_the_launchers_own_variables(name: str) -> None:
    assert environment({name: "/elsewhere"}, {"SLURM_EXPORT_ENV": f"ALL,{name}=/elsewhere"}, ["*"]) == {}


@pytest.mark.parametrize("name", ["a-b", "1A", "", "A B", "A\nB", "BASH_FUNC_module%%", "é", "A;touch x"])
def test_names_that_no_sh_can_export_are_left_out(name: str) -> None:
    assert environment({name: "x"}, {}, ["*"]) == {}


@pytest.mark.parametrize("name", ["UID", "IFS", "OPTIND", "PPID", "SHELLOPTS", "_"])
def test_variables_that_shells_hold_themselves_are_left_out(name: str) -> None:
    """In bash `export UID=5` ends the shell: the launcher would die before the body."""
    assert environment({name: "5"}, {"SLURM_EXPORT_ENV": f"ALL,{name}=5"}, ["*"]) == {}
