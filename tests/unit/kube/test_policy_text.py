"""What `slurmk8s cluster rbac` prints: whole, valid, and only this site's own."""

import pytest
import yaml
from click.testing import CliRunner

from slurmk8s.cli.cluster import cluster
from slurmk8s.config import Config, parse
from slurmk8s.kube import policy
from slurmk8s.kube.policy import Names, cel


def site(**data: object) -> Config:
    return parse({"backend": "kubernetes", **data}, "test")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("/mnt/nas", '"/mnt/nas"'),
        ("a'b\"c\\d", r'"a\U00000027b\U00000022c\U0000005cd"'),
        ("/mnt/실험\n", r'"/mnt/\U0000c2e4\U0000d5d8\U0000000a"'),
        (["a", "b"], '["a", "b"]'),
        ({"b": "2", "a": "1"}, '{"a": "1", "b": "2"}'),
        ([], "[]"),
        ({}, "{}"),
    ],
)
def test_values_of_the_site_are_literals(value: object, text: str) -> None:
    """Nothing that stands in a configuration can become part of an expression, or of the YAML around it."""
    assert cel(value) == text


def test_everything_is_there_once() -> None:
    documents = list(yaml.safe_load_all(policy.render(site(), ["gpu01", "gpu02"])))
    named = [(each["kind"], each["metadata"]["name"]) for each in documents]
    assert len(set(named)) == len(named) == 19
    assert ("ServiceAccount", "agent-gpu01") in named
    assert ("ClusterRoleBinding", "slurmk8s-agent-gpu02") in named
    assert all(policy.path(each).startswith("/api") for each in documents)
    policies = {each["metadata"]["name"] for each in documents if each["kind"] == "ValidatingAdmissionPolicy"}
    bound = [each["spec"] for each in documents if each["kind"] == "ValidatingAdmissionPolicyBinding"]
    assert {each["policyName"] for each in bound} == policies
    assert all(each["validationActions"] == ["Deny"] for each in bound)
    failing = [each["spec"]["failurePolicy"] for each in documents if each["kind"] == "ValidatingAdmissionPolicy"]
    assert failing == ["Fail"] * 4


def test_a_hostile_path_changes_no_expression() -> None:
    evil = {"source": "/x'] || true || ['\n---\nkind: Secret", "target": "/x"}
    documents = list(yaml.safe_load_all(policy.render(site(mounts={"evil": evil}))))
    assert "Secret" not in {each["kind"] for each in documents}
    pods = next(each for each in documents if each["metadata"]["name"] == "slurmk8s-pods")
    paths = next(each for each in pods["spec"]["variables"] if each["name"] == "hostPaths")["expression"]
    assert paths == r'["/mnt/nas", "/x\U00000027] || true || [\U00000027\U0000000a---\U0000000akind: Secret"]'


def test_clusters_share_a_kubernetes_without_meeting() -> None:
    ours, theirs = Names.of(site()), Names.of(site(cluster="lab"))
    assert ours.agent_user == "system:serviceaccount:slurmk8s:agent-"
    assert theirs.agent_user == "system:serviceaccount:slurmk8s:lab.agent-"
    both = [
        {(each["kind"], each["metadata"]["name"]) for each in yaml.safe_load_all(policy.render(config, ["gpu01"]))}
        for config in (site(), site(cluster="lab"))
    ]
    assert both[0] & both[1] == {("Namespace", "slurmk8s")}


def test_the_policies_hold_what_the_configuration_names() -> None:
    config = site(
        cluster="lab",
        mounts={
            "data": {"source": "/srv/data", "target": "/data", "read_only": True},
            "data-again": {"source": "/srv/data", "target": "/rw"},
            "papers": {"source": "/srv/papers", "target": "/papers", "read_only": True},
            "models": {"source": "/srv/m", "target": "/m", "nfs": "nas:/m", "read_only": True},
            "big": {"source": "/srv/b", "target": "/b", "claim": "big"},
        },
        partitions={"gpu": {"image": "torch:2", "priority": "gpu-jobs", "runtime_class": "kata"}},
        gpu={"mode": "pinned"},
        kubernetes={"namespace": "lab-%u", "nodes": {"n1": "k1"}},
    )
    values = policy.site(config)
    assert values["host_paths"] == ["/mnt/nas", "/srv/data", "/srv/papers"]
    assert values["read_only"] == ["/srv/papers", "nas:/m"]  # mounted twice, once writable, is writable
    assert (values["shares"], values["claims"]) == (["nas:/m"], ["big"])
    assert values["whole_images"] == ["nas-hub.local:5407/torch:2"]
    assert values["priorities"] == ["", "gpu-jobs", "high-priority"]
    assert values["runtime_classes"] == ["", "kata", "nvidia"]
    assert (values["namespace"], values["nodes"]) == ("lab-", {"n1": "k1"})


def test_the_command_prints_it(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.delenv("SLURMK8S_CONFIG", raising=False)
    shown = CliRunner().invoke(cluster, ["rbac", "--node", "gpu01"], catch_exceptions=False)
    assert shown.exit_code == 0
    kinds = [each["kind"] for each in yaml.safe_load_all(shown.output)]
    assert kinds.count("ValidatingAdmissionPolicy") == 4


def test_a_kubeconfig_is_for_somebody() -> None:
    for arguments in ([], ["--node", "gpu01", "--head"]):
        shown = CliRunner().invoke(cluster, ["kubeconfig", *arguments])
        assert shown.exit_code == 2
        assert "--node NODE or --head" in shown.output
