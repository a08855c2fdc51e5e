import os
from pathlib import Path

import pytest

from slurmk8s.config import Nas
from slurmk8s.errors import ClusterFault
from slurmk8s.intake import claim as claims
from slurmk8s.intake import folders
from slurmk8s.intake.drop import Drop
from slurmk8s.intake.folders import Folders
from slurmk8s.intake.steps import nothing_happens

ODD_NAMES = [
    "a b.sh",
    "-rf.sh",
    "quote'\".sh",
    "new\nline.sh",
    "작업.sh",
    "\udcff\udcfe.sh",
    "x" * 252 + ".sh",
    "$(id).sh",
]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_claim_moves_the_drop_whole_into_a_folder_of_its_own(submit: Path, opened: Folders, name: str) -> None:
    (submit / name).write_bytes(b"bytes")
    claim = claims.take(opened, Drop("", name), nothing_happens)
    assert claim is not None
    assert list(submit.iterdir()) == []
    with claims.opened(opened, claim) as inside:
        assert claims.dropped_name(inside) == name
        assert claims.read_drop(inside, name, None, 100) == b"bytes"


def test_what_somebody_else_has_claimed_is_not_claimed_again(submit: Path, opened: Folders) -> None:
    (submit / "job.sh").write_text("x")
    assert claims.take(opened, Drop("", "job.sh"), nothing_happens) is not None
    assert claims.take(opened, Drop("", "job.sh"), nothing_happens) is None
    assert len(claims.claims(opened.open)) == 1


def test_claims_keep_the_order_of_arrival_and_the_persons_folder(submit: Path, opened: Folders) -> None:
    (submit / "kim.lee").mkdir()
    taken = []
    for number in range(5):
        (submit / "kim.lee" / f"{number}.sh").write_text("x")
        taken.append(claims.take(opened, Drop("kim.lee", f"{number}.sh"), nothing_happens))
    assert claims.claims(opened.open) == taken
    assert {claim.folder for claim in claims.claims(opened.open)} == {"kim.lee"}


def test_the_key_that_slurm_shows_does_not_tell_the_token(submit: Path, opened: Folders) -> None:
    (submit / "job.sh").write_text("x")
    claim = claims.take(opened, Drop("", "job.sh"), nothing_happens)
    assert claim is not None
    assert len(claim.token) == len(claim.key) == 32
    assert claim.token != claim.key


def test_a_claim_stays_reachable_while_another_watcher_moves_it_to_done(submit: Path, opened: Folders) -> None:
    (submit / "job.sh").write_text("x")
    claim = claims.take(opened, Drop("", "job.sh"), nothing_happens)
    assert claim is not None
    with claims.opened(opened, claim) as inside:
        claims.finish(opened, claim, inside, nothing_happens)
        assert claims.dropped_name(inside) is None
    assert claims.is_gone(opened, claim)
    assert claims.claims(opened.done) == [claim]
    claims.forget(opened, claim)
    assert claims.claims(opened.done) == []


@pytest.mark.parametrize("kind", ["symbolic-link", "hard-link", "special", "folder"])
def test_only_plain_files_with_one_name_are_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "drop"
    if kind == "symbolic-link":
        path.symlink_to("/etc/shadow")
    elif kind == "hard-link":
        path.write_text("x")
        path.with_name("other").hardlink_to(path)
    elif kind == "special":
        os.mkfifo(path)
    else:
        path.mkdir()
    refused = claims.refusal(path.lstat())
    assert refused is not None
    assert refused.code == kind
    assert refused.text("ko") != refused.text("en")


def test_nothing_is_made_on_a_mount_point_without_its_mount(tmp_path: Path) -> None:
    nas = Nas(root=tmp_path, require_mountpoint=True)
    with pytest.raises(ClusterFault, match="not a mount point"), folders.opened(nas, people_add=True):
        pass
    assert list(tmp_path.iterdir()) == []


def test_folders_are_made_so_that_nobody_can_remove_anothers_files(nas: Nas, opened: Folders) -> None:
    modes = {path.name: path.stat().st_mode & 0o7777 for path in nas.jobs_folder.iterdir()}
    assert modes == {"submit": 0o1777, "processed": 0o1777, "failed": 0o1777, ".intake": 0o700}


def test_folders_from_a_plain_mkdir_are_opened_and_an_admins_narrower_ones_stay(nas: Nas) -> None:
    for name, mode in (("submit", 0o755), ("processed", 0o777), ("failed", 0o1770)):
        (nas.jobs_folder / name).mkdir(parents=True)
        (nas.jobs_folder / name).chmod(mode)
    with folders.opened(nas, people_add=True):
        pass
    modes = {name: (nas.jobs_folder / name).stat().st_mode & 0o7777 for name in ("submit", "processed", "failed")}
    assert modes == {"submit": 0o1777, "processed": 0o1777, "failed": 0o1770}


def test_the_folder_of_the_index_is_nobodys_to_list_and_an_admins_own_stays(nas: Nas) -> None:
    folders.keep_index(nas)
    assert not nas.results_folder.exists()
    index = nas.results_folder / ".index"
    nas.results_folder.mkdir()
    for mode in (0o1733, 0o3773):
        folders.keep_index(nas)
        assert index.stat().st_mode & 0o7777 == mode
        index.chmod(0o3773)
