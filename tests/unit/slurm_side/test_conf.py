"""Our part of slurm.conf and the Lua facts. Needs nothing."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from slurmk8s import config
from slurmk8s.cli.slurm_conf import slurm_conf
from slurmk8s.errors import SetupError
from slurmk8s.slurm import conf, lua_facts


def test_the_guides_settings_are_all_there() -> None:
    found = conf.settings()
    assert found["SchedulerType"] == "sched/backfill"
    assert (found["SelectType"], found["SelectTypeParameters"]) == ("select/cons_tres", "CR_Core_Memory")
    assert found["SchedulerParameters"].startswith("bf_max_job_test=200,bf_interval=15,bf_window=2880,")
    weights = [found[f"PriorityWeight{name}"] for name in ("Age", "Fairshare", "JobSize")]
    assert (found["PriorityType"], weights) == ("priority/multifactor", ["1000", "10000", "1000"])
    assert found["Prolog"] == "/usr/local/bin/slurm_k8s_prolog.sh"
    assert found["Epilog"] == "/usr/local/bin/slurm_k8s_epilog.sh"
    assert found["PrologEpilogTimeout"] == "600"


def test_the_hooks_can_lie_elsewhere() -> None:
    assert conf.settings("/a", "/b")["Prolog"] == "/a"
    assert conf.settings("/a", "/b")["Epilog"] == "/b"


def test_without_a_site_the_include_is_as_it_is() -> None:
    merged = conf.merged("# nothing\nClusterName=x\n")
    assert merged.text == (conf.files() / conf.INCLUDE).read_text()
    assert merged.notes == ()


@pytest.mark.parametrize(
    ("site", "line"),
    [
        (
            "SchedulerParameters=bf_interval=60,x",
            "SchedulerParameters=bf_interval=60,x,bf_max_job_test=200,bf_window=2880,nohold_on_prolog_fail,batch_sched_delay=0",
        ),
        ("prologflags = X11", "PrologFlags=X11,Alloc"),
        ("JobSubmitPlugins=all_partitions", "JobSubmitPlugins=all_partitions,lua"),
        ("SelectTypeParameters=CR_CPU", "SelectTypeParameters=CR_Core_Memory"),
        ("BatchStartTimeout=10", "BatchStartTimeout=120"),
        ("PrologEpilogTimeout=65534", "PrologEpilogTimeout=600"),
        ("Prolog=/etc/slurm/prolog.sh", "Prolog=/etc/slurm/prolog.d/*"),
    ],
)
def test_a_line_of_the_sites_is_merged_and_named(site: str, line: str) -> None:
    merged = conf.merged(f"ClusterName=x\n{site} # why\n")
    assert line in merged.text.splitlines()
    assert len(merged.notes) == 1
    assert merged.notes[0].startswith("Remove line 2 of slurm.conf, ")


@pytest.mark.parametrize(
    "site",
    ["KillWait=60", "SelectTypeParameters=CR_CPU_Memory", "PrologFlags=Contain", "PriorityWeightAge=5", "JobRequeue=0"],
)
def test_a_choice_that_we_can_live_with_stays(site: str) -> None:
    key, _, value = site.partition("=")
    merged = conf.merged(site)
    assert not any(line.startswith(f"{key}=") for line in merged.text.splitlines())
    assert f"# {key}: line 1 of your slurm.conf says {value}, which is kept." in merged.text
    assert merged.notes == ()


def test_a_folder_of_hooks_gets_ours_by_a_link() -> None:
    merged = conf.merged("Epilog=/etc/epilog.d/*")
    assert merged.notes == (
        "Link /usr/local/bin/slurm_k8s_epilog.sh into /etc/epilog.d: line 1 of slurm.conf runs /etc/epilog.d/*.",
    )


def test_merging_twice_changes_nothing_more() -> None:
    once = conf.merged("SchedulerParameters=bf_interval=60").text
    assert conf.merged(once).notes == ()


def test_a_running_slurm_is_judged_by_what_it_says() -> None:
    running = conf.settings() | {
        "KillWait": "30 sec",
        "SelectTypeParameters": "CR_CORE_MEMORY",
        "PrologFlags": "Alloc,Contain",
    }
    assert conf.wrong(running) == []
    running |= {"JobSubmitPlugins": "(null)", "Prolog": "(null)", "BatchStartTimeout": "10 sec"}
    assert conf.wrong(running) == [
        "JobSubmitPlugins is not set; slurmk8s needs JobSubmitPlugins=lua.",
        "Prolog is not set; slurmk8s needs Prolog=/usr/local/bin/slurm_k8s_prolog.sh.",
        "BatchStartTimeout is 10; slurmk8s needs BatchStartTimeout=120.",
    ]


def test_the_command_prints_the_include_and_tells_the_rest_on_stderr(tmp_path: Path) -> None:
    site = tmp_path / "slurm.conf"
    site.write_text("JobSubmitPlugins=x\n")
    done = CliRunner().invoke(slurm_conf, ["--site", str(site)])
    assert "JobSubmitPlugins=x,lua\n" in done.stdout
    assert done.stderr == (
        "slurmk8s: Remove line 1 of slurm.conf, JobSubmitPlugins=x: the include has JobSubmitPlugins=x,lua.\n"
    )


def test_the_packaged_files_are_found() -> None:
    folder = CliRunner().invoke(slurm_conf, ["files"]).stdout.strip()
    assert str(conf.files()) == folder
    for name in (conf.INCLUDE, *conf.LUA, "job_validator.sh", "job_watcher.sh", "mkinst", "mkyaml"):
        assert (conf.files() / name).is_file()


def test_the_lua_table_holds_the_sites_facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[images]\nallowed = ["a/", "b/"]\n[partitions.gpu]\nimage = "a/x:1"\n[partitions.cpu]\n')
    monkeypatch.setenv("SLURMK8S_CONFIG", str(path))
    text = CliRunner().invoke(slurm_conf, ["lua", "--run-program", "/opt/run"]).stdout
    assert 'run = "/opt/run",' in text
    assert 'allowed = { "a/", "b/" },' in text
    assert '["gpu"] = "a/x:1",' in text
    assert "cpu" not in text


def test_nothing_can_break_out_of_a_lua_string() -> None:
    assert lua_facts.literal('a"]] \n\\한') == '"a\\034\\093\\093 \\010\\092\\237\\149\\156"'


@pytest.mark.parametrize("path", ["slurmk8s-run", "/opt/my programs/run", "/x\ny"])
def test_a_path_that_cannot_stand_in_a_shebang_is_refused(path: str) -> None:
    with pytest.raises(SetupError, match="cannot stand in a #! line"):
        lua_facts.render(config.Config(), path)
