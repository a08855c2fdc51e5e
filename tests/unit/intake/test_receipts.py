import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmk8s.config import Intake, Nas
from slurmk8s.errors import ClusterFault, SlurmUnreachable
from slurmk8s.intake import claim as claims
from slurmk8s.intake import naming, receipts, texts
from slurmk8s.intake.drop import Drop
from slurmk8s.intake.folders import Folders
from slurmk8s.intake.receipts import Delivery
from slurmk8s.intake.steps import nothing_happens
from slurmk8s.language import Language


class Crash(BaseException):
    """Stands for the end of the process."""


@pytest.fixture
def delivery(submit: Path, opened: Folders) -> Iterator[Delivery]:
    yield from dropped(submit, opened, "job.sh")


def dropped(submit: Path, opened: Folders, name: str) -> Iterator[Delivery]:
    (submit / name).write_bytes(b"#!/bin/sh\n")
    claim = claims.take(opened, Drop("", name), nothing_happens)
    assert claim is not None
    with claims.opened(opened, claim) as inside:
        yield Delivery(opened, claim, inside, name, None, 0o640, nothing_happens)


def text_of(delivery: Delivery) -> str:
    return f"Reference: {delivery.claim.key}\n"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_receipt_is_right_in_windows_notepad(nas: Nas, delivery: Delivery) -> None:
    receipts.publish(receipts.prepare_job(delivery, 7, b"#!/bin/sh\n", "한글\nline\n"))
    folder = nas.jobs_folder / "processed"
    assert names(folder) == ["job.sh.7", "job.sh.7.receipt.txt"]
    assert (folder / "job.sh.7").read_bytes() == b"#!/bin/sh\n"
    assert (folder / "job.sh.7.receipt.txt").read_bytes() == "\ufeff한글\r\nline\r\n".encode()
    assert (folder / "job.sh.7").stat().st_mode & 0o777 == 0o640


def test_an_earlier_receipt_of_the_same_name_is_never_replaced(nas: Nas, submit: Path, opened: Folders) -> None:
    for number in range(3):
        for delivery in dropped(submit, opened, "job.sh"):
            receipts.publish(receipts.prepare_refusal(delivery, f"reason {number}"))
    folder = nas.jobs_folder / "failed"
    assert names(folder) == [
        "job-2.sh", "job-2.sh.error.txt", "job-3.sh", "job-3.sh.error.txt", "job.sh", "job.sh.error.txt",
    ]  # fmt: skip
    assert "reason 1" in (folder / "job-2.sh.error.txt").read_text(encoding="utf-8-sig")


def test_a_reason_left_behind_by_its_file_is_not_given_to_another(nas: Nas, delivery: Delivery) -> None:
    folder = nas.jobs_folder / "failed"
    (folder / "job.sh.error.txt").write_text("old")
    receipts.publish(receipts.prepare_refusal(delivery, "new"))
    assert names(folder) == ["job-2.sh", "job-2.sh.error.txt", "job.sh.error.txt"]


@pytest.mark.parametrize("crash_at", ["file delivered", "receipt delivered"])
@pytest.mark.parametrize("kind", ["job", "refusal"])
def test_a_delivery_that_is_repeated_after_a_crash_tells_nothing_twice(
    nas: Nas, delivery: Delivery, crash_at: str, kind: str
) -> None:
    def deliver(to: Delivery) -> None:
        if kind == "job":
            receipts.publish(receipts.prepare_job(to, 7, b"script", text_of(to)))
        else:
            receipts.publish(receipts.prepare_refusal(to, text_of(to)))

    def crash(step: str) -> None:
        if step == crash_at:
            raise Crash

    crashing = Delivery(*(getattr(delivery, name) for name in list(Delivery.__dataclass_fields__)[:-1]), crash)
    with pytest.raises(Crash):
        deliver(crashing)
    deliver(delivery)
    folder = nas.jobs_folder / ("processed" if kind == "job" else "failed")
    assert len(names(folder)) == 2


def test_a_half_written_receipt_is_written_again(nas: Nas, delivery: Delivery) -> None:
    folder = nas.jobs_folder / "processed"
    ended = receipts.prepare_job(delivery, 7, b"whole", text_of(delivery))  # whose process ended in the middle of it
    for name in names(folder):
        (folder / name).write_bytes(b"hal")
    receipts.publish(receipts.prepare_job(delivery, 7, b"whole", text_of(delivery)))
    assert names(folder) == ["job.sh.7", "job.sh.7.receipt.txt"]
    assert (folder / "job.sh.7").read_bytes() == b"whole"
    receipts.discard(ended)


