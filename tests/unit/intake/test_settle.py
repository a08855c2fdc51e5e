import pytest

from slurmk8s.intake.drop import Arrived, Drop, Look
from slurmk8s.intake.settle import Settling

DROP = Drop("", "job.sh")


def test_a_file_is_still_when_nothing_about_it_changed_for_the_settle_time() -> None:
    settling = Settling(2.0)
    look = Look(1, 10, 100)
    assert settling.still({DROP: look}, 0.0) == []
    assert settling.still({DROP: look}, 1.9) == []
    assert settling.still({DROP: look}, 2.0) == [DROP]


@pytest.mark.parametrize("changed", [Look(2, 10, 100), Look(1, 11, 100), Look(1, 10, 101)])
def test_any_change_starts_the_time_again(changed: Look) -> None:
    settling = Settling(2.0)
    settling.still({DROP: Look(1, 10, 100)}, 0.0)
    assert settling.still({DROP: changed}, 2.0) == []
    assert settling.still({DROP: changed}, 4.0) == [DROP]


def test_a_growing_file_waits_however_long() -> None:
    settling = Settling(2.0)
    for second in range(1000):
        assert settling.still({DROP: Look(1, second, second)}, float(second)) == []


def test_what_is_gone_is_forgotten() -> None:
    settling = Settling(2.0)
    for number in range(1000):
        settling.still({Drop("", f"{number}.sh"): Look(number, 1, 1)}, 0.0)
    assert len(settling._since) == 1
    assert settling.still({}, 1.0) == []
    assert settling.next_due(1.0) is None


def test_drops_that_are_ready_together_come_in_the_order_of_their_last_change() -> None:
    settling = Settling(1.0)
    looks = {Drop("", "b.sh"): Look(1, 1, 200), Drop("", "a.sh"): Look(2, 1, 300), Drop("", "c.sh"): Look(3, 1, 100)}
    settling.still(looks, 0.0)
    assert [drop.name for drop in settling.still(looks, 1.0)] == ["c.sh", "b.sh", "a.sh"]


def test_the_next_look_is_when_a_file_could_be_still_and_a_postponed_one_waits() -> None:
    settling = Settling(2.0)
    settling.still({DROP: Look(1, 1, 1)}, 10.0)
    assert settling.next_due(10.5) == 1.5
    settling.postpone(Arrived(DROP, Look(1, 1, 1)), 40.0)
    assert settling.still({DROP: Look(1, 1, 1)}, 13.0) == []
    assert settling.next_due(13.0) == 29.0


def test_a_file_with_a_hole_waits_until_it_is_filled_or_for_long() -> None:
    settling = Settling(2.0, hole_seconds=100.0)
    look, filled = Look(1, 10, 100), Look(1, 10, 200)
    settling.still({DROP: look}, 0.0)
    assert settling.still({DROP: look}, 2.0) == [DROP]
    settling.wait_for_filling(Arrived(DROP, look), 2.0)
    assert settling.still({DROP: look}, 50.0) == []
    assert settling.next_due(50.0) == 52.0
    assert settling.still({DROP: look}, 102.0) == [DROP]
    assert settling.has_waited(DROP)

    assert settling.still({DROP: filled}, 103.0) == []
    assert settling.still({DROP: filled}, 105.0) == [DROP]
    assert not settling.has_waited(DROP)
