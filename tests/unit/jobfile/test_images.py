"""Image references: the cases of the distribution project's own tests, as facts."""

import pytest

from slurmk8s.jobfile.image import allowed, parse, qualified

F64, F128 = "f" * 64, "f" * 128

# reference: registry, path, tag, digest. Where the grammar alone would call any first part a domain, docker's rule
# (a dot, a port, capitals or localhost) decides.
GOOD = {
    "test_com": ("", "test_com", "", ""),
    "test.com:tag": ("", "test.com", "tag", ""),
    "test.com:5000": ("", "test.com", "5000", ""),
    "test.com/repo:tag": ("test.com", "repo", "tag", ""),
    "test:5000/repo": ("test:5000", "repo", "", ""),
    "test:5000/repo:tag": ("test:5000", "repo", "tag", ""),
    f"test:5000/repo@sha256:{F64}": ("test:5000", "repo", "", f"sha256:{F64}"),
    f"test:5000/repo:tag@sha256:{F64}": ("test:5000", "repo", "tag", f"sha256:{F64}"),
    "lowercase:Uppercase": ("", "lowercase", "Uppercase", ""),
    "a/" * 127 + "a:tag-puts-this-over-max": ("", "a/" * 127 + "a", "tag-puts-this-over-max", ""),
    "sub-dom1.foo.com/bar/baz/quux": ("sub-dom1.foo.com", "bar/baz/quux", "", ""),
    "b.gcr.io/test.example.com/my-app:example.com": ("b.gcr.io", "test.example.com/my-app", "example.com", ""),
    "xn--n3h.com/myimage:xn--n3h.com": ("xn--n3h.com", "myimage", "xn--n3h.com", ""),
    f"xn--7o8h.com/myimage:xn--7o8h.com@sha512:{F128}": ("xn--7o8h.com", "myimage", "xn--7o8h.com", f"sha512:{F128}"),
    "foo_bar.com:8080": ("", "foo_bar.com", "8080", ""),
    "foo/foo_bar.com:8080": ("", "foo/foo_bar.com", "8080", ""),
    "192.168.1.1": ("", "192.168.1.1", "", ""),
    "192.168.1.1:5000": ("", "192.168.1.1", "5000", ""),
    "192.168.1.1:5000/repo:5050": ("192.168.1.1:5000", "repo", "5050", ""),
    "[2001:db8::1]/repo": ("[2001:db8::1]", "repo", "", ""),
    "[2001:db8::1]:5000/repo:tag": ("[2001:db8::1]:5000", "repo", "tag", ""),
    "[::1]:5000/repo": ("[::1]:5000", "repo", "", ""),
    "localhost/name": ("localhost", "name", "", ""),
    "localhost:8080/name": ("localhost:8080", "name", "", ""),
    "Docker/docker": ("Docker", "docker", "", ""),
    "docker---rules/docker": ("", "docker---rules/docker", "", ""),
    "dock__er/docker": ("", "dock__er/docker", "", ""),
    "registry.io/foo/project--id.module--name.ver---sion--name": (
        "registry.io", "foo/project--id.module--name.ver---sion--name", "", "",
    ),
    "nas-hub.local:5407/pytorch:2.0-cuda11.8": ("nas-hub.local:5407", "pytorch", "2.0-cuda11.8", ""),
}  # fmt: skip

BAD = [
    "",
    ":justtag",
    f"@sha256:{F64}",
    "repo@sha256:ffffffffffffffffffffffffffffffffff",
    f"validname@invaliddigest:{F64}",
    f"name@sha256:{'F' * 64}",
    "Uppercase:tag",
    "test:5000/Uppercase/lowercase:tag",
    "a/" * 128 + "a:tag",
    "aa/asdf$$^/aa",
    "[2001:db8::1]",
    "[2001:db8::1]:5000",
    "[fe80::1%eth0]:5000/repo",
    "[fe80::1%@invalidzone]:5000/repo",
    "https://github.com/docker/docker",
    "docker/Docker",
    "-docker",
    "-docker/docker",
    "-docker.io/docker/docker",
    "docker///docker",
    "docker.io/docker///docker",
    "docker/",
    "a//a/a",
    "fc00::1:5000/debian",
    "[2001:db8:3:4::192.0.2.33]:5000/debian",
    "1a3f5e7d9c1b3a5f7e9d1c3b5a7f9e1d3c5b7a9f1e3d5d7c9b1a3f5e7d9c1b3a",
    "docker-/docker",
    "____/____",
    "_docker/_docker",
    "dock..er/docker",
    "dock_.er/docker",
    "dock-.er/docker",
    "foo.com:http/bar",
    "foo_bar.com:8080/app",
    "example.com/__underscore/myimage",
    "example.com/..dots/myimage",
    "docker./docker",
    "registry.com:8080/myapp:invalid~tag",
    "registry.com:8080/myapp@bad",
    "name:",
    "name:tag\n",
    "name\n",
    "name:" + "t" * 129,
    "이미지:태그",
    "repo:태그",
    "a b",
    "x" * 100_000,
]


@pytest.mark.parametrize("text", GOOD)
def test_a_reference_is_taken_apart(text: str) -> None:
    reference = parse(text)
    assert (reference.registry, reference.path, reference.tag, reference.digest) == GOOD[text]
    assert str(reference) == text


@pytest.mark.parametrize("text", BAD, ids=[text[:50] for text in BAD])
def test_what_is_not_a_reference(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(text)


def test_a_bare_name_gets_the_sites_registry() -> None:
    assert qualified("pytorch:2.0", "hub:5407") == "hub:5407/pytorch:2.0"
    assert qualified("team/pytorch", "hub:5407") == "hub:5407/team/pytorch"
    assert qualified("docker.io/pytorch", "hub:5407") == "docker.io/pytorch"


@pytest.mark.parametrize(
    ("prefix", "image", "expected"),
    [
        ("hub:5407/", "hub:5407/x", True),
        ("hub:5407", "hub:5407/x", True),
        ("hub:5407", "hub:54070/x", False),
        ("hub/team", "hub/team/x", True),
        ("hub/team", "hub/team:1", True),
        ("hub/team", "hub/team-of-others/x", False),
        ("hub/", "evil.com/hub/x", False),
        ("", "evil.com/x", False),
    ],
)
def test_an_allowed_prefix_ends_at_a_boundary(prefix: str, image: str, expected: bool) -> None:
    assert allowed(image, (prefix,)) is expected
