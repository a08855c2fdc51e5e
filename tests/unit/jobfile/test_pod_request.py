"""What the node makes of a stamp. It may come from anybody's `sbatch`, so it is as strict as the check."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmk8s.errors import PersonFault
from slurmk8s.jobfile import PodRequest, Site, pod_request

SITE = Site(
    mounts=("nas", "data"),
    mount_targets={"nas": "/mnt/nas", "data": "/data"},
    partition_images={"gpu": "quay.io/a/b:1"},
)


def test_a_full_stamp() -> None:
    stamp = (
        "#K8S_IMAGE=pytorch:2.0\n#K8S_WORKDIR=/mnt/nas/w/\n#K8S_SCRIPT=/data/a.py\n#K8S_PRIORITY=high-priority\n"
        "#K8S_SHM = 2G # remark\n#K8S_MOUNT=data,nas,data"
    )
    expected = PodRequest(
        "nas-hub.local:5407/pytorch:2.0", "/mnt/nas/w", "/data/a.py", "high-priority", 2 * 1024**3, ("data", "nas")
    )
    assert pod_request(stamp, SITE, "cpu", None) == expected


@pytest.mark.parametrize(
    ("folder", "workdir"),
    [
        (None, "/workspace"),
        ("/mnt/nas/home/kim", "/mnt/nas/home/kim"),
        ("/mnt/nas", "/mnt/nas"),
        ("/home/kim", "/workspace"),
        ("/mnt/nas/../../etc", "/workspace"),
        ("/mnt/nasty", "/workspace"),
        ("relative", "/workspace"),
    ],
)
def test_the_working_folder_without_a_line(folder: str | None, workdir: str) -> None:
    assert pod_request("#K8S_IMAGE=alpine", SITE, "cpu", folder).workdir == workdir


def test_the_partitions_own_image_needs_no_permission() -> None:
    assert pod_request("#K8S_SHM=1G", SITE, "gpu", None).image == "quay.io/a/b:1"
    assert pod_request("#K8S_IMAGE=quay.io/a/b:1", SITE, "gpu", None).image == "quay.io/a/b:1"
    with pytest.raises(PersonFault, match="allowed registry"):
        pod_request("#K8S_IMAGE=quay.io/a/b:1", SITE, "cpu", None)


@pytest.mark.parametrize(
    ("stamp", "sentence"),
    [
        ("", "names no image"),
        ("#K8S_SHM=1G", "names no image"),
        ("#K8S_IMAGE=docker.io/evil", "allowed registry"),
        ("#K8S_IMAGE=Evil", "not an image"),
        ("#K8S_IMAGE=alpine\n#K8S_IMAGE=alpine", "twice"),
        ("#K8S_IMAGE=alpine\n#K8S_MOUNT=root", "no mount 'root'"),
        ("#K8S_IMAGE=alpine\n#K8S_PRIORITY=system-node-critical", "no priority"),
        ("#K8S_IMAGE=alpine\n#K8S_SCRIPT=/etc/shadow", "not on the share"),
        ("#K8S_IMAGE=alpine\n#K8S_SCRIPT=/mnt/nas/../../etc/shadow", "cannot be run"),
        ("#K8S_IMAGE=alpine\n#K8S_SCRIPT=/data/x", "not on the share"),
        ("#K8S_IMAGE=alpine\n#K8S_WORKDIR=../x", "cannot be the working folder"),
        ("#K8S_IMAGE=alpine\n#K8S_SHM=1e9", "not a size"),
        ("#K8S_IMAGE=alpine\n#K8S_HOSTPATH=/", "no line #K8S_HOSTPATH"),
        ("#K8S_IMAGE=alpine\nimage: evil", "not a #K8S_ line"),
        ("#K8S_IMAGE", "no value"),
    ],
)
def test_a_bad_stamp_is_one_sentence(stamp: str, sentence: str) -> None:
    with pytest.raises(PersonFault, match=sentence) as caught:
        pod_request(stamp, SITE, "cpu", None)
    assert "\n" not in str(caught.value)


lines = st.lists(
    st.one_of(
        st.text(max_size=40),
        st.builds(
            "#K8S_{}{}{}".format,
            st.sampled_from(["IMAGE", "WORKDIR", "SCRIPT", "PRIORITY", "SHM", "MOUNT", "X"]),
            st.sampled_from(["=", " = ", ""]),
            st.one_of(st.text(max_size=30), st.sampled_from(["alpine", "/mnt/nas/x", "2G", "nas", "high-priority"])),
        ),
    ),
    max_size=6,
)


@given(lines, st.one_of(st.none(), st.text(max_size=20)))
def test_no_stamp_gets_past_the_policy(stamp: list[str], folder: str | None) -> None:
    try:
        request = pod_request("\n".join(stamp), SITE, "cpu", folder)
    except PersonFault:
        return
    assert request.image.startswith("nas-hub.local:5407/")
    assert request.workdir.startswith("/")
    assert ".." not in request.workdir.split("/")
    assert request.script is None or request.script.startswith(("/mnt/nas/", "/data"))
    assert request.priority in (None, "high-priority")
    assert set(request.mounts) <= {"nas", "data"}
