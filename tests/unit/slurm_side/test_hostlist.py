"""Slurm's short notations. Needs nothing."""

import pytest

from slurmk8s.slurm.hostlist import expand, numbers


@pytest.mark.parametrize(
    ("hosts", "names"),
    [
        ("node1", ("node1",)),
        ("node[1-2]", ("node1", "node2")),
        ("gpu[01-02,7],login", ("gpu01", "gpu02", "gpu7", "login")),
        ("gpu[098-101]", ("gpu098", "gpu099", "gpu100", "gpu101")),
        ("rack[1-2]n[1-2]", ("rack1n1", "rack1n2", "rack2n1", "rack2n2")),
        ("a-b[1]-c.d", ("a-b1-c.d",)),
        ("", ()),
        ("(null)", ()),
        ("n/a", ()),
    ],
)
def test_host_lists_are_written_out(hosts: str, names: tuple[str, ...]) -> None:
    assert expand(hosts) == names


@pytest.mark.parametrize("hosts", ["node[1-", "node[a]", "node]1[", ",node1", "node1,,node2"])
def test_what_is_no_host_list_is_refused(hosts: str) -> None:
    with pytest.raises(ValueError, match=r"not a Slurm host list|invalid literal"):
        expand(hosts)


def test_number_ranges_are_written_out() -> None:
    assert numbers("0-1,3,10-11") == (0, 1, 3, 10, 11)
    assert numbers("") == numbers("N/A") == ()