def test_a_link_is_delivered_as_the_link_it_is(nas: Nas, submit: Path, opened: Folders, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (submit / "job.sh").symlink_to(secret)
    claim = claims.take(opened, Drop("", "job.sh"), nothing_happens)
    assert claim is not None
    with claims.opened(opened, claim) as inside:
        receipts.publish(
            receipts.prepare_refusal(Delivery(opened, claim, inside, "job.sh", None, 0o600, nothing_happens), "a link")
        )
    assert (nas.jobs_folder / "failed" / "job.sh").is_symlink()
    assert secret.stat().st_nlink == 1


def test_a_dropped_folder_comes_back_whole_with_its_reason(nas: Nas, submit: Path, opened: Folders) -> None:
    (submit / "data").mkdir()
    (submit / "data" / "x.csv").write_text("x")
    claim = claims.take(opened, Drop("", "data"), nothing_happens)
    assert claim is not None
    with claims.opened(opened, claim) as inside:
        receipts.publish(
            receipts.prepare_refusal(Delivery(opened, claim, inside, "data", None, 0o600, nothing_happens), "a folder")
        )
        assert claims.dropped_name(inside) is None
    assert names(nas.jobs_folder / "failed") == ["data", "data.error.txt"]
    assert (nas.jobs_folder / "failed" / "data" / "x.csv").exists()


def test_a_waiting_note_is_written_once_and_goes_away(submit: Path, delivery: Delivery) -> None:
    (submit / "job.sh.waiting.txt").write_text("somebody else's")
    for _ in range(2):
        receipts.tell_waiting(delivery, "waiting")
    assert names(submit) == ["job-2.sh.waiting.txt", "job.sh.waiting.txt"]
    receipts.clear_waiting(delivery.folders, delivery.claim, delivery.inside, None)
    assert names(submit) == ["job.sh.waiting.txt"]


def test_a_waiting_note_from_before_a_crash_is_recognised(submit: Path, delivery: Delivery) -> None:
    (submit / "job.sh.waiting.txt").write_text(f"Reference: {delivery.claim.key}")
    receipts.tell_waiting(delivery, "waiting")
    receipts.clear_waiting(delivery.folders, delivery.claim, delivery.inside, None)
    assert names(submit) == []


def test_the_readme_is_kept_up_to_date_and_never_written_through_a_link(
    submit: Path, opened: Folders, tmp_path: Path
) -> None:
    (tmp_path / "target").write_text("precious")
    (submit / "README.txt").symlink_to(tmp_path / "target")
    receipts.keep_readme(opened, "README.txt", "one")
    receipts.keep_readme(opened, "README.txt", "two")
    inode = (submit / "README.txt").stat().st_ino
    receipts.keep_readme(opened, "README.txt", "two")
    assert (tmp_path / "target").read_text() == "precious"
    assert (submit / "README.txt").read_text(encoding="utf-8-sig") == "two"
    assert (submit / "README.txt").stat().st_ino == inode


@given(st.binary(min_size=1, max_size=255).filter(lambda name: b"/" not in name and b"\0" not in name))
def test_whatever_the_drop_is_called_its_receipts_have_names_that_a_file_system_takes(raw: bytes) -> None:
    base = naming.base(os.fsdecode(raw))
    for name in itertools.islice(naming.numbered(base), 3):
        assert 0 < len(os.fsencode(f"{name}.4294967295{receipts.RECEIPT}")) <= 255
    assert naming.printable(os.fsdecode(raw)).isprintable()


def test_a_long_name_keeps_its_ending_and_whole_characters() -> None:
    base = naming.base("가" * 83 + ".sh")
    assert base.endswith("가.sh")
    assert list(itertools.islice(naming.numbered("job.sh"), 3)) == ["job.sh", "job-2.sh", "job-3.sh"]
    assert list(itertools.islice(naming.numbered("job"), 2)) == ["job", "job-2"]


@pytest.mark.parametrize("language", ["en", "ko"])
def test_every_text_says_who_what_and_the_reference(language: Language) -> None:
    told = texts.Told("{odd} name.sh", "kim", "0123456789abcdef", "2026-11-16 10:42:00")
    for text in (
        texts.job(language, told, 7, "/mnt/nas/results/7", "a {remark}", held=True),
        texts.refused(language, told, "line 3: {why}"),
        texts.waiting(language, told, "Slurm does not answer."),
        texts.done(language, told, texts.cancelled(language, "12_3")),
    ):
        assert "{odd} name.sh" in text
        assert "0123456789abcdef" in text
    assert "scontrol release 7" in texts.job(language, told, 7, "/r", "", held=True)
    guide = texts.readme(language, Intake(patterns=("*.sh", "*.job"), keep_receipts_days=41), "hub:5407", "/r")
    for words in ("*.sh, *.job", "hub:5407", "/r/", "cancel-1234", "41"):
        assert words in guide
    assert "{" not in texts.readme(language, Intake(keep_receipts_days=0), "hub:5407", "/r")


def test_a_waiting_note_says_in_the_persons_language_what_it_waits_for() -> None:
    silent = SlurmUnreachable("sbatch gave no answer within 60 seconds.", "Look at slurmctld's log.")
    assert texts.cause("en", silent) == "Slurm does not answer: sbatch gave no answer within 60 seconds."
    assert texts.cause("ko", silent).startswith("Slurm이 응답하지 않습니다.")
    assert texts.cause("ko", silent).endswith("sbatch gave no answer within 60 seconds.")
    assert "Slurm" not in texts.cause("ko", ClusterFault("The NAS is not mounted."))


def test_a_forged_receipt_is_not_taken_for_ours(nas: Nas, delivery: Delivery) -> None:
    """The key is in the job's comment, which everybody can read in Slurm."""
    folder = nas.jobs_folder / "processed"
    forged = folder / "job.sh.7.receipt.txt"
    forged.write_text(text_of(delivery))
    os.chown(forged, 54321, 54321)
    receipts.publish(receipts.prepare_job(delivery, 7, b"#!/bin/sh\n", text_of(delivery)))
    told = [path for path in folder.glob("*.receipt.txt") if path.stat().st_uid == os.geteuid()]
    assert len(told) == 1
    assert forged.stat().st_uid == 54321


def test_a_folder_in_the_place_of_a_waiting_note_stops_nothing(submit: Path, delivery: Delivery) -> None:
    receipts.tell_waiting(delivery, text_of(delivery))
    (note,) = submit.glob("*.waiting.txt")
    note.unlink()
    note.mkdir()
    receipts.clear_waiting(delivery.folders, delivery.claim, delivery.inside, None)
    assert note.is_dir()
